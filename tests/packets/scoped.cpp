// SPDX-License-Identifier: MIT
// Packets of 7.1: what their encoders write is what the catalogue reads, field by field; and what a runtime writes.
#include "sdma/packets/scoped.hpp"

#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

#include <random>
#include <vector>

using namespace sdma;

namespace {

using Words = std::vector<std::uint32_t>;
constexpr auto k71 = Generation::v7_1;
constexpr GpuVa kSource{0x7f1112345600}, kTarget{0x7f5522334400};
constexpr std::array kPairs{0x22334400u, 0x7f55u, 0x22335400u, 0x7f55u, 0x22336400u, 0x7f55u};

template <Packet P> Words words(const P& p) {
  CHECK(fits(p, k71));
  Words out(length(p, k71) + 1, 0xdeadbeef);
  CHECK(encode_to(p, out.data(), k71) == out.data() + out.size() - 1);
  CHECK(out.back() == 0xdeadbeef);
  out.pop_back();
  return out;
}
std::string text(const Words& d, Generation g = k71) { return disassemble(d, {.generation = g}); }
/// The name that the catalogue reads, if the packet is whole and nothing is left.
std::string_view name(const Words& d) {
  Reader r{d, catalogue(k71)};
  const auto v = r.next();
  return v.whole() && !r && !v.info->fields_unknown && !v.info->foreign ? v.info->name : "";
}

/// Every field of a description by its place in the whole form: set alone, the catalogue reads that field alone.
template <Packet P> void same_fields(P plain, std::string_view expected) {
  const auto before = words(plain);
  const auto& info = *catalogue(k71).identify(before);
  REQUIRE(info.name == expected);
  detail::each<P, k71>([&]<std::size_t I>() {
    constexpr auto f = detail::field<P, I, k71>;
    using F = detail::FieldOf<P, I, k71>;
    if constexpr (f.kind != Kind::payload && f.name != "wait" && f.name != "signal" && !f.name.starts_with("slot_") &&
                  !f.name.starts_with("indirect_")) {
      auto p = plain;
      p.*F::member = static_cast<typename F::Type>(f.mask() / f.alignment * f.alignment + f.bias);
      if constexpr (std::is_same_v<typename F::Type, GpuVa>) p.*F::member = GpuVa{0xffff0f00};
      if (!fits(p, k71)) return;
      INFO(expected << " " << f.name);
      const auto d = words(p);
      const Unfolded whole{info, d};
      const auto at = detail::index_of(info.fields, f.name);
      if (at == info.fields.size()) {  // of a block that is not there
        CHECK(d == before);
        return;
      }
      CHECK(value_of(info.fields[at], whole.data()) == static_cast<std::uint64_t>(detail::plain(p.*F::member)));
      for (std::size_t i = 0; i < info.described(); ++i) CHECK((whole.data()[i] & info.reserved(i)) == 0);
    }
  });
}

}  // namespace

TEST_CASE("descriptions of 7.1 are consistent") {
  STATIC_REQUIRE(well_formed<ScopedCopy, k71>());
  STATIC_REQUIRE(well_formed<ScopedSwap, k71>());
  STATIC_REQUIRE(well_formed<Multicast, k71>());
  STATIC_REQUIRE(well_formed<Fence64, k71>());
  STATIC_REQUIRE(well_formed<PollMem64, k71>());
  STATIC_REQUIRE(well_formed<ScopedFill, k71>());
  STATIC_REQUIRE(well_formed<ScopedSubwindow, k71>());
  STATIC_REQUIRE(well_formed<ScopedTimestamp, k71>());
  STATIC_REQUIRE_FALSE(exists<Fence64>(Generation::v4_4_2));
  CHECK(check(Fence64{.addr = kSource}, Generation::v7_0).rule == "generation");
}

