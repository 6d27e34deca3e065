// SPDX-License-Identifier: MIT
// check names the first field that is wrong, and why; fits is the same question as yes or no.
#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

/// What both say of a packet.
struct Verdict {
  Violation violation;
  bool fits;
};

std::string text_of(const Verdict& v) {
  CHECK(static_cast<bool>(v.violation) == !v.fits);
  return v.violation ? std::string(v.violation.field) + ':' + std::string(v.violation.rule) : "";
}
template <Packet P> std::string verdict(const P& p) { return text_of({check(p), fits(p)}); }

TEST_CASE("a copy holds 1 to 2^30 bytes") {
  CHECK(verdict(CopyLinear{.bytes = 0}) == "bytes:range");
  CHECK(verdict(CopyLinear{.bytes = 1}) == "");
  CHECK(verdict(CopyLinear{.bytes = 1u << 30}) == "");
  CHECK(verdict(CopyLinear{.bytes = (1u << 30) + 1}) == "bytes:range");
  CHECK(verdict(CopyLinear{.bytes = ~0u}) == "bytes:range");
  CHECK(verdict(CopyLinear{.src = GpuVa{1}, .dst = GpuVa{3}, .bytes = 5}) == "");
  CHECK(verdict(CopyLinear{.bytes = 1, .src_swap = 3, .dst_policy = 7}) == "");
  CHECK(verdict(CopyLinear{.bytes = 1, .src_swap = 4}) == "src_swap:range");
  CHECK(verdict(CopyLinear{.bytes = 1, .dst_policy = 8}) == "dst_policy:range");
}

TEST_CASE("the destinations of a broadcast are equal modulo 32") {
  const auto broadcast = [](std::uint64_t d1, std::uint64_t d2) {
    return verdict(CopyBroadcast{.dst1 = GpuVa{d1}, .dst2 = GpuVa{d2}, .bytes = 64});
  };
  CHECK(broadcast(0x1000, 0x2000) == "");
  CHECK(broadcast(0x1005, 0x2005) == "");
  CHECK(broadcast(0x1000, 0x2020) == "");
  CHECK(broadcast(0x1000, 0x2010) == ":broadcast-modulo-32");
  CHECK(broadcast(0x1001, 0x2000) == ":broadcast-modulo-32");
  CHECK(broadcast(0x101f, 0x2000) == ":broadcast-modulo-32");
}

TEST_CASE("both sides of a swap are aligned to 64") {
  const auto swap = [](std::uint64_t a, std::uint64_t b) {
    return verdict(CopySwap{.a = GpuVa{a}, .b = GpuVa{b}, .bytes = 64});
  };
  CHECK(swap(0x1040, 0x2080) == "");
  CHECK(swap(0x1020, 0x2080) == "a:alignment");
  CHECK(swap(0x1040, 0x2060) == "b:alignment");
  CHECK(swap(0x1041, 0x2061) == "a:alignment");
}

TEST_CASE("a sub-window has elements of at most 16 bytes and pitches of whole dwords") {
  CopySubwindow p{.element_log2 = 4, .src_pitch = 3, .dst_pitch = 5, .y = 2};
  CHECK(verdict(p) == "");
  p.element_log2 = 5;
  CHECK(verdict(p) == "element_log2:range");
  p.element_log2 = 0;
  CHECK(verdict(p) == ":subwindow-pitch");
  p.src_pitch = p.dst_pitch = 8;
  CHECK(verdict(p) == "");
  p.src_pitch = 9;
  CHECK(verdict(p) == ":subwindow-pitch");
  p.y = 1;
  CHECK(verdict(p) == "");  // one row: no pitch is used
  p.z = 2, p.src_slice = 64, p.dst_slice = 63;
  CHECK(verdict(p) == ":subwindow-pitch");
  p.dst_slice = 64;
  CHECK(verdict(p) == "");
  p.element_log2 = 1, p.src_slice = 62, p.dst_slice = 61;
  CHECK(verdict(p) == ":subwindow-pitch");
  p.dst_slice = 62;
  CHECK(verdict(p) == "");
}

