// Rings cut by their positions: each packet is found again, wherever the ring's end or the dump's beginning cuts it.
#include "sdma/dump/place.hpp"
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

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
      CHECK(std::all_of(old.begin() + static_cast<std::ptrdiff_t>(consumed->lost), old.end(),
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
    CHECK(r->parts[0].lost <= boundary - cut);
    CHECK(r->parts[0].lost >= std::min<std::size_t>(lost, 1));
    const auto views = packets_of(r->parts[0]);
    CHECK(std::count_if(views.begin(), views.end(), [](const PacketView& v) { return v.is<Trap>(); }) ==
          (cut > 25 ? 5 : 6));
    CHECK(std::all_of(views.begin() + static_cast<std::ptrdiff_t>(r->parts[0].lost), views.end(),
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
