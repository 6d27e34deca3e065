// SPDX-License-Identifier: MIT
#pragma once
// One run of a schedule by `sdma run`, in one ordering: in this process, or in one process per rank.
//
//   Job job{arguments, path, schedule, map};
//   const int code = job.run(Ordering::strict);      // an exit code
//   answer.add({.runs = {job.answer()}});
//
// Findings go to standard error or, with --json, into the answer. The process of a rank prints nothing: its answer goes
// to the parent as JSON, and the parent reports what all ranks have found.
#include "json/run.hpp"
#include "sdma/device/open.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::tool {

/// The options of the verb.
struct RunArguments {
  std::vector<std::string> paths{};
  ParseOptions parse{};
  DeviceKind device = DeviceKind::soft;
  std::vector<GpuId> gpus{};
  std::uint32_t ranks = 1;
  NodeSizes ranks_per_node{};
  std::optional<Ordering> order{};
  std::uint64_t seed = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  std::vector<std::pair<std::string, std::string>> inputs{}, outputs{};
  std::string trace{};
  std::size_t events = trace::Recorder::kDefaultEvents;  ///< that the trace has room for
  bool test = false, json = false;
};
inline bool software(const RunArguments& o) { return o.device == DeviceKind::soft; }

class Job {
 public:
  Job(const RunArguments& o, const std::string& path, const Schedule& s, const SourceMap& map)
      : options_(o), path_(path), schedule_(s), map_(map) {}

  int run(Ordering);
  std::chrono::nanoseconds elapsed() const noexcept { return elapsed_; }
  const json::RunAnswer& answer() const noexcept { return answer_; }

 private:
  using Outputs = std::vector<std::pair<Schedule::Range, std::string>>;

  int run_ranks(Ordering);
  std::string run_rank(Ordering, BindOptions);
  int run_here(Ordering, BindOptions, trace::Recorder*);
  /// `gpus`: how many the schedule has.
  Result<std::unique_ptr<Device>, Diagnostic> open(std::uint32_t gpus, Ordering, std::uint32_t rank, trace::Recorder*);
  void explain(const Bound&, std::chrono::nanoseconds still);
  void say(Diagnostic);
  void tell(const Diagnostic&);
  Diagnostic placed(Diagnostic) const;
  SourceMap::Location stopped_at(const std::string& name, const Device&, const Bound&) const;
  std::string context(Ordering) const;
  std::optional<Schedule::Range> buffer(const std::string& option, const std::string& name) const;
  bool find_outputs();

  const RunArguments& options_;
  const std::string& path_;
  const Schedule& schedule_;
  const SourceMap& map_;
  Outputs outputs_{};  ///< which buffers go to which files
  std::chrono::nanoseconds elapsed_{};
  json::RunAnswer answer_{};
  // In the process of a rank:
  bool is_rank_ = false;
  std::vector<Diagnostic> messages_{};   ///< for standard error
  std::optional<std::uint32_t> lost_{};  ///< the rank that has ended this one's run
};

}  // namespace sdma::tool
