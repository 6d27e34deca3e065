// SPDX-License-Identifier: MIT
// Which packet do these dwords begin? Never more than one answer, never a look behind the span.
#include <memory>

#include "packets/generic.hpp"
#include "packets/unambiguous.hpp"
#include "support/sanitizer.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

/// The slow way: every packet whose pattern the dwords satisfy, the one with most constant bits first.
const PacketInfo* by_hand(std::span<const std::uint32_t> d) {
  const PacketInfo* best = nullptr;
  int most = -1;
  for (const auto& p : kPackets) {
    int bits = 0;
    for (const auto m : p.pattern.mask) bits += std::popcount(m);
    if (!d.empty() && p.matches(d) && bits > most) best = &p, most = bits;
  }
  return best;
}

/// In a heap buffer of exactly this size, so that a sanitizer sees a read behind it.
const PacketInfo* identify_exactly(std::span<const std::uint32_t> d) {
  const auto copy = std::make_unique<std::uint32_t[]>(d.size());
  std::copy(d.begin(), d.end(), copy.get());
  return identify({copy.get(), d.size()});
}

TEST_CASE("every packet is identified as itself") {
  Dice dice{1};
  each_packet([&]<class P>() {
    holds(packet_info<P>.name, &info_of<P>() == find(packet_info<P>.name));
    bool ok = true;
    for (int i = 0; i < 500; ++i) {
      auto d = words_of(dice.packet<P>());
      ok = ok && identify_exactly(d) == &info_of<P>();
      for (std::size_t at = 0; at < packet_info<P>.head; ++at)
        d[at] |= static_cast<std::uint32_t>(dice.number()) & packet_info<P>.reserved(at);
      ok = ok && identify_exactly(d) == &info_of<P>();
    }
    holds(packet_info<P>.name, ok);
  });
}

TEST_CASE("random dwords: the table gives what a search gives") {
  Dice dice{2};
  int known = 0;
  bool ok = true;
  for (int i = 0; i < tries(300000); ++i) {
    std::array<std::uint32_t, 6> d{};
    for (auto& w : d) w = static_cast<std::uint32_t>(dice.number());
    if (i % 4) d[0] = (d[0] & 0xffff0000) | static_cast<std::uint32_t>(dice.below(18) | dice.below(12) << 8);
    if (i % 8 == 7) d = {static_cast<std::uint32_t>(dice.below(2) << dice.below(32)) | 8, 0, 0x80000000, 0, 0, 0};
    const auto n = dice.below(d.size() + 1);
    const auto span = std::span(d).first(n);
    const auto* p = identify_exactly(span);
    known += p != nullptr;
    ok = ok && p == by_hand(span);
  }
  CHECK(ok);
  CHECK(known > tries(10000));
}

TEST_CASE("all headers: op and sub_op of every value") {
  bool ok = true;
  for (std::uint32_t head = 0; head < 0x10000; ++head)
    for (const std::uint32_t high : {0u, 1u << 26, 1u << 27, 1u << 31, 0xffff0000u}) {
      const std::array<std::uint32_t, 6> d{head | high};
      ok = ok && identify(d) == by_hand(d);
    }
  CHECK(ok);
}

TEST_CASE("bit 27 makes a broadcast, bit 31 a poll of memory") {
  CHECK(identify(std::array{0x00000001u}) == &info_of<CopyLinear>());
  CHECK(identify(std::array{0x08000001u}) == &info_of<CopyBroadcast>());
  CHECK(identify(std::array{0x37ff0001u}) == &info_of<CopyLinear>());
  CHECK(identify(std::array{0x80000008u}) == &info_of<PollMem>());
  CHECK(identify(std::array{0x30000008u}) == &info_of<PollReg>());
}

TEST_CASE("the flush literal goes before a register poll, whole and bit for bit only") {
  const std::array<std::uint32_t, 6> literal{0x00000008, 0, 0x80000000, 0, 0, 0};
  CHECK(identify(literal) == &info_of<HdpFlush>());
  for (std::size_t n = 1; n < literal.size(); ++n)
    CHECK(identify_exactly(std::span(literal).first(n)) == &info_of<PollReg>());
  for (std::size_t dword = 0; dword < 6; ++dword)
    for (unsigned bit = dword ? 0 : 16; bit < 32; ++bit) {
      auto d = literal;
      d[dword] ^= 1u << bit;
      CHECK(identify(d) == (dword == 0 && bit == 31 ? &info_of<PollMem>() : &info_of<PollReg>()));
    }
}

TEST_CASE("an atomic is one whatever its sub_op says") {
  for (std::uint32_t sub = 0; sub < 256; ++sub)
    CHECK(identify(std::array{0x5e00000au | sub << 8}) == &info_of<Atomic>());
}

TEST_CASE("unassigned codes and an empty span begin no packet") {
  CHECK(identify({}) == nullptr);
  for (const std::uint32_t head : {0x00000003u, 0x00000b01u, 0x00000305u, 0x00000708u, 0x00000211u, 0x00000021u,
                                   0xffffffffu, 0x00000207u, 0x0000020eu, 0x0000ff01u})
    CHECK(identify(std::array{head}) == nullptr);
}

