// SPDX-License-Identifier: MIT
#pragma once
// What a packet will do to memory and to its queue: the bytes that it touches, how it takes part in ordering, the word
// that it waits for or posts to, and the dwords that it may skip.
//
//   footprint(CopyLinear{.src = a, .dst = b, .bytes = 64}, [](const Region& r) { ... });
//   // {a, 64, read}, {b, 64, write}
//   footprint(copy, [](const Region& r, std::string_view field) { ... });         // the same, with "src" and "dst"
//
//   packet                            role       word       may_wait   skipped
//   Fence{.addr = done, .value = 1}   release    done, 4    false      0
//   PollMem{.addr = go}               acquire    go, 4      true       0
//   CondExec{.addr = w, .dwords = 8}  control    w, 4       false      8
//
// Each packet type has its own overloads of `role` and `footprint`, in the order of Packets. A new packet type without
// them does not compile (see the static_assert at the end). The region of a box contains its rows and slices, and
// leaves out the bytes between them. The stream rules check regions for overlaps, the engine checks them before a
// packet's first store, the schedule checker checks them for races, and the simulator counts their bytes.
//
// The footprint of an INDIRECT is its buffer; the packets in the buffer have footprints of their own. The footprint of
// a poll is its word. Registers do not count as memory. Privileged packets also have a footprint; privilege is not
// checked here.
// The functions are constant expressions without state or errors. A region may run past the last address; the lookup of
// its mapping then fails.
#include "sdma/packets/region.hpp"
#include "sdma/packets/registry.hpp"

