#pragma once
// What a packet touches: exact bytes, before anything is done. And what kind of effect it has, for whoever orders packets.
//
//   footprint(CopyLinear{.src = a, .dst = b, .bytes = 64}, [](const Region& r) { ... });
//       {a, 64, read}  {b, 64, write}
//   role(fence)   ==   Role::release
//
// An overload a packet, in the order of Packets: a new packet without one does not compile (see the static_assert at the
// end). Regions of a box are strided (rows, slices), not their hull. The engine checks them before a packet's first store,
// the schedule checker looks for races in them, the simulator counts their bytes.
//
// An INDIRECT's footprint is its buffer; what the packets in there touch is theirs. A POLL's is its word. Registers are no
// memory. Kernel packets give what they touch too: whether they may is not asked here.
// Constant expressions: no state, no error. A region may run past the end of the addresses: whoever maps it finds out.
#include "sdma/engine/memory.hpp"
#include "sdma/packets/registry.hpp"

namespace sdma {
inline namespace v0 {

/// How a packet takes part in ordering.
enum class Role : std::uint8_t {
  none,     ///< touches nothing that others see: NOP, a flush, a clock that is set
  data,     ///< loads and stores that land late and in any order: copies, fills, writes
  stamp,    ///< stores a time, when what is earlier has landed
  release,  ///< announces: lands when all that is earlier has, and in order with other releases
  notify,   ///< an interrupt: behind earlier releases
  acquire,  ///< holds back what is later until a word has a value
  control,  ///< decides which dwords come next: conditions, indirect buffers
};

// clang-format off
constexpr Role role(const Nop&) noexcept { return Role::none; }
constexpr Role role(const CopyLinear&) noexcept { return Role::data; }
constexpr Role role(const CopyBroadcast&) noexcept { return Role::data; }
constexpr Role role(const CopyStruct&) noexcept { return Role::data; }
constexpr Role role(const CopySubwindow&) noexcept { return Role::data; }
constexpr Role role(const CopyDirtyPage&) noexcept { return Role::data; }
constexpr Role role(const CopyPhysical&) noexcept { return Role::data; }
constexpr Role role(const CopySwap&) noexcept { return Role::data; }
constexpr Role role(const Write&) noexcept { return Role::data; }
constexpr Role role(const Indirect&) noexcept { return Role::control; }
constexpr Role role(const Fence&) noexcept { return Role::release; }
constexpr Role role(const Trap&) noexcept { return Role::notify; }
constexpr Role role(const Semaphore& p) noexcept { return p.signal ? Role::release : Role::acquire; }
constexpr Role role(const PollMem&) noexcept { return Role::acquire; }
constexpr Role role(const HdpFlush&) noexcept { return Role::none; }
constexpr Role role(const PollReg&) noexcept { return Role::acquire; }
constexpr Role role(const PollRegToMem&) noexcept { return Role::data; }
constexpr Role role(const PollDirtyBits&) noexcept { return Role::data; }
constexpr Role role(const PollVerify&) noexcept { return Role::data; }
constexpr Role role(const CondExec&) noexcept { return Role::control; }
constexpr Role role(const Atomic&) noexcept { return Role::release; }
constexpr Role role(const Fill&) noexcept { return Role::data; }
constexpr Role role(const FillMulti&) noexcept { return Role::data; }
constexpr Role role(const PteGenerate&) noexcept { return Role::data; }
constexpr Role role(const PteCopy&) noexcept { return Role::data; }
constexpr Role role(const PteModify&) noexcept { return Role::data; }
constexpr Role role(const PteCopyBackwards&) noexcept { return Role::data; }
constexpr Role role(const TimestampSet&) noexcept { return Role::none; }
constexpr Role role(const TimestampLocal&) noexcept { return Role::stamp; }
constexpr Role role(const Timestamp&) noexcept { return Role::stamp; }
constexpr Role role(const SrbmWrite&) noexcept { return Role::none; }
constexpr Role role(const PreExec&) noexcept { return Role::control; }
constexpr Role role(const DummyTrap&) noexcept { return Role::none; }
// clang-format on

template <class Fn> constexpr void footprint(const Nop&, Fn&&) {}

template <class Fn> constexpr void footprint(const CopyLinear& p, Fn&& fn) {
  fn(Region{.va = p.src, .bytes = p.bytes, .access = Access::read});
  fn(Region{.va = p.dst, .bytes = p.bytes, .access = Access::write});
}

template <class Fn> constexpr void footprint(const CopyBroadcast& p, Fn&& fn) {
  fn(Region{.va = p.src, .bytes = p.bytes, .access = Access::read});
  fn(Region{.va = p.dst1, .bytes = p.bytes, .access = Access::write});
  fn(Region{.va = p.dst2, .bytes = p.bytes, .access = Access::write});
}

/// An element is a dword [inferred]: element i of the array lies at table + 4 * stride * (start + i).
constexpr Region table(const CopyStruct& p) noexcept {
  const std::uint64_t pitch = p.stride * std::uint64_t{4};
  return {.va = p.table + pitch * p.start,
          .bytes = 4,
          .access = p.detile ? Access::read : Access::write,
          .rows = p.count,
          .pitch = pitch};
}
constexpr Region linear(const CopyStruct& p) noexcept {
  return {.va = p.linear, .bytes = std::uint64_t{4} * p.count, .access = p.detile ? Access::write : Access::read};
}
template <class Fn> constexpr void footprint(const CopyStruct& p, Fn&& fn) {
  if (p.count == 0) return;
  fn(table(p));
  fn(linear(p));
}

namespace detail {
/// One side of a sub-window: where its box begins and how its rows lie.
struct Box {
  std::uint64_t x, y, z, pitch, slice;
};
constexpr Region region(const CopySubwindow& p, GpuVa base, const Box& b, Access a) noexcept {
  const unsigned log2 = p.element_log2 & 7;
  return {.va = base + ((b.x + b.y * b.pitch + b.z * b.slice) << log2),
          .bytes = std::uint64_t{p.x} << log2,
          .access = a,
          .rows = p.y,
          .pitch = b.pitch << log2,
          .slices = p.z,
          .slice_pitch = b.slice << log2};
}
}  // namespace detail
constexpr Region source(const CopySubwindow& p) noexcept {
  return detail::region(p, p.src, {p.src_x, p.src_y, p.src_z, p.src_pitch, p.src_slice}, Access::read);
}
constexpr Region destination(const CopySubwindow& p) noexcept {
  return detail::region(p, p.dst, {p.dst_x, p.dst_y, p.dst_z, p.dst_pitch, p.dst_slice}, Access::write);
}
template <class Fn> constexpr void footprint(const CopySubwindow& p, Fn&& fn) {
  fn(source(p));
  fn(destination(p));
}

/// Every page counts as dirty: what may be written.
template <class Fn> constexpr void footprint(const CopyDirtyPage& p, Fn&& fn) {
  fn(Region{.va = p.src, .bytes = p.bytes, .access = Access::read});
  fn(Region{.va = p.dst, .bytes = p.bytes, .access = Access::write});
}

/// Physical addresses: no VAs, so nothing of an address space.
template <class Fn> constexpr void footprint(const CopyPhysical&, Fn&&) {}

template <class Fn> constexpr void footprint(const CopySwap& p, Fn&& fn) {
  fn(Region{.va = p.a, .bytes = p.bytes, .access = Access::read_write});
  fn(Region{.va = p.b, .bytes = p.bytes, .access = Access::read_write});
}

template <class Fn> constexpr void footprint(const Write& p, Fn&& fn) {
  fn(Region{.va = p.dst, .bytes = p.data.size_bytes(), .access = Access::write});
}

template <class Fn> constexpr void footprint(const Indirect& p, Fn&& fn) {
  if (p.dwords) fn(Region{.va = p.base, .bytes = std::uint64_t{4} * p.dwords, .access = Access::read});
}

template <class Fn> constexpr void footprint(const Fence& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 4, .access = Access::write});
}

