// SPDX-License-Identifier: MIT
#include "sdma/core/number.hpp"

#include "support/catch.hpp"

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr auto kMax = ~std::uint64_t{0};

TEST_CASE("a count is digits, or 0x and digits") {
  CHECK(parse_count("0") == 0u);
  CHECK(parse_count("20") == 20u);
  CHECK(parse_count("0x14") == 20u);
  CHECK(parse_count("18446744073709551615") == kMax);
  CHECK(parse_count("0xffffffffffffffff") == kMax);
  for (const auto* text : {"", " 1", "1 ", "+1", "-1", "1.5", "1e9", "4K", "0x", "0x1g", "x1", "18446744073709551616",
                           "0x10000000000000000"})
    CHECK_FALSE(parse_count(text));
}

TEST_CASE("a size is a count, or digits and a unit") {
  CHECK(parse_size("0") == 0u);
  CHECK(parse_size("4096") == 4096u);
  CHECK(parse_size("0x1000") == 4096u);
  CHECK(parse_size("4K") == 4096u);
  CHECK(parse_size("1M") == 1u << 20);
  CHECK(parse_size("2G") == std::uint64_t{2} << 30);
  CHECK(parse_size("17179869183G") == kMax >> 30 << 30);
  for (const auto* text : {"", "K", "0xK", "0x4K", "4k", "4KB", "4 K", "-4K", "1.5M", "1T", "17179869184G",
                           "18014398509481984K", "18446744073709551616"})
    CHECK_FALSE(parse_size(text));
}

TEST_CASE("sizes are written as they are read") {
  CHECK(size_text(0) == "0");
  CHECK(size_text(1000) == "1000");
  CHECK(size_text(1536) == "1536");
  CHECK(size_text(65536) == "64K");
  CHECK(size_text(3 << 20) == "3M");
  CHECK(size_text(std::uint64_t{1} << 40) == "1024G");
  CHECK(size_text(kMax) == "18446744073709551615");
  for (unsigned shift = 0; shift < 64; ++shift)
    for (const std::uint64_t odd : {std::uint64_t{1}, std::uint64_t{3}})
      CHECK(parse_size(size_text(odd << shift)) == odd << shift);
}

TEST_CASE("a time has a unit") {
  CHECK(parse_time("10s") == std::chrono::nanoseconds(10s));
  CHECK(parse_time("250ms") == std::chrono::nanoseconds(250ms));
  CHECK(parse_time("1000000us") == std::chrono::nanoseconds(1s));
  for (const auto* text :
       {"", "s", "10", "0s", "1000001us", "1.5s", "-1s", "1 s", "1ns", "1m", "99999999999999999999s"})
    CHECK_FALSE(parse_time(text));
}

TEST_CASE("sizes of nodes are a list that repeats") {
  const auto nodes = parse_node_sizes("3,2");
  REQUIRE(nodes);
  CHECK(to_string(*nodes) == "3,2");
  std::string of;
  for (std::uint32_t i = 0; i < 11; ++i) of += std::to_string(nodes->of(i));
  CHECK(of == "00011222334");
  CHECK(nodes->first(3) == 8);
  CHECK(nodes->size(3) == 2);
  CHECK(nodes->count(10) == 4u);
  CHECK(nodes->count(8) == 3u);
  CHECK_FALSE(nodes->count(9));
  CHECK(nodes->most(5) == 3);
  CHECK(parse_node_sizes("4")->count(8) == 2u);
  CHECK(parse_node_sizes("2,5")->most(7) == 5);
  const NodeSizes one;
  CHECK_FALSE(one.grouped());
  CHECK(one.of(63) == 0);
  CHECK(one.first(0) == 0);
  CHECK(one.count(64) == 1u);
  CHECK(one.most(64) == 64);
  for (const auto* text : {"", "0", "65", "4,", ",4", "3,0", "3, 2", "3+2", "-1"}) CHECK_FALSE(parse_node_sizes(text));
}

TEST_CASE("GPUs are a count or a list") {
  using Gpus = std::vector<GpuId>;
  CHECK(parse_gpus("1") == Gpus{{0}});
  CHECK(parse_gpus("3") == Gpus{{0}, {1}, {2}});
  CHECK(parse_gpus("64")->size() == 64);
  CHECK(parse_gpus("5,2") == Gpus{{5}, {2}});
  CHECK(parse_gpus("0,2,5") == Gpus{{0}, {2}, {5}});
  CHECK(parse_gpus("5,") == Gpus{{5}});
  CHECK(parse_gpus("63,0x3") == Gpus{{63}, {3}});
  for (const auto* text : {"", "0", "65", ",", ",1", "0,,1", "0,1,,", "1,1", "64,", "1,x", "x", "-1", "0, 1", "2K"})
    CHECK_FALSE(parse_gpus(text));
}

}  // namespace

TEST_CASE("a real number is the whole text, finite and decimal") {
  CHECK(sdma::parse_real("0.755") == 0.755);
  CHECK(sdma::parse_real("-1.5e3") == -1500);
  CHECK(sdma::parse_real("48") == 48);
  for (const auto* text : {"", " 1", "1 ", "+1", "0x10", "inf", "nan", "1e999", "1.2.3", "e5"}) {
    CAPTURE(text);
    CHECK_FALSE(sdma::parse_real(text));
  }
}
