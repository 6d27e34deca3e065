// SPDX-License-Identifier: MIT
#pragma once
// What people write who know other languages and tools, and what stands for it here. For hints alone, of words that
// have too few letters in common with the right one for core/nearest.hpp. Pure; no errors.
//
//   constexpr Habit kHabits[] = {{"draw", "sdma simulate --plot run.svg FILE draws a timeline"}};
//   meant_by("draw", kHabits)   ==   "sdma simulate --plot run.svg FILE draws a timeline"
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

struct Habit {
  std::string_view word, meant;
};

/// What a list of habits has for a word; "" if nothing.
template <class All> constexpr std::string_view meant_by(std::string_view word, const All& habits) {
  for (const auto& h : habits)
    if (h.word == word) return h.meant;
  return {};
}

}}}  // namespace sdma::v0_3::detail
