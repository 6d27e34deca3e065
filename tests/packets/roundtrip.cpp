// SPDX-License-Identifier: MIT
// decode(encode(p)) == p for every packet, and no bit of a packet that nobody owns or that two do.
#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

TEST_CASE("a value survives its dwords") {
  Dice dice{1};
  each_packet([&]<class P>() {
    bool ok = true;
    for (int i = 0; i < 3000; ++i) {
      const auto p = dice.packet<P>();
      const auto d = words_of(p);
      ok = ok && d.size() == length(p) && d.size() == packet_info<P>.length(d.data()) && same(decode<P>(d), p);
    }
    holds(packet_info<P>.name, ok);
  });
}

TEST_CASE("dwords survive their value, but for reserved bits and what a NOP skips") {
  Dice dice{2};
  each_packet([&]<class P>() {
    bool ok = true;
    for (int i = 0; i < 1000; ++i) {
      auto d = words_of(dice.packet<P>());
      const auto before = d;
      for (std::size_t at = 0; at < packet_info<P>.head; ++at)
        d[at] |= static_cast<std::uint32_t>(dice.number()) & packet_info<P>.reserved(at);
      ok = ok && words_of(decode<P>(d)) == before;
    }
    holds(packet_info<P>.name, ok);
  });
}

/// Were exactly these words written between two guards, whatever lay there? The writer returned `end`.
void guarded(const std::vector<std::uint32_t>& out, std::uint32_t guard, const std::uint32_t* end,
             const std::vector<std::uint32_t>& words) {
  CHECK(end == out.data() + 1 + words.size());
  CHECK(out.front() == guard);
  CHECK(out.back() == guard);
  CHECK(std::vector(out.begin() + 1, out.end() - 1) == words);
}

TEST_CASE("encode_to writes length(p) dwords and nothing else") {
  Dice dice{3};
  each_packet([&]<class P>() {
    INFO(packet_info<P>.name);
    for (const std::uint32_t guard : {0x5a5a5a5au, 0xa5a5a5a5u}) {
      const auto p = dice.packet<P>();
      std::vector<std::uint32_t> out(length(p) + 2, guard);
      guarded(out, guard, encode_to(p, out.data() + 1), words_of(p));
    }
  });
}

TEST_CASE("an encoded packet sets no reserved bit, and the bits of its pattern as they must be") {
  Dice dice{4};
  each_packet([&]<class P>() {
    bool ok = true;
    for (int i = 0; i < 500; ++i) {
      const auto d = words_of(dice.packet<P>());
      for (std::size_t at = 0; at < packet_info<P>.head; ++at) ok = ok && (d[at] & packet_info<P>.reserved(at)) == 0;
      ok = ok && packet_info<P>.matches(d);
    }
    holds(packet_info<P>.name, ok);
  });
}

TEST_CASE("each bit of a packet's head has one owner: the pattern, one field, or nobody") {
  for (const auto& p : kPackets) {
    INFO(p.name);
    std::array<std::uint32_t, PacketInfo::kMaxHead> owned{};
    for (std::size_t i = 0; i < Pattern::kDwords; ++i) owned[i] = p.pattern.mask[i];
    for (const auto& f : p.fields)
      for (unsigned b = f.lo; b <= f.hi; ++b) {
        auto& word = owned[f.dword + b / 32];
        CHECK((word >> b % 32 & 1) == 0);
        word |= 1u << b % 32;
      }
    if (p.fields_unknown && p.counted)
      owned[p.counted->dword] |= static_cast<std::uint32_t>(p.counted->mask() << p.counted->lo);
    for (std::size_t i = 0; i < PacketInfo::kMaxHead; ++i) {
      CHECK(p.owned[i] == owned[i]);
      CHECK(p.reserved(i) == (i < p.head ? ~owned[i] : 0u));
    }
    CHECK(p.reserved(p.head) == 0);
    CHECK((p.owned[0] & 0xff) == 0xff);
  }
}

