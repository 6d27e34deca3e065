#pragma once
// Compute queues, as far as they go without shaders: AQL packets that synchronise are answered, a kernel dispatch is refused.
//
//   barrier-and, barrier-or    wait for their signals, then complete
//   barrier-value (AMD)        waits for a value, then completes
//   PM4 buffer (AMD)           completes: on this node it is cache maintenance, and there are no caches
//   ROCr's own copies, fills   are done: see blit.hpp
//   kernel or agent dispatch   any other: never completes: the queue stops with an error that the runtime reports, and stderr names the
//                              dispatch
//
// A signal is completed as a command processor does it: times stamped, value decremented, mailbox written, interrupt raised.
// All addresses are the GPU's. Served by the GPU's server; see hw_queue.hpp.
#include "events.hpp"
#include "hw_queue.hpp"

#include <functional>

namespace sdma::emulator {

struct AqlConfig {
  std::uint32_t id{};
  GpuId gpu{};
  std::byte* ring{};
  std::uint64_t packets{};  ///< a power of two
  std::uint64_t *doorbell{}, *wptr{}, *rptr{};
  GpuVa rptr_va{};  ///< read_dispatch_id: what else belongs to the queue is found from there
  AddressSpace::Reader* reader{};
  Events* events{};
  std::function<void(GpuVa)> vm_fault{};
};

/// Where compute queues stand among a GPU's engines: behind all sDMA engines.
inline constexpr EngineId kComputeEngine{63};

class AqlQueue final : public HwQueue {
 public:
  explicit AqlQueue(AqlConfig);
  Progress step() noexcept override;

 private:
  void rung(std::uint64_t) noexcept override {}
  Progress packet(std::byte* at) noexcept;
  bool signal_is_zero(std::uint64_t handle, bool* mapped) noexcept;
  void complete(std::uint64_t handle, std::uint64_t began) noexcept;
  Progress refuse(const std::byte* at, const char* what) noexcept;
  Progress fault(std::uint64_t va) noexcept;

  AqlConfig c_;
  std::uint64_t read_;
  bool stopped_ = false;
};

}  // namespace sdma::emulator
