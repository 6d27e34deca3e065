// SPDX-License-Identifier: MIT
#include "contact/answer.hpp"
#include "exit.hpp"
#include "sdma/check/check.hpp"
#include "sdma/core/plural.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sdma::tool::contact {
namespace {

/// What a check may no longer assume if a program has shown the opposite: an option of a Profile, or things on which no
/// proof may rest (CheckOptions::without).
struct Consequence {
  std::string_view program, option;
  std::array<std::string_view, 2> without{};
};
constexpr Consequence kConsequences[] = {
    {"two-copies", "copies=unordered"},
    {"write-as-completion", "write=unordered"},
    {"fence-as-completion", "", {"packet fence", "packet atomic"}},
    {"fence-after-write", "fence_covers=copies"},
    {"fence-in-vram", "vram_fence=unknown"},
    {"copy-after-fence", "fence=release"},
    {"copy-after-barrier", "", {"packet poll_mem"}},
    {"expired-poll", "finite_poll=none"},
    {"endless-poll", "", {"packet poll_mem"}},
    {"cond-exec-of-a-fence", "cond_exec=unordered"},
    {"cond-exec-after-fence", "cond_exec=unordered"},
    {"copy-after-nop", "nop=none"},
    {"poll-and-release-on-one-engine", "poll_yields=no"},
    {"poll-and-release-on-two-engines", "", {"packet poll_mem"}},
};

/// The results of a step; empty if it has not run.
std::vector<Json> results(const Json& answer, const char* step) {
  const auto at = answer.find(step);
  return at == answer.end() ? std::vector<Json>{} : at->get<std::vector<Json>>();
}
std::string word(const Json& j, const char* key) { return j.value(key, std::string()); }

std::string outcomes(const Json& j) {
  std::string out;
  for (const auto& [outcome, n] : j.at("outcomes").items())
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", outcome, n.get<std::uint64_t>());
  return out;
}

/// A title with the number of lines, and these lines.
std::string section(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  auto out = fmt::format("{} ({})\n", title, lines.size());
  for (const auto& line : lines) out += "  " + line + "\n";
  return out + "\n";
}

std::string rule_line(const Json& j) {
  auto line = fmt::format("{:<4} {:<32} {}", word(j, "rule"), word(j, "id"), outcomes(j));
  if (j.contains("excluded"))
    for (const auto& outcome : j.at("excluded"))
      line += fmt::format("\n       the rule excludes '{}'", outcome.get<std::string>());
  if (j.contains("breaks"))
    line += fmt::format("\n       weaker than the ordering {} of the software engine", word(j, "breaks"));
  return line;
}

std::vector<std::string> rules(const Json& answer, std::string_view state) {
  std::vector<std::string> out;
  for (const auto& j : results(answer, "order"))
    if (j.at("state") == state) out.push_back(rule_line(j));
  return out;
}

/// The first of what a result has to say.
std::string reason(const Json& j) {
  if (j.contains("why")) return word(j, "why");
  if (j.contains("findings") && !j.at("findings").empty()) {
    const auto& f = j.at("findings").front();
    return (word(f, "where").empty() ? "" : word(f, "where") + ": ") + word(f, "message");
  }
  return {};
}
std::string indented(std::string text, std::string_view by) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (auto at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) text.insert(at + 1, by);
  return text;
}

/// Results of all steps in one of these states.
std::vector<std::string> with(const Json& answer, std::initializer_list<std::string_view> states) {
  std::vector<std::string> out;
  for (const auto* step : {"there", "works", "order", "speed"})
    for (const auto& j : results(answer, step)) {
      if (std::find(states.begin(), states.end(), j.at("state").get<std::string>()) == states.end()) continue;
      auto line = fmt::format("{}: {}", word(j, "id"), word(j, "state"));
      if (const auto why = reason(j); !why.empty()) line += ": " + indented(why, "    ");
      if (j.contains("doctor")) line += "\n    " + indented(word(j, "doctor"), "    ");
      out.push_back(std::move(line));
    }
  return out;
}

