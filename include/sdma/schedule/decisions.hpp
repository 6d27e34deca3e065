// SPDX-License-Identifier: MIT
#pragma once
// What the text of a schedule leaves open, and what a reading of it has taken.
//
//   choose engines in 1..8                    a number: the first alternative is the default
//   for k in 1..N choose order                a loop in any order; as written by default
//
//   Decisions c;
//   auto s = parse_schedule(text, "ag.sdma", {.decisions = &c});    // the defaults; c.met is what the text leaves open
//   c.take[c.met[0].id] = 2;                                        // another alternative of the first choice
//   s = parse_schedule(text, "ag.sdma", {.decisions = &c});         // the schedule with it
//   puts(decisions_text(c.met).c_str());                            // "engines=3"
//
// The alternatives of a choice may depend on the choices before it, and so may whether it is met at all. `met` is in an
// order in which a choice depends only on earlier ones. An order of n values is n choices: which of the remaining
// values comes next.
//
// Plain values; any thread may use them. No errors: parse_schedule reports those of a text. An alternative in `take`
// that a choice does not have counts as the first.
#include "sdma/core/standard.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sdma::inline v0 {

/// A choice that a text leaves open, and what was chosen.
struct Decision {
  std::string id{};             ///< the same in every reading of the text
  std::string name{};           ///< for people: "engines", "e [i=1 k=2]"; of an order, "k", for each of its choices
  std::size_t at{};             ///< the offset of its line's statement in the text
  std::size_t alternatives{1};  ///< 1 if --set or a list of one value leaves nothing open
  std::size_t taken{};          ///< 0: the default
  std::string value{};          ///< the number that was taken
  bool order{};                 ///< part of an order
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct Decisions {
  std::map<std::string, std::size_t, std::less<>> take{};  ///< by id; any other choice takes its first alternative
  std::vector<Decision> met{};                             ///< of the last reading
};

/// "engines=3 k=2,1,3": every choice that had an alternative; orders only if not as written. "" if there is none.
std::string decisions_text(std::span<const Decision>);

}  // namespace sdma::inline v0
