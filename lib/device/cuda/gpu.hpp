// SPDX-License-Identifier: MIT
#pragma once
// A physical GPU as CUDA devices use it: its context, its kernels, and its streams. One for the whole process.
//
//   auto gpu = PhysicalGpu::get(driver, ordinal);  // a Diagnostic if the driver refuses
//   { const InContext here(*gpu); driver.copy(...); }
//   gpu->copy_now(dst, src, bytes, deadline);      // on the own stream, and complete when it returns
//   Stream s = gpu->take_stream();                 // null: every stream that may wait is taken
//
//   connections of the driver   0         1             2 ... 31
//   streams                     own       shared        those that may wait at a poll
//
// All streams are created when the GPU is first used, and none later: a new one would share a connection with one of
// these, and stall when that one waits. The own stream carries shadows, peeks and clocks; one thread at a time uses it,
// under `control`. The shared stream executes the queues that never wait. Nothing is given back to the driver before
// the process ends: a stream may wait for ever, and most calls that free something would then block.
//
// Waits for the own stream are bounded. The first error of a call or a stream stops the GPU for good: `error`. Any
// thread; internal. Errors: the driver's status.
#include "cuda_driver.hpp"
#include "kernels.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

/// The connections of the driver, as the environment sets them: streams beyond share one, and hold each other up.
inline std::uint32_t connections() noexcept {
  const char* text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return static_cast<std::uint32_t>(std::clamp(text ? std::strtoul(text, nullptr, 10) : 8, 1ul, 32ul));
}

class PhysicalGpu {
 public:
  /// Makes a GPU's context the calling thread's current one, and puts the former back.
  class InContext {
   public:
    explicit InContext(PhysicalGpu& g) noexcept : gpu_(g) { pushed_ = g.good(g.driver().push_context(g.context())); }
    ~InContext() {
      Context former{};
      if (pushed_) gpu_.driver().pop_context(&former);
    }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;

   private:
    PhysicalGpu& gpu_;
    bool pushed_ = false;
  };

  static constexpr std::size_t kBounceBytes = 1 << 20;  ///< the piece in which shadows and peeks move

  static constexpr std::uint32_t kMostWaiting = 30;

  static Result<PhysicalGpu*, Diagnostic> get(const Driver& d, int ordinal) {
    auto& all = of_process();
    const std::lock_guard lock(all.mutex);
    auto& gpu = all.gpus[{&d, ordinal}];
    if (gpu) return gpu;
    auto* const fresh = new PhysicalGpu(d, ordinal);  // also kept if it fails: what was created cannot be given back
    if (auto why = fresh->start()) return *why;
    return gpu = fresh;
  }
  PhysicalGpu(const PhysicalGpu&) = delete;
  PhysicalGpu& operator=(const PhysicalGpu&) = delete;

  /// Have the streams of all GPUs ended their commands?
  static bool all_idle() noexcept {
    auto& all = of_process();
    const std::lock_guard lock(all.mutex);
    return std::all_of(all.gpus.begin(), all.gpus.end(), [](const auto& g) { return !g.second || g.second->idle(); });
  }

  /// A stream that may wait; null: all are taken.
  Stream take_stream() noexcept {
    const std::lock_guard lock(free_mutex_);
    if (free_.empty()) return nullptr;
    const auto s = free_.back();
    free_.pop_back();
    return s;
  }
  /// Its commands have ended.
  void give_stream(Stream s) noexcept {
    const std::lock_guard lock(free_mutex_);
    free_.push_back(s);  // within the capacity that `start` reserved
  }
  Stream shared_stream() const noexcept { return shared_; }
  /// How many streams may wait: the driver's connections, less two.
  std::uint32_t streams() const noexcept { return streams_; }

  const Driver& driver() const noexcept { return driver_; }
  int ordinal() const noexcept { return ordinal_; }
  Context context() const noexcept { return context_; }
  int attribute(int which) const noexcept {
    int value = 0;
    return driver_.device_attribute(&value, which, ordinal_) == kSuccess ? value : 0;
  }
  std::size_t granularity() const noexcept { return granularity_; }
  /// Can its memory be exported as a descriptor?
  bool shares() const noexcept { return attribute(kFileHandles) != 0; }
  bool host_atomics() const noexcept { return host_atomics_; }
  /// An entry of kernel_text(); null if there is none of that name.
  Function kernel(std::string_view name) const noexcept {
    const auto at = kernels_.find(name);
    return at == kernels_.end() ? nullptr : at->second;
  }
  Function timestamp() const noexcept { return timestamp_; }