std::vector<std::string> missing(const Json& answer) {
  std::vector<std::string> out;
  for (const auto& j : results(answer, "there"))
    if (j.contains("missing"))
      for (const auto& m : j.at("missing")) {
        const auto d = json::diagnostic(m);
        out.push_back(fmt::format("{}: {}{}", d.where, d.message, d.hint.empty() ? "" : "\n    " + d.hint));
      }
  return out;
}

/// Schedules that are proved as long as nothing was seen, and not any more.
std::vector<std::string> changed(const Json& answer,
                                 const std::vector<std::pair<std::string, std::string>>& schedules) {
  std::vector<const Consequence*> seen;
  for (const auto& j : results(answer, "order"))
    if (j.at("state") == "refuted" || j.at("state") == "weaker")
      for (const auto& c : kConsequences)
        if (c.program == word(j, "id")) seen.push_back(&c);
  std::vector<std::string> out;
  for (const auto& [file, text] : schedules) {
    constexpr std::pair<const char*, Profile> kProfiles[] = {
        {"conservative", Profile::conservative()}, {"rocr", Profile::rocr()}, {"strict", Profile::strict()}};
    std::string lost;
    for (const auto& [profile, assumed] : kProfiles) {
      CheckOptions before{.profile = assumed, .max_mended = 0}, after = before;
      for (const auto* c : seen) {
        if (!c->option.empty()) (void)after.profile.set(c->option);
        for (const auto thing : c->without)
          if (!thing.empty()) after.without.emplace_back(thing);
      }
      const auto was = check_text(text, file, {}, before), is = check_text(text, file, {}, after);
      if (was && is && was->report.proved() && !is->report.proved())
        lost += fmt::format("{}{}", lost.empty() ? "" : ", ", profile);
    }
    if (!lost.empty()) out.push_back(fmt::format("{}: no longer proved with --profile={}", file, lost));
  }
  return out;
}

std::string predictions(const Json& answer) {
  std::size_t all = 0, one = 0, two = 0;
  std::vector<std::string> outside;
  for (const auto& j : results(answer, "speed"))
    if (j.contains("predicted_ns")) {
      const int inside = j.at("inside");
      ++all, one += inside == 1, two += inside != 0;
      if (inside != 1)
        outside.push_back(fmt::format("{}: predicted {:.1f} +- {:.1f} us, measured {:.1f} us", word(j, "id"),
                                      j.at("predicted_ns").get<double>() / 1e3, j.at("interval_ns").get<double>() / 1e3,
                                      j.at("measured_ns").get<double>() / 1e3));
    }
  if (all == 0) return {};
  return fmt::format("predictions: {} of {} inside one interval, {} inside two\n\n", one, all, two) +
         section("predictions outside one interval", outside);
}

}  // namespace

Reading read_answer(const Json& answer, const std::vector<std::pair<std::string, std::string>>& schedules) {
  const auto refuted = rules(answer, "refuted"), broken = with(answer, {"failed", "hung"});
  const auto left = with(answer, {"left out", "not tried"});
  Reading r;
  r.text = section("refuted: rules that did not hold", refuted) + section("does not work", broken) +
           section("weaker: rules that hold, on a node that is weaker than an ordering", rules(answer, "weaker")) +
           section("confirmed: no excluded outcome was seen", rules(answer, "confirmed")) +
           section("open: the weaker outcome was never seen", rules(answer, "open")) +
           section("proofs that change", changed(answer, schedules)) + predictions(answer) +
           section("missing for a full run", missing(answer)) + section("not tried, or left out", left);
  std::size_t passed = 0;
  for (const auto& j : results(answer, "works")) passed += j.at("state") == "passed";
  r.text += fmt::format("{} passed; the run is {}\n", plural(passed, "trial"), word(answer, "ended"));
  if (!refuted.empty() || !broken.empty())
    r.text += "report: send contact.tar.gz with an issue whose title is the first line above\n";
  const bool whole = answer.contains("works") && answer.contains("order") && word(answer, "ended") == "complete";
  r.code = !refuted.empty() || !broken.empty() ? kRefuted : !whole ? kUndecided : kOk;
  return r;
}

}  // namespace sdma::tool::contact
