// SPDX-License-Identifier: MIT
#pragma once
// What could follow on a command line, for the completion of shells.
//
//   $ sdma --complete simulate --set N=8 a.sdma --set ch        the last word is the one to complete; it may be empty
//   chunk=
//
//   verbs                 sdma si
//   options of a verb     sdma simulate --sw
//   words of an option    sdma dis --format=j                   from the form that --help shows: text|json|hex
//   layouts               sdma simulate --machine=mi
//   parameters            sdma simulate --parameter engine.     as --show-machine lists them
//   params of a file      sdma run --set  a.sdma                of the first schedule among the words
//
// Prints nothing where a file name is expected, so that the shell completes that, and where the words are wrong. Reads
// at most the schedule, and runs nothing. share/completions has the function for bash. No errors.
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sdma::tool {

/// The words that complete the last one of `words`, which are those after "sdma", sorted.
std::vector<std::string> completions(const CLI::App&, std::span<const std::string> words);

}  // namespace sdma::tool
