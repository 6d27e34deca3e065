// SPDX-License-Identifier: MIT
#pragma once
// The packets of every generation, as data (registry.hpp has those of 4.4.2 as constants).
//
//   const Catalogue& gfx11 = catalogue(Generation::v6_0);
//   const PacketInfo* p = gfx11.identify(dwords);      // its fields are where 6.0 has them
//   visit(*p, dwords, [](const auto& packet) { ... }); // typed values, as for 4.4.2
//   for (Reader r{dwords, gfx11}; r;) ...              // stream/reader.hpp
//   label(*p);                                         // "fence"; "gcr of 5.0 to 7.1, not of 4.4.2"
//                                                      // "copy_tiled, not described for 4.4.2"
//
// A packet that another generation has, and this one lacks, is recognised: `foreign` is true, its fields are not read,
// and its dwords are not read as another packet. Where generations give the same header to different packets, the
// catalogue's own comes first.
//
// A packet that this generation has, but whose fields no source states, has `fields_unknown` and is not foreign: it is
// read with its length. Packets that copy tiled surfaces from 5.0 on, and those that wait or signal in 7.1, have no C++
// type here (`typed`): text, JSON and the assembler know them; visit() does not call. In 5.2 and later, some fields of
// packets with a type have no member (`FieldInfo::member` is 255): text, JSON, the assembler and rules know them, and a
// typed value leaves them out. scoped.hpp has types for 7.1, to encode and decode.
//
// To a few packets of 7.0 and 7.1, sources give several lengths (`doubt`): stream/reader.hpp says how they are read.
//
// catalogue() builds a list at its first use, some 100 KB of static storage for each generation that is asked for; any
// thread may call it, and a Catalogue is constant from then on. No errors, no allocation. It is header-only; to_string
// and label, which make texts, are in the library.
#include "sdma/packets/generation_list.hpp"
#include "sdma/packets/registry.hpp"

#include <string>

namespace sdma { inline namespace v0_3 {

class Catalogue {
 public:
  Catalogue(Generation g, std::span<const PacketInfo> packets, const detail::FirstByOp& first,
            const std::uint8_t* next) noexcept
      : generation_(g), packets_(packets), first_(&first), next_(next) {}

  /// The generation that it describes.
  Generation generation() const noexcept { return generation_; }
  /// The packets with a C++ type, then the others of this generation; then those of other generations.
  std::span<const PacketInfo> packets() const noexcept { return packets_; }

  /// The packet that begins with these dwords; null if no known packet does, or if `d` is empty.
  const PacketInfo* identify(std::span<const std::uint32_t> d) const noexcept {
    if (d.empty() || (d[0] & 0xff) >= detail::kOps) return nullptr;
    for (auto i = detail::chain(*first_, d[0]); i != detail::kNone; i = next_[i])
      if (packets_[i].matches(d)) return &packets_[i];
    return nullptr;
  }
  /// The packet with this name; null if there is none.
  const PacketInfo* find(std::string_view name) const noexcept {
    for (const auto& p : packets_)
      if (p.name == name) return &p;
    return nullptr;
  }

 private:
  Generation generation_;
  std::span<const PacketInfo> packets_;
  const detail::FirstByOp* first_;
  const std::uint8_t* next_;
};

namespace detail {
template <Generation G> const Catalogue& catalogue_of() noexcept {
  static const GenerationList list{G};
  static const Catalogue catalogue{G, list.packets(), list.first(), list.next()};
  return catalogue;
}
template <> inline const Catalogue& catalogue_of<kDefaultGeneration>() noexcept {
  static const Catalogue catalogue{kDefaultGeneration, kPackets, kFirst, kNextAlike.data()};
  return catalogue;
}
}  // namespace detail

/// The packets of a generation. That of 4.4.2 refers to kPackets.
inline const Catalogue& catalogue(Generation g) noexcept {
  SDMA_ASSERT(described(g));
  constexpr auto kEach = []<std::size_t... G>(std::index_sequence<G...>) {
    return std::array{&detail::catalogue_of<static_cast<Generation>(G)>...};
  }
  (std::make_index_sequence<kGenerationCount>{});
  return kEach[static_cast<std::size_t>(g)]();
}

/// "4.0 to 4.4.5", "4.4.2, 4.4.5", "7.1"
std::string to_string(Generations);
/// The name of a packet. If it is foreign: also the generations that have it. If its fields are not known: that.
std::string label(const PacketInfo&);

}}  // namespace sdma::v0_3