// The dwords that a runtime's structures give, worked out by hand.
TEST_CASE("dwords of 7.1 as a runtime writes them") {
  const GpuVa wait{0x7f2200aa1000}, signal{0x7f3300bb2000};
  CHECK(words(ScopedCopy{.src = kSource, .dst = kTarget, .bytes = 4096, .npd = true}) ==
        Words{0x10000001, 0xfff, 0x0c0c0000, 0x12345600, 0x7f11, 0x22334400, 0x7f55});
  const Words block{0x000c0003, 0x00aa1000, 0x7f22, 0, 0, 0xffffffff, 0xffffffff},
      body{0xfff, 0x0c0c0000, 0x12345600, 0x7f11, 0x22334400, 0x7f55}, after{0x000c0070, 0x00bb2000, 0x7f33, 1, 0};
  const auto joined = [](std::initializer_list<Words> all) {
    Words out;
    for (const auto& w : all) out.insert(out.end(), w.begin(), w.end());
    return out;
  };
  const ScopedCopy fused{.src = kSource,
                         .dst = kTarget,
                         .bytes = 4096,
                         .wait_addr = wait,
                         .signal_addr = signal,
                         .wait = true,
                         .signal = true};
  CHECK(words(fused) == joined({{0xc0000001}, block, body, after}));
  const Multicast three{.src = kSource,
                        .bytes = 4096,
                        .destinations = kPairs,
                        .wait_addr = wait,
                        .signal_addr = signal,
                        .wait = true,
                        .signal = true};
  CHECK(words(three) ==
        joined({{0xc0000a01}, block, {0xfff, 0x0c0c0002, 0x12345600, 0x7f11}, {kPairs.begin(), kPairs.end()}, after}));
  CHECK(words(ScopedCopy{
            .src = kSource, .dst = kTarget, .bytes = 4096, .slot_scope = Scope::sys, .indirect_src = true})[2] ==
        0x0c0c0c00);
  CHECK(words(Fence64{.addr = kSource, .value = 0x100000007, .sys = true}) ==
        Words{0x03130205, 0x12345600, 0x7f11, 7, 1});
  CHECK(words(PollMem64{.addr = kSource, .sys = true}) ==
        Words{0x30100508, 0x12345600, 0x7f11, 0, 0, 0xffffffff, 0xffffffff, 0x30000000});
  CHECK(words(ScopedFill{.dst = kSource, .data = 0xabcd, .bytes = 0xffd, .npd = true}) ==
        Words{0xa300000b, 0x12345600, 0x7f11, 0xabcd, 0xffc});
  CHECK(words(ScopedTimestamp{.addr = kSource}) == Words{0x0300020d, 0x12345600, 0x7f11});
  CHECK(words(Fence{.addr = kSource, .value = 7, .mtype = 3, .sys = true, .scope = Scope::sys}) ==
        Words{0x03130005, 0x12345600, 0x7f11, 7});
  CHECK(words(Atomic{.addr = kSource, .value = ~0ull, .scope = Scope::sys})[0] == 0x5e30000a);
  CHECK(words(PollMem{.addr = kSource, .scope = Scope::sys})[5] == 0x3fff0004);
}

TEST_CASE("every form is read as itself, and its value comes back") {
  for (const bool wait : {false, true})
    for (const bool signal : {false, true}) {
      const auto suffix = std::string(wait ? "_wait" : "") + (signal ? "_signal" : "");
      ScopedCopy copy{.src = kSource, .dst = kTarget, .bytes = 4096, .wait = wait, .signal = signal};
      CHECK(words(copy).size() == 7u + 7u * wait + 5u * signal);
      CHECK(name(words(copy)) == "copy_linear" + suffix);
      copy.indirect_dst = true;
      CHECK(name(words(copy)) == (suffix.empty() ? "copy_indirect" : "copy_linear" + suffix));
      CHECK(text(words(copy)).find(" indirect_dst") != std::string::npos);
      CHECK(name(words(ScopedSwap{.a = kSource, .b = kTarget, .bytes = 64, .wait = wait, .signal = signal})) ==
            "copy_swap" + suffix);
      for (const std::size_t n : {1u, 2u, 3u}) {
        const auto pairs = std::span(kPairs).first(2 * n);
        const auto d =
            words(Multicast{.src = kSource, .bytes = 1, .destinations = pairs, .wait = wait, .signal = signal});
        CHECK(d.size() == 5 + 2 * n + 7u * wait + 5u * signal);
        CHECK(name(d) == "copy_multicast" + suffix);
        const auto back = decode<Multicast>(d, k71);
        CHECK(std::ranges::equal(back.destinations, pairs));
        CHECK(back.signal_op == AtomicOp::sub_64);
        CHECK(words(back) == d);
        auto line = text(d);
        line.pop_back();
        const auto again = assemble(line, "t", {.generation = k71});
        CHECK((again && *again == d));
      }
    }
  const Words most(2048, 0x1000);
  CHECK(name(words(Multicast{.src = kSource, .bytes = 1, .destinations = most})) == "copy_multicast");
  const Words more(2050, 0x1000);
  CHECK(check(Multicast{.src = kSource, .bytes = 1, .destinations = more}, k71).field == "destinations");
  CHECK(check(Multicast{.src = kSource, .bytes = 1}, k71).field == "destinations");
  CHECK(check(ScopedCopy{.bytes = 1, .wait_reference = 1}, k71).rule == "absent");
}

