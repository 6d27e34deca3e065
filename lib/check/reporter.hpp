// SPDX-License-Identifier: MIT
#pragma once
// Collects findings. Internal.
//
//   reporter.add({.rule = "race", .places = {a, b}, .message = ..., .rests_on = {"X3"}});
//
// The location of a finding is the last of its places. At most
// CheckOptions::max_findings findings per rule are stored; the rest are only counted.
#include "model.hpp"

#include <map>
#include <optional>
#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {

struct Finding {
  std::string_view rule{};
  std::vector<Position> places{};
  std::string message{}, hint{}, overlap{};
  std::vector<std::string> notes{};  ///< a note about each place: "writes gpu1.buf[0..+4K]"
  std::vector<std::string> more{};   ///< lines after the places
  std::vector<std::string_view> rests_on{};
  std::string where{};  ///< the location, if no place has it; "" for `at`, or that of the last place
  FilePosition at{};
  std::optional<CheckEdit> edit{};
};

class Reporter {
 public:
  explicit Reporter(const Model& m) : m_(m) {}

  /// False if a packet of the same line has been reported under this rule before: a long loop breaks a rule in every
  /// round.
  bool first_of_line(Position, std::string_view rule);
  /// Counts a finding of this rule, and returns whether to store it. Call it before building an expensive finding.
  bool admit(const std::string& rule);
  void add(Finding f) {
    if (admit(std::string(f.rule))) store(std::move(f));
  }
  void store(Finding);
  /// Has an error been reported with a place of this agent?
  bool has_error(std::uint32_t agent) const noexcept { return agents_with_errors_.contains(agent); }
  /// Would the verdict be `proved` without any further finding?
  bool proves() const noexcept;
  /// So many expectations hold in every execution.
  void expectations_hold(std::size_t n) noexcept { expectations_ = n; }
  /// What to do if a limit is exceeded: "check fewer rounds, or with --max-packets=8M, which examines twice as much";
  /// with the limit that would do, if it is known.
  std::string larger_limit(std::size_t would_do = 0) const;
  /// Nothing reads what the copies of these lines have put anywhere, and it does not stay.
  void unread(std::vector<std::uint32_t> lines) noexcept { unread_ = std::move(lines); }
  /// Plans of engines, of which one may remove the findings of the rule engine-wait.
  void engine_plans(std::vector<EnginePlan> plans) noexcept { engine_plans_ = std::move(plans); }
  /// A proof would rest on this option, as Profile::set takes it.
  void assumes(std::string_view option) { assumes_.emplace(option); }
  /// The verdict rests on these entries of covered().
  void relies_on(std::vector<std::string> entries) noexcept { relies_on_ = std::move(entries); }
  CheckReport finish();

  /// "gpu0.push", "host main", "kernel gemm".
  std::string agent(std::uint32_t) const;
  /// "line 7 [i=0]", or "gpu0.push+0x1c" if lines are not known.
  std::string place(Position) const;
  /// The line that it comes from, in whatever round of a loop; 0: not known.
  std::uint32_t line(Position p) const { return location(p).line; }
  /// The line that stands for this packet or action alone; 0 if there is none.
  std::uint32_t own_line(Position) const;
  /// "gpu1.buf[2K..+4K]".
  std::string range(std::uint64_t begin, std::uint64_t end) const;
  std::string word(const Word&) const;
  /// relay.sdma:11:3.
  FilePosition position(SourceMap::Location l) const {
    return {.file = m_.options.map->file, .line = l.line, .column = l.column};
  }
  std::string text(Position) const;

 private:
  SourceMap::Location location(Position) const;
  /// "gpu0.push+0x1c", "kernel gemm step 2".
  std::string unlined(Position) const;
  std::string label(Position) const;

  const Model& m_;
  std::set<std::uint32_t> agents_with_errors_;
  std::set<std::pair<std::uint32_t, std::string>> lines_;
  std::vector<CheckFinding> found_;
  std::map<std::string, std::size_t> counts_;
  std::size_t expectations_ = 0;
  std::vector<std::string> relies_on_;
  std::vector<std::uint32_t> unread_;
  std::vector<EnginePlan> engine_plans_;
  std::set<std::string> assumes_;
};

const OrderingRule* ordering_rule(std::string_view id) noexcept;

// The searches for findings, one file each.
void find_races(Model&, Reporter&);
void find_stuck(const Model&, Reporter&);
void find_bad_waits(const Model&, Reporter&);
void find_unknown_samples(const Model&, Reporter&);
void find_held_engines(const Model&, Reporter&);
void find_unawaited(const Model&, Reporter&);
void find_in_packets(const Model&, Reporter&);
void find_refused(const Model&, Reporter&);
void find_misplaced(const Model&, Reporter&);
void find_vram_fences(const Model&, Reporter&);
void find_full_rings(const Model&, Reporter&);
void find_in_kernels(const Model&, Reporter&);
void find_in_lifetimes(const Model&, Reporter&);
void find_in_network(const Model&, Reporter&);
void find_not_covered(const Model&, Reporter&);
void find_results(const Model&, Reporter&);

}}}  // namespace sdma::v0_3::check_detail
