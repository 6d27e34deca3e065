#include "gpu.hpp"

#include "kernels.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <memory>

namespace sdma::inline v0::detail::cuda {

std::atomic<std::uint32_t>& streams_of_process() noexcept {
  static std::atomic<std::uint32_t> count{0};
  return count;
}

namespace {

/// What was loaded for this GPU before, or now. `what`: what failed.
const Loaded* load(const Driver& d, int ordinal, Status* status, const char** what) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<const Driver*, int>, std::unique_ptr<Loaded>>;  // never destroyed
  const std::lock_guard lock(mutex);
  if (const auto at = all->find({&d, ordinal}); at != all->end()) return at->second.get();
  auto l = std::make_unique<Loaded>();
  const auto good = [&](const char* step, Status s) {
    *what = step;
    *status = s;
    return s == kSuccess;
  };
  if (!good("its context cannot be created", d.retain_context(&l->context, ordinal))) return nullptr;
  if (!good("its context cannot be used", d.push_context(l->context))) return nullptr;
  Module module{};
  bool loaded = good("the kernels cannot be compiled", d.load_module(&module, kernel_text().c_str()));
  for (const auto* name : atomic_kernels())
    loaded = loaded && good("a kernel is missing", d.function(&l->atomics[name], module, name));
  loaded = loaded && good("a kernel is missing", d.function(&l->timestamp, module, "timestamp")) &&
           good("a kernel is missing", d.function(&l->merge, module, "merge"));
  Context former{};
  d.pop_context(&former);
  if (!loaded) return nullptr;
  return all->emplace(std::pair(&d, ordinal), std::move(l)).first->second.get();
}

}  // namespace

/// The bounce buffers are given back like other pinned memory: only if that cannot block.
PhysicalGpu::~PhysicalGpu() {
  if (!context() || error() != kSuccess) return;
  const InContext here(*this);
  if (own_) driver_.stream_destroy(own_);
  if (bounce_ && streams_of_process().load() == 0) driver_.host_free(bounce_);
}

int PhysicalGpu::attribute(int which) const noexcept {
  int value = 0;
  return driver_.device_attribute(&value, which, ordinal_) == kSuccess ? value : 0;
}

std::optional<Diagnostic> PhysicalGpu::start() {
  const auto refused = [&](const char* what, Status s) {
    return Diagnostic{.where = fmt::format("CUDA GPU {}", ordinal_),
                      .message = fmt::format("{}: {}", what, driver_.describe(s)),
                      .hint = "nvidia-smi shows whether the GPU works, and who else uses it"};
  };
  if (attribute(kVirtualMemory) == 0 || attribute(kUnifiedAddressing) == 0)
    return Diagnostic{.where = fmt::format("CUDA GPU {}", ordinal_),
                      .message = "lacks virtual memory management or unified addressing",
                      .hint = "use a GPU of compute capability 7.0 or later, on Linux"};
  if (attribute(kComputeMajor) < 7)
    return Diagnostic{.where = fmt::format("CUDA GPU {}", ordinal_),
                      .message = fmt::format("has compute capability {}.{}", attribute(kComputeMajor),
                                             attribute(kComputeMinor)),
                      .hint = "use a GPU of compute capability 7.0 or later"};
  auto status = kSuccess;
  const char* what = "";
  loaded_ = load(driver_, ordinal_, &status, &what);
  if (!loaded_) return refused(what, status);
  const InContext here(*this);
  host_atomics_ = attribute(kHostAtomics) != 0;
  MemoryProperties p;
  p.location.id = ordinal_;
  if (const auto s = driver_.granularity(&granularity_, &p, 0); s != kSuccess)
    return refused("the granularity of its memory is not known", s);
  if (const auto s = driver_.stream_create(&own_, kNonBlocking, 0); s != kSuccess)
    return refused("a stream cannot be created", s);
  void* pinned = nullptr;
  if (const auto s = driver_.host_allocate(&pinned, 2 * kBounceBytes, kPortable | kDeviceMapped); s != kSuccess)
    return refused("no pinned memory", s);
  bounce_ = static_cast<std::byte*>(pinned);
  return {};
}

Function PhysicalGpu::kernel(std::string_view name) const noexcept {
  const auto at = loaded_->atomics.find(name);
  return at == loaded_->atomics.end() ? nullptr : at->second;
}

bool PhysicalGpu::finish(Status issued, Deadline d) noexcept {
  if (!good(issued)) return false;
  for (Backoff b;;) {
    const auto s = driver_.stream_query(own_);
    if (s == kSuccess) return true;
    if (s != kNotReady) return good(s);
    if (!b.step(d)) return false;
  }
}

bool PhysicalGpu::copy_now(Pointer dst, Pointer src, std::size_t bytes, Deadline d) noexcept {
  const InContext here(*this);
  return finish(driver_.copy(dst, src, bytes, own_), d);
}

bool PhysicalGpu::clear_now(Pointer at, std::size_t bytes, Deadline d) noexcept {
  const InContext here(*this);
  return finish(driver_.set_8(at, 0, bytes, own_), d);
}

bool PhysicalGpu::merge_now(Pointer to, const std::byte* now, const std::byte* before, std::size_t bytes,
                            Deadline d) noexcept {
  const InContext here(*this);
  auto a = reinterpret_cast<Pointer>(now), b = reinterpret_cast<Pointer>(before);
  auto n = static_cast<unsigned long long>(bytes);
  void* arguments[] = {&to, &a, &b, &n};
  return finish(driver_.launch(loaded_->merge, 64, 1, 1, 256, 1, 1, 0, own_, arguments, nullptr), d);
}

bool PhysicalGpu::stamp_now(std::uint64_t* word, Deadline d) noexcept {
  const InContext here(*this);
  auto at = reinterpret_cast<Pointer>(word);
  void* arguments[] = {&at};
  return finish(driver_.launch(loaded_->timestamp, 1, 1, 1, 1, 1, 1, 0, own_, arguments, nullptr), d);
}

}  // namespace sdma::inline v0::detail::cuda
