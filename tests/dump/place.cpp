// SPDX-License-Identifier: MIT
// Rings cut by their positions: each packet is found again, wherever the ring's end or the dump's beginning cuts it.
#include "sdma/dump/place.hpp"
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <random>

using namespace sdma;

namespace {

using Dwords = std::vector<std::uint32_t>;

template <class P> void put(Dwords& out, const P& p) {
  const auto n = out.size();
  out.resize(n + length(p));
  encode_to(p, out.data() + n);
}
/// Packets as a runtime writes them.
Dwords stream(std::size_t packets) {
  Dwords out;
  for (std::size_t i = 0; i < packets; ++i) {
    put(out, PollMem{.addr = GpuVa{0x7f0000001000 + 8 * i}, .reference = static_cast<std::uint32_t>(i)});
    put(out, CopyLinear{.src = GpuVa{0x7f1122334000}, .dst = GpuVa{0x7f5566778000 + 4096 * i}, .bytes = 4096});
    put(out, Atomic{.addr = GpuVa{0x7f0000002000}, .value = ~std::uint64_t{}});
    put(out, Fence{.addr = GpuVa{0x7f0000003000}, .value = static_cast<std::uint32_t>(i)});
    put(out, Trap{static_cast<std::uint32_t>(i & 0xff)});
  }
  return out;
}
std::vector<std::size_t> lengths(const Dwords& d) {
  std::vector<std::size_t> n;
  for (Reader r{d}; r;) n.push_back(r.next().dwords.size());
  return n;
}
const RingPart* part(const PlacedRing& r, RingPartKind k) {
  const auto p = std::find_if(r.parts.begin(), r.parts.end(), [&](const RingPart& x) { return x.kind == k; });
  return p == r.parts.end() ? nullptr : &*p;
}

}  // namespace

TEST_CASE("a full ring is cut at rptr and wptr, wherever its end falls") {
  constexpr std::size_t kRing = 256;
  const auto written = stream(40);
  const auto n = lengths(written);
  std::size_t tested = 0;
  for (std::size_t first = 0; first < n.size(); first += 7) {
    // The engine stands before packet `first`; five packets are pending; the ring holds the last 256 dwords.
    std::size_t at = 0, w = 0;
    for (std::size_t i = 0; i < first; ++i) at += n[i];
    if (first + 5 > n.size()) break;
    w = at;
    for (std::size_t i = first; i < first + 5; ++i) w += n[i];
    if (w < kRing) continue;
    Dwords ring(kRing);
    for (auto i = w - kRing; i < w; ++i) ring[i % kRing] = written[i];
    CAPTURE(first, at, w);
    for (const bool wrapped : {false, true}) {
      const auto r =
          place_ring(ring, {.rptr = (wrapped ? at % kRing : at) * 4, .wptr = (wrapped ? w % kRing : w) * 4}, "t");
      REQUIRE(r);
      const auto* pending = part(*r, RingPartKind::pending);
      REQUIRE(pending);
      CHECK(pending->at == at % kRing * 4);
      const auto views = packets_of(*pending);
      REQUIRE(views.size() == 5);
      for (std::size_t i = 0; i < 5; ++i) CHECK(views[i].dwords.size() == n[first + i]);
      // The oldest packet is cut by the producer's newest: what is left of it is lost, and all others are found.
      const auto* consumed = part(*r, RingPartKind::consumed);
      REQUIRE(consumed);
      CHECK(consumed->dwords.size() == kRing - (w - at));
      const auto old = packets_of(*consumed);
      CHECK(std::all_of(old.begin() + static_cast<std::ptrdiff_t>(consumed->lost()), old.end(),
                        [](const PacketView& v) { return v.whole(); }));
      auto expected = first, k = old.size(), left = consumed->dwords.size();
      for (; expected > 0 && n[expected - 1] <= left; left -= n[expected]) {
        REQUIRE(k > 0);
        --expected;
        CHECK(old[--k].dwords.size() == n[expected]);
      }
    }
    ++tested;
  }
  CHECK(tested > 10);
}

TEST_CASE("a dump that begins in the middle of a packet begins with the next one") {
  const auto whole = stream(6);
  for (std::size_t cut = 0; cut < 31; ++cut) {
    std::size_t boundary = 0;
    for (const auto n : lengths(whole)) {
      if (boundary >= cut) break;
      boundary += n;
    }
    CAPTURE(cut);
    const auto r = place_ring(std::span(whole).subspan(cut), {}, "t");
    REQUIRE(r);
    REQUIRE(r->parts.size() == 1);
    // Zeros at the end of the packet that is cut are NOPs as well.
    auto lost = boundary - cut;
    while (lost > 0 &&
           std::all_of(whole.begin() + static_cast<std::ptrdiff_t>(cut),
                       whole.begin() + static_cast<std::ptrdiff_t>(cut + lost), [](std::uint32_t w) { return w == 0; }))
      lost = 0;
    CHECK(r->parts[0].lost() <= boundary - cut);
    CHECK(r->parts[0].lost() >= std::min<std::size_t>(lost, 1));
    const auto views = packets_of(r->parts[0]);
    CHECK(std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.is<Trap>(); }) ==
          (cut > 25 ? 5 : 6));
    CHECK(std::all_of(views.begin() + static_cast<std::ptrdiff_t>(r->parts[0].lost()), views.end(),
                      [](const PacketView& v) { return v.whole(); }));
  }
}

