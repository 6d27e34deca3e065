// SPDX-License-Identifier: MIT
#pragma once
// Finds the best of the schedules that a text leaves open (sdma/schedule/text.hpp): a search by simulation,
// with the checker as judge. `sdma explore` is its command line (docs/explore.md).
//
//   auto r = search(text, "ag.sdma", *mi300x_machine(), {.tries = 5000});
//   if (!r) for (const auto& d : r.error()) puts(to_string(d).c_str());
//   for (const auto& c : r->best) printf("%.2f us  %s\n", c.ns / 1e3, decisions_text(c.decisions).c_str());
//   save_file("best.sdma", to_text(r->best[0].schedule));           // this schedule, with nothing left open
//
// A *candidate* is one way to take every choice. The search
//
//   1. simulates the default in any case, and then changes one choice at a time for the better, until no single change
//      helps;
//   2. simulates all other candidates, if their number fits into what is left of `tries` and `deadline`: then
//      `complete` is true;
//   3. else changes pairs of choices, and begins again at random candidates, until `tries` or `deadline` end it.
//
// What `deadline` leaves undone: a candidate that is under way then is stopped, and does not count; neither does one
// whose proof would take longer than what is left, by the longest so far. Only the default is simulated and examined in
// any case. With `spreads`, part of the time is kept for them, half of it at most; the search goes on with what they do
// not need.
//
// A candidate that differs from one of `best` in the alignment of buffers alone, which no time depends on, is counted
// as equally good without a simulation.
//
// A candidate that would enter `best` is checked first, and does not enter unless all of its executions are
// proved. So `best` holds only schedules that are proved on this machine's topology; the other candidates were
// simulated, but not examined. Among candidates with the same time, only the first to be found is checked and
// kept; the others are counted.
//
// With `tries` alone, a search is deterministic: the same text, options and seed give the same result. A time is a
// prediction, as uncertain as `sensitivity` says; `speed_up` says whether two candidates differ.
//
// A goal with energy, or a front, needs a machine that knows joules. The energy leaves out what that machine does not
// know (`Energy::missing`).
//
// Errors: the Diagnostics of the text as it is by default; a machine without joules, if they are asked for. A text that
// leaves nothing open is not an error. Candidates that cannot be read or simulated, or are not proved, are counted in
// `refused`, and the first is kept with its choices. Allocates. Any thread may call it; nothing is shared.
#include "sdma/check/check.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// What a search minimises.
enum class Goal : std::uint8_t {
  time,    ///< of the last round
  energy,  ///< its joules (sdma/simulate/energy.hpp)
  edp,     ///< the product of both
};

/// One way to take every choice that the text leaves open.
struct Candidate {
  std::vector<Decision> decisions{};  ///< what was chosen for it
  Schedule schedule{};                ///< with these choices
  double ns{};                        ///< the predicted time of its last round
  Energy energy{};                    ///< of that round; empty if the machine knows no joules
  Simulation simulation{};            ///< times, without the path and what was busy
  std::optional<Spread> spread{};     ///< with SearchOptions::spreads, of those in `best` and the default
  std::uint64_t same{};               ///< how many others were equally good, and were not examined
};

/// How far a search has come.
struct SearchProgress {
  std::uint64_t simulated{};  ///< as SearchResult::simulated, so far
  double candidates{};        ///< as SearchResult::candidates
  double best_ns{};           ///< the time of the best; 0: no candidate is proved yet
};

/// What a search assumes, keeps and may spend.
struct SearchOptions {
  ParseOptions parse{};                ///< `map` and `decisions` are not used
  Profile profile{};                   ///< what the checker assumes
  Goal goal = Goal::time;              ///< what the best candidate has least of
  bool front = false;                  ///< also keep the candidates that no other beats in both time and energy
  std::size_t best = 5;                ///< how many candidates to keep
  std::uint64_t tries = 100'000;       ///< the most candidates to simulate
  std::optional<Deadline> deadline{};  ///< the search ends then; none: time does not limit it
  std::function<Deadline::Clock::time_point()> clock{};  ///< what `deadline` is compared with; none: Deadline's own
  bool spreads = false;  ///< also find how the times of the best candidates, and of the default, move with the machine
  std::uint64_t seed = 0;  ///< of the random candidates
  /// Called after each simulation; false ends the search.
  std::function<bool(const SearchProgress&)> proceed{};
};

/// What a search found.
struct SearchResult {
  std::vector<Candidate> best{};       ///< proved; the best first, none as good as another
  std::vector<Candidate> front{};      ///< proved, by time: no candidate is faster and takes less energy
  std::optional<Candidate> initial{};  ///< the default; nothing if it is refused
  std::uint64_t simulated{};           ///< different candidates that were simulated or refused
  /// How many there are: exact if `complete`, else the number that
  /// there would be if every candidate left open what the default does.
  double candidates{};
  bool complete{};                     ///< all of them were simulated
  bool stopped{};                      ///< one more was under way when the time was over: nothing is known of it
  std::uint64_t refused{};             ///< candidates that could not be read or simulated, or were not proved
  std::uint64_t unproved{};            ///< of these, candidates in which the checker found no error
  std::vector<std::string> assumes{};  ///< CheckReport::assumes of what was proved: each option once
  /// A candidate that was refused, and why.
  struct Refusal {
    std::vector<Decision> decisions{};  ///< what was chosen for it
    Diagnostic reason{};                ///< the first error, or the first finding that is not advice
  };
  std::optional<Refusal> first_refused{};  ///< the first candidate that was refused, if any
};

Result<SearchResult, std::vector<Diagnostic>> search(std::string_view text, std::string_view file,
                                                     const MachineDescription&, const SearchOptions& = {});

}}  // namespace sdma::v0_3
