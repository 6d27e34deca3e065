// SPDX-License-Identifier: MIT
#pragma once
// The exit codes of all verbs: one table. `sdma --help`, the man pages and each verb's --help print it.
//
//   return exit_of(schedule, report);      // what sdma check ends with
//
// VerbOptions::exits says what a code means for a verb, where it means more than the table says.
#include "sdma/check/check.hpp"

#include <span>
#include <string>
#include <string_view>

namespace sdma::tool {

enum Exit : int {
  kOk = 0,
  kRefuted = 1,
  kUsage = 2,
  kInput = 3,
  kUndecided = 4,
  kWaits = 5,
  kInterrupted = 130,  ///< the code that a shell reports for SIGINT
  kPipe = 141,         ///< the code that a shell reports for SIGPIPE
};

struct ExitMeaning {
  Exit code;
  std::string_view text;
};
inline constexpr ExitMeaning kExits[] = {
    {kOk, "as asked"},
    {kRefuted, "refuted, hung, or wrong bytes"},
    {kUsage, "usage error"},
    {kInput, "something cannot be read or done"},
    {kUndecided, "not decided"},
    {kWaits, "waits for the host"},
    {kInterrupted, "interrupted"},
    {kPipe, "the reader of the output has exited"},
};

/// "Exit codes:" and a line per code: those of `more` in the words of `more`, and those that every verb has.
std::string exit_codes(std::span<const ExitMeaning> more, bool all);

constexpr Exit exit_of(Verdict v) noexcept {
  return v == Verdict::refuted ? kRefuted : v == Verdict::unproved ? kUndecided : kOk;
}

/// What `sdma check` concludes: a word for people, and the exit code. Text, JSON, SARIF and the playground have it from
/// here, so none of them can contradict another.
struct Outcome {
  std::string_view word;
  Exit code;
};
/// A schedule that expects findings (`expect finding`) is as asked if the report has them and no other error.
inline Outcome outcome_of(const Schedule& s, const CheckReport& r) {
  if (!expects_finding(s)) return {name(r.verdict()), exit_of(r.verdict())};
  return as_expected(s, r) ? Outcome{"as expected", kOk} : Outcome{"not as expected", kRefuted};
}
inline Exit exit_of(const Schedule& s, const CheckReport& r) { return outcome_of(s, r).code; }

}  // namespace sdma::tool
