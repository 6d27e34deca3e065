// SPDX-License-Identifier: MIT
#pragma once
// AMD GPUs in a process that HIP or ROCr owns: memory, queues and faults come from ROCr.
//
//   auto device = RocrDevice::open();                        // before or after HIP: hsa_init is counted
//   if (!device) return fail(to_string(device.error()));     // what is missing, where, and what to do
//   Device& d = **device;                                    // from here on like any other: see device/device.hpp
//
//   Memory m = *(*device)->adopt(tensor, bytes);             // hipMalloc's pointer: engines may access it, and the
//                                                            // handle does not free it
//
//   runtime     libhsa-runtime64.so.1, loaded when a device is opened, or the one that the process has loaded already
//   GPUs        ROCr's agents, in its order (ROCR_VISIBLE_DEVICES); engines have the driver's numbers
//   memory      ROCr's pools, with access for the GPUs of the request
//   queues      one of these, the first that there is:
//               hsa_amd_queue_create            ROCm 10.0.0 (HSA AMD interface 1.26)
//               hsa_amd_sdma_queue_create       builds of mid-2026; the ring has ROCr's size
//               libhsakmt, or the driver        if ROCr links to a libhsakmt.so.1 of its own, as Debian's does
//   events      ROCr's signals with interrupts; waits are the driver's
//
// When to use it. The driver gives a GPU's address space to one instance of libhsakmt in a process. A ROCr that
// contains its own therefore excludes a KfdDevice (device/kfd.hpp), in both orders of opening. A process without HIP
// and ROCr needs neither: use KfdDevice.
//
// GPUs. Every gfx9 whose packets are described (packets/generation.hpp), if ROCr shows it and it has sDMA engines;
// others are left out. Gpu::generation says which packets a GPU's engines take. On gfx900 to gfx904 and gfx90c, a ring
// takes submissions of 256 bytes or more: RingMemory::least_dwords, which Ring keeps.
//
// Adopted memory. ROCr says which GPU or host owns an address and how long the allocation is: a range beyond it is an
// error. `adopt` grants access to the GPUs of the request, in addition to the existing access, and does not revoke it.
// Memory that ROCr does not know counts as host memory, and is locked while the handle exists. Free memory after its
// handle is destroyed, not before.
//
// Faults. With hsa_amd_queue_create, ROCr calls back with the queue and its fault. Without, the device handles ROCr's
// system events for GPUs on which it has queues; ROCr then does not end the process, as it otherwise does. Either way:
// after a fault, no completion of the process can be trusted, and the GPU takes no new queues.
//
// A destroyed device asks ROCr to stop its queues; rings and memory stay until their handles are destroyed, and ROCr
// stays initialised until then. If another library destroys one of these queues, its ring is gone, and `fault(queue)`
// says so. Thread-safe, as Device is. Errors: those of Device, and Diagnostics from open and adopt.
//
// docs/device.md lists the versions of ROCr that this has run with; none of them exports either call.
#include "sdma/device/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

namespace detail {
class RocrNode;
}

/// Where to find ROCr and the driver.
struct RocrOptions {
  /// A name for the loader, or a path. Empty: the ROCr that this process has loaded, or else libhsa-runtime64.so.1.
  std::string libhsa{};
  std::string kfd = "/dev/kfd";             ///< the driver's device file
  std::string render = "/dev/dri/renderD";  ///< the GPU's minor number is appended
  std::string topology{kSysfsTopology};     ///< the directory with the driver's topology
};

/// Who makes the queues of a RocrDevice: see the top of this header.
enum class RocrQueues : std::uint8_t {
  runtime,  ///< hsa_amd_queue_create
  earlier,  ///< hsa_amd_sdma_queue_create
  thunk     ///< the libhsakmt that ROCr links to, or the driver
};

class RocrDevice final : public ForwardingDevice {
 public:
  /// Opens the GPUs that ROCr shows, and initialises ROCr if this process has not done so.
  static Result<std::unique_ptr<RocrDevice>, Diagnostic> open(const RocrOptions& = {});
  /// Every reason why `open` would fail, as far as it can tell; empty if a device can be opened. Initialises ROCr, and
  /// shuts it down again unless others use it.
  [[nodiscard]] static std::vector<Diagnostic> missing(const RocrOptions& = {});
  ~RocrDevice() override;

  /// Memory that others have allocated: with HIP, with a framework, or in the host. The handle does not free it.
  /// `bytes` from `pointer` on must lie in one allocation. `gpus`: bit g lets GPU g access it. Errors: the range is
  /// empty, or longer than its allocation; ROCr neither knows the address nor can lock it; a GPU cannot reach it.
  Result<Memory, Diagnostic> adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus = ~0ull);

  /// What makes the queues.
  RocrQueues queues() const noexcept;
  /// "1.1": the version of ROCr's interface.
  std::string version() const;

 private:
  explicit RocrDevice(detail::RocrNode*) noexcept;
  [[maybe_unused]] detail::RocrNode* node_;
};

}}  // namespace sdma::v0_3
