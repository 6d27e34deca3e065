// SPDX-License-Identifier: MIT
// Conditions of polls: what some or every value satisfies, and what one condition says about another.
#include "sdma/packets/condition.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

constexpr std::uint32_t kBits = 4, kAll = (1u << kBits) - 1;

/// Calls fn for each condition whose mask has kBits bits and whose reference may have one bit more.
template <class Fn> void each_condition(Fn fn) {
  for (unsigned f = 0; f <= 6; ++f)
    for (std::uint32_t reference = 0; reference <= 2 * kAll + 1; ++reference)
      for (std::uint32_t mask = 0; mask <= kAll; ++mask) fn(Condition{static_cast<Compare>(f), reference, mask});
}
bool satisfies(std::uint32_t value, const Condition& c) { return holds(value & c.mask, c.func, c.reference); }

}  // namespace

TEST_CASE("some value satisfies a condition, and every value does: the same as trying all values") {
  each_condition([](const Condition& c) {
    bool some = false, every = true;
    for (std::uint32_t v = 0; v <= kAll; ++v) {
      some = some || satisfies(v, c);
      every = every && satisfies(v, c);
    }
    CAPTURE(static_cast<unsigned>(c.func), c.reference, c.mask);
    if (can_hold(c) != some || must_hold(c) != every) FAIL("can_hold or must_hold is wrong");
  });
  CHECK_FALSE(can_hold({static_cast<Compare>(7), 0, 0}));
  CHECK_FALSE(must_hold({static_cast<Compare>(7), 0, 0}));
}

TEST_CASE("a condition that implies another is never satisfied without it") {
  std::size_t implied = 0;
  each_condition([&](const Condition& a) {
    each_condition([&](const Condition& b) {
      if (!implies(a, b)) return;
      ++implied;
      for (std::uint32_t v = 0; v <= kAll; ++v)
        if (satisfies(v, a) && !satisfies(v, b)) {
          CAPTURE(static_cast<unsigned>(a.func), a.reference, a.mask);
          FAIL(static_cast<unsigned>(b.func) << ' ' << b.reference << ' ' << b.mask);
        }
    });
  });
  CHECK(implied > 100000);
}

TEST_CASE("every implication between plain comparisons is found") {
  each_condition([&](const Condition& a) {
    each_condition([&](const Condition& b) {
      if (a.mask != kAll || b.mask != kAll) return;
      bool really = true;
      for (std::uint32_t v = 0; v <= kAll; ++v) really = really && (!satisfies(v, a) || satisfies(v, b));
      CAPTURE(static_cast<unsigned>(a.func), a.reference, static_cast<unsigned>(b.func), b.reference);
      // "not 0" is "at least 1": the one form that bounds do not see.
      if (really && !implies(a, b) && a.func != Compare::ne) FAIL("an implication is not found");
    });
  });
}
