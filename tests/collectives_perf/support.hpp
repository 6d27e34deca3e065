// SPDX-License-Identifier: MIT
#pragma once
// Settings out of what a command line would give, and points as if they had been measured.
#include "perf/point.hpp"
#include "support/catch.hpp"

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace collectives::perf::test {

/// What a line of words gives, on a machine with this hardware and these processes.
inline Given given(const std::string& line, const char* found = "", std::uint32_t launched = 1) {
  std::istringstream in("collective_perf " + line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  std::vector<const char*> argv;
  for (const auto& w : words) argv.push_back(w.c_str());
  auto g = given_of(static_cast<int>(argv.size()), argv.data());
  if (const auto* wrong = std::get_if<sdma::Diagnostic>(&g)) FAIL(to_string(*wrong));
  auto out = std::get<Given>(std::move(g));
  out.found = found;
  out.launched = launched;
  return out;
}
inline Settings settings(const std::string& line = "", const char* found = "") {
  auto s = settings_of(given(line, found));
  if (!s) FAIL(to_string(s.error()));
  return *std::move(s);
}

inline Point point(std::uint64_t bytes, Way way, double us) {
  Point p{.bytes = bytes, .count = bytes / 8, .way = way, .ran = way.variant, .us = times_of({us}), .wrong = 0};
  set_bandwidths(p, 0.5);
  return p;
}

}  // namespace collectives::perf::test