TEST_CASE("the limits of a sub-window: 2^14 x 2^14 x 2^11, pitch 2^19, slice 2^28") {
  const auto with = [](auto change) {
    CopySubwindow p{.element_log2 = 2};
    change(p);
    return verdict(p);
  };
  CHECK(with([](auto& p) { p.x = p.y = 1 << 14, p.z = 1 << 11; }) == "");
  CHECK(with([](auto& p) { p.x = (1 << 14) + 1; }) == "x:range");
  CHECK(with([](auto& p) { p.y = (1 << 14) + 1; }) == "y:range");
  CHECK(with([](auto& p) { p.z = (1 << 11) + 1; }) == "z:range");
  CHECK(with([](auto& p) { p.x = 0; }) == "x:range");
  CHECK(with([](auto& p) { p.src_pitch = p.dst_pitch = 1 << 19; }) == "");
  CHECK(with([](auto& p) { p.src_pitch = (1 << 19) + 1; }) == "src_pitch:range");
  CHECK(with([](auto& p) { p.dst_slice = 1 << 28; }) == "");
  CHECK(with([](auto& p) { p.dst_slice = (1 << 28) + 1; }) == "dst_slice:range");
}

TEST_CASE("fence and polls look at dwords, atomics at the width of their operation, timestamps at 8 bytes") {
  CHECK(verdict(Fence{.addr = GpuVa{0x1004}}) == "");
  CHECK(verdict(Fence{.addr = GpuVa{0x1002}}) == "addr:alignment");
  CHECK(verdict(PollMem{.addr = GpuVa{0x1004}}) == "");
  CHECK(verdict(PollMem{.addr = GpuVa{0x1001}}) == "addr:alignment");
  CHECK(verdict(PollMem{.retry = 4095}) == "");
  CHECK(verdict(PollMem{.retry = 4096}) == "retry:range");
  CHECK(verdict(PollMem{.func = static_cast<Compare>(7)}) == "");
  CHECK(verdict(PollMem{.func = static_cast<Compare>(8)}) == "func:range");
  CHECK(verdict(Atomic{.addr = GpuVa{0x1008}}) == "");
  CHECK(verdict(Atomic{.addr = GpuVa{0x1004}}) == ":atomic-alignment");
  CHECK(verdict(Atomic{.addr = GpuVa{0x1004}, .op = AtomicOp::add_rtn_32}) == "");
  CHECK(verdict(Atomic{.addr = GpuVa{0x1002}, .op = AtomicOp::add_32}) == ":atomic-alignment");
  CHECK(verdict(Atomic{.op = static_cast<AtomicOp>(0x80)}) == "op:range");
  CHECK(verdict(Atomic{.interval = 0x1fff}) == "");
  CHECK(verdict(Atomic{.interval = 0x2000}) == "interval:range");
  CHECK(verdict(Timestamp{.addr = GpuVa{0x1008}}) == "");
  CHECK(verdict(Timestamp{.addr = GpuVa{0x1004}}) == "addr:alignment");
  CHECK(verdict(TimestampLocal{.addr = GpuVa{0x1018}}) == "");
  CHECK(verdict(TimestampLocal{.addr = GpuVa{0x1014}}) == "addr:alignment");
  CHECK(verdict(Semaphore{.addr = GpuVa{0x1004}}) == "addr:alignment");
  CHECK(verdict(Indirect{.base = GpuVa{0x1010}, .dwords = 8}) == "base:alignment");
}

TEST_CASE("a fill is aligned to its unit") {
  const auto fill = [](std::uint64_t dst, FillUnit u) {
    return verdict(Fill{.dst = GpuVa{dst}, .bytes = 8, .unit = u});
  };
  CHECK(fill(0x1001, FillUnit::byte) == "");
  CHECK(fill(0x1001, FillUnit::half) == ":fill-alignment");
  CHECK(fill(0x1002, FillUnit::half) == "");
  CHECK(fill(0x1002, FillUnit::dword) == ":fill-alignment");
  CHECK(fill(0x1004, FillUnit::dword) == "");
  CHECK(fill(0x1000, static_cast<FillUnit>(4)) == "unit:range");
}

TEST_CASE("payloads: a write carries 1 to 2^20 dwords, a physical copy up to 255 pairs of 4") {
  static const std::vector<std::uint32_t> words((1u << 20) + 1);
  const auto write = [](std::size_t n) { return verdict(Write{.data = std::span(words).first(n)}); };
  CHECK(write(0) == "data:range");
  CHECK(write(1) == "");
  CHECK(write(1u << 20) == "");
  CHECK(write((1u << 20) + 1) == "data:range");
  const auto copy = [](std::size_t n) { return verdict(CopyPhysical{.bytes = 1, .more = std::span(words).first(n)}); };
  CHECK(copy(0) == "");
  CHECK(copy(4) == "");
  CHECK(copy(5) == "more:range");
  CHECK(copy(255 * 4) == "");
  CHECK(copy(256 * 4) == "more:range");
}

