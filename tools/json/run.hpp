// SPDX-License-Identifier: MIT
#pragma once
// The answer of `sdma run`: what holds, per expectation, queue and GPU.
//
//   const auto report = run(*bound, options);
//   const Json j = json::of(report, *bound);
//   j["expectations"][0]["state"]    "holds", "fails", or "not_compared" if the run ended early
//   j["gpus"][1]["holds"]            how many expectations about memory of gpu1 hold
//
// `bytes` of a queue: what the data packets of one submit write. Conditions may skip some of them.
#include "json.hpp"
#include "sdma/schedule/run.hpp"

#include <vector>

namespace sdma::json {

/// passed, elapsed_ns, round_ns, wrong, queues, expectations, gpus, findings. `options`: those of the bind. The run has
/// to have compared the expectations (RunOptions::contents).
Json of(const RunReport&, const Bound&, const BindOptions& options = {});

/// The answer of several ranks, each of which has a part of the queues and compares a part of the expectations.
Json of_ranks(std::span<const Json> ranks, bool passed);

/// One run of a file by the tool, in one ordering.
struct RunAnswer {
  std::string device{};                ///< "soft", "kfd", "cuda"
  std::optional<std::string> order{};  ///< of a software device
  std::uint64_t seed{};
  Json result = Json{{"passed", false}};  ///< of(RunReport, Bound), unless the schedule could not be bound
  /// In place of those of `result`: with the lines of the schedule, and why queues hang.
  std::vector<Diagnostic> findings{};
};
Json of(const RunAnswer&);

/// A file that was run, or was not run because it is wrong on purpose.
struct RunFile {
  std::string file{};
  bool passed{};
  bool expects_nothing{};              ///< it has no expectation, so that it has passed means little
  std::vector<std::string> expects{};  ///< the findings that the file expects from the checker; then it is not run
  std::vector<RunAnswer> runs{};
  std::vector<Diagnostic> findings{};  ///< of a file that is not run: what the checker found instead
};
/// All files, and how many passed, failed, or passed although they expect nothing.
Json of(std::span<const RunFile>, bool complete = true);

}  // namespace sdma::json
