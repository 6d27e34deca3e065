// SPDX-License-Identifier: MIT
// The reader takes any dwords, never looks behind them, and always gets on.
#include "sdma/stream/reader.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

/// Dwords that end where a page begins that nobody may touch: a read behind them ends the test.
class BeforeAnEdge {
 public:
  BeforeAnEdge() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* const at = mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    begin_ = static_cast<std::byte*>(at);
    REQUIRE(mprotect(begin_ + (kPages - 1) * page_, page_, PROT_NONE) == 0);
  }
  ~BeforeAnEdge() { munmap(begin_, kPages * page_); }
  BeforeAnEdge(const BeforeAnEdge&) = delete;
  BeforeAnEdge& operator=(const BeforeAnEdge&) = delete;
  std::span<const std::uint32_t> put(std::span<const std::uint32_t> d) {
    REQUIRE(d.size_bytes() <= (kPages - 1) * page_);
    auto* const at = begin_ + (kPages - 1) * page_ - d.size_bytes();
    if (!d.empty()) std::memcpy(at, d.data(), d.size_bytes());
    return {reinterpret_cast<const std::uint32_t*>(at), d.size()};
  }

 private:
  static constexpr std::size_t kPages = 9;
  std::size_t page_;
  std::byte* begin_ = nullptr;
};

void cut_at_every_dword(BeforeAnEdge& edge, const PacketInfo& p, std::span<const std::uint32_t> d,
                        bool (*is)(const PacketView&)) {
  INFO(p.name);
  for (std::size_t n = 1; n <= d.size(); ++n) {
    Reader r{edge.put(d.first(n))};
    const auto v = r.next();
    // HDP_FLUSH is known by all its dwords: with fewer it is the poll whose form it has.
    const auto* expected = &p == &info_of<HdpFlush>() && n < 6 ? &info_of<PollReg>() : &p;
    if (v.info != expected || v.cut_off != (n < d.size()) || v.dwords.size() != n || r) {
      INFO("of " << d.size() << " dwords: " << n);
      FAIL();
    }
    if (v.whole() != (n == d.size()) || is(v) != (n == d.size() && expected == &p)) FAIL();
  }
}

TEST_CASE("every packet, whole and cut off at every dword, before a page that may not be read") {
  BeforeAnEdge edge;
  Dice dice{1};
  each_packet([&]<class P>() {
    for (int round = 0; round < 20; ++round) {
      auto d = words_of(dice.packet<P>());
      if (d.size() > 300) d = words_of(P{});
      cut_at_every_dword(edge, info_of<P>(), d, [](const PacketView& v) { return v.is<P>(); });
    }
  });
}

TEST_CASE("the packets of every generation are cut off alike, also where sources give several lengths") {
  BeforeAnEdge edge;
  std::vector<std::uint32_t> d(24);
  for (std::size_t g = 0; g < kGenerationCount; ++g) {
    if (!described(static_cast<Generation>(g))) continue;
    const auto& all = catalogue(static_cast<Generation>(g));
    for (const auto& p : all.packets())
      for (const auto rest : {0u, 1u, 0x000e0000u, 0xffffffffu}) {
        std::fill(d.begin(), d.end(), rest);
        for (std::size_t i = 0; i < p.pattern.mask.size() && i < d.size(); ++i)
          d[i] = p.pattern.value[i] | (rest & ~p.pattern.mask[i]);
        for (std::size_t n = 1; n <= d.size(); ++n) {
          INFO(p.name << " of " << name_of(all.generation()) << ", dwords: " << n);
          std::size_t read = 0;
          for (Reader r{edge.put(std::span(d).first(n)), all}; r;) read += r.next().dwords.size();
          if (read != n) FAIL();
        }
      }
  }
}

TEST_CASE("packets that are only recognised are cut off alike") {
  BeforeAnEdge edge;
  for (const auto& p : kPackets) {
    if (!p.fields_unknown) continue;
    INFO(p.name);
    std::vector<std::uint32_t> d(40, 0);
    d[0] = p.pattern.value[0];
    if (p.counted) store(*p.counted, 4, d.data());
    d.resize(p.length(d.data()));
    for (std::size_t n = 1; n <= d.size(); ++n) {
      Reader r{edge.put(std::span(d).first(n))};
      const auto v = r.next();
      CHECK(v.info == &p);
      CHECK(v.cut_off == (n < d.size()));
      CHECK(v.dwords.size() == n);
    }
  }
}

TEST_CASE("any dwords: the views are the dwords, in order, without a gap") {
  BeforeAnEdge edge;
  Dice dice{2};
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint32_t> d(dice.below(200));
    for (auto& w : d) {
      w = static_cast<std::uint32_t>(dice.number());
      if (dice.below(4)) w = (w & 0x0fff0000) | static_cast<std::uint32_t>(dice.below(17) | dice.below(10) << 8);
    }
    const auto in = edge.put(d);
    Reader r{in};
    const std::uint32_t* at = in.data();
    while (r) {
      const auto before = r.position_dwords();
      const auto v = r.next();
      REQUIRE(v.dwords.data() == at);
      REQUIRE_FALSE(v.dwords.empty());
      REQUIRE(r.position_dwords() == before + v.dwords.size());
      if (!v.info) REQUIRE(v.dwords.size() == 1);
      if (!v.info) REQUIRE_FALSE(v.cut_off);
      if (v.cut_off) REQUIRE_FALSE(r);
      if (v.whole()) REQUIRE(v.dwords.size() == v.info->length(v.dwords.data()));
      at += v.dwords.size();
    }
    REQUIRE(at == in.data() + in.size());
  }
}

TEST_CASE("packets one after another, with a dword that nobody knows between them") {
  Dice dice{3};
  std::vector<std::uint32_t> d;
  std::vector<const PacketInfo*> expected;
  each_packet([&]<class P>() {
    const auto words = words_of(dice.packet<P>());
    d.insert(d.end(), words.begin(), words.end());
    d.push_back(0x00000003);
    expected.insert(expected.end(), {&info_of<P>(), nullptr});
  });
  std::vector<const PacketInfo*> got;
  for (Reader r{d}; r;) {
    const auto v = r.next();
    CHECK_FALSE(v.cut_off);
    got.push_back(v.info);
  }
  CHECK(got == expected);
}

TEST_CASE("no dwords, no packet") {
  const Reader r{{}};
  CHECK_FALSE(r);
  CHECK(r.position_dwords() == 0);
}

TEST_CASE("the longest packets are one view, and a byte count is no length") {
  std::vector<std::uint32_t> d(4 + (1u << 20) + 1, 0xffffffff);
  d[0] = 0x00000002, d[1] = d[2] = 0, d[3] = (1u << 20) - 1;
  Reader r{d};
  CHECK(r.next().dwords.size() == 4 + (1u << 20));
  CHECK(r.next().info == nullptr);
  CHECK_FALSE(r);
  d[0] = 0x3fff0000;  // a NOP of 16384
  Reader nop{d};
  CHECK(nop.next().dwords.size() == 16384);
}

constexpr std::size_t packets_in(std::span<const std::uint32_t> d) {
  std::size_t n = 0;
  for (Reader r{d}; r; ++n) r.next();
  return n;
}
static_assert(packets_in(std::array{0u, 6u, 1u, 5u, 0u, 0u, 0u}) == 3);

}  // namespace
