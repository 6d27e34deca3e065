// SPDX-License-Identifier: MIT
#pragma once
// Why a queue of the software engine stopped, as plain data and as a sentence.
//
//   if (const auto f = device.wait_fault(deadline)) puts(describe(*f).c_str());
//   // gpu 0 engine 2 queue 17 at 0x1a40: fence (offset 0x0): cannot write 0x7f0000001008: not mapped for this GPU
//
// Hardware reports less. The software engine finds a fault before the first store of its packet:
//
//   kind              software                          hardware
//   unmapped          queue stops, nothing written      VM fault: the kernel evicts ALL queues of the process on that
//                                                       GPU and raises a memory event; accesses may be dropped
//                                                       meanwhile, but the completion after them may still be seen
//   read_only         the same                          the same
//   unknown_packet    queue stops                       no event at all: the queue stalls
//   truncated_packet  queue stops                       the engine waits for the dwords that are missing
//   privileged        queue stops                       the kernel logs SRBM_WRITE, user space sees only that the queue
//                                                       stalls; for page tables nothing is documented
//   misaligned        queue stops                       not documented: low bits may be ignored
//   bad_field         queue stops                       not documented
//   overlap           queue stops                       not documented: the destination may hold anything
//   unsupported       queue stops                       works: software has no registers, no dirty bits, no endian
//                                                       swap, no tiled surfaces, and no packet whose fields are not
//                                                       described for its generation
//   poll_timeout      queue stops                       an interrupt that the kernel prints at debug level
//   bad_ib            queue stops                       not documented
//   bad_doorbell      queue stops                       an interrupt (byte enables), a wptr
//                                                       that moves backwards, or nothing
//   driver_error      never                             an error that ROCr, or CUDA's driver, reports
//   reset             never                             an exception event: all queues of
//                                                       the process on that GPU are lost
//
// A kernel driver reports the GPU, and the page of a VM fault, but neither the queue nor the position nor the packet.
// Those members are then 0, and `anonymous` says that they mean nothing: 0 is also the number of a queue.
//
// A Fault is a plain value; any thread may use a copy. Only `describe` allocates.
#include "sdma/core/units.hpp"
#include "sdma/packets/generation.hpp"
#include "sdma/packets/region.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// Why a queue stopped. (After poll_timeout, it may continue.)
enum class FaultKind : std::uint8_t {
  none,              ///< no fault
  unmapped,          ///< no memory at `va` for this GPU
  read_only,         ///< a store to a mapping that may only be read
  unknown_packet,    ///< a dword that does not begin a packet of this engine
  truncated_packet,  ///< the doorbell, or the end of an indirect buffer, lies inside a packet
  privileged,        ///< a privileged packet in a user queue
  misaligned,        ///< an address without the alignment that its packet requires
  bad_field,         ///< a value without a meaning, or a packet that breaks one of its rules
  overlap,           ///< source and destination of one packet overlap, or the destination overlaps itself
  unsupported,       ///< a feature or a packet that the hardware has, and this device's engines do not
  poll_timeout,      ///< a finite poll has expired
  bad_ib,            ///< an indirect buffer that is nested too deep, or is not in one mapping
  bad_doorbell,      ///< a position that goes backwards or beyond a whole ring, or is not a multiple of 4
  driver_error,      ///< CUDA's driver or ROCr reported an error, whose name is `rule`: the queues of the GPU are lost
  reset,             ///< the engine or the whole GPU was reset; software engines are never reset
};
std::string_view name(FaultKind) noexcept;
/// What a real MI300X would do instead, in one sentence.
std::string_view on_hardware(FaultKind) noexcept;

struct Fault {
  FaultKind kind = FaultKind::none;  ///< what happened
  Access access = Access::read;      ///< of unmapped and read_only
  std::uint8_t dword_count{};        ///< of `dwords`
  bool anonymous = false;            ///< reported by a kernel driver: queue, position and packet are not known
  std::uint8_t depth{};              ///< 0: in the ring; n: in an indirect buffer, nested n deep
  Generation generation = kDefaultGeneration;  ///< of the engine
  GpuId gpu{};                                 ///< whose engine stopped
  EngineId engine{};                           ///< which engine stopped
  std::uint64_t queue{};                       ///< Queue::id() of its queue
  std::uint64_t position{};  ///< bytes from the queue's beginning: the packet, or the INDIRECT that led to it
  std::uint64_t offset{};    ///< bytes from the beginning of the indirect buffer, if depth > 0
  GpuVa va{};                ///< the address that caused the fault, if one did
  /// misaligned, bad_field, unsupported: names from the layouts. bad_doorbell: `rule` is "alignment", "backwards" or
  /// "beyond-ring"; bad_ib: "depth" or "one-mapping". unsupported without a field: `rule` is the reason.
  std::string_view field{}, rule{};
  std::array<std::uint32_t, 16> dwords{};  ///< the beginning of the packet

  explicit operator bool() const noexcept { return kind != FaultKind::none; }
};

/// One line without a newline: where the fault occurred, at which packet, and what it was.
std::string describe(const Fault&);

}}  // namespace sdma::v0_3
