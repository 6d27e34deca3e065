// SPDX-License-Identifier: MIT
#pragma once
// Settings out of what a command line would give, and points as if they had been measured.
#include "perf/perf_options.hpp"
#include "perf/point.hpp"
#include "support/catch.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace collectives::perf::test {

/// What a line of words gives: a request, or what is wrong with the line.
struct Line {
  Request request{};
  std::string wrong{};
};
inline Line line(const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> all{std::istream_iterator<std::string>(in), {}};
  std::reverse(all.begin(), all.end());
  Line out;
  CLI::App app;
  sdma::tool::VerbOptions verb{app};
  const auto complete = sdma::tool::add_perf_options(verb, out.request);
  try {
    app.parse(all);
    complete();
  } catch (const CLI::ParseError& e) {
    out.wrong = e.what();
  }
  return out;
}
inline Settings settings(const std::string& words = "", Where found = {}) {
  const auto given = line(words);
  if (!given.wrong.empty()) FAIL(given.wrong);
  auto s = settings_of(given.request, found);
  if (!s) FAIL(to_string(s.error()));
  return *std::move(s);
}

inline Point point(std::uint64_t bytes, Way way, double us) {
  Point p{.bytes = bytes, .count = bytes / 8, .way = way, .ran = way.variant, .us = times_of({us}), .wrong = 0};
  set_bandwidths(p, 0.5);
  return p;
}

}  // namespace collectives::perf::test
