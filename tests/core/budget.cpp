// SPDX-License-Identifier: MIT
// A Budget that cannot pay gives nothing.
#include "../../lib/core/budget.hpp"

#include "support/catch.hpp"

using sdma::detail::Budget;

TEST_CASE("a budget is taken whole or not at all") {
  Budget b{10};
  CHECK(b.take(4));
  CHECK_FALSE(b.take(7));
  CHECK(b.left() == 6);
  CHECK_FALSE(b.take(~std::uint64_t{}));
  CHECK(b.take(6));
  CHECK(b.take(0));
  CHECK_FALSE(b.take());
  CHECK(b.limit() == 10);
  b.renew();
  CHECK(b.left() == 10);
}
