// SPDX-License-Identifier: MIT
#pragma once
// The list of all packets, as data. Code that uses only typed packets does not need this header, and compiles faster
// without it.
//
//   const PacketInfo* p = identify(dwords);              // null: no packet of this engine begins with these dwords
//   if (p == &info_of<Fence>()) ...                      // the registry's own entry for a type
//   visit(*p, dwords, [](const auto& packet) { ... });   // back to a typed value: calls the overload for that packet
//
// kPackets and identify(dwords) are those of SDMA 4.4.2. A packet that only other generations have is in the list, and
// `foreign`: its dwords are recognised, and never read as another packet. catalogue.hpp has the lists of the others.
//
// Constants: any thread may read them.
#include "sdma/packets/cache.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/copy_pages.hpp"
#include "sdma/packets/info.hpp"
#include "sdma/packets/page_table.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/tiled.hpp"
#include "sdma/packets/write.hpp"

namespace sdma { inline namespace v0_3 {

/// Types of packets; `size` is their number. template <class... P> void each(PacketList<P...>) takes them all.
template <class... P> struct PacketList { static constexpr std::size_t size = sizeof...(P); };

/// Every described packet in the order of op and sub_op; if one pattern contains another, the narrower comes first.
using Packets =
    PacketList<Nop, CopyLinear, CopyBroadcast, CopyStruct, CopySubwindow, CopyDirtyPage, CopyPhysical, CopySwap, Write,
               Indirect, Fence, Trap, Semaphore, MemIncr, PollMem, HdpFlush, PollReg, PollRegToMem, PollDirtyBits,
               PollVerify, CondExec, Atomic, Fill, FillMulti, PteGenerate, PteCopy, PteModify, PteCopyBackwards,
               TimestampSet, TimestampLocal, Timestamp, SrbmWrite, PreExec, DummyTrap, Gcr>;

namespace detail {

template <class... P> consteval auto collect(PacketList<P...>) {
  std::array<PacketInfo, sizeof...(P) + kRecognised.size()> all{unproved_info<P>...};
  for (std::size_t i = 0; i < kRecognised.size(); ++i) all[sizeof...(P) + i] = kRecognised[i];
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].index = static_cast<std::uint8_t>(i);
    all[i].foreign = !(all[i].generations | all[i].undescribed).contains(kDefaultGeneration);
    all[i].fields_unknown = all[i].fields_unknown || !all[i].generations.contains(kDefaultGeneration);
    all[i].typed = !all[i].fields_unknown;
  }
  return all;
}

}  // namespace detail

/// The described packets, then those that are only recognised.
inline constexpr auto kPackets = detail::collect(Packets{});

namespace detail {

template <class P, class... All> consteval std::size_t place(PacketList<All...>) {
  std::size_t at = 0, i = 0;
  ((std::is_same_v<P, All> ? void(at = i++) : void(++i)), ...);
  return at;
}

// Chains of candidates for each op and sub_op: the first candidate, and for each candidate the next. 255 ends a chain.
inline constexpr std::uint32_t kOps = 33, kSubOps = 64;  // a larger sub_op counts as the last, which no packet has
inline constexpr std::uint8_t kNone = 255;

/// The op and sub_op that a pattern requires; sub_op -1: any, or several.
struct Header {
  std::uint32_t op;
  int sub;
};
constexpr Header header(const PacketInfo& p) {
  const auto mask = p.pattern.mask[0], value = p.pattern.value[0];
  return {value & 0xff, (mask >> 8 & 0xff) == 0xff ? static_cast<int>(value >> 8 & 0xff) : -1};
}
using FirstByOp = std::array<std::array<std::uint8_t, kSubOps>, kOps>;
constexpr FirstByOp first_by_op(std::span<const PacketInfo> all) {
  FirstByOp first{};
  for (auto& row : first)
    for (auto& cell : row) cell = kNone;
  for (std::size_t i = all.size(); i-- > 0;) {
    const auto h = header(all[i]);
    if (h.sub >= 0) first[h.op][static_cast<std::size_t>(h.sub)] = static_cast<std::uint8_t>(i);
    else
      for (auto& cell : first[h.op]) cell = static_cast<std::uint8_t>(i);
  }
  return first;
}
using NextAlike = std::array<std::uint8_t, 96>;
constexpr NextAlike next_alike(std::span<const PacketInfo> all) {
  NextAlike next{};
  std::array<Header, NextAlike{}.size()> headers{};
  for (std::size_t i = 0; i < all.size(); ++i) headers[i] = header(all[i]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    next[i] = kNone;
    for (std::size_t j = i + 1; j < all.size() && next[i] == kNone; ++j)
      if (headers[i].op == headers[j].op && headers[i].sub == headers[j].sub) next[i] = static_cast<std::uint8_t>(j);
  }
  return next;
}
static_assert(kPackets.size() + 8 < NextAlike{}.size());  // a catalogue may have more
inline constexpr auto kFirst = first_by_op(kPackets);
/// The first candidate for a header whose op is less than kOps.
constexpr std::uint8_t chain(const FirstByOp& first, std::uint32_t head) noexcept {
  const auto sub = head >> 8 & 0xff;
  return first[head & 0xff][sub < kSubOps ? sub : kSubOps - 1];
}
inline constexpr auto kNextAlike = next_alike(kPackets);

template <class P, class Fn> void call(const PacketInfo& p, std::span<const std::uint32_t> d, Fn& fn) {
  fn(decode<P>(d, p));
}
template <class Fn, class... P>
inline constexpr std::array<void (*)(const PacketInfo&, std::span<const std::uint32_t>, Fn&), sizeof...(P)> kCalls{
    &call<P, Fn>...};
template <class Fn, class... P>
void visit(const PacketInfo& p, std::span<const std::uint32_t> d, Fn& fn, PacketList<P...>) {
  kCalls<Fn, P...>[p.index](p, d, fn);
}

}  // namespace detail

/// The registry's entry for `P`.
template <Packet P> constexpr const PacketInfo& info_of() noexcept { return kPackets[detail::place<P>(Packets{})]; }

/// Is this the entry for `P`, of any generation?
template <Packet P> constexpr bool is(const PacketInfo& p) noexcept { return p.index == detail::place<P>(Packets{}); }

/// The packet that begins with these dwords; null if no known packet does, or if `d` is empty.
constexpr const PacketInfo* identify(std::span<const std::uint32_t> d) noexcept {
  if (d.empty() || (d[0] & 0xff) >= detail::kOps) return nullptr;
  for (auto i = detail::chain(detail::kFirst, d[0]); i != detail::kNone; i = detail::kNextAlike[i])
    if (kPackets[i].matches(d)) return &kPackets[i];
  return nullptr;
}

/// The packet with this name; null if there is none.
constexpr const PacketInfo* find(std::string_view name) noexcept {
  for (const auto& p : kPackets)
    if (p.name == name) return &p;
  return nullptr;
}

/// Calls `fn(value)` with the typed value of a complete packet, through one table lookup. `fn` must accept every type
/// in Packets. For a packet without a type, such as one that is only recognised, returns false and does not call `fn`.
/// `p` must be an entry of kPackets or of a catalogue.
template <class Fn> bool visit(const PacketInfo& p, std::span<const std::uint32_t> d, Fn&& fn) {
  if (!p.typed) return false;
  detail::visit(p, d, fn, Packets{});
  return true;
}

}}  // namespace sdma::v0_3