TEST_CASE("garbage before rptr does not swallow what follows it") {
  // A header that claims more dwords than there are up to rptr cannot be a packet.
  Dwords ring(256);
  Dwords d = stream(2);
  d.insert(d.begin() + 31, 0x3fff0002u);
  std::copy(d.begin(), d.end(), ring.begin());
  const auto r = place_ring(ring, {.rptr = d.size() * 4, .wptr = d.size() * 4}, "t");
  REQUIRE(r);
  CHECK_FALSE(part(*r, RingPartKind::pending));
  const auto views = packets_of(*part(*r, RingPartKind::consumed));
  CHECK(std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.is<Trap>(); }) == 2);
}

namespace {

/// The packets of stream(6), with these dwords before packet `before`, as a dump that ends at `wptr` or just ends.
RingPart with_garbage(const Dwords& garbage, std::size_t before, bool pending, std::size_t* boundary = nullptr) {
  auto d = stream(6);
  const auto n = lengths(d);
  std::size_t at = 0;
  for (std::size_t i = 0; i < before; ++i) at += n[i];
  if (boundary) *boundary = at;
  d.insert(d.begin() + static_cast<std::ptrdiff_t>(at), garbage.begin(), garbage.end());
  RingPositions p;
  if (pending) {
    p = {.rptr = 0, .wptr = d.size() * 4};
    d.resize(1024);
  }
  const auto r = place_ring(d, p, "t");
  REQUIRE(r);
  const auto* found = part(*r, pending ? RingPartKind::pending : RingPartKind::whole);
  REQUIRE(found);
  return *found;
}
std::size_t whole_packets(const RingPart& p) {
  const auto views = packets_of(p);
  return static_cast<std::size_t>(
      std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.whole() && !v.is<Nop>(); }));
}

}  // namespace

TEST_CASE("after garbage, reading resumes at the next packet") {
  const Dwords text{0x6f206e6f, 0x20202020, 0x0000000a}, pointers{0xdeadbeef, 0x00007f12, 0xffff8881, 0x12345678};
  for (const bool pending : {false, true})
    for (std::size_t before = 0; before < 30; ++before)
      for (std::size_t length : {1u, 2u, 3u, 9u, 70u, 300u}) {
        Dwords garbage;
        while (garbage.size() < length) garbage.push_back(0xdeadbeef + static_cast<std::uint32_t>(garbage.size() << 8));
        CAPTURE(pending, before, length);
        std::size_t at = 0;
        const auto p = with_garbage(garbage, before, pending, &at);
        REQUIRE(p.gaps.size() == 1);
        CHECK(p.gaps[0].at == at);
        CHECK(p.gaps[0].dwords == length);
        CHECK(p.gaps[0].inside_packet == (!pending && before == 0 && length <= 16));
        CHECK(p.gaps[0].why == "0xdeadbeef begins no packet");
        CHECK(p.gaps[0].rests_on.ends_with(pending ? ", up to wptr" : ", up to the end of the dump"));
        CHECK(whole_packets(p) == 30);
      }
  for (const auto& garbage : {text, pointers}) CHECK(whole_packets(with_garbage(garbage, 7, true)) == 30);
}

TEST_CASE("garbage with packets inside is one gap, unless they are worth more than the gap") {
  Dwords trap;
  put(trap, Trap{7});
  Dwords garbage(5, 0xdeadbeef);
  garbage.insert(garbage.end(), trap.begin(), trap.end());
  garbage.insert(garbage.end(), 5, 0xdeadbeef);
  CHECK(with_garbage(garbage, 3, true).gaps.size() == 1);
  put(garbage, CopyLinear{.src = GpuVa{0x7f1122334000}, .dst = GpuVa{0x7f5566778000}, .bytes = 64});
  put(garbage, CopyLinear{.src = GpuVa{0x7f1122334000}, .dst = GpuVa{0x7f5566778000}, .bytes = 64});
  garbage.push_back(0xdeadbeef);
  const auto p = with_garbage(garbage, 3, true);
  REQUIRE(p.gaps.size() == 2);
  CHECK(p.gaps[0].rests_on == "the next 2 packets have valid fields");
  CHECK(p.gaps[1].dwords == 1);
  CHECK(whole_packets(p) == 32);
}

TEST_CASE("random garbage costs at most the packets next to it") {
  std::mt19937 random{7};
  for (int i = 0; i < test::tries(300); ++i) {
    Dwords garbage{0xdeadbeef};
    const auto n = random() % 60;
    while (garbage.size() <= n)
      garbage.push_back(static_cast<std::uint32_t>(random() % 3 ? random() : random() & 0xff));
    CAPTURE(i);
    const auto p = with_garbage(garbage, 1 + random() % 10, true);
    REQUIRE_FALSE(p.gaps.empty());
    const auto views = packets_of(p);
    CHECK(std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.is<CopyLinear>(); }) >= 5);
    CHECK(std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.is<Trap>(); }) >= 5);
  }
}

