#pragma once
// The length of any packet, for code that only steps over packets. The registry (packets/registry.hpp) knows everything
// about every packet, and takes much longer to compile.
//
//   std::size_t n = packet_length(dwords);      // 7 at a CopyLinear; 0: no known packet begins with these dwords
//
// The search compares with one packet of the list after the other, so `identify` is faster. Constants: any thread may
// read them. No errors.
#include "sdma/packets/info.hpp"
#include "sdma/packets/list.hpp"

namespace sdma::inline v0 {

namespace detail {

/// What the registry's entry says about the pattern and the length, without the rest.
template <class P>
inline constexpr PacketInfo outline{.name = grammar::layout<P>.name,
                                    .doc = grammar::layout<P>.doc,
                                    .pattern = grammar::layout<P>.pattern,
                                    .head = static_cast<std::uint8_t>(head<P>()),
                                    .fixed = grammar::layout<P>.length.fixed,
                                    .stride = grammar::layout<P>.length.stride,
                                    .counted = kFixed<P> ? nullptr : grammar::layout<P>.fields.data() + counter<P>()};
template <class... P> consteval auto outlines(PacketList<P...>) {
  std::array<PacketInfo, sizeof...(P) + kRecognised.size()> all{outline<P>...};
  for (std::size_t i = 0; i < kRecognised.size(); ++i) all[sizeof...(P) + i] = kRecognised[i];
  return all;
}
inline constexpr auto kOutlines = outlines(Packets{});

}  // namespace detail

/// The length in dwords of the packet that begins with these dwords; 0 if no known packet does. If `d` ends before the
/// packet's length is known, the result is larger than d.size().
constexpr std::size_t packet_length(std::span<const std::uint32_t> d) noexcept {
  for (const auto& p : detail::kOutlines)
    if (p.matches(d)) return p.head <= d.size() ? p.length(d.data()) : p.head;
  return 0;
}

}  // namespace sdma::inline v0
