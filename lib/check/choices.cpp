// SPDX-License-Identifier: MIT
// Checks every way to take the choices of a text: counts through them as an odometer does, the last choice first. Then
// looks for changes of the text that mend what it has found.
#include "mends.hpp"
#include "sdma/check/check.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 {
namespace {

/// Takes the next alternative of the last choice that has one. False if all ways have been taken.
bool next(Decisions& d) {
  for (auto last = d.met.rbegin(); last != d.met.rend(); ++last) {
    if (last->taken + 1 < last->alternatives) {
      d.take[last->id] = last->taken + 1;
      return true;
    }
    d.take.erase(last->id);
  }
  return false;
}

/// Checks the text without a search for mends.
Result<CheckedText, std::vector<Diagnostic>> check_all(std::string_view text, std::string_view file,
                                                       const ParseOptions& parse, const CheckOptions& options) {
  CheckedText out;
  Decisions taken;
  bool more = true;
  for (out.alternatives = 0; more && out.alternatives < options.max_alternatives; more = next(taken)) {
    SourceMap map;
    auto with = parse;
    with.map = &map;
    with.decisions = &taken;
    auto s = parse_schedule(text, file, with);
    if (!s) return std::move(s.error());
    map.choices = 0;  // each alternative is checked, in its turn
    auto one = options;
    one.map = &map;
    auto report = check(*s, one);
    if (const auto chosen = decisions_text(taken.met); out.alternatives > 0 && !chosen.empty())
      for (auto& f : report.findings) f.diagnostic.message += fmt::format(" (with {})", chosen);
    const bool worse = out.alternatives == 0 || report.verdict() > out.report.verdict();
    ++out.alternatives;
    if (!worse) continue;
    out.schedule = std::move(*s);
    out.map = std::move(map);
    out.report = std::move(report);
  }
  if (more)
    out.report.findings.push_back(
        {.diagnostic = {.rule = "not-all-choices",
                        .severity = Severity::warning,
                        .where = std::string(file),
                        .message = fmt::format("the choices of the text have more than {} alternatives together, and "
                                               "only these are checked",
                                               options.max_alternatives),
                        .hint = "set some of the choices with --set"}});
  return out;
}

}  // namespace

Result<CheckedText, std::vector<Diagnostic>> check_text(std::string_view text, std::string_view file,
                                                        const ParseOptions& parse, const CheckOptions& options) {
  auto out = check_all(text, file, parse, options);
  if (!out || out->report.proved() || expects_finding(out->schedule)) return out;
  if (out->report.packets * out->alternatives > options.max_mended) return out;
  auto all = options;
  all.max_findings = 0;
  check_detail::mend(text, out->report, [&](const std::string& source) -> std::optional<CheckReport> {
    auto changed = check_all(source, file, parse, all);
    if (!changed || changed->report.packets * changed->alternatives > 2 * options.max_mended) return {};
    return std::move(changed->report);
  });
  return out;
}

}}  // namespace sdma::v0_3
