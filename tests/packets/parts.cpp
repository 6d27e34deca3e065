// SPDX-License-Identifier: MIT
// Packets of variable shape: parts that may be missing, and dwords after a repeated part. No packet of the registry has
// such a shape; those of engines that do are only recognised. This one is ours.
#include "generic.hpp"
#include "sdma/stream/json.hpp"
#include "sdma/stream/text.hpp"

using namespace sdma;

namespace {

struct Fused {
  GpuVa wait_addr{};
  std::uint32_t wait_value{};
  std::uint32_t bytes{};
  std::span<const std::uint32_t> destinations{};
  std::uint32_t checksum{};
  GpuVa signal_addr{};
  bool wait{}, signal{};
};

}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Fused> =
    packet("fused", op(99, 0), dwords(8, "destinations", 2).optional(1, 3, "wait").optional(6, 2, "signal").tail(3),
           "wait, copy to several destinations, signal", addr64<&Fused::wait_addr>("wait_addr", 1, "polled").opt(),
           bits<&Fused::wait_value>("wait_value", 3, 0, 31, "awaited").opt(),
           bits<&Fused::bytes>("bytes", 4, 0, 29, "number of bytes", minus_one).size(),
           payload<&Fused::destinations>("destinations", 0, 16, 23, "addresses"),
           bits<&Fused::checksum>("checksum", 5, 0, 31, "after the destinations"),
           addr64<&Fused::signal_addr>("signal_addr", 6, "stored to").opt(),
           bits<&Fused::wait>("wait", 0, 30, 30, "wait first").opt(),
           bits<&Fused::signal>("signal", 0, 31, 31, "signal afterwards").opt());

namespace {

constexpr std::array kTwo{0x11u, 0x12u, 0x21u, 0x22u};
using Words = std::vector<std::uint32_t>;

Words words(const Fused& p) {
  Words out(length(p) + 1, 0xdeadbeef);
  REQUIRE(encode_to(p, out.data()) == out.data() + length(p));
  CHECK(out.back() == 0xdeadbeef);
  out.pop_back();
  return out;
}
bool same(const Fused& a, const Fused& b) {
  return a.wait_addr == b.wait_addr && a.wait_value == b.wait_value && a.bytes == b.bytes && a.checksum == b.checksum &&
         a.signal_addr == b.signal_addr && a.wait == b.wait && a.signal == b.signal &&
         std::ranges::equal(a.destinations, b.destinations);
}

}  // namespace

TEST_CASE("the shape of a packet follows its flags and its count") {
  STATIC_REQUIRE(well_formed<Fused>());
  CHECK(words({.bytes = 8, .checksum = 9}) == Words{0x63, 7, 9});
  CHECK(words({.bytes = 8, .destinations = kTwo, .checksum = 9}) == Words{0x00020063, 7, 0x11, 0x12, 0x21, 0x22, 9});
  const Fused wait{.wait_addr = GpuVa{0x100000002}, .wait_value = 3, .bytes = 8, .checksum = 9, .wait = true};
  CHECK(words(wait) == Words{0x40000063, 2, 1, 3, 7, 9});
  const Fused signal{.bytes = 8, .checksum = 9, .signal_addr = GpuVa{0x300000004}, .signal = true};
  CHECK(words(signal) == Words{0x80000063, 7, 9, 4, 3});
  const Fused all{.wait_addr = GpuVa{0x100000002},
                  .wait_value = 3,
                  .bytes = 8,
                  .destinations = kTwo,
                  .checksum = 9,
                  .signal_addr = GpuVa{0x300000004},
                  .wait = true,
                  .signal = true};
  CHECK(words(all) == Words{0xc0020063, 2, 1, 3, 7, 0x11, 0x12, 0x21, 0x22, 9, 4, 3});
  for (const auto& p : {wait, signal, all, Fused{.bytes = 1, .destinations = kTwo}}) {
    CHECK(fits(p));
    const auto d = words(p);
    CHECK(same(decode<Fused>(d), p));
  }
}

TEST_CASE("a field in a part that is missing does not fit") {
  const Fused lost{.wait_value = 3, .bytes = 8};
  CHECK_FALSE(fits(lost));
  CHECK(check(lost).field == "wait_value");
  CHECK(check(lost).rule == "absent");
  CHECK(fits(Fused{.bytes = 8}));
  CHECK_FALSE(fits(Fused{.bytes = 8, .destinations = std::span(kTwo).first(3)}));
}

TEST_CASE("text and JSON show the parts that are there") {
  const auto& info = packet_info<Fused>;
  const Fused all{.wait_addr = GpuVa{0x100000002},
                  .wait_value = 3,
                  .bytes = 8,
                  .destinations = kTwo,
                  .checksum = 9,
                  .signal_addr = GpuVa{0x300000004},
                  .wait = true,
                  .signal = true};
  const auto whole = words(all);
  CHECK(info.length(whole.data()) == 12);
  CHECK(info.head == 1);  // the first dword determines the length
  CHECK(to_text({&info, whole, false}) ==
        "fused wait_addr=0x100000002 wait_value=3 bytes=8 destinations=[0x11 0x12 0x21 0x22] checksum=9 "
        "signal_addr=0x300000004 wait signal");
  const auto short_one = words({.bytes = 8, .checksum = 9, .signal_addr = GpuVa{0x300000004}, .signal = true});
  CHECK(info.length(short_one.data()) == 5);
  CHECK(to_text({&info, short_one, false}) ==
        "fused bytes=8 destinations=[] checksum=9 signal_addr=0x300000004 signal");
  std::string json;
  append_json(json, {&info, short_one, false}, 0);
  CHECK(json.find("\"wait_addr\"") == std::string::npos);
  CHECK(
      json.find("\"destinations\":[],\"checksum\":9,\"signal_addr\":\"0x300000004\",\"wait\":false,\"signal\":true") !=
      std::string::npos);

  // A reserved bit is named by its place in the description, wherever the dword lies.
  auto odd = short_one;
  odd[1] |= 1u << 30;  // described dword 4
  CHECK(to_text({&info, odd, false}).ends_with(" dw4|=0x40000000"));
  CHECK(same(decode<Fused>(whole, info), all));
}
