// SPDX-License-Identifier: MIT
#pragma once
// Real copy engines: NVIDIA GPUs, which execute the same rings by CUDA streams.
//
//   auto device = CudaDevice::open();
//   if (!device) return fail(to_string(device.error()));    // what is missing, where, and what to do
//   Device& d = **device;                                   // from here on like any other: see device/device.hpp
//
//   Ring -> wptr, doorbell -> wake --> decodes, checks, issues --> the queue's stream --> copy engines
//                                      | at most 768 unfinished calls per stream; the rest, and what the GPU
//                                      | cannot do, by
//                                      +--> the device's thread, which also finds doorbells without `wake`
//
// The thread that publishes issues. One that feeds a running stream wakes no other, and
// `issued` counts what it did.
//
// Programs still write sDMA packets; CUDA only executes them. Every queue has a stream, and a packet becomes commands
// of that stream: a copy becomes a copy, a FENCE a write of a value, a POLL a wait for a value. No call blocks
// `publish`. rptr moves when a packet has been issued, so an empty ring does not mean that anything is complete:
// completions are the packets' own words. Consecutive copies go out as one batch if the driver has batches (CUDA
// 12.8) and they do not overlap. Rows of a box between the host and a GPU go out as copies of batches while the engine
// has enough to do, and four rows or more as one strided copy when it would run out of work: this costs the host one
// call, and the engine a little more.
//
//   packet                                           executed by
//   linear copy, broadcast, box, copy_struct         copy engines; between two host buffers through GPU memory
//   swap                                             copy engines, in pieces, through memory of the queue
//   fill, WRITE                                      memsets and copies; up to 8 dwords as written values
//   FENCE                                            a written value
//   POLL, 32 bits: eq; ge, gt of 1 to 2^31           a stream's wait, if the word is in host memory or on this GPU
//   any other POLL, COND_EXEC, SEMAPHORE             the thread, after everything earlier is complete
//   ATOMIC to host memory                            the thread: over PCIe, a GPU's atomics are not atomic for the host
//   ATOMIC to GPU memory, TIMESTAMP                  a kernel of one thread
//   INDIRECT, PRE_EXEC, NOP                          decoding; the buffer must be in host memory
//   anything else                                    a fault: FaultKind::unsupported, with the reason
//
// CUDA compares cyclically: for its wait, 0xffffffff is less than 1. If a polled word jumps so far that CUDA's result
// differs from sDMA's, the queue stops with a fault instead of waiting for ever.
//
// Streams. A waiting stream occupies a connection of the driver. With more waiting streams than connections, unrelated
// streams are held up. So `open` sets CUDA_DEVICE_MAX_CONNECTIONS=32 before it initialises the driver, unless the
// variable is set; one stream is the library's own, and a physical GPU has at most 30 queues in the process: 6 engines
// of 5. If the program has initialised CUDA before, it must have set the variable itself.
//
// Memory. GPU memory is mapped by the driver's virtual memory calls, in units of 2 MiB. The host does not see it:
// `host_access` gives a shadow in host memory, and flush_host_writes moves what changed in both directions. Flush
// between a completion and your next store, too: the device does not notice a store of the value that the shadow
// already holds. Benchmarks use host_access = false. Host memory is pinned. Signals and mailboxes are always in host
// memory, whatever a request says. Freed pinned memory is used for later requests, and never given back to the driver,
// because that would block while a stream waits.
//
// `adopt` lends memory that others have allocated: with cudaMalloc, with PyTorch's allocator, or pinned in the host.
// Other GPUs of the request get peer access to the GPU that owns it. The host has no shadow of adopted GPU memory:
// `peek` reads it. Pageable memory is refused, because it would have to be pinned and later unpinned, which blocks
// while a stream waits.
//
// Destroying a queue, or a device with queues, waits until the issued commands of each have ended, for at most 10 s.
// Commands cannot be taken back from a stream: if one waits at a poll that is not satisfied, for longer than 100 ms,
// the stream and all memory that it may touch stay for the life of the process, and its later packets run if the word
// ever gets that value. `parked` counts such streams; each costs a queue of its GPU.
//
// Calls that wait for a GPU without a Deadline end with an error if it does not answer: `clock` after 10 s for each of
// three readings; `peek`, `flush_host_writes` and `allocate` with a shadow after 60 s for each MiB. The device's thread
// has the same bounds. What gives memory or a queue back waits until that thread has ended its round, and then for
// nothing: what a stream may still touch is given back by a later call.
//
// Logical GPUs. With CudaOptions::gpus above the number of physical GPUs, several logical GPUs share one: for
// correctness only, so that suites for three or eight GPUs run on one. Queues beyond 30 on a physical GPU then
// wait in the thread.
//
// Faults. A packet's fault stops its queue, as in software. An error that CUDA reports stops every queue of that
// physical GPU for good: FaultKind::driver_error, with the driver's name for it.
//
// Thread-safe, as Device is. Errors: those of Device, and Diagnostics from open.
#include "sdma/device/device.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

