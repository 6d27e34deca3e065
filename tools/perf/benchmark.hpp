// SPDX-License-Identifier: MIT
#pragma once
// A benchmark of collectives as its settings say: opens what they name, times each size in each way, prints and saves.
//
//   listen();
//   const auto [code, error, at_once] = perform(settings);     // of several ranks, the caller prints the error of one
//
// One thread.
#include "sdma/core/diagnostic.hpp"
#include "settings.hpp"

#include <optional>

namespace collectives::perf {

/// The first SIGINT or SIGTERM ends the sweep cleanly, the second ends the program.
void listen();

struct Ended {
  int code{};                               ///< of tools/json/exit.hpp; after a signal, 128 plus its number
  std::optional<sdma::Diagnostic> error{};  ///< of ranks only: what all of them end with
  bool at_once{};                           ///< of ranks only: end by `end_at_once`, because the sweep still exists
};
Ended perform(const Settings&);

}  // namespace collectives::perf
