// SPDX-License-Identifier: MIT
#pragma once
// A verb of the tool: a line in main.cpp's table, and a file with its options and its action.
//
//   void add_dis(VerbOptions& verb, Action& action);     declares options; `action` runs if the verb was chosen
//
// All verbs use the exit codes of exit.hpp.
#include "exit.hpp"
#include "options.hpp"
#include "output.hpp"

#include <functional>
#include <span>

namespace sdma::tool {

using Action = std::function<int()>;
struct Verb {
  const char *name, *summary;
  std::span<const ExitMeaning> codes;  ///< what exit codes mean for this verb; kExits has the meaning of each
  void (*add)(VerbOptions&, Action&);
};

void add_dis(VerbOptions&, Action&);
void add_as(VerbOptions&, Action&);
void add_check(VerbOptions&, Action&);
void add_doctor(VerbOptions&, Action&);
void add_fmt(VerbOptions&, Action&);
void add_run(VerbOptions&, Action&);
void add_simulate(VerbOptions&, Action&);
void add_explore(VerbOptions&, Action&);
void add_reduce(VerbOptions&, Action&);
void add_calibrate(VerbOptions&, Action&);
void add_compare(VerbOptions&, Action&);
void add_contact(VerbOptions&, Action&);
void add_topology(VerbOptions&, Action&);
void add_trace(VerbOptions&, Action&);
void add_emulate(VerbOptions&, Action&);

/// The text of each verb's --trace: the suffix of the file's name selects the form.
inline constexpr const char* kTraceDoc = "write a trace: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev";

}  // namespace sdma::tool