  /// Keeps the first error. Returns whether `s` is success.
  bool good(Status s) noexcept {
    if (s == kSuccess) return true;
    auto none = kSuccess;
    error_.compare_exchange_strong(none, s, std::memory_order_acq_rel);
    return false;
  }
  Status error() const noexcept { return error_.load(std::memory_order_acquire); }

  // Each waits until the work is complete. False: an error, or the deadline has passed; the GPU is then stopped.
  bool copy_now(Pointer dst, Pointer src, std::size_t bytes, Deadline d) noexcept {
    const InContext here(*this);
    return finish(driver_.copy(dst, src, bytes, own_), d);
  }
  bool clear_now(Pointer at, std::size_t bytes, Deadline d) noexcept {
    const InContext here(*this);
    return finish(driver_.set_8(at, 0, bytes, own_), d);
  }
  /// The kernel `merge`; `now` and `before` are pinned.
  bool merge_now(Pointer to, const std::byte* now, const std::byte* before, std::size_t bytes, Deadline d) noexcept {
    const InContext here(*this);
    auto a = reinterpret_cast<Pointer>(now), b = reinterpret_cast<Pointer>(before);
    auto n = static_cast<unsigned long long>(bytes);
    void* arguments[] = {&to, &a, &b, &n};
    return finish(driver_.launch(merge_, 64, 1, 1, 256, 1, 1, 0, own_, arguments, nullptr), d);
  }
  bool stamp_now(std::uint64_t* word, Deadline d) noexcept {
    const InContext here(*this);
    auto at = reinterpret_cast<Pointer>(word);
    void* arguments[] = {&at};
    return finish(driver_.launch(timestamp_, 1, 1, 1, 1, 1, 1, 0, own_, arguments, nullptr), d);
  }

  /// Guards the bounce buffers and the own stream.
  std::mutex& control() noexcept { return control_; }
  /// Two pinned buffers of kBounceBytes. Hold `control`.
  std::byte* bounce(std::size_t which) noexcept { return bounce_ + which * kBounceBytes; }

 private:
  struct All {
    std::mutex mutex{};
    std::map<std::pair<const Driver*, int>, PhysicalGpu*> gpus{};
  };
  static All& of_process() {
    static auto* const only = new All;
    return *only;
  }
  bool idle() noexcept {
    const InContext here(*this);
    return std::all_of(all_.begin(), all_.end(), [&](Stream s) { return driver_.stream_query(s) == kSuccess; });
  }

  PhysicalGpu(const Driver& d, int ordinal) noexcept : driver_(d), ordinal_(ordinal) {}
  std::optional<Diagnostic> start() {
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
    if (shares()) p.handle_types = kFileDescriptor;  // what is shared may need larger pieces
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
    all_ = free_;
    all_.insert(all_.end(), {own_, shared_});
    void* pinned = nullptr;
    if (const auto s = driver_.host_allocate(&pinned, 2 * kBounceBytes, kPortable | kDeviceMapped); s != kSuccess)
      return refused("no pinned memory", s);
    bounce_ = static_cast<std::byte*>(pinned);
    return {};
  }
  bool finish(Status issued, Deadline d) noexcept {
    if (!good(issued)) return false;
    for (Backoff b;;) {
      const auto s = driver_.stream_query(own_);
      if (s == kSuccess) return true;
      if (s != kNotReady) return good(s);
      if (!b.step(d)) return false;
    }
  }

  const Driver& driver_;
  const int ordinal_;
  Context context_{};
  Stream own_{}, shared_{};
  std::size_t granularity_ = 1;
  bool host_atomics_ = false;
  std::map<std::string, Function, std::less<>> kernels_;
  Function timestamp_{}, merge_{};
  std::uint32_t streams_ = 0;
  std::mutex free_mutex_;
  std::vector<Stream> free_;  ///< guarded by free_mutex_
  std::vector<Stream> all_;
  std::byte* bounce_{};
  std::mutex control_;
  std::atomic<Status> error_{kSuccess};
};

using InContext = PhysicalGpu::InContext;

}}}  // namespace sdma::v0_3::detail::cuda
