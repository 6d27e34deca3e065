// SPDX-License-Identifier: MIT
#include "contact/answer.hpp"
#include "contact/fields.hpp"
#include "contact/texts.hpp"
#include "core/plural.hpp"
#include "json/exit.hpp"
#include "sdma/check/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// The rate that N runs without an outcome exclude with 95 %: 3 in N.
std::string rarer(const Json& j) {
  const auto runs = j.at("runs").get<std::uint64_t>();
  return runs < 6 ? "too few runs" : fmt::format("others below 1 in {}", runs / 3);
}

std::string rule_line(const Json& j) {
  auto line = fmt::format("{:<4} {:<32} {}", word(j, "rule"), word(j, "id"), outcomes(j));
  const auto state = word(j, "state");
  if (state == "confirmed" || state == "open") line += "; " + rarer(j);
  if (j.contains("excluded"))
    for (const auto& outcome : j.at("excluded"))
      line += fmt::format("\n       the rule excludes '{}'", outcome.get<std::string>());
  if (j.contains("breaks"))
    line += fmt::format("\n       weaker than the ordering {} of the software engine", word(j, "breaks"));
  return line;
}

/// The results of these steps in one of these states.
std::vector<Json> in_state(const Json& answer, std::initializer_list<const char*> steps,
                           std::initializer_list<std::string_view> states) {
  std::vector<Json> out;
  for (const auto* step : steps)
    for (auto& j : results(answer, step))
      if (std::find(states.begin(), states.end(), j.at("state").get<std::string>()) != states.end())
        out.push_back(std::move(j));
  return out;
}

template <class F> std::vector<std::string> lines(const std::vector<Json>& all, F line) {
  std::vector<std::string> out;
  for (const auto& j : all) out.push_back(line(j));
  return out;
}

/// The members with these names of each.
Json members(const std::vector<Json>& all, std::initializer_list<const char*> names) {
  Json out = Json::array();
  for (const auto& j : all) {
    out.push_back(Json::object());
    for (const auto* name : names)
      if (j.contains(name)) out.back()[name] = j.at(name);
  }
  return out;
}

/// The rules of docs/ordering.md: the letter of a chapter, and how many it has.
constexpr std::pair<char, int> kRules[] = {{'Q', 18}, {'X', 9}, {'H', 14}, {'C', 10}, {'E', 8}};

