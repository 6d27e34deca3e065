// SPDX-License-Identifier: MIT
#pragma once
// A real node: MI300 and MI350 GPUs under the kernel driver (KFD). In a process that uses HIP, see device/rocr.hpp.
//
//   auto device = KfdDevice::open();
//   if (!device) return fail(to_string(device.error()));    // what is missing, where, and what to do
//   Device& d = **device;                                   // from here on like any other: see device/device.hpp
//
//   topology             the library itself reads /sys/devices/virtual/kfd
//   memory, events       libhsakmt.so.1, loaded when a device is opened
//   GPU, firmware        libdrm_amdgpu.so.1, loaded when a device is opened; without it, ioctls on the render nodes
//   queues               hsaKmtCreateQueueExt if libhsakmt has it, else the driver's ioctl on /dev/kfd, by engine id
//
// Why libhsakmt is loaded and not linked: a user of the headers or of the software device must not need it, neither to
// build nor to run; one build must work with and without hsaKmtCreateQueueExt in libhsakmt; and the headers that
// distributions ship are older than the library. So lib/device/kfd/thunk.hpp states its ABI, and a test compares that
// with the headers if they are installed.
//
// Memory by purpose. `data` is cached host memory, or VRAM (coarse-grained), mapped to the GPUs in the request's mask.
// `words` and `packets` are uncached, so that a running kernel sees what an engine stores; on this GPU, "fine-grained"
// does not guarantee that. VRAM is mapped for the host through the BAR, as write-combining memory. The host's accesses
// to it pass through the host data path (HDP). So call flush_host_writes between the host's stores and the doorbell,
// and between a completion and the host's loads. `peek` does so itself. New host memory is zeroed; the contents of new
// VRAM are undefined.
//
// Queues. rptr, wptr and ring have mappings of their own, which the driver pins while the queue exists. rptr is 16
// bytes, of which the upper 8 belong to the firmware; wptr has a cache line of its own. Creation and destruction
// preempt every queue of the GPU, including those of other processes: keep them out of measurements. Destruction does
// not drain: call `drain` (device/queues.hpp) first. Otherwise the contents of all memory that unfinished packets refer
// to are undefined. Once the destructor has returned, the engine no longer touches that memory.
//
// Faults. A VM fault or a reset removes all of the process's queues on that GPU, and then no completion of the process
// can be trusted: an access may have been dropped while the FENCE after it was executed. `wait_fault` reports each
// fault once, and `fault(queue)` reports it for every queue of the device. The device refuses to create new queues on
// that GPU, because they would never run, not even on another device of this process. The driver names the GPU and the
// page, but neither the queue nor the packet. It reports late: call `fault` after a completion, and once more when all
// work is complete. Hardware never reports an unknown opcode or a poll that waits forever. Only a deadline finds these:
// sync/wait.hpp.
//
// Completion by ATOMIC into host memory needs a link that completes 64-bit PCIe AtomicOps: Topology::completion says
// which packet to use, and `complete` (device/queues.hpp) writes it.
//
// Thread-safe, as Device is. Errors: those of Device, and Diagnostics from open.
#include "sdma/device/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

namespace detail {
class KfdNode;
}

/// The node of this machine, as the kernel describes it: needs neither a device nor its rights. Diagnostic: the file.
Result<Topology, Diagnostic> kfd_topology();

/// Where to find the driver and its libraries.
struct KfdOptions {
  std::string libhsakmt = "libhsakmt.so.1";   ///< a name for the loader, or a path
  std::string libdrm = "libdrm_amdgpu.so.1";  ///< the same; if it is "" or cannot be loaded, ioctls are used
  std::string kfd = "/dev/kfd";               ///< the driver's device file
  std::string render = "/dev/dri/renderD";    ///< the GPU's minor number is appended
  std::string topology{kSysfsTopology};       ///< the directory with the driver's topology
};

/// What the driver says about a GPU. Same order as Topology::gpus.
struct KfdGpu {
  SysfsGpu kernel{};                 ///< the kernel's numbers for it
  std::uint32_t sdma_firmware{};     ///< version of the firmware that the engines run
  std::uint32_t sdma_feature{};      ///< feature level of that firmware
  std::uint32_t compute_firmware{};  ///< version of the command processor's firmware
  std::uint64_t clock_hz{};          ///< rate of the clock that TIMESTAMP stores; 0: unknown, and Device::clock fails
  std::string driver{};              ///< "amdgpu 3.61"
  std::string source{};              ///< what reported firmware, clock and driver: KfdOptions::libdrm, or "ioctl"
};

class KfdDevice final : public ForwardingDevice {
 public:
  /// Opens the node of this machine. GPUs other than gfx94x and gfx950 are left out; the others keep their order.
  static Result<std::unique_ptr<KfdDevice>, Diagnostic> open(const KfdOptions& = {});
  /// Every reason why `open` would fail, in the order of its checks; empty if a device can be opened. Opens each file
  /// only to test whether it can be opened, and closes it at once.
  [[nodiscard]] static std::vector<Diagnostic> missing(const KfdOptions& = {});
  ~KfdDevice() override;

  /// The GPUs that were opened, in the order of Topology::gpus.
  const std::vector<KfdGpu>& gpus() const noexcept;
  /// "1.17": the version of the driver's interface.
  std::string version() const;

 private:
  explicit KfdDevice(detail::KfdNode*) noexcept;
  [[maybe_unused]] detail::KfdNode* node_;
};

}}  // namespace sdma::v0_3
