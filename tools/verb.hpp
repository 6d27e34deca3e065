// SPDX-License-Identifier: MIT
#pragma once
// A verb of the tool: a row of `verb_list` in meson.build, and a file with its options and its action.
//
//   void add_dis(VerbOptions& verb, Action& action) {     in dis.cpp
//     verb.value("FILE", o->path, "input file");          declares options, and says how --help ends
//     action = [o] { return dis_verb(*o); };              runs if the verb was chosen
//   }
//
// The generated verbs.hpp declares and lists these functions. All verbs use the exit codes of json/exit.hpp.
#include "json/exit.hpp"
#include "options.hpp"
#include "output.hpp"

#include <functional>

namespace sdma::tool {

using Action = std::function<int()>;
struct Verb {
  const char *name, *summary;
  void (*add)(VerbOptions&, Action&);  ///< null: this build lacks the verb (absent_verb.hpp)
};

/// The text of each verb's --trace: the suffix of the file's name selects the form.
inline constexpr const char* kTraceDoc = "write a trace: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev";

}  // namespace sdma::tool
