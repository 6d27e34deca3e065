// SPDX-License-Identifier: MIT
// Deadlines: the far end and the near end. Nothing here sleeps, and nothing depends on how fast the machine is.
#include "sdma/core/deadline.hpp"

#include "support/catch.hpp"

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr auto kLast = Deadline::Clock::time_point::max();

TEST_CASE("zero and less have passed") {
  for (const auto d :
       {Deadline::in(0s), Deadline::in(-1ns), Deadline::in(-1h), Deadline::in(std::chrono::nanoseconds::min()),
        Deadline::in(std::chrono::hours::min()), Deadline::in(std::chrono::hours(-9'000'000)), Deadline{}}) {
    CHECK(d.passed());
    CHECK(d.left() == 0ns);
  }
}

TEST_CASE("an hour is not over now") {
  const auto before = Deadline::Clock::now();
  const auto d = Deadline::in(1h);
  const auto after = Deadline::Clock::now();
  CHECK_FALSE(d.passed());
  CHECK(d.at >= before + 1h);
  CHECK(d.at <= after + 1h);
  CHECK(d.left() > 0ns);
  CHECK(d.left() <= 1h);
}

TEST_CASE("what the clock cannot hold ends at its last moment") {
  CHECK(Deadline::in(std::chrono::nanoseconds::max()).at == kLast);
  // In nanoseconds these are more than 64 bits: a conversion would wrap to something short, or past.
  CHECK(Deadline::in(std::chrono::microseconds::max()).at == kLast);
  CHECK(Deadline::in(std::chrono::seconds::max()).at == kLast);
  CHECK(Deadline::in(std::chrono::hours::max()).at == kLast);
  CHECK(Deadline::in(std::chrono::hours(10'000'000)).at == kLast);
  CHECK_FALSE(Deadline::in(std::chrono::hours::max()).passed());
  CHECK(Deadline{kLast}.left() > std::chrono::hours(24 * 365));
}

TEST_CASE("just below the last moment is not the last moment") {
  const auto room = kLast - Deadline::Clock::now();
  const auto d = Deadline::in(room - 1h);
  CHECK(d.at < kLast);
  CHECK(d.at > kLast - 2h);
}

}  // namespace
