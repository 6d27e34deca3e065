// SPDX-License-Identifier: MIT
#include "check_source.hpp"

#include <fmt/format.h>

#include <set>
#include <string>

namespace sdma::msccl {
namespace {

/// What to do about a finding, in terms of the XML: the checker's hints are about lines of a schedule.
std::string hint_of(const CheckFinding& f, const Made& made) {
  const auto& rule = f.diagnostic.rule;
  if (rule == "race") return "let the later step depend on the earlier one (depid, deps), which needs hasdep=\"1\"";
  if (rule == "deadlock" && made.blocking)
    return "a send waits here for its receive; if it may run ahead, say how far: --set slots=2";
  if (rule == "wrong-result") return "a step has a wrong offset, peer or count, or one is missing";
  return rule == "engine-wait" ? f.diagnostic.hint : "";
}

/// A finding about no line is about the algorithm. A copy has the line of its send, and its receive says where to.
void place(CheckFinding& f, const Made& made, std::string_view file) {
  auto& d = f.diagnostic;
  if (d.at.line == 0) {
    d.at = {.file = std::string(file), .line = made.lines.front()};
    d.where = to_string(d.at);
  }
  std::set<std::uint32_t> lines;
  for (const auto& l : f.locations)
    if (made.receives.count(l.line) != 0) lines.insert(l.line);
  for (const auto l : lines) d.message += fmt::format("; line {} receives what line {} sends", made.receives.at(l), l);
}

}  // namespace

Result<CheckedText, std::vector<Diagnostic>> check_source(const CheckSource& source, std::string_view file,
                                                          ParseOptions parse, const CheckOptions& options) {
  if (!source.made) return check_text(source.text, file, parse, options);
  CheckedText out;
  parse.map = &out.map;
  auto s = parse_schedule(source.text, file, parse);
  if (!s) {
    source.made.move_lines(s.error());
    return std::move(s.error());
  }
  out.schedule = std::move(*s);
  source.made.move_lines(out.map);
  auto with = options;
  with.map = &out.map;
  out.report = check(out.schedule, with);
  for (auto& f : out.report.findings) {
    place(f, source.made, file);
    f.diagnostic.hint = hint_of(f, source.made);
    f.edits.clear();
  }
  return out;
}

}  // namespace sdma::msccl
