// SPDX-License-Identifier: MIT
#pragma once
// The tables and the conclusion of a sweep, as text.
//
//   Sweep s{...};
//   puts(table(s, "fetch", &Times::fetch).c_str());
//   puts(conclusion(s, "fetch", &Times::fetch).c_str());
//
//      block           b2b x1            b2b x2
//                  us    GB/s        us    GB/s
//         4K    0.627    6.53     0.320   12.80
//
//   fetch, 256 blocks: the rate of one copy of 64M on one engine is 48.0 GB/s.
//   b2b, 1 engine: at least half of it from 16K on, at least 90 % from 256K on.
//   b2b, 2 engines: ...
//
// "From 16K on": all sizes of the sweep from 16K on reach the rate, and the size before does not. A rate that the
// largest size does not reach is not reached from any size on.
//
// Plain values; any thread. No errors.
#include "options.hpp"

#include <string>

namespace collectives::kv {

struct Column {
  Way way{};
  std::uint32_t engines{};
  std::vector<Times> times{};  ///< of a request, by size
};

struct Sweep {
  Options options{};
  Times large{};  ///< of one copy of `options.large` bytes; only a sweep of several sizes has it
  std::vector<Column> columns{};
};

std::string table(const Sweep&, std::string_view title, double Times::*direction);
std::string conclusion(const Sweep&, std::string_view title, double Times::*direction);

}  // namespace collectives::kv
