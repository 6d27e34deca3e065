// SPDX-License-Identifier: MIT
#include "against.hpp"

#include <fmt/format.h>

namespace collectives::perf {
namespace {

const Point* fastest_of(std::span<const Point> points, std::uint64_t bytes, bool rival) {
  const Point* best = nullptr;
  for (const auto& p : points) {
    if (p.bytes != bytes || (p.way.rival != Rival::none) != rival) continue;
    if (!rival && p.way.variant == Variant::automatic) continue;
    if (!best || p.us.median < best->us.median) best = &p;
  }
  return best;
}

}  // namespace

std::vector<Comparison> compared(std::span<const Point> points) {
  std::vector<Comparison> all;
  for (const auto bytes : sizes_of(points)) {
    const auto* const ours = fastest_of(points, bytes, false);
    const auto* const theirs = fastest_of(points, bytes, true);
    if (!ours || !theirs) continue;
    all.push_back({.bytes = bytes,
                   .ours = ours->way,
                   .theirs = theirs->way,
                   .ours_us = ours->us.median,
                   .theirs_us = theirs->us.median,
                   .tie = ours->us.lower <= theirs->us.upper && theirs->us.lower <= ours->us.upper});
  }
  return all;
}

std::string against(std::span<const Point> points) {
  const auto all = compared(points);
  if (all.empty()) return {};
  std::string text = fmt::format("# Against {}, by medians; a tie: the middle halves of both ways' rounds overlap\n",
                                 family_of(all.front().theirs.rival));
  text +=
      fmt::format("#{:>8}  {:<9} {:>9}  {:<9} {:>9}  {:>11}\n", "size", "ours", "us", "theirs", "us", "theirs/ours");
  for (const auto& c : all)
    text += fmt::format("#{:>8}  {:<9} {:>9.2f}  {:<9} {:>9.2f}  {:>11.2f}{}\n", size_text(c.bytes), name(c.ours),
                        c.ours_us, name(c.theirs), c.theirs_us, c.theirs_us / c.ours_us, c.tie ? "  tie" : "");
  return text + "#\n";
}

}  // namespace collectives::perf
