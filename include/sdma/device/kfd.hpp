#pragma once
// A real node: MI300X behind the kernel driver (KFD).
//
//   auto device = KfdDevice::open();
//   if (!device) return fail(to_string(device.error()));    // what is missing, where, and what to do
//   Device& d = **device;                                   // from here on as any other: see device/device.hpp
//
//   topology             /sys/devices/virtual/kfd                          read by us
//   GPU, firmware        libdrm_amdgpu.so.1, loaded likewise; where it is missing, its questions as ioctls on the render nodes
//   memory, events       libhsakmt.so.1, loaded when a device is opened
//   queues               hsaKmtCreateQueueExt where libhsakmt has it, else the driver's ioctl on /dev/kfd, by engine id
//
// Why loaded and not linked: who wants headers or the software device must not need libhsakmt, neither to build nor to run;
// one build must serve a libhsakmt with and without queues by engine; and headers of distributions lag behind the library.
// So its ABI is stated in lib/device/kfd/thunk.hpp, and a test compares it with the headers where they are installed.
//
// Memory by purpose. data: cached host memory, or VRAM (coarse-grained) mapped to the GPUs of the mask. words and packets:
// uncached, so that a running kernel sees what an engine stores; "fine-grained" does not say that on this GPU. VRAM is
// mapped for the host through the BAR, write-combining and behind the host data path (HDP): call flush_host_writes between
// the host's stores and the doorbell, and between a completion and the host's loads. `peek` does so by itself. VRAM holds
// anything when it is lent; host memory zeros.
//
// Queues. rptr, wptr and ring lie in mappings of their own that the driver pins while the queue lives; rptr is 16 bytes, of
// which the upper 8 are the firmware's; wptr has a cache line of its own. Creation and destruction preempt every queue of
// the GPU, those of other processes included: keep them out of what is measured. Destruction does not drain: `drain`
// (device/queues.hpp) first, else all that unfinished packets name is undefined. When it returns the engine touches nothing.
//
// Faults. A VM fault or a reset takes all of the process's queues on that GPU away, and no completion of the process says
// anything any more: an access may have been dropped while the FENCE behind it was done. `wait_fault` tells each once,
// `fault(queue)` says so of every queue of the device, and the GPU gets no new queues: another device of this process would get
// some that never run. The driver names the GPU and the page, not the queue nor the packet. It says it late: ask behind a
// completion, and for the last time when all is done.
// What hardware never reports (an unknown opcode, a poll that waits for ever) only a deadline finds: sync/wait.hpp.
//
// Completion by ATOMIC into host memory needs a link that completes 64-bit PCIe AtomicOps: Topology::completion says which
// packet is right, and device/queues.hpp writes it.
//
// After fork the child has neither memory nor queues of the device: everything there is an error, destructors leave all to
// the parent. Thread-safe as Device is. Errors: Diagnostics as Device has them, and from open.
#include "sdma/device/device.hpp"
#include "sdma/device/sysfs.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sdma {
inline namespace v0 {

namespace detail {
class KfdNode;
}

struct KfdOptions {
  std::string libhsakmt = "libhsakmt.so.1";   ///< a name for the loader, or a path
  std::string libdrm = "libdrm_amdgpu.so.1";  ///< likewise; "", or one that cannot be loaded: the ioctls
  std::string kfd = "/dev/kfd";
  std::string render = "/dev/dri/renderD";  ///< a GPU's minor number is added
  std::string topology{kSysfsTopology};
};

/// What the driver says of a GPU. Same order as Topology::gpus.
struct KfdGpu {
  SysfsGpu kernel{};                 ///< its numbers in the kernel
  std::uint32_t sdma_firmware{};     ///< of the engines: the version that runs
  std::uint32_t sdma_feature{};      ///< and its feature level
  std::uint32_t compute_firmware{};  ///< of the command processor
  std::uint64_t clock_hz{};          ///< of TIMESTAMP
  std::string driver{};              ///< "amdgpu 3.61"
  std::string source{};              ///< who told the four above: KfdOptions::libdrm, or "ioctl"
};

class KfdDevice final : public Device {
 public:
  /// GPUs that are no gfx94x are left out; the others keep their order.
  static Result<std::unique_ptr<KfdDevice>, Diagnostic> open(const KfdOptions& = {});
  /// All that `open` would stumble over, in that order; empty if a device can be opened. Opens nothing for longer than it
  /// takes to see that it could be.
  static std::vector<Diagnostic> missing(const KfdOptions& = {});
  ~KfdDevice() override;

  const Topology& topology() const noexcept override;
  Result<Memory, Diagnostic> allocate(const MemoryRequest&) override;
  using Device::create_signal;
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest&) override;
  Result<Event, Diagnostic> create_event() override;
  Result<Queue, Diagnostic> create_queue(const QueueRequest&) override;
  Errc wait_event(const Event&, Deadline) noexcept override;
  Result<Fault> wait_fault(Deadline) noexcept override;
  std::optional<Fault> fault(const Queue&) const noexcept override;
  Errc flush_host_writes(GpuId) const noexcept override;
  Errc peek(GpuVa, std::span<std::byte>) const noexcept override;
  Result<Clock> clock(GpuId) const noexcept override;

  const std::vector<KfdGpu>& gpus() const noexcept;
  /// "1.17": the driver's interface.
  std::string version() const;

 private:
  explicit KfdDevice(detail::KfdNode* node) noexcept : node_(node) {}
  [[maybe_unused]] detail::KfdNode* node_;
};

}  // namespace v0
}  // namespace sdma
