// SPDX-License-Identifier: MIT
#pragma once
// A verb of the tool: a line in main.cpp's table, and a file with its options and its action.
//
//   void add_dis(VerbOptions& verb, Action& action);     declares options; `action` runs if the verb was chosen
//
// All verbs use the same exit codes.
#include "options.hpp"
#include "report.hpp"

#include <functional>

namespace sdma::tool {

enum Exit : int {
  kOk = 0,
  kFindings = 1,  ///< the input was read, and something is wrong with it
  kUsage = 2,
  kInput = 3,     ///< something cannot be read or written, or has the wrong form
  kUnproved = 4,  ///< nothing wrong was found, but not everything was examined
  kPipe = 141,    ///< the reader of the output has exited: the code that a shell reports for SIGPIPE
};

using Action = std::function<int()>;
struct Verb {
  const char *name, *summary;
  const char* codes;  ///< its exit codes and their meanings
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
void add_calibrate(VerbOptions&, Action&);
void add_compare(VerbOptions&, Action&);
void add_topology(VerbOptions&, Action&);
void add_trace(VerbOptions&, Action&);
void add_emulate(VerbOptions&, Action&);

/// The text of each verb's --trace: the suffix of the file's name selects the form.
inline constexpr const char* kTraceDoc = "write a trace: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev";

}  // namespace sdma::tool
