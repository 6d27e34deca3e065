// SPDX-License-Identifier: MIT
// The class that stands in for an integer of 128 bits computes as the compiler's own does.
#include "sdma/core/wide.hpp"

#include "support/catch.hpp"

#include <random>

using sdma::detail::TwoWords;

#ifdef SDMA_INT128
namespace {

SDMA_INT128(Native);
/// Sums and products of it wrap.
__extension__ typedef unsigned __int128 Bits;

bool same(TwoWords a, Native b) {
  const auto high = static_cast<std::uint64_t>(b >> 64), low = static_cast<std::uint64_t>(b);
  const auto shifted = TwoWords{high} * TwoWords{std::uint64_t{1} << 63} * TwoWords{2};
  return a == shifted + TwoWords{low};
}

}  // namespace

TEST_CASE("sums, products, quotients, shifts and comparisons of wide integers") {
  std::mt19937_64 random{1};
  const auto word = [&] { return random() >> (random() % 64); };
  for (int i = 0; i < 20000; ++i) {
    const auto a = word(), b = word(), c = word();
    const auto d = static_cast<std::int64_t>(word() * (i % 2 ? 1 : ~std::uint64_t{}));
    const TwoWords x = TwoWords{a} * TwoWords{b} - TwoWords{c}, y{d};
    const auto p = static_cast<Native>(Bits{a} * Bits{b} - Bits{c}), q = Native{d};
    const auto of = [](Bits bits) { return static_cast<Native>(bits); };
    const auto up = static_cast<Bits>(p), uq = static_cast<Bits>(q);
    REQUIRE(same(x, p));
    REQUIRE(same(x + y, of(up + uq)));
    REQUIRE(same(x - y, of(up - uq)));
    REQUIRE(same(y * x, of(uq * up)));
    REQUIRE(same(-x, of(-up)));
    const auto bits = static_cast<unsigned>(random() % 128);
    REQUIRE(same(x >> bits, p >> bits));
    REQUIRE(same(x << bits, of(up << bits)));
    REQUIRE((x < y) == (p < q));
    REQUIRE((x >= y) == (p >= q));
    REQUIRE(static_cast<std::uint32_t>(x) == static_cast<std::uint32_t>(p));
    if (d == 0) continue;
    REQUIRE(same(x / y, p / q));
    REQUIRE(same(x % y, p % q));
  }
}
#endif
