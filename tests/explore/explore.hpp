// SPDX-License-Identifier: MIT
#pragma once
// Executes a small schedule in every way that the ordering rules allow, and says whether an execution breaks it.
//
//   Outcome o = explore(schedule, {.profile = Profile::rocr()});
//   if (o.broken()) puts(o.text.c_str());                       what breaks, then the execution, step by step
//   if (o.verdict == Ending::clean && o.complete) ...          no execution breaks it
//
// It shares no code with the checker or with the software engine: machine.hpp is a model of its own of
// docs/ordering.md. The model leaves out the host's access to VRAM (C7 to C10), map=, time, indirect buffers
// and sums of floating-point numbers.
//
//   stuck        an execution in which a host never ends
//   race         two packets access a byte at the same time, and one of them writes it
//   different    two executions end with different bytes in buffers
//   unmet        an expectation about the end does not hold there, or one in a thread at its moment
//   incomplete   all hosts have ended, and a packet that stores data has not completed
//   undefined    a packet's source and destination overlap
//   gone         memory is used that is not there, or that the user may not reach; or a thread frees what is not there
//
// A schedule that is clean may still end with different signals,
// or while a fence or atomic has not landed; `note` says so.
#include "sdma/check/check.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sdma::explore {

enum class Ending : std::uint8_t { clean, stuck, race, different, unmet, incomplete, undefined, gone, unsupported };
const char* name(Ending) noexcept;

struct ExploreOptions {
  Profile profile{};
  std::size_t max_states = 20000;
  bool reduce = true;  ///< false: also try steps that cannot make a difference. Slow, to test the reduction itself
  bool trace = false;  ///< fill Outcome::text
};

struct Outcome {
  Ending verdict{};
  bool complete = true;   ///< the search was not cut off by max_states
  bool held{};            ///< stuck: because a waiting poll holds its engine (X2)
  bool posts_pending{};   ///< some execution ends before a fence or atomic has landed
  bool polls_pending{};   ///< some execution ends while a queue waits at a poll
  bool signals_differ{};  ///< two executions end with different signals
  std::size_t states{};
  std::vector<std::uint64_t> last{};  ///< what each cell of the program holds after the first execution that ends
  std::string text{};
  bool broken() const noexcept { return verdict != Ending::clean && verdict != Ending::unsupported; }
  /// Nothing at all to complain about.
  bool spotless() const noexcept {
    return verdict == Ending::clean && complete && !posts_pending && !polls_pending && !signals_differ;
  }
};

Outcome explore(const Schedule&, const ExploreOptions& = {});

}  // namespace sdma::explore
