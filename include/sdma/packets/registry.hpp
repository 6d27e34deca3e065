#pragma once
// All packets as data. Code that uses only typed packets does not need this header, and compiles faster
// without it.
//
//   const PacketInfo* p = identify(dwords);              // null: no packet of this engine begins with these dwords
//   if (p == &info_of<Fence>()) ...                      // the registry's own entry for a type
//   visit(*p, dwords, [](const auto& packet) { ... });   // back to a typed value: calls the overload for that packet
//
// Constants: any thread may read them. Packets that SDMA 4.4.2 does not have (multicast, 64-bit fence, GCR, ...) are
// absent.
#include "sdma/packets/info.hpp"
#include "sdma/packets/list.hpp"

namespace sdma::inline v0 {

namespace detail {

template <class... P> consteval auto collect(PacketList<P...>) {
  std::array<PacketInfo, sizeof...(P) + kRecognised.size()> all{packet_info<P>...};
  for (std::size_t i = 0; i < kRecognised.size(); ++i) all[sizeof...(P) + i] = kRecognised[i];
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
inline constexpr std::uint32_t kOps = 17;
inline constexpr std::uint8_t kNone = 255;
static_assert(kPackets.size() < kNone);

/// The op and sub_op that a pattern requires; sub_op -1: any.
struct Header {
  std::uint32_t op;
  int sub;
};
consteval Header header(const PacketInfo& p) {
  const auto mask = p.pattern.mask[0], value = p.pattern.value[0];
  return {value & 0xff, mask >> 8 & 0xff ? static_cast<int>(value >> 8 & 0xff) : -1};
}
consteval auto first_by_op() {
  std::array<std::array<std::uint8_t, 256>, kOps> first{};
  for (auto& row : first)
    for (auto& cell : row) cell = kNone;
  for (std::size_t i = kPackets.size(); i-- > 0;) {
    const auto h = header(kPackets[i]);
    if (h.sub >= 0) first[h.op][static_cast<std::size_t>(h.sub)] = static_cast<std::uint8_t>(i);
    else
      for (auto& cell : first[h.op]) cell = static_cast<std::uint8_t>(i);
  }
  return first;
}
consteval auto next_alike() {
  std::array<std::uint8_t, kPackets.size()> next{};
  for (std::size_t i = 0; i < kPackets.size(); ++i) {
    next[i] = kNone;
    for (std::size_t j = kPackets.size(); --j > i;) {
      const auto a = header(kPackets[i]), b = header(kPackets[j]);
      if (a.op == b.op && a.sub == b.sub) next[i] = static_cast<std::uint8_t>(j);
    }
  }
  return next;
}
inline constexpr auto kFirst = first_by_op();
inline constexpr auto kNext = next_alike();

template <class P, class Fn> void call(std::span<const std::uint32_t> d, Fn& fn) { fn(decode<P>(d)); }
template <class Fn, class... P>
inline constexpr std::array<void (*)(std::span<const std::uint32_t>, Fn&), sizeof...(P)> kCalls{&call<P, Fn>...};
template <class Fn, class... P> void visit(std::size_t i, std::span<const std::uint32_t> d, Fn& fn, PacketList<P...>) {
  kCalls<Fn, P...>[i](d, fn);
}

}  // namespace detail

/// The registry's entry for `P`.
template <Packet P> constexpr const PacketInfo& info_of() noexcept { return kPackets[detail::place<P>(Packets{})]; }

/// The packet that begins with these dwords; null if no known packet does, or if `d` is empty.
constexpr const PacketInfo* identify(std::span<const std::uint32_t> d) noexcept {
  if (d.empty() || (d[0] & 0xff) >= detail::kOps) return nullptr;
  for (auto i = detail::kFirst[d[0] & 0xff][d[0] >> 8 & 0xff]; i != detail::kNone; i = detail::kNext[i])
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
/// in Packets. For a packet that is only recognised, returns false and does not call `fn`. `p` must be an entry of
/// kPackets.
template <class Fn> bool visit(const PacketInfo& p, std::span<const std::uint32_t> d, Fn&& fn) {
  if (p.fields_unknown) return false;
  detail::visit(static_cast<std::size_t>(&p - kPackets.data()), d, fn, Packets{});
  return true;
}

}  // namespace sdma::inline v0
