// SPDX-License-Identifier: MIT
#include "gpu.hpp"

#include "kernels.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace sdma::inline v0::detail::cuda {

namespace {

/// The connections of the driver, as the environment sets them: streams beyond share one, and hold each other up.
std::uint32_t connections() noexcept {
  const char* text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return static_cast<std::uint32_t>(std::clamp(text ? std::strtoul(text, nullptr, 10) : 8, 1ul, 32ul));
}

}  // namespace

Result<PhysicalGpu*, Diagnostic> PhysicalGpu::get(const Driver& d, int ordinal) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<const Driver*, int>, PhysicalGpu*>;
  const std::lock_guard lock(mutex);
  auto& gpu = (*all)[{&d, ordinal}];
  if (gpu) return gpu;
  auto* const fresh = new PhysicalGpu(d, ordinal);  // also kept if it fails: what was created cannot be given back
  if (auto why = fresh->start()) return *why;
  return gpu = fresh;
}

Stream PhysicalGpu::take_stream() noexcept {
  const std::lock_guard lock(free_mutex_);
  if (free_.empty()) return nullptr;
  const auto s = free_.back();
  free_.pop_back();
  return s;
}

void PhysicalGpu::give_stream(Stream s) noexcept {
  const std::lock_guard lock(free_mutex_);
  free_.push_back(s);  // within the capacity that `start` reserved
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
    return Diagnostic{
        .where = fmt::format("CUDA GPU {}", ordinal_),
        .message = fmt::format("has compute capability {}.{}", attribute(kComputeMajor), attribute(kComputeMinor)),
        .hint = "use a GPU of compute capability 7.0 or later"};
  if (const auto s = driver_.retain_context(&context_, ordinal_); s != kSuccess)
    return refused("its context cannot be created", s);
  const InContext here(*this);
  host_atomics_ = attribute(kHostAtomics) != 0;
  MemoryProperties p;
  p.location.id = ordinal_;
  if (const auto s = driver_.granularity(&granularity_, &p, 0); s != kSuccess)
    return refused("the granularity of its memory is not known", s);
  Module module{};
  if (const auto s = driver_.load_module(&module, kernel_text().c_str()); s != kSuccess)
    return refused("the kernels cannot be compiled", s);
  const auto take = [&](Function& to, const char* name) { return driver_.function(&to, module, name); };
  for (const auto* name : atomic_kernels())
    if (const auto s = take(kernels_[name], name); s != kSuccess) return refused("a kernel is missing", s);
  if (const auto s = take(timestamp_, "timestamp"); s != kSuccess) return refused("a kernel is missing", s);
  if (const auto s = take(merge_, "merge"); s != kSuccess) return refused("a kernel is missing", s);
  const auto n = connections();
  streams_ = n > 2 ? std::min(n - 2, kMostWaiting) : 1;
  free_.resize(streams_);
  for (auto* s : {&own_, &shared_})
    if (const auto status = driver_.stream_create(s, kNonBlocking, 0); status != kSuccess)
      return refused("a stream cannot be created", status);
  for (auto& s : free_)
    if (const auto status = driver_.stream_create(&s, kNonBlocking, 0); status != kSuccess)
      return refused("a stream cannot be created", status);
  void* pinned = nullptr;
  if (const auto s = driver_.host_allocate(&pinned, 2 * kBounceBytes, kPortable | kDeviceMapped); s != kSuccess)
    return refused("no pinned memory", s);
  bounce_ = static_cast<std::byte*>(pinned);
  return {};
}

Function PhysicalGpu::kernel(std::string_view name) const noexcept {
  const auto at = kernels_.find(name);
  return at == kernels_.end() ? nullptr : at->second;
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
  return finish(driver_.launch(merge_, 64, 1, 1, 256, 1, 1, 0, own_, arguments, nullptr), d);
}

bool PhysicalGpu::stamp_now(std::uint64_t* word, Deadline d) noexcept {
  const InContext here(*this);
  auto at = reinterpret_cast<Pointer>(word);
  void* arguments[] = {&at};
  return finish(driver_.launch(timestamp_, 1, 1, 1, 1, 1, 1, 0, own_, arguments, nullptr), d);
}

}  // namespace sdma::inline v0::detail::cuda