/// The bits of `f` in dword `at`, one by one.
std::uint32_t bits_of(const FieldInfo& f, std::size_t at) {
  std::uint32_t m = 0;
  for (unsigned b = f.lo; b <= f.hi; ++b)
    if (f.dword + b / 32 == at) m |= 1u << b % 32;
  return m;
}

TEST_CASE("store changes the bits of its field and no other, and value_of reads them back") {
  Dice dice{5};
  for (const auto& p : kPackets)
    for (const auto& f : p.fields) {
      INFO(p.name << "." << f.name);
      bool ok = true;
      for (int i = 0; i < 200; ++i) {
        std::array<std::uint32_t, PacketInfo::kMaxHead + 1> before{};
        for (auto& w : before) w = static_cast<std::uint32_t>(dice.number());
        auto after = before;
        const auto v = dice.number() & f.mask();
        store(f, v, after.data());
        for (std::size_t at = 0; at < after.size(); ++at) ok = ok && ((before[at] ^ after[at]) & ~bits_of(f, at)) == 0;
        ok = ok && stored(f, after.data()) == v && value_of(f, after.data()) == v + f.bias;
      }
      CHECK(ok);
    }
}

void reads(const PacketInfo& p, std::size_t field, const std::vector<std::uint32_t>& d, std::uint64_t number) {
  INFO(p.name << "." << p.fields[field].name);
  CHECK(value_of(p.fields[field], d.data()) == number);
}

TEST_CASE("a field of the info reads what the member says") {
  Dice dice{6};
  each_packet([&]<class P>() {
    const auto p = dice.packet<P>();
    const auto d = words_of(p);
    each_field<P>([&]<std::size_t I>() { reads(packet_info<P>, I, d, detail::number<P, I>(p)); });
  });
}

/// A field that begins in one dword and ends in the next: none of today's packets has one that is not 64 bits wide.
struct Straddler {
  std::uint16_t across{};
  std::uint64_t far{};
};

TEST_CASE("a field may cross into the next dword at any bit") {
  Dice dice{7};
  for (int i = 0; i < 2000; ++i) {
    const auto lo = static_cast<std::uint8_t>(dice.below(32));
    const auto hi = static_cast<std::uint8_t>(lo + dice.below(64 - lo));
    const FieldInfo f{.dword = 1, .lo = lo, .hi = hi};
    std::array<std::uint32_t, 4> d{};
    for (auto& w : d) w = static_cast<std::uint32_t>(dice.number());
    const auto before = d;
    const auto v = dice.number() & f.mask();
    store(f, v, d.data());
    REQUIRE(stored(f, d.data()) == v);
    for (std::size_t at = 0; at < d.size(); ++at) REQUIRE(((before[at] ^ d[at]) & ~bits_of(f, at)) == 0);
  }
}

TEST_CASE("constant expressions: a packet made, encoded and decoded by the compiler") {
  static constexpr auto dwords = encode(PollMem{.addr = GpuVa{0x1000}, .func = Compare::ge, .reference = 7});
  static constexpr auto p = decode<PollMem>(dwords);
  STATIC_REQUIRE(p.addr == GpuVa{0x1000});
  STATIC_REQUIRE(p.func == Compare::ge);
  STATIC_REQUIRE(p.reference == 7);
}

}  // namespace

template <>
inline constexpr auto sdma::grammar::layout<Straddler> = packet(
    "straddler", op(99, 0), dwords(4), "a test", bits<&Straddler::across>("across", 0, 24, 39, "16 bits of two dwords"),
    bits<&Straddler::far>("far", 2, 4, 63, "60 bits of two dwords"));

namespace {

static_assert(encode(Straddler{.across = 0xabcd, .far = 0x0123456789abcde}) ==
              std::array<std::uint32_t, 4>{0xcd000063, 0x000000ab, 0x89abcde0, 0x01234567});
static_assert(decode<Straddler>(encode(Straddler{.across = 0xabcd, .far = 5})).across == 0xabcd);

}  // namespace
