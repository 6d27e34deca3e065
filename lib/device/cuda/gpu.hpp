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
#include "driver.hpp"
#include "sdma/core/deadline.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::inline v0::detail::cuda {

class PhysicalGpu {
 public:
  static constexpr std::size_t kBounceBytes = 1 << 20;  ///< the piece in which shadows and peeks move

  static constexpr std::uint32_t kMostWaiting = 30;

  static Result<PhysicalGpu*, Diagnostic> get(const Driver&, int ordinal);
  PhysicalGpu(const PhysicalGpu&) = delete;
  PhysicalGpu& operator=(const PhysicalGpu&) = delete;

  /// A stream that may wait; null: all are taken.
  Stream take_stream() noexcept;
  /// Its commands have ended.
  void give_stream(Stream) noexcept;
  Stream shared_stream() const noexcept { return shared_; }
  /// How many streams may wait: the driver's connections, less two.
  std::uint32_t streams() const noexcept { return streams_; }

  const Driver& driver() const noexcept { return driver_; }
  int ordinal() const noexcept { return ordinal_; }
  Context context() const noexcept { return context_; }
  int attribute(int which) const noexcept;
  std::size_t granularity() const noexcept { return granularity_; }
  bool host_atomics() const noexcept { return host_atomics_; }
  /// An entry of kernel_text(); null if there is none of that name.
  Function kernel(std::string_view name) const noexcept;
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
  bool copy_now(Pointer dst, Pointer src, std::size_t bytes, Deadline) noexcept;
  bool clear_now(Pointer, std::size_t bytes, Deadline) noexcept;
  /// The kernel `merge`; `now` and `before` are pinned.
  bool merge_now(Pointer to, const std::byte* now, const std::byte* before, std::size_t bytes, Deadline) noexcept;
  bool stamp_now(std::uint64_t* word, Deadline) noexcept;

  /// Guards the bounce buffers and the own stream.
  std::mutex& control() noexcept { return control_; }
  /// Two pinned buffers of kBounceBytes. Hold `control`.
  std::byte* bounce(std::size_t which) noexcept { return bounce_ + which * kBounceBytes; }

 private:
  PhysicalGpu(const Driver& d, int ordinal) noexcept : driver_(d), ordinal_(ordinal) {}
  std::optional<Diagnostic> start();
  bool finish(Status issued, Deadline) noexcept;

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
  std::byte* bounce_{};
  std::mutex control_;
  std::atomic<Status> error_{kSuccess};
};

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

}  // namespace sdma::inline v0::detail::cuda