template <class Fn> constexpr void footprint(const Trap&, Fn&&) {}

/// 64 bits. Signalling with `write_one` stores; otherwise one is added, or taken away.
template <class Fn> constexpr void footprint(const Semaphore& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 8, .access = p.signal && p.write_one ? Access::write : Access::read_write});
}

template <class Fn> constexpr void footprint(const PollMem& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 4, .access = Access::read});
}

template <class Fn> constexpr void footprint(const HdpFlush&, Fn&&) {}
template <class Fn> constexpr void footprint(const PollReg&, Fn&&) {}

template <class Fn> constexpr void footprint(const PollRegToMem& p, Fn&& fn) {
  fn(Region{.va = p.dst, .bytes = 4, .access = Access::write});
}

/// A bit a page, in whole dwords [inferred].
template <class Fn> constexpr void footprint(const PollDirtyBits& p, Fn&& fn) {
  if (p.pages) fn(Region{.va = p.dst, .bytes = (std::uint64_t{p.pages} + 31) / 32 * 4, .access = Access::write});
}

/// Reads up to the ends, exclusive [inferred], and records a dword.
template <class Fn> constexpr void footprint(const PollVerify& p, Fn&& fn) {
  if (p.a < p.a_end) fn(Region{.va = p.a, .bytes = p.a_end - p.a, .access = Access::read});
  if (!p.mode && p.b < p.b_end) fn(Region{.va = p.b, .bytes = p.b_end - p.b, .access = Access::read});
  fn(Region{.va = p.record, .bytes = 4, .access = Access::write});
}

