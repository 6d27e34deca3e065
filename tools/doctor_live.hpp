// SPDX-License-Identifier: MIT
#pragma once
// The live half of `sdma doctor`: a process that runs, and a program that the doctor runs.
//
//   add_live(verb, o->live);                                   // declares --attach, --watch, --after, --end
//   if (const auto pids = pids_of(o->files, o->live); !pids.empty()) snapshot = examine_processes(pids, o->live);
//   if (!o->live.program.empty()) return examine_program(o->live, show);
//
// If the process runs on the software node and this program does not, this program starts again with the node's
// library, because only the node sees the queues of that process.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/diagnose.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace sdma::tool {

class VerbOptions;

struct LiveOptions {
  bool attach = false, processes = false;
  std::chrono::nanoseconds watch = std::chrono::seconds(1), after = std::chrono::seconds(5);
  bool end = false;  ///< end each process that hangs
  std::vector<std::string> program{};
};
void add_live(VerbOptions&, LiveOptions&);

/// The numbers of processes, if all inputs are such, and no file has this name. With --processes: of all that use one.
std::vector<int> pids_of(const std::vector<std::string>& inputs, const LiveOptions&);

Result<doctor::Snapshot, Diagnostic> examine_process(int pid, const LiveOptions&);
/// All at the same time, as one snapshot.
Result<doctor::Snapshot, Diagnostic> examine_processes(const std::vector<int>& pids, const LiveOptions&);

/// Runs the program. `show` gets each diagnosis, with the snapshot that it was made from. Returns an exit code.
int examine_program(const LiveOptions&,
                    const std::function<void(const doctor::Snapshot&, const doctor::Diagnosis&)>& show);

}  // namespace sdma::tool