TEST_CASE("a header that reaches past wptr is a gap, and what follows it is found") {
  const auto p = with_garbage({0x3fff0002}, 5, true);
  REQUIRE(p.gaps.size() == 1);
  CHECK(p.gaps[0].dwords == 1);
  CHECK(whole_packets(p) == 30);
  // The last packet is cut by wptr, and nothing follows it.
  auto d = stream(1);
  const auto n = d.size() - 3;
  d.resize(64);
  const auto cut = place_ring(d, {.rptr = 0, .wptr = n * 4}, "t");
  REQUIRE(cut);
  const auto& gaps = part(*cut, RingPartKind::pending)->gaps;
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].why == "fence would have 4 dwords, but 3 are left up to wptr");
  CHECK(gaps[0].rests_on == "nothing up to wptr reads as packets");
  CHECK(describe(*part(*cut, RingPartKind::pending), gaps[0]) ==
        "reading was lost at 0x54: fence would have 4 dwords, but 3 are left up to wptr; 3 dwords are skipped: nothing "
        "up to wptr "
        "reads as packets");
}

TEST_CASE("payloads, NOPs and a last packet that the dump cuts are not garbage") {
  auto d = stream(2);
  const auto at = lengths(d)[0];
  for (const std::uint32_t payload : {0u, 1u, 9u, 500u}) {
    Dwords nop(payload + 1, 0xdeadbeef);
    nop[0] = payload << 16;
    auto with = d;
    with.insert(with.begin() + static_cast<std::ptrdiff_t>(at), nop.begin(), nop.end());
    for (const auto& p : {RingPositions{}, RingPositions{.rptr = 0, .wptr = with.size() * 4}}) {
      auto ring = with;
      if (p.rptr) ring.resize(2048);
      const auto r = place_ring(ring, p, "t");
      REQUIRE(r);
      for (const auto& x : r->parts) CHECK(x.gaps.empty());
      CHECK(r->notes.empty());
    }
  }
  for (auto n = d.size(); n > 40; --n) {
    const auto r = place_ring(std::span(d).first(n), {}, "t");
    REQUIRE(r);
    CAPTURE(n);
    CHECK(r->parts[0].gaps.empty());
  }
}

TEST_CASE("notes name the first gaps and count the others") {
  Dwords d;
  for (int i = 0; i < 9; ++i) {
    const auto s = stream(1);
    d.insert(d.end(), s.begin(), s.end());
    d.push_back(0xdeadbeef);
  }
  const auto r = place_ring(d, {}, "t");
  REQUIRE(r);
  CHECK(r->parts[0].gaps.size() == 9);
  REQUIRE(r->notes.size() == 5);
  CHECK(r->notes[0].message ==
        "reading was lost at 0x6c: 0xdeadbeef begins no packet; 1 dword is skipped. That packets begin again at 0x70 "
        "is a guess: the "
        "next 5 packets have valid fields");
  CHECK(r->notes[4].message == "reading was lost in 5 more places from there on");
}

TEST_CASE("rptr alone: the packets from there on, around the ring's end") {
  auto d = stream(8);
  d.resize(256);
  std::rotate(d.begin(), d.begin() + 100, d.end());
  const auto r = place_ring(d, {.rptr = (256 - 100) * 4}, "t");
  REQUIRE(r);
  REQUIRE(r->parts.size() == 1);
  CHECK(r->parts[0].kind == RingPartKind::after);
  CHECK(packets_of(r->parts[0])[0].is<PollMem>());
}

TEST_CASE("a window of a ring: positions count from the ring's start") {
  const auto d = stream(4);
  const auto r = place_ring(d, {.rptr = 4096 + 31 * 4, .wptr = 4096 + 62 * 4, .first = 4096}, "t");
  REQUIRE(r);
  REQUIRE(r->parts.size() == 3);
  CHECK(part(*r, RingPartKind::pending)->at == 4096 + 31 * 4);
  CHECK(part(*r, RingPartKind::stale)->dwords.size() == d.size() - 62);
  const auto outside = place_ring(d, {.rptr = 64, .wptr = 128, .first = 4096}, "t");
  REQUIRE_FALSE(outside);
  CHECK(outside.error().message.starts_with(
      "rptr 0x40 and wptr 0x80 do not lie in the part of the ring that the dump shows"));
}

TEST_CASE("positions that contradict the dump are errors") {
  const Dwords d(256);
  CHECK(place_ring(d, {.wptr = 4}, "t").error().message == "wptr is known, but rptr is not");
  CHECK(place_ring(d, {.rptr = 6, .wptr = 8}, "t").error().message == "rptr 0x6 is not a multiple of 4");
  CHECK(place_ring(d, {.rptr = 4096, .wptr = 4096 + 1024}, "t").error().message ==
        "rptr 0x1000 and wptr 0x1400 contradict a ring of 1024 bytes");
  CHECK(place_ring(d, {.rptr = 4096, .wptr = 4000}, "t").error().rule == "dump");
}
