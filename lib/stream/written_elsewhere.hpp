// SPDX-License-Identifier: MIT
#pragma once
// What people write who know other languages, and what stands for it in this one. Internal: for hints alone.
//
//   field_meant("size", {"bytes", "src", "dst"})   ==   "bytes"
//   for i in 0 to N                                hint: kLoopForm
//
#include "../core/habits.hpp"

#include <array>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::string_view kLoopForm =
    "write for i in 0..N (from 0 to N-1), for i in 0..N step 2, or for i in [0, 2, 3]";
inline constexpr std::string_view kWholeForm = "write a whole number: 1536K, and not 1.5M";
inline constexpr std::string_view kCommentForm = "a comment begins with #";

/// Fields: of two with the same word, the first that a packet or a declaration has is meant.
inline constexpr auto kFieldHabits = std::to_array<Habit>({{"size", "bytes"},
                                                           {"length", "bytes"},
                                                           {"len", "bytes"},
                                                           {"count", "bytes"},
                                                           {"to", "dst"},
                                                           {"to", "peer"},
                                                           {"target", "dst"},
                                                           {"target", "peer"},
                                                           {"destination", "dst"},
                                                           {"from", "src"},
                                                           {"source", "src"},
                                                           {"value", "reference"},
                                                           {"init", "value"},
                                                           {"compare", "func"},
                                                           {"op", "func"}});

/// The field that `word` means among those that `has` knows; "" if none.
template <class Has> std::string_view field_meant(std::string_view word, Has has) {
  for (const auto& h : kFieldHabits)
    if (h.word == word && has(h.meant)) return h.meant;
  return {};
}

/// Actions of a thread, written in a queue: the packet that does this.
inline constexpr auto kActionsInQueue = std::to_array<Habit>({{"wait", "poll_mem addr=gpu0.ready func=ge reference=1"},
                                                              {"set", "fence addr=gpu0.ready value=1"},
                                                              {"add", "atomic op=add_rtn_64 addr=gpu0.ready value=1"}});

/// Words that open loops elsewhere; `repeat` is for threads alone.
inline constexpr auto kLoopHabits = std::to_array<std::string_view>({"loop", "foreach", "while", "repeat"});

/// The first words of other lines outside blocks.
inline constexpr std::string_view kActionPlace = "actions belong in a block: host main ... end";
inline constexpr auto kLineHabits = std::to_array<Habit>({{"assert", "write expect gpu1.out == old gpu0.in"},
                                                          {"submit", kActionPlace},
                                                          {"wait", kActionPlace},
                                                          {"set", kActionPlace},
                                                          {"add", kActionPlace},
                                                          {"/", kCommentForm}});

}}}  // namespace sdma::v0_3::detail
