// SPDX-License-Identifier: MIT
#pragma once
// Executes PM4 packets without shaders: waits, writes, fences, interrupts and timestamps. A queue of PM4 packets uses
// it, and an AQL queue for the vendor packet that jumps to a buffer of PM4.
//
//   auto r = pm4.step({ring, position, published}, position * 4);
//   if (r.dwords != 0) store rptr;             // the packet is complete
//   pm4.notify();                              // raises its interrupt: rptr and data are visible by then
//
//   packet             effect here                                          refused by name
//   NOP                nothing
//   WRITE_DATA         stores dwords to memory                              registers, engines other than the queue's
//   COPY_DATA          memory, a constant or the GPU's clock to memory      registers, counters
//   ATOMIC_MEM         the operations of the sDMA packet, once per XCC      loops
//   WAIT_REG_MEM, 64   waits for memory; a flush of the HDP completes       other registers
//   RELEASE_MEM        data or the clock to memory, then the interrupt      conditional interrupts, counters, pointers
//   ACQUIRE_MEM        nothing: there are no caches
//   EVENT_WRITE        nothing: no work is in flight when it is reached     counters, which it would write to memory
//   SET_SH_REG         keeps the address of the code, to name dispatches    (other values: state of dispatches only)
//   PRED_EXEC          skips dwords unless an XCC of this partition is selected
//   INDIRECT_BUFFER    executes the buffer                                  buffers within a buffer, chains
//   DISPATCH_*         see skipped.hpp                                      by default
//
// One processor stands for all XCCs of the partition. Each of them executes each packet on hardware, which only an
// atomic shows. A step executes one packet of the ring, or at most kBatch packets of a buffer, and ends after an
// interrupt. A wait that is not satisfied is a step that waits: the next step reads the memory again. A packet that is
// refused or touches memory that is not mapped stops the queue, and stderr says why. Use it inside a Section of the
// reader; one thread. Nothing throws.
#include "hw_queue.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sdma::emulator::pm4 {

class Pm4 {
 public:
  /// Dwords from a position in a ring, which wraps, or in a buffer.
  struct Words {
    std::span<const std::uint32_t> of;
    std::uint64_t from{}, count{};
    std::uint32_t operator[](std::uint64_t i) const noexcept { return of[(from + i) % of.size()]; }
    Words after(std::uint64_t n) const noexcept { return {of, from + n, count - n}; }
  };
  struct Result {
    Progress progress{};
    std::uint64_t dwords{};  ///< of the packet, once it is complete; otherwise 0: call again with the same packet
  };

  /// `config` must outlive this object.
  explicit Pm4(const ComputeConfig& config) noexcept : c_(config) {}

  /// Executes the packet at the front of `w`. `position`: its bytes in the ring, for messages.
  Result step(Words w, std::uint64_t position) noexcept;
  /// Raises the interrupt of the last step, if that had one.
  void notify() noexcept {
    if (const auto id = std::exchange(interrupt_, {})) c_.events->interrupt(*id);
  }
  /// True if the queue stopped because of a fault, which the process already knows of.
  bool faulted() const noexcept { return faulted_; }

  static constexpr std::uint32_t kBatch = 64;

 private:
  enum class Status : std::uint8_t { complete, waits, stopped };
  enum Level : std::uint8_t { kRing, kBuffer };
  struct Predicate {
    std::uint64_t dwords{};  ///< that it still concerns
    std::uint32_t xccs{};
  };
  struct Buffer {
    std::uint64_t va{}, dwords{}, done{};
    std::uint64_t jump{};  ///< dwords of the packet that jumped to it
  };

  /// The length of the first packet; 0: it is refused.
  std::uint64_t length_of(const Words& w) noexcept;
  bool enter(const Words& w) noexcept;
  Result run_buffer() noexcept;
  Status packet(Words w, Level level) noexcept;
  Status execute(Words w) noexcept;
  Status write_data(Words w) noexcept;
  Status copy_data(Words w) noexcept;
  Status atomic(Words w) noexcept;
  Status wait(Words w, bool wide) noexcept;
  Status release(Words w) noexcept;
  Status dispatch(Words w) noexcept;
  /// The XCCs that execute the present packet, as bits.
  std::uint32_t xccs() const noexcept;
  void passed(Level level, std::uint64_t dwords) noexcept;
  /// Null: misaligned or not mapped, and the queue has stopped.
  std::byte* memory(std::uint64_t va, std::uint64_t bytes, std::uint64_t alignment, Access access) noexcept;
  bool store(std::uint64_t va, std::uint64_t value, bool wide) noexcept;
  Status refuse(std::uint32_t header, const char* why) noexcept;
  void print_place() const noexcept;

  const ComputeConfig& c_;
  EngineState clock_{};
  std::array<Predicate, 2> predicates_{};
  std::optional<Buffer> buffer_{};
  std::optional<std::uint32_t> interrupt_{};
  std::array<std::uint32_t, 2> code_{};  ///< the registers with the address of a dispatch's code
  std::uint64_t position_ = 0;
  bool faulted_ = false;
};

}  // namespace sdma::emulator::pm4

namespace sdma::emulator {
using pm4::Pm4;
}