template <class Fn> constexpr void footprint(const CondExec& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 4, .access = Access::read});
}

template <class Fn> constexpr void footprint(const Atomic& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = width(p.op), .access = Access::read_write});
}

template <class Fn> constexpr void footprint(const Fill& p, Fn&& fn) {
  fn(Region{.va = p.dst, .bytes = bytes_written(p), .access = Access::write});
}

/// Runs that touch or overlap are one.
constexpr Region destination(const FillMulti& p) noexcept {
  if (p.count == 0 || p.bytes == 0) return {.va = p.dst, .access = Access::write};
  if (p.stride <= p.bytes)
    return {.va = p.dst, .bytes = std::uint64_t{p.stride} * (p.count - 1) + p.bytes, .access = Access::write};
  return {.va = p.dst, .bytes = p.bytes, .access = Access::write, .rows = p.count, .pitch = p.stride};
}
template <class Fn> constexpr void footprint(const FillMulti& p, Fn&& fn) {
  if (p.count != 0 && p.bytes != 0) fn(destination(p));
}

template <class Fn> constexpr void footprint(const PteGenerate& p, Fn&& fn) {
  fn(Region{.va = p.dst, .bytes = std::uint64_t{8} * p.entries, .access = Access::write});
}

template <class Fn> constexpr void footprint(const PteCopy& p, Fn&& fn) {
  if (p.entries == 0) return;
  fn(Region{.va = p.src, .bytes = std::uint64_t{8} * p.entries, .access = Access::read});
  fn(Region{.va = p.dst, .bytes = std::uint64_t{8} * p.entries, .access = Access::read_write});
}

template <class Fn> constexpr void footprint(const PteModify& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 8, .access = Access::read_write});
}

template <class Fn> constexpr void footprint(const PteCopyBackwards& p, Fn&& fn) {
  if (p.blocks == 0) return;
  fn(Region{.va = p.src, .bytes = std::uint64_t{32} * p.blocks, .access = Access::read});
  fn(Region{.va = p.dst, .bytes = std::uint64_t{32} * p.blocks, .access = Access::read_write});
}

template <class Fn> constexpr void footprint(const TimestampSet&, Fn&&) {}

template <class Fn> constexpr void footprint(const TimestampLocal& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 8, .access = Access::write});
}

template <class Fn> constexpr void footprint(const Timestamp& p, Fn&& fn) {
  fn(Region{.va = p.addr, .bytes = 8, .access = Access::write});
}

template <class Fn> constexpr void footprint(const SrbmWrite&, Fn&&) {}
template <class Fn> constexpr void footprint(const PreExec&, Fn&&) {}
template <class Fn> constexpr void footprint(const DummyTrap&, Fn&&) {}

namespace detail {
struct Ignore {
  constexpr void operator()(const Region&) const noexcept {}
};
template <class P>
concept Described = requires(const P& p) {
  role(p);
  footprint(p, Ignore{});
};
template <class... P> consteval bool all_have_footprints(PacketList<P...>) { return (Described<P> && ...); }
static_assert(all_have_footprints(Packets{}), "a packet of the registry has no footprint, or no role");
}  // namespace detail

/// The footprint of a packet by its dwords; nothing for one that is only recognised, or cut off.
template <class Fn> void footprint(const PacketInfo& info, std::span<const std::uint32_t> dwords, Fn&& fn) {
  visit(info, dwords, [&](const auto& p) { footprint(p, fn); });
}

}  // namespace v0
}  // namespace sdma
