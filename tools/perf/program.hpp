// SPDX-License-Identifier: MIT
#pragma once
// collective_perf as its options say: opens what they name, times each size in each way, prints and saves.
//
//   listen();
//   const auto [code, error] = perform(settings);        // of several ranks, the caller prints the error of one
//
// main.cpp describes the outputs. One thread.
#include "sdma/core/diagnostic.hpp"
#include "settings.hpp"

#include <optional>

namespace collectives::perf {

/// How the program ended.
enum Exit : int {
  kOk = 0,
  kWrong = 1,  ///< data was wrong, or a round timed out
  kUsage = 2,
  kInput = 3,  ///< something cannot be read, written or opened
  kPipe = 141,
  kSignal = 128,  ///< plus its number
};

/// The first SIGINT or SIGTERM ends the sweep cleanly, the second ends the program.
void listen();
void report(const sdma::Diagnostic&);

struct Ended {
  int code{};
  std::optional<sdma::Diagnostic> error{};  ///< of ranks only: what all of them end with
  bool at_once{};                           ///< of ranks only: end by `end_at_once`, because the sweep still exists
};
Ended perform(const Settings&);

}  // namespace collectives::perf
