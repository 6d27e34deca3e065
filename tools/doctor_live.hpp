// SPDX-License-Identifier: MIT
#pragma once
// The live half of `sdma doctor`: a process that runs, and a program that the doctor runs.
//
//   add_live(verb, o->live);                                   // declares --attach, --watch, --after, --end
//   if (const auto pid = pid_of(o->files)) snapshot = examine_process(*pid, o->live);
//   if (!o->live.program.empty()) return examine_program(o->live, show);
//
// If the process runs on the software node and this program does not, this program starts again with the node's
// library, because only the node sees the queues of that process.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/diagnose.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sdma::tool {

class VerbOptions;

struct LiveOptions {
  bool attach = false;
  std::chrono::nanoseconds watch = std::chrono::seconds(1), after = std::chrono::seconds(5);
  bool end = false;  ///< end each process that hangs
  std::vector<std::string> program{};
};
void add_live(VerbOptions&, LiveOptions&);

/// The number of a process, if that is the only input, and no file has this name.
std::optional<int> pid_of(const std::vector<std::string>& inputs);

Result<doctor::Snapshot, Diagnostic> examine_process(int pid, const LiveOptions&);

/// Runs the program. `show` gets each diagnosis, with the snapshot that it was made from. Returns an exit code.
int examine_program(const LiveOptions&,
                    const std::function<void(const doctor::Snapshot&, const doctor::Diagnosis&)>& show);

}  // namespace sdma::tool
