// SPDX-License-Identifier: MIT
// The real Ring over the model of memory: every execution of each scenario, to its end.
#include "scenarios.hpp"
#include "support/catch.hpp"

#include <cstdio>

using namespace model;

namespace {

void prove(const Scenario& s) {
  const auto o = play<sdma::Ring>(s);
  std::printf("%-28s %9lu states %9lu ends %9lu runs, %s\n", s.name, o.states, o.ends, o.runs,
              o.complete ? "complete" : "cut short");
  std::fflush(stdout);
  INFO(s.name);
  for (const auto& line : o.trace) UNSCOPED_INFO(line);
  CHECK(o.failure == "");
  CHECK(o.complete);
  CHECK(o.ends > 0);
}

}  // namespace

TEST_CASE("whatever the interleaving and whatever its loads return, the ring keeps its promises") {
  for (const auto& s : scenarios()) prove(s);
}

TEST_CASE("so it does where waves write a slot together") {
  for (const auto& s : wave_scenarios()) prove(s);
}

TEST_CASE("so it does with four producers", "[four]") {
  for (const auto& s : four_producers()) prove(s);
}