TEST_CASE("a nop has 1 to 16384 dwords") {
  CHECK(verdict(Nop{}) == "");
  CHECK(verdict(Nop{.dwords = 0}) == "dwords:range");
  CHECK(verdict(Nop{.dwords = 16384}) == "");
  CHECK(verdict(Nop{.dwords = 16385}) == "dwords:range");
}

TEST_CASE("the first field in text order is the one that is named, and a field goes before a rule") {
  CHECK(verdict(CopySwap{.a = GpuVa{1}, .b = GpuVa{1}, .bytes = 0}) == "bytes:range");
  CHECK(verdict(CopyBroadcast{.dst1 = GpuVa{1}, .bytes = 1, .dst2_swap = 4}) == "dst2_swap:range");
}

/// What both say of a random packet whose field `i` is `v`.
template <Packet P> Verdict verdict_of(Dice& dice, std::size_t i, std::uint64_t v) {
  auto p = dice.packet<P>();
  set(p, i, v);
  return {check(p), fits(p)};
}

/// The bits that each member of `P` can hold.
template <Packet P> std::vector<unsigned> bits_of_members() {
  std::vector<unsigned> bits;
  each_field<P>([&]<std::size_t I>() {
    using T = typename detail::FieldOf<P, I>::Type;
    bits.push_back(std::is_same_v<T, bool> ? 1 : 8 * sizeof(T));
  });
  return bits;
}

/// Every field of every packet at its limits: below, at, above, where the member can hold such a value at all.
class Limits {
 public:
  using Try = Verdict (*)(Dice&, std::size_t, std::uint64_t);

  std::size_t seen = 0;

  void of(const PacketInfo& p, const std::vector<unsigned>& bits, Try with) {
    for (i_ = 0; i_ < p.fields.size(); ++i_) {
      f_ = p.fields[i_];
      with_ = with;
      INFO(p.name << "." << f_.name);
      if (f_.kind == Kind::payload) payload();
      else number(bits[i_]);
    }
  }

 private:
  void payload() {
    good(f_.bias);
    good(f_.max() < 900 ? f_.max() : 900);
    if (f_.bias) named(0, "range");
  }
  void number(unsigned bits) {
    good(f_.alignment > 1 ? down(f_.bias + f_.alignment - 1) : f_.bias);
    good(down(f_.max()));
    if (f_.bias) named(f_.bias - 1u, "range");
    if (bits < 64 && f_.max() + 1 < std::uint64_t{1} << bits) named(f_.max() + 1, "range");
    if (f_.alignment > 1)
      for (std::uint32_t off = 1; off < f_.alignment; off *= 2) named(down(f_.max()) - f_.alignment + off, "alignment");
  }
  std::uint64_t down(std::uint64_t v) const { return v / f_.alignment * f_.alignment; }

  void named(std::uint64_t v, std::string_view rule) {
    const auto verdict = with_(dice_, i_, v);
    // Another field's check may come first only where it is broken too, and packet() breaks none.
    CHECK(verdict.violation.field == f_.name);
    CHECK(verdict.violation.rule == rule);
    CHECK_FALSE(verdict.fits);
    ++seen;
  }
  void good(std::uint64_t v) {
    CHECK(with_(dice_, i_, v).violation.field != f_.name);
    ++seen;
  }

  Dice dice_{11};
  FieldInfo f_{};
  std::size_t i_ = 0;
  Try with_ = nullptr;
};

TEST_CASE("check names each field of each packet at each of its limits") {
  Limits limits;
  each_packet([&]<class P>() { limits.of(packet_info<P>, bits_of_members<P>(), &verdict_of<P>); });
  CHECK(limits.seen > 500);
}

TEST_CASE("the same rules hold over dwords") {
  Dice dice{12};
  each_packet([&]<class P>() {
    const auto good = words_of(dice.packet<P>());
    for (const auto& r : packet_info<P>.rules) holds(packet_info<P>.name, r.holds(good, packet_info<P>));
  });
  const auto bad = encode(CopyBroadcast{.dst1 = GpuVa{1}, .bytes = 1});
  REQUIRE(packet_info<CopyBroadcast>.rules.size() == 1);
  CHECK_FALSE(packet_info<CopyBroadcast>.rules[0].holds(bad, packet_info<CopyBroadcast>));
}

static_assert(check(CopyLinear{}).field == "bytes" && check(CopyLinear{}).rule == "range");
static_assert(!check(Fence{}) && fits(Fence{}));

}  // namespace
