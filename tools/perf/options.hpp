// SPDX-License-Identifier: MIT
#pragma once
// The command line of collective_perf. No other file uses the command-line parser.
#include "settings.hpp"

#include <optional>
#include <string>
#include <variant>

namespace collectives::perf {

/// For --help and --version: a text for standard output.
struct Answer {
  std::string text{};
};
/// What the words give: the hardware of this machine is not asked for.
std::variant<Given, Answer, sdma::Diagnostic> given_of(int argc, const char* const* argv);
/// Settings to run with, an answer, or an error with a hint.
/// `launched`: the number of processes that mpirun has started.
std::variant<Settings, Answer, sdma::Diagnostic> parse(int argc, char** argv, std::uint32_t launched = 1);

}  // namespace collectives::perf
