#pragma once
// Why a queue of the software engine stopped: plain data, and a sentence.
//
//   if (const Fault* f = pipeline.fault()) puts(describe(*f).c_str());
//   // gpu 0 engine 2 queue 17 at 0x1a40: fence (offset 0x0): cannot write 0x7f0000001008: not mapped for this GPU
//
// Real engines tell less. A fault is found here before the first store of its packet; on hardware:
//
//   kind              software                          hardware
//   unmapped          queue stops, nothing written      VM fault: the kernel evicts ALL queues of the process on that GPU
//                                                       and raises a memory event; accesses may be dropped meanwhile and
//                                                       the completion behind them may even be seen
//   read_only         the same                          the same
//   unknown_packet    queue stops                       no event at all: a queue that stands still
//   truncated_packet  queue stops                       the engine waits for the dwords that are missing
//   privileged        queue stops                       SRBM_WRITE is logged by the kernel, user space sees a queue that
//                                                       stands still; for page tables nothing is documented
//   misaligned        queue stops                       not documented: low bits may be ignored
//   bad_field         queue stops                       not documented
//   overlap           queue stops                       not documented: the destination holds anything
//   unsupported       queue stops                       works: software has no registers, no dirty bits, no endian swap
//   poll_timeout      stops or goes on: PollTimeout     an interrupt that the kernel prints at debug level
//   bad_ib            queue stops                       not documented
//   bad_doorbell      queue stops                       an interrupt (byte enables), or wptr moves backwards, or nothing
//   reset             never                             an exception event: all of the process's queues there are gone
//
// A kernel driver tells the GPU, and of a VM fault the page, but not queue, position nor packet: those are 0 then.
//
// A Fault is a value: copy it to any thread. `describe` allocates; the rest does not.
#include "sdma/core/units.hpp"
#include "sdma/engine/memory.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {

enum class FaultKind : std::uint8_t {
  none,
  unmapped,          ///< no memory at `va` for this GPU
  read_only,         ///< a store to a mapping that may only be read
  unknown_packet,    ///< a dword that begins no packet of this engine, or one that is only recognised
  truncated_packet,  ///< the doorbell, or the end of an indirect buffer, lies inside a packet
  privileged,        ///< a kernel's packet on a user queue
  misaligned,        ///< an address that its packet does not take
  bad_field,         ///< a value without a meaning, or a rule of the packet broken
  overlap,           ///< source and destination of one packet overlap, or the destination overlaps itself
  unsupported,       ///< the hardware has it and the software engine does not
  poll_timeout,      ///< a finite poll has expired
  bad_ib,            ///< an indirect buffer nested too deep, or not in one mapping
  bad_doorbell,      ///< a position that goes backwards, beyond a whole ring, or is no multiple of 4
  reset,             ///< the engine or the whole GPU was reset; no software engine ever is
};
std::string_view name(FaultKind) noexcept;
/// What a real MI300X would show instead. One sentence.
std::string_view on_hardware(FaultKind) noexcept;

struct Fault {
  FaultKind kind = FaultKind::none;
  Access access = Access::read;  ///< of unmapped and read_only
  std::uint8_t dword_count{};    ///< of `dwords`
  std::uint8_t depth{};          ///< 0: in the ring; n: in the n-th indirect buffer below it
  GpuId gpu{};
  EngineId engine{};
  std::uint64_t queue{};
  std::uint64_t position{};  ///< bytes from the queue's beginning: the packet, or the INDIRECT that led to it
  std::uint64_t offset{};    ///< bytes from the beginning of the indirect buffer, where depth > 0
  GpuVa va{};                ///< the address that is to blame, where there is one
  /// misaligned, bad_field, unsupported: names from the layouts. bad_doorbell: `rule` is "alignment", "backwards" or
  /// "beyond-ring"; bad_ib: "depth" or "one-mapping".
  std::string_view field{}, rule{};
  std::array<std::uint32_t, 16> dwords{};  ///< the beginning of the packet

  explicit operator bool() const noexcept { return kind != FaultKind::none; }
};

/// One line, no newline: where, which packet, what.
std::string describe(const Fault&);

}  // namespace v0
}  // namespace sdma