TEST_CASE("the catalogue of 7.1 has each field where the encoder writes it") {
  same_fields(ScopedCopy{.src = kSource, .dst = kTarget, .bytes = 1}, "copy_linear");
  same_fields(ScopedCopy{.src = kSource, .dst = kTarget, .bytes = 1, .indirect_src = true}, "copy_indirect");
  same_fields(ScopedCopy{.src = kSource, .dst = kTarget, .bytes = 1, .wait = true, .signal = true},
              "copy_linear_wait_signal");
  same_fields(ScopedSwap{.a = kSource, .b = kTarget, .bytes = 64}, "copy_swap");
  same_fields(ScopedSwap{.a = kSource, .b = kTarget, .bytes = 64, .wait = true, .signal = true},
              "copy_swap_wait_signal");
  same_fields(Multicast{.src = kSource, .bytes = 1, .destinations = kPairs, .wait = true, .signal = true},
              "copy_multicast_wait_signal");
  same_fields(Fence64{.addr = kSource}, "fence_64");
  same_fields(PollMem64{.addr = kSource}, "poll_mem_64");
  same_fields(ScopedFill{.dst = kSource, .bytes = 1}, "fill");
  same_fields(ScopedSubwindow{.src = kSource, .dst = kTarget}, "copy_subwindow");
  same_fields(ScopedTimestamp{.addr = kSource}, "timestamp");
}

TEST_CASE("a header bit that changes what an address means leaves no plain copy of 7.1") {
  for (unsigned bit = 16; bit < 32; ++bit) {
    Words d{1u | 1u << bit, 0xfff, 0, 0x12345600, 0x7f11, 0x22334400, 0x7f55};
    d.resize(24);
    const auto v = Reader{d, catalogue(k71)}.next();
    INFO("bit " << bit << " " << v.info->name);
    CHECK(v.is<CopyLinear>() == !(bit == 20 || bit == 21 || bit == 27 || bit == 30 || bit == 31));
  }
}

TEST_CASE("a packet of a length in doubt: no view after it is certain, and none is made up") {
  const Words fence{5, 0x30000000, 0x7f00, 0x55};
  const auto read = [&](Words d, Generation g, std::size_t fences = 3) {
    for (std::size_t i = 0; i < fences; ++i) d.insert(d.end(), fence.begin(), fence.end());
    std::string out;
    for (Reader r{d, catalogue(g)}; r;) {
      const auto v = r.next();
      out += std::to_string(v.dwords.size()) + (v.cut_off ? "c" : "") + (v.certain ? " " : "? ");
    }
    return out;
  };
  const auto v70 = Generation::v7_0;
  CHECK(read({0x40b, 7, 0x00010003, 0x12345600, 0x7f11}, v70) == "5 4? 4? 4? ");
  CHECK(read({0x40b, 7, 0xffff0003, 0x12345600, 0x7f11}, v70) == "5 4? 4? 4? ");
  CHECK(read({0x40b, 7, 0x00010003, 0x12345600, 0x7f11, 0x12346600, 0x7f11}, v70) == "7 4? 4? 4? ");
  CHECK(read({0x40b, 7, 0x00020003, 0x12345600, 0x7f11, 0x12346600, 0x7f11}, k71) == "7 4? 4? 4? ");
  CHECK(read({0x40b, 7, 0x00010003, 0x12345600, 0x7f11, 0x12346600, 0x7f11}, k71) == "7 4? 4? 4? ");
  CHECK(read({0xc01, 0x01000000, 0, 0, 0, 0, 0, 0, 0, 0x12345600, 0x7f11}, v70) == "11 4? 4? 4? ");
  CHECK(read({0xc01, 0x02000000, 0, 0, 0, 8, 9, 8, 9, 0x12345600, 0x7f11, 0x12346600, 0x7f11}, k71) == "13 4? 4? 4? ");
  CHECK(read({0x105}, k71, 1) == "1 4? ");
  // No length ends where a packet begins: the rest is one view, of which nothing is read.
  CHECK(read({0x40b, 7, 0x00010003, 0x12345603, 0x7f11, 0x12346603, 0x7f11, 3, 3}, k71) == "21c ");
}
