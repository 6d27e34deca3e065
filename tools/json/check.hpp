// SPDX-License-Identifier: MIT
#pragma once
// The answer of `sdma check`, for a schedule or for a stream of packets.
//
//   const auto report = check(s, options);
//   const Json j = json::of(check(s, options), options, s);
//   j["verdict"]              "proved", "unproved" or "refuted"
//   j["assumed"]["options"]   ["fence=full"]: what --profile and --assume add to the rules of docs/ordering.md
//
// The tool prints JSON Lines: of(finding) for each finding, and then answer_of.
#include "json.hpp"
#include "sdma/check/check.hpp"
#include "sdma/check/reduce.hpp"
#include "sdma/stream/rules.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::json {

/// rule, severity, where, message, hint as a Diagnostic; places, overlap, rests_on, edits and remaining.
Json of(const CheckFinding&);
/// Why a schedule that is wrong on purpose has no time; nothing if it expects no finding.
std::optional<Diagnostic> deliberate(const Schedule&, const std::string& file);
/// What a schedule that is wrong on purpose expects the checker to find.
std::vector<std::string> expected_findings(const Schedule&);
/// On what a verdict rests: options that differ from docs/ordering.md, the node, whether other programs take part.
Json assumed(const CheckReport&, const CheckOptions&, const Schedule&);
/// Everything but the findings: verdict, exit_code, file, packets, waits, summary, assumed, errors, warnings; expected
/// and as_expected if the schedule expects findings.
Json answer_of(const CheckReport&, const CheckOptions&, const Schedule&);
/// The same, with `findings`.
Json of(const CheckReport&, const CheckOptions&, const Schedule&);
/// The sentence about a report that text and JSON have: "a.sdma: no race, no deadlock, no missing wait (checked
/// packets: 6, waits: 1)". It names what --profile and --assume add.
std::string summary(const CheckReport&, const CheckOptions&, const Schedule&);

/// What a check of a stream has found. Without findings, JSON calls it "clean": rules about one stream prove nothing.
struct StreamAnswer {
  std::string file{};
  std::uint64_t bytes{};  ///< that were examined
  std::uint64_t errors{}, warnings{};
  std::optional<Generation> assumed{};  ///< the generation, where neither an option nor the input gives it
  /// If there are no bytes, nothing is known.
  Verdict verdict() const noexcept { return verdict_of(errors, warnings + (bytes == 0)); }
};
Json of(const StreamAnswer&);
std::string summary(const StreamAnswer&);
/// The answer about one value of a sweep, with its findings. `with`: "N=3".
Json of_value(const std::string& with, const CheckReport&, const CheckOptions&, const Schedule&);
/// The same if the text has errors with that value.
Json unread_with(const std::string& with, const std::string& file, const std::vector<Diagnostic>& errors);
/// The answer about a schedule whose text has errors, or about an input that cannot be read: its verdict is "unread".
Json unread(const std::string& file, std::size_t errors);
Json unread(const std::string& file, const Diagnostic& why);

/// What the argument of a proof covers.
Json covered();
/// All rules: of streams, schedules and packets, each once with what it is about.
Json check_rules();

/// How many lines, queues and so on there were, and are left: {"lines", {64, 17}}. Packets are those of one submit.
std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> sizes(const ReducedText&);
/// The answer of `sdma reduce`: file, rule, text, tries, least; and these numbers `before` and `after`.
Json of(const ReducedText&, const std::string& file);

}  // namespace sdma::json
