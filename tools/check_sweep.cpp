// SPDX-License-Identifier: MIT
#include "check_sweep.hpp"

#include "core/plural.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "json/exit.hpp"
#include "msccl/check_source.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/sweep.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <variant>

namespace sdma::tool {
namespace {

/// What a sweep of a param has found.
struct Swept {
  std::size_t proved = 0, unproved = 0, refuted = 0, unread = 0;

  std::size_t all() const noexcept { return proved + unproved + refuted + unread; }
  Exit code() const noexcept { return refuted ? kRefuted : unread ? kInput : unproved ? kUndecided : kOk; }
  std::string text() const {
    auto out = fmt::format("proved for {} of {}", proved, plural(all(), "value"));
    if (refuted > 0) out += fmt::format(", refuted for {}", refuted);
    if (unproved > 0) out += fmt::format(", unproved for {}", unproved);
    if (unread > 0) out += fmt::format(", errors in the text for {}", unread);
    return out;
  }
};

/// With one value. XML of an algorithm that is wrong in every execution is refuted, as without a sweep.
Result<CheckedText, std::vector<Diagnostic>> check_once(std::string text, ParseOptions parse,
                                                        const CheckOptions& options) {
  msccl::Made made;
  const auto wrong = msccl::make_schedule(text, options.file, parse.set, made);
  if (!wrong) return msccl::check_source({text, made}, options.file, std::move(parse), options);
  if (!wrong->refuted) return wrong->all;
  CheckedText out;
  for (const auto& d : wrong->all) out.report.findings.push_back({.diagnostic = d});
  return out;
}

}  // namespace

int check_swept(const CheckSweep& sweep, const CheckOptions& options, const std::string& text, ParseOptions parse,
                bool json) {
  Output out{"-"};
  Swept swept;
  parse.set.push_back({.name = sweep.name});
  Doing checking("checking " + options.file);
  const auto now = [&](const std::string& with) {
    checking.now(fmt::format("checking {}{}, after {} of {}", options.file, with, swept.all(),
                             plural(sweep.values.size(), "value")));
  };
  for (const auto& value : sweep.values) {
    parse.set.back().value = value;
    const auto with = fmt::format("{}={}", sweep.name, value);
    now(" with " + with);
    const auto s = check_once(text, parse, options);
    if (!s) {
      ++swept.unread;
      if (json) out.text() += json::line(json::unread_with(with, options.file, s.error()));
      else
        for (auto d : s.error()) d.message += " (with " + with + ")", report(d);
    } else {
      auto one = options;
      one.map = &s->map;
      const auto code = exit_of(s->schedule, s->report);
      ++(code == kOk ? swept.proved : code == kRefuted ? swept.refuted : swept.unproved);
      if (json) {
        out.text() += json::line(json::of_value(with, s->report, one, s->schedule));
      } else {
        for (auto f : s->report.findings) f.diagnostic.message += " (with " + with + ")", report(f.diagnostic);
        one.file += " with " + with;
        out.text() += json::summary(s->report, one, s->schedule) + "\n";
      }
    }
    const Unbroken counted;  // a message counts what was printed
    if (!out.flush()) return out.exit_code();
    now("");
  }
  const auto summary = fmt::format("{}: {}", options.file, swept.text());
  if (json)
    out.text() += json::line(json::Json{{"swept", sweep.name},
                                        {"values", swept.all()},
                                        {"proved", swept.proved},
                                        {"unproved", swept.unproved},
                                        {"refuted", swept.refuted},
                                        {"unread", swept.unread},
                                        {"exit_code", static_cast<int>(swept.code())},
                                        {"summary", summary}});
  else out.text() += summary + "\n";
  return out.close() ? static_cast<int>(swept.code()) : out.exit_code();
}

std::string take_sweep(const std::string& given, CheckSweep& to) {
  const auto equal = given.find('=');
  const auto dots = given.find("..");
  if (equal != given.npos && dots != given.npos && given.find('*') == given.npos) {
    const auto from = parse_count(given.substr(equal + 1, dots - equal - 1)),
               last = parse_count(given.substr(dots + 2));
    if (from && last && *from <= *last) {
      if (*last - *from >= kMostSwept) return fmt::format("{} has more than {} values", given, kMostSwept);
      to = {.name = given.substr(0, equal)};
      for (auto v = *from; v <= *last; ++v) to.values.push_back(std::to_string(v));
      return "";
    }
  }
  const auto axis = sweep_axis(given);
  if (const auto* wrong = std::get_if<std::string>(&axis)) return *wrong;
  const auto& a = std::get<SweepAxis>(axis);
  if (a.of_machine())
    return a.name + " is a parameter of a machine, and no proof depends on one: name a param of the schedule";
  to = {.name = a.name};
  for (const auto v : a.values) to.values.push_back(a.text(v));
  return "";
}

}  // namespace sdma::tool