TEST_CASE("packets of other generations are recognised, and are no packets of 4.4.2") {
  for (const std::uint32_t head : {0xf7ff0001u, 0x40000001u, 0x80000901u, 0x00000a01u, 0x00000205u, 0x00000105u,
                                   0x00000508u, 0x00000011u, 0x00000111u, 0x00000020u, 0x0000010eu, 0x00000408u}) {
    const auto* p = identify(std::array{head});
    REQUIRE(p);
    CHECK(p->foreign);
    CHECK(p->fields_unknown);
    CHECK_FALSE(p->generations.contains(kDefaultGeneration));
  }
}

TEST_CASE("packets that are only recognised have a name and a length") {
  const auto lies = [](std::uint32_t head, std::string_view name, std::size_t dwords) {
    std::array<std::uint32_t, 20> d{head};
    const auto* p = identify(d);
    REQUIRE(p);
    CHECK(p->name == name);
    CHECK(p->fields_unknown);
    CHECK(p->length(d.data()) == dwords);
  };
  lies(0x00000101, "copy_tiled", 13);
  lies(0x80000101, "copy_tiled", 13);
  lies(0x04000101, "copy_tiled_frame_to_field", 16);
  lies(0x08000101, "copy_tiled_broadcast", 16);
  lies(0x0c000101, "copy_tiled_broadcast", 16);
  lies(0x00000501, "copy_tiled_subwindow", 14);
  lies(0x00000601, "copy_tiled_to_tiled", 15);
  lies(0x00002401, "copy_subwindow_large", 20);
  lies(0x00000102, "write_tiled", 10);
}

TEST_CASE("find knows every name and no other") {
  for (const auto& p : kPackets)
    if (p.index < Packets::size || !p.foreign) CHECK(find(p.name) == &p);
  CHECK(find("") == nullptr);
  CHECK(find("copy") == nullptr);
  CHECK(find("copy_linea") == nullptr);
  CHECK(find("copy_linear ") == nullptr);
}

/// Records the type that visit chose.
struct Seen {
  std::string_view name;
  int calls = 0;
  template <class P> void operator()(const P&) { name = packet_info<P>.name, ++calls; }
};

TEST_CASE("visit calls once, with the type of the packet and its value") {
  Dice dice{3};
  each_packet([&]<class P>() {
    const auto p = dice.packet<P>();
    const auto d = words_of(p);
    Seen seen;
    holds(packet_info<P>.name, visit(*identify(d), d, seen));
    holds(packet_info<P>.name, seen.name == packet_info<P>.name);
    holds(packet_info<P>.name, seen.calls == 1);
    bool equal = false;
    visit(*identify(d), d, [&](const auto& q) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(q)>, P>) equal = same(p, q);
    });
    holds(packet_info<P>.name, equal);
  });
}

TEST_CASE("visit does not call for a packet that is only recognised") {
  for (const auto& p : kPackets) {
    if (!p.fields_unknown) continue;
    std::array<std::uint32_t, 32> d{p.pattern.value[0]};
    Seen seen;
    CHECK_FALSE(visit(p, d, seen));
    CHECK(seen.calls == 0);
  }
}

TEST_CASE("the proof over the registry refuses what is ambiguous") {
  using detail::unambiguous;
  STATIC_REQUIRE(unambiguous(kPackets));
  STATIC_REQUIRE(unambiguous(std::array{packet_info<HdpFlush>, packet_info<PollReg>}));
  STATIC_REQUIRE_FALSE(unambiguous(std::array{packet_info<PollReg>, packet_info<HdpFlush>}));  // the wider first
  STATIC_REQUIRE_FALSE(unambiguous(std::array{packet_info<Fence>, packet_info<Fence>}));       // twice the same
  STATIC_REQUIRE(
      unambiguous(std::array{packet_info<CopyLinear>, packet_info<CopyBroadcast>}));  // a bit tells them apart
  STATIC_REQUIRE_FALSE(
      unambiguous(std::array{recognised("a", grammar::op(1, 0).is(0, 26, 26, 1), 7, ""),
                             recognised("b", grammar::op(1, 0).is(0, 27, 27, 1), 7, "")}));  // neither is narrower
  STATIC_REQUIRE_FALSE(unambiguous(std::array{recognised("a", grammar::op(1, 0).is(0, 26, 26, 1), 8, ""),
                                              recognised("b", grammar::op(1, 0), 7, "")}));  // of two lengths
  STATIC_REQUIRE(unambiguous(std::array{recognised("a", grammar::op(1, 0).is(0, 26, 26, 1), 7, ""),
                                        recognised("b", grammar::op(1, 0), 7, "")}));
  STATIC_REQUIRE_FALSE(unambiguous(std::array{packet_info<Write>, packet_info<Write>}));
}

static_assert(identify(std::array{0u}) == &info_of<Nop>());

}  // namespace