/// Those that no program of this run is about.
std::vector<std::string> never_seen(const Json& answer) {
  std::vector<std::string> out;
  auto all = results(answer, "order");
  for (auto& j : in_state(answer, {"works"}, {"seen"})) all.push_back(std::move(j));
  for (const auto& [chapter, n] : kRules)
    for (int i = 1; i <= n; ++i) {
      const auto rule = fmt::format("{}{}", chapter, i);
      if (std::none_of(all.begin(), all.end(), [&](const Json& j) { return word(j, "rule") == rule; }))
        out.push_back(rule);
    }
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

std::string result_line(const Json& j) {
  auto line = fmt::format("{}: {}", word(j, "id"), word(j, "state"));
  if (const auto why = word(j, "why"); !why.empty()) line += ": " + indented(why, "    ");
  if (j.contains("doctor")) line += "\n    " + indented(word(j, "doctor"), "    ");
  return line;
}
/// Results of all steps in one of these states, with what they have to say.
std::vector<Json> with(const Json& answer, std::initializer_list<std::string_view> states) {
  auto all = in_state(answer, {"there", "works", "order", "speed"}, states);
  for (auto& j : all)
    if (const auto why = reason(j); !why.empty()) j["why"] = why;
  return all;
}

/// Fields in one of these states.
std::vector<Json> fields(const Json& all, std::initializer_list<std::string_view> states) {
  std::vector<Json> out;
  for (const auto& j : all)
    if (std::find(states.begin(), states.end(), word(j, "state")) != states.end()) out.push_back(j);
  return out;
}
std::string field_line(const Json& j) { return fmt::format("{}: {}", word(j, "field"), word(j, "state")); }

std::vector<Json> missing(const Json& answer) {
  std::vector<Json> out;
  for (const auto& j : results(answer, "there"))
    if (j.contains("missing")) out.insert(out.end(), j.at("missing").begin(), j.at("missing").end());
  return out;
}
std::string missing_line(const Json& j) {
  const auto d = json::diagnostic(j);
  return fmt::format("{}: {}{}", d.where, d.message, d.hint.empty() ? "" : "\n    " + d.hint);
}

/// Schedules that are proved as long as nothing was seen, and not any more.
std::vector<Json> changed(const Json& answer, const std::vector<std::pair<std::string, std::string>>& schedules) {
  std::vector<const Consequence*> seen;
  for (const auto& j : results(answer, "order"))
    if (j.at("state") == "refuted" || j.at("state") == "weaker")
      for (const auto& c : kConsequences)
        if (c.program == word(j, "id")) seen.push_back(&c);
  std::vector<Json> out;
  for (const auto& [file, text] : schedules) {
    constexpr std::pair<const char*, Profile> kProfiles[] = {
        {"conservative", Profile::conservative()}, {"rocr", Profile::rocr()}, {"strict", Profile::strict()}};
    Json lost = Json::array();
    for (const auto& [profile, assumed] : kProfiles) {
      CheckOptions before{.profile = assumed, .max_mended = 0}, after = before;
      for (const auto* c : seen) {
        if (!c->option.empty()) (void)after.profile.set(c->option);
        for (const auto thing : c->without)
          if (!thing.empty()) after.without.emplace_back(thing);
      }
      const auto was = check_text(text, file, {}, before), is = check_text(text, file, {}, after);
      if (was && is && was->report.proved() && !is->report.proved()) lost.push_back(profile);
    }
    if (!lost.empty()) out.push_back({{"file", file}, {"profiles", lost}});
  }
  return out;
}

std::string proof_line(const Json& j) {
  return fmt::format("{}: no longer proved with --profile={}", word(j, "file"),
                     fmt::join(j.at("profiles").get<std::vector<std::string>>(), ", "));
}

std::vector<Json> predicted(const Json& answer) {
  auto all = results(answer, "speed");
  std::erase_if(all, [](const Json& j) { return !j.contains("predicted_ns"); });
  return all;
}
std::string prediction_line(const Json& j) {
  return fmt::format("{}: predicted {:.1f} +- {:.1f} us, measured {:.1f} us", word(j, "id"),
                     j.at("predicted_ns").get<double>() / 1e3, j.at("interval_ns").get<double>() / 1e3,
                     j.at("measured_ns").get<double>() / 1e3);
}

Reading read(const Json& answer, const std::vector<std::pair<std::string, std::string>>& schedules) {
  const auto rules = [&](std::string_view state) { return in_state(answer, {"order"}, {state}); };
  const auto refuted = rules("refuted"), weaker = rules("weaker"), confirmed = rules("confirmed"), open = rules("open");
  const auto broken = with(answer, {"failed", "hung"}), left = with(answer, {"left out", "not tried"});
  std::vector<std::pair<std::string, std::string>> own;
  if (schedules.empty())
    for (const auto& [file, text] : kSchedules) own.emplace_back(file, text);
  const auto proofs = changed(answer, own.empty() ? schedules : own), lacks = missing(answer);
  const auto undefined = in_state(answer, {"works"}, {"seen"});
  const auto inferred = inferred_fields(results(answer, "works"));
  const auto shown = fields(inferred, {"confirmed", "accepted", "wrong"});
  const auto unseen = never_seen(answer);
  auto outside = predicted(answer);
  const auto inside = [&](int most) {
    return std::count_if(outside.begin(), outside.end(), [&](const Json& j) {
      const int n = j.at("inside");
      return n != 0 && n <= most;
    });
  };
  const auto all = outside.size();
  const auto one = inside(1), two = inside(2);
  std::vector<double> ratios;
  for (const auto& j : outside)
    ratios.push_back(j.at("measured_ns").get<double>() / std::max(1.0, j.at("predicted_ns").get<double>()));
  std::sort(ratios.begin(), ratios.end());
  std::erase_if(outside, [](const Json& j) { return j.at("inside") == 1; });
  const auto passed = in_state(answer, {"works"}, {"passed"}).size();
  Reading r;
  r.text = section("refuted: rules that did not hold", lines(refuted, rule_line)) +
           section("does not work", lines(broken, result_line)) +
           section("weaker: rules that hold, on a node that is weaker than an ordering", lines(weaker, rule_line)) +
           section("confirmed: no excluded outcome was seen", lines(confirmed, rule_line)) +
           section("open: the weaker outcome was never seen", lines(open, rule_line)) +
           section("proofs that change", lines(proofs, proof_line)) +
           section("seen, where nothing says what must happen", lines(undefined, result_line)) +
           section("inferred fields that were sent with a value", lines(shown, field_line));
  if (answer.contains("works"))
    r.text += fmt::format("inferred fields without a trial: {}\n\n", fields(inferred, {"not tried"}).size());
  if (all != 0)
    r.text += fmt::format(
        "predictions: {} of {} inside one interval, {} inside two; measured / predicted: {:.2f} "
        "(median), {:.2f} to {:.2f}\n\n",
        one, all, two, ratios[all / 2], ratios.front(), ratios.back());
  r.text += section("predictions outside one interval", lines(outside, prediction_line)) +
            section("missing for a full run", lines(lacks, missing_line)) +
            section("not tried, or left out", lines(left, result_line));
  if (answer.contains("order"))
    r.text +=
        fmt::format("never seen: no program ran for {} of the rules: {}\n\n", unseen.size(), fmt::join(unseen, " "));
  r.text += fmt::format("{} passed; the run is {}\n", plural(passed, "trial"), word(answer, "ended"));
  if (!refuted.empty() || !broken.empty())
    r.text += "report: send contact.tar.gz with an issue whose title is the first line above\n";
  const auto of_rules = [](const std::vector<Json>& some) {
    return members(some, {"rule", "id", "runs", "outcomes", "excluded", "breaks"});
  };
  const auto of_results = [](const std::vector<Json>& some) { return members(some, {"id", "state", "why", "doctor"}); };
  r.json = {{"refuted", of_rules(refuted)},
            {"broken", of_results(broken)},
            {"weaker", of_rules(weaker)},
            {"confirmed", of_rules(confirmed)},
            {"open", of_rules(open)},
            {"never_seen", unseen},
            {"proofs", proofs},
            {"seen", of_results(undefined)},
            {"inferred", inferred},
            {"predictions", {{"all", all}, {"inside_one", one}, {"inside_two", two}}},
            {"outside", members(outside, {"id", "predicted_ns", "interval_ns", "measured_ns"})},
            {"missing", members(lacks, {"where", "message", "hint"})},
            {"left_out", of_results(left)},
            {"passed", passed},
            {"ended", word(answer, "ended")}};
  if (all != 0)
    r.json["predictions"].update(
        {{"median_ratio", ratios[all / 2]}, {"least_ratio", ratios.front()}, {"greatest_ratio", ratios.back()}});
  const bool whole = answer.contains("works") && answer.contains("order") && word(answer, "ended") == "complete";
  r.code = !refuted.empty() || !broken.empty() ? kRefuted : !whole ? kUndecided : kOk;
  return r;
}

}  // namespace

Diagnostic no_answer(const std::string& file) {
  return {.where = file,
          .message = "is not an answer of sdma contact",
          .hint = "give the contact.tar.gz that it has written"};
}

Result<Reading, Diagnostic> read_answer(const Json& answer,
                                        const std::vector<std::pair<std::string, std::string>>& schedules,
                                        const std::string& file) {
  try {
    return read(answer, schedules);
  } catch (const Json::exception&) {
    return no_answer(file);
  }
}

}  // namespace sdma::tool::contact
