#pragma once
// A physical GPU as the CUDA device uses it: its context, its kernels, and a stream of the device's own.
//
//   PhysicalGpu gpu(driver, ordinal);
//   gpu.start();                                  // context, kernels, stream; a Diagnostic if the driver refuses
//   { const InContext here(gpu); driver.copy(...); }
//   gpu.copy_now(dst, src, bytes, deadline);      // on the own stream, and complete when it returns
//
// The own stream carries shadows, peeks and clocks; one thread at a time uses it, under its mutex. Waits for it are bounded,
// and no call here blocks while another stream waits at a poll.
//
// The first error of a call or a stream stops the GPU for good: `error`. Any thread; internal. Errors: the driver's status.
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

/// A GPU's context and kernels, which stay for the life of the process: loading a module blocks while any stream of the
/// process waits, and a stream may wait for ever.
struct Loaded {
  Context context{};
  std::map<std::string, Function, std::less<>> atomics{};
  Function timestamp{}, merge{};
};

/// How many streams of queues this process has, parked ones included. Pinned memory is given back to the driver only while
/// there is none, because that blocks while a stream waits.
std::atomic<std::uint32_t>& streams_of_process() noexcept;

class PhysicalGpu {
 public:
  static constexpr std::size_t kBounceBytes = 1 << 20;  ///< the piece in which shadows and peeks move

  PhysicalGpu(const Driver& d, int ordinal) noexcept : driver_(d), ordinal_(ordinal) {}
  ~PhysicalGpu();
  PhysicalGpu(const PhysicalGpu&) = delete;
  PhysicalGpu& operator=(const PhysicalGpu&) = delete;

  std::optional<Diagnostic> start();
  const Driver& driver() const noexcept { return driver_; }
  int ordinal() const noexcept { return ordinal_; }
  Context context() const noexcept { return loaded_ ? loaded_->context : nullptr; }
  int attribute(int which) const noexcept;
  std::size_t granularity() const noexcept { return granularity_; }
  bool host_atomics() const noexcept { return host_atomics_; }
  /// An entry of kernel_text(); null if there is none of that name.
  Function kernel(std::string_view name) const noexcept;
  Function timestamp() const noexcept { return loaded_->timestamp; }

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
  std::byte* bounce(int which) noexcept { return bounce_ + which * kBounceBytes; }

 private:
  bool finish(Status issued, Deadline) noexcept;

  const Driver& driver_;
  const int ordinal_;
  const Loaded* loaded_{};
  Stream own_{};
  std::size_t granularity_ = 1;
  bool host_atomics_ = false;
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