namespace detail::cuda {
class Node;
}

struct CudaOptions {
  std::string libcuda = "libcuda.so.1";         ///< a name for the loader, or a path
  std::uint32_t gpus = 0;                       ///< logical GPUs, at most 64; 0: the physical ones
  bool batches = true;                          ///< false: never a batch of copies, for measurements
  std::chrono::milliseconds scan_interval{50};  ///< the longest time until a doorbell without `wake` is seen; 0: never
};

/// What the driver says about a GPU. Same order as Topology::gpus.
struct CudaGpu {
  std::uint32_t physical{};    ///< the driver's ordinal
  std::string name{};          ///< "NVIDIA H100 80GB HBM3"
  std::string pci{};           ///< "0000:06:00.0"
  std::uint32_t capability{};  ///< 90: compute capability 9.0
  bool host_atomics{};         ///< the GPU's atomics to host memory are atomic for the host, too
};

/// What all queues of a device have issued so far. Rows of boxes are in `copies` or in `rows`: this says which way the
/// device has chosen.
struct CudaIssued {
  std::uint64_t calls{};    ///< of the driver: a batch is one
  std::uint64_t copies{};   ///< in batches or alone
  std::uint64_t batches{};  ///< of copies
  std::uint64_t boxes{};    ///< strided copies
  std::uint64_t rows{};     ///< of strided copies
  std::uint64_t refused{};  ///< batches that the driver has refused: their queue's copies go one by one
  std::uint64_t wakes{};    ///< times that a publisher has left something to the device's thread
};

class CudaDevice final : public ForwardingDevice {
 public:
  /// Opens the GPUs. Errors: the first of what `missing` lists, such as no driver or no GPU.
  static Result<std::unique_ptr<CudaDevice>, Diagnostic> open(const CudaOptions& = {});
  /// Every reason why `open` would fail, in the order of its checks; empty if a device can be opened. Initialises the
  /// driver if it can be loaded.
  [[nodiscard]] static std::vector<Diagnostic> missing(const CudaOptions& = {});
  ~CudaDevice() override;

  /// Memory that others have allocated. The handle does not free it. `bytes` from `pointer` on must lie in one
  /// allocation. `gpus`: bit g lets GPU g access it. Errors: the range is empty, longer than its allocation, or
  /// overlaps memory that this device lends; it belongs to a GPU that this device has not opened; CUDA can neither find
  /// nor pin it.
  Result<Memory, Diagnostic> adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus = ~0ull);

  /// The GPUs that were opened, in the order of Topology::gpus.
  const std::vector<CudaGpu>& gpus() const noexcept;
  /// "CUDA 13.0": what the driver supports.
  std::string version() const;
  /// How many physical GPUs the logical ones share.
  std::uint32_t physical_gpus() const noexcept;
  /// Counts of what queues have issued. They may be out of date by what is being issued.
  CudaIssued issued() const noexcept;
  /// Streams that wait for ever, because their queue was destroyed at a poll that was not satisfied.
  std::uint32_t parked() const noexcept;

 private:
  explicit CudaDevice(detail::cuda::Node*) noexcept;
  detail::cuda::Node* node_;
};

}}  // namespace sdma::v0_3
