// SPDX-License-Identifier: MIT
#pragma once
// Settings out of what a command line would give, and points as if they had been measured.
#include "perf/point.hpp"
#include "support/catch.hpp"

#include <string>

namespace collectives::perf::test {

inline Settings settings(const Given& g) {
  auto s = settings_of(g);
  if (!s) FAIL(to_string(s.error()));
  return *std::move(s);
}

inline Point point(std::uint64_t bytes, Way way, double us) {
  Point p{.bytes = bytes, .count = bytes / 8, .way = way, .ran = way.variant, .us = times_of({us}), .wrong = 0};
  set_bandwidths(p, 0.5);
  return p;
}

}  // namespace collectives::perf::test
