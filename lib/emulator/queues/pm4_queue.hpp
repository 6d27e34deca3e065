#pragma once
// Compute queues of PM4 packets: the five packets with which test programs raise events, without shaders.
//
//   opcode   packet            dwords   effect here
//   0x10     NOP               1 + n    nothing
//   0x37     WRITE_DATA        4 + n    dword 1: destination 11:8 (2 or 5: memory), one address 16;  2-3 address;  4.. data
//   0x3f     INDIRECT_BUFFER   4        1-2 address;  3: dwords 19:0
//   0x49     RELEASE_MEM       7, 8     2: interrupt 26:24 (1, 2: yes), data 31:29 (0 none, 1 32 bits, 2 64 bits, 3 the clock);
//                                       3-4 address;  5-6 data;  7: the interrupt's number
//   0x58     ACQUIRE_MEM       7        nothing: there are no caches
//
//   header   31:30 = 3, 29:16 dwords after the header - 1, 15:8 opcode;  NOP with 0x3fff there: the header alone
//
// Any other packet, such as a dispatch, stops the queue: a message on stderr names it, and the process's HW_EXCEPTION
// events are raised. Positions count dwords. As on hardware, rptr is a 32-bit position within the ring. The GPU's
// server serves the queue; see hw_queue.hpp.
#include "hw_queue.hpp"

namespace sdma::emulator {

class Pm4Queue final : public HwQueue {
 public:
  explicit Pm4Queue(ComputeConfig);
  Progress step() noexcept override;

 private:
  /// Dwords from a position in the ring, which wraps, or in an indirect buffer.
  struct Words {
    std::span<const std::uint32_t> of;
    std::uint64_t from{}, count{};
    std::uint32_t operator[](std::uint64_t i) const noexcept { return of[(from + i) % of.size()]; }
    Words behind(std::uint64_t n) const noexcept { return {of, from + n, count - n}; }
  };

  void rung(std::uint64_t position) noexcept override { written_ = position; }
  /// Executes the first packet. Returns its length in dwords; 0: the queue has stopped.
  std::uint64_t packet(Words, bool indirect) noexcept;
  bool write_data(Words) noexcept;
  bool release(Words) noexcept;
  bool run_buffer(Words) noexcept;
  std::byte* memory(std::uint64_t va, std::uint64_t bytes, Access) noexcept;
  bool refuse(std::uint32_t header, const char* why) noexcept;

  ComputeConfig c_;
  std::uint64_t read_ = 0, written_ = 0;
  bool stopped_ = false;
};

}  // namespace sdma::emulator