namespace sdma { inline namespace v0_3 {

/// How a packet takes part in ordering.
enum class Role : std::uint8_t {
  none,     ///< touches nothing that others see: NOP, a flush, setting a clock
  data,     ///< loads and stores that land late and in any order: copies, fills, writes
  stamp,    ///< stores a time once all earlier packets have landed
  release,  ///< posts to a word after all earlier packets have landed, in order with other releases
  notify,   ///< interrupts the host after all earlier releases
  acquire,  ///< holds back later packets until a word has a value
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
constexpr Role role(const MemIncr&) noexcept { return Role::data; }
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
constexpr Role role(const Gcr&) noexcept { return Role::none; }
// clang-format on

namespace detail {
/// Passes a region to `fn`. If `fn` takes a second argument, it gets the name of the field that holds the address.
template <auto Member, class Fn> constexpr void touches(const Region& r, Fn& fn) {
  if constexpr (std::is_invocable_v<Fn&, const Region&, std::string_view>) fn(r, field_of<Member>().name);
  else fn(r);
}
template <auto Member, class Fn>
constexpr void reads(const typename Field<Member>::Owner& p, std::uint64_t bytes, Fn& fn) {
  touches<Member>(Region{.va = p.*Member, .bytes = bytes, .access = Access::read}, fn);
}
template <auto Member, class Fn>
constexpr void writes(const typename Field<Member>::Owner& p, std::uint64_t bytes, Fn& fn) {
  touches<Member>(Region{.va = p.*Member, .bytes = bytes, .access = Access::write}, fn);
}
template <auto Member, class Fn>
constexpr void changes(const typename Field<Member>::Owner& p, std::uint64_t bytes, Fn& fn) {
  touches<Member>(Region{.va = p.*Member, .bytes = bytes, .access = Access::read_write}, fn);
}
}  // namespace detail

template <class Fn> constexpr void footprint(const Nop&, Fn&&) {}

template <class Fn> constexpr void footprint(const CopyLinear& p, Fn&& fn) {
  detail::reads<&CopyLinear::src>(p, p.bytes, fn);
  detail::writes<&CopyLinear::dst>(p, p.bytes, fn);
}

template <class Fn> constexpr void footprint(const CopyBroadcast& p, Fn&& fn) {
  detail::reads<&CopyBroadcast::src>(p, p.bytes, fn);
  detail::writes<&CopyBroadcast::dst1>(p, p.bytes, fn);
  detail::writes<&CopyBroadcast::dst2>(p, p.bytes, fn);
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
/// The other side of the copy: `count` consecutive dwords.
constexpr Region linear(const CopyStruct& p) noexcept {
  return {.va = p.linear, .bytes = std::uint64_t{4} * p.count, .access = p.detile ? Access::write : Access::read};
}
template <class Fn> constexpr void footprint(const CopyStruct& p, Fn&& fn) {
  if (p.count == 0) return;
  detail::touches<&CopyStruct::table>(table(p), fn);
  detail::touches<&CopyStruct::linear>(linear(p), fn);
}

namespace detail {
/// One side of a sub-window: where its box begins, and how far apart its rows and slices are.
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
/// The box that the copy reads.
constexpr Region source(const CopySubwindow& p) noexcept {
  return detail::region(p, p.src, {p.src_x, p.src_y, p.src_z, p.src_pitch, p.src_slice}, Access::read);
}
constexpr Region destination(const CopySubwindow& p) noexcept {
  return detail::region(p, p.dst, {p.dst_x, p.dst_y, p.dst_z, p.dst_pitch, p.dst_slice}, Access::write);
}
template <class Fn> constexpr void footprint(const CopySubwindow& p, Fn&& fn) {
  detail::touches<&CopySubwindow::src>(source(p), fn);
  detail::touches<&CopySubwindow::dst>(destination(p), fn);
}

/// Every page counts as dirty: the footprint contains all bytes that may be written.
template <class Fn> constexpr void footprint(const CopyDirtyPage& p, Fn&& fn) {
  detail::reads<&CopyDirtyPage::src>(p, p.bytes, fn);
  detail::writes<&CopyDirtyPage::dst>(p, p.bytes, fn);
}

/// Physical addresses do not belong to an address space, so they are only in `physical_footprint`.
template <class Fn> constexpr void footprint(const CopyPhysical&, Fn&&) {}
/// Calls `fn` for the source and for the destination, which have physical addresses.
template <class Fn> constexpr void physical_footprint(const CopyPhysical& p, Fn&& fn) {
  detail::reads<&CopyPhysical::src>(p, p.bytes, fn);
  detail::writes<&CopyPhysical::dst>(p, p.bytes, fn);
}

template <class Fn> constexpr void footprint(const CopySwap& p, Fn&& fn) {
  detail::changes<&CopySwap::a>(p, p.bytes, fn);
  detail::changes<&CopySwap::b>(p, p.bytes, fn);
}

template <class Fn> constexpr void footprint(const Write& p, Fn&& fn) {
  detail::writes<&Write::dst>(p, p.data.size_bytes(), fn);
}

template <class Fn> constexpr void footprint(const Indirect& p, Fn&& fn) {
  if (p.dwords) detail::reads<&Indirect::base>(p, std::uint64_t{4} * p.dwords, fn);
}

template <class Fn> constexpr void footprint(const Fence& p, Fn&& fn) { detail::writes<&Fence::addr>(p, 4, fn); }

template <class Fn> constexpr void footprint(const Trap&, Fn&&) {}

/// The word has 64 bits. A signal with `write_one` stores 1; any other signal adds one, and a wait subtracts one.
template <class Fn> constexpr void footprint(const Semaphore& p, Fn&& fn) {
  if (p.signal && p.write_one) detail::writes<&Semaphore::addr>(p, 8, fn);
  else detail::changes<&Semaphore::addr>(p, 8, fn);
}

template <class Fn> constexpr void footprint(const MemIncr& p, Fn&& fn) { detail::changes<&MemIncr::addr>(p, 8, fn); }

template <class Fn> constexpr void footprint(const PollMem& p, Fn&& fn) { detail::reads<&PollMem::addr>(p, 4, fn); }

template <class Fn> constexpr void footprint(const HdpFlush&, Fn&&) {}
template <class Fn> constexpr void footprint(const PollReg&, Fn&&) {}

template <class Fn> constexpr void footprint(const PollRegToMem& p, Fn&& fn) {
  detail::writes<&PollRegToMem::dst>(p, 4, fn);
}

/// One bit per page, in whole dwords [inferred].
template <class Fn> constexpr void footprint(const PollDirtyBits& p, Fn&& fn) {
  if (p.pages) detail::writes<&PollDirtyBits::dst>(p, (std::uint64_t{p.pages} + 31) / 32 * 4, fn);
}

/// Reads each range up to its end, exclusive [inferred], and stores the outcome in one dword.
template <class Fn> constexpr void footprint(const PollVerify& p, Fn&& fn) {
  if (p.a < p.a_end) detail::reads<&PollVerify::a>(p, p.a_end - p.a, fn);
  if (!p.mode && p.b < p.b_end) detail::reads<&PollVerify::b>(p, p.b_end - p.b, fn);
  detail::writes<&PollVerify::record>(p, 4, fn);
}

template <class Fn> constexpr void footprint(const CondExec& p, Fn&& fn) { detail::reads<&CondExec::addr>(p, 4, fn); }

template <class Fn> constexpr void footprint(const Atomic& p, Fn&& fn) {
  detail::changes<&Atomic::addr>(p, width(p.op), fn);
}

template <class Fn> constexpr void footprint(const Fill& p, Fn&& fn) {
  detail::writes<&Fill::dst>(p, bytes_written(p), fn);
}

/// Runs that touch or overlap become one run.
constexpr Region destination(const FillMulti& p) noexcept {
  if (p.count == 0 || p.bytes == 0) return {.va = p.dst, .access = Access::write};
  if (p.stride <= p.bytes)
    return {.va = p.dst, .bytes = std::uint64_t{p.stride} * (p.count - 1) + p.bytes, .access = Access::write};
  return {.va = p.dst, .bytes = p.bytes, .access = Access::write, .rows = p.count, .pitch = p.stride};
}
template <class Fn> constexpr void footprint(const FillMulti& p, Fn&& fn) {
  if (p.count != 0 && p.bytes != 0) detail::touches<&FillMulti::dst>(destination(p), fn);
}

template <class Fn> constexpr void footprint(const PteGenerate& p, Fn&& fn) {
  detail::writes<&PteGenerate::dst>(p, std::uint64_t{8} * p.entries, fn);
}

template <class Fn> constexpr void footprint(const PteCopy& p, Fn&& fn) {
  if (p.entries == 0) return;
  detail::reads<&PteCopy::src>(p, std::uint64_t{8} * p.entries, fn);
  detail::changes<&PteCopy::dst>(p, std::uint64_t{8} * p.entries, fn);
}

template <class Fn> constexpr void footprint(const PteModify& p, Fn&& fn) {
  if (p.entries != 0) detail::changes<&PteModify::addr>(p, std::uint64_t{8} * p.entries, fn);
}

template <class Fn> constexpr void footprint(const PteCopyBackwards& p, Fn&& fn) {
  if (p.blocks == 0) return;
  detail::reads<&PteCopyBackwards::src>(p, std::uint64_t{32} * p.blocks, fn);
  detail::changes<&PteCopyBackwards::dst>(p, std::uint64_t{32} * p.blocks, fn);
}

template <class Fn> constexpr void footprint(const TimestampSet&, Fn&&) {}

template <class Fn> constexpr void footprint(const TimestampLocal& p, Fn&& fn) {
  detail::writes<&TimestampLocal::addr>(p, 8, fn);
}

template <class Fn> constexpr void footprint(const Timestamp& p, Fn&& fn) {
  detail::writes<&Timestamp::addr>(p, 8, fn);
}

template <class Fn> constexpr void footprint(const SrbmWrite&, Fn&&) {}
template <class Fn> constexpr void footprint(const PreExec&, Fn&&) {}
template <class Fn> constexpr void footprint(const DummyTrap&, Fn&&) {}
template <class Fn> constexpr void footprint(const Gcr&, Fn&&) {}

/// The word that a packet waits for, tests or posts to; the buffer of an INDIRECT. 0 bytes: there is none.
template <Packet P> constexpr Region word(const P& p) noexcept {
  Region last{};
  if (const auto r = role(p); r != Role::none && r != Role::data && r != Role::notify)
    footprint(p, [&](const Region& only) { last = only; });
  return last;
}

/// Can the packet hold up the queue until its word has a value? An acquire can, and so can an atomic that loops.
template <Packet P> constexpr bool may_wait(const P& p) noexcept { return role(p) == Role::acquire; }
constexpr bool may_wait(const Atomic& p) noexcept { return p.loop; }

/// How many of the following dwords are not executed if the packet's condition fails; 0 for a packet without a
/// condition.
template <Packet P> constexpr std::uint32_t skipped(const P&) noexcept { return 0; }
constexpr std::uint32_t skipped(const CondExec& p) noexcept { return p.dwords; }
constexpr std::uint32_t skipped(const PreExec& p) noexcept { return p.dwords; }

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

// The same functions for a packet that is given as dwords. All its dwords must be present. A packet that is only
// recognised has no footprint and no word, its role is none, and it skips nothing.
template <class Fn> void footprint(const PacketInfo& info, std::span<const std::uint32_t> dwords, Fn&& fn) {
  visit(info, dwords, [&](const auto& p) { footprint(p, fn); });
}
inline Role role(const PacketInfo& info, std::span<const std::uint32_t> dwords) noexcept {
  auto r = Role::none;
  visit(info, dwords, [&](const auto& p) { r = role(p); });
  return r;
}
inline Region word(const PacketInfo& info, std::span<const std::uint32_t> dwords) noexcept {
  Region w{};
  visit(info, dwords, [&](const auto& p) { w = word(p); });
  return w;
}
inline std::uint32_t skipped(const PacketInfo& info, std::span<const std::uint32_t> dwords) noexcept {
  std::uint32_t n = 0;
  visit(info, dwords, [&](const auto& p) { n = skipped(p); });
  return n;
}

}}  // namespace sdma::v0_3
