// SPDX-License-Identifier: MIT
#include "explore_report.hpp"

#include "sdma/core/plural.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::tool {
namespace {

std::string time_of(const Explored& e, std::size_t i) {
  return time_text(e.result.best[i].ns) + " +- " + time_text(e.rows[i].uncertainty_ns);
}

/// "1.88 +- 0.15", "0.98 +- 0.03 tie".
std::string ratio(const std::optional<SpeedUp>& s) {
  if (!s) return "-";
  if (s->uncertainty == 0) return fmt::format("{:.2f}", s->value);
  return fmt::format("{:.2f} +- {:.2f}{}", s->value, s->uncertainty, s->tie() ? " tie" : "");
}

std::string choices(const Candidate& c) {
  const auto text = decisions_text(c.decisions);
  return text.empty() ? "the default" : text;
}

std::string others(const Candidate& c) {
  return c.same == 0 ? "" : fmt::format(" ({} more with this time, not checked)", c.same);
}

/// How much was searched, and what the checker refused.
std::string sentences(const Explored& e) {
  const auto& r = e.result;
  const auto prefix = e.title.empty() ? "" : e.title + ": ";
  std::string out;
  out += prefix + (r.complete ? fmt::format("searched: all {}\n", plural(r.simulated, "candidate"))
                              : fmt::format("searched: {} of about {:.3g} candidates, so a faster one may exist\n",
                                            r.simulated, r.candidates));
  if (const auto& first = r.first_refused) {
    const auto open = decisions_text(first->decisions);
    out += prefix + fmt::format("refused: {} of them{}; the first{}: {}{}\n", r.refused,
                                r.unproved > 0 ? fmt::format(", {} without an error", r.unproved) : "",
                                open.empty() ? ", which is the default" : ", with " + open,
                                first->reason.where.empty() ? "" : first->reason.where + ": ", first->reason.message);
  }
  return out;
}

std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i)
    out += i + 1 < cells.size() ? fmt::format("{:<{}}  ", cells[i], widths[i]) : cells[i];
  return out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) out += line(row, widths);
  return out;
}

constexpr const char* kProved =
    "Each of these is proved: no race, no deadlock, no missing wait. Times are predictions, +- half of a 68 % "
    "interval.\n";

}  // namespace

std::string explore_table(const Explored& e) {
  if (e.rows.empty()) return "no candidate is proved\n" + sentences(e);
  std::vector<std::vector<std::string>> rows{{"", "time", "x the default", "x the best", "choices"}};
  for (std::size_t i = 0; i < e.rows.size(); ++i) {
    const auto& c = e.result.best[i];
    rows.push_back({std::to_string(i + 1), time_of(e, i), ratio(e.rows[i].over_default), ratio(e.rows[i].over_best),
                    choices(c) + others(c)});
  }
  return aligned(rows) + "\n" + sentences(e) + kProved;
}

std::string explore_sweep_table(const std::vector<Explored>& all) {
  const auto& title = all.front().title;
  std::vector<std::vector<std::string>> rows{{title.substr(0, title.find('=')), "time", "x the default", "choices"}};
  std::string notes;
  bool complete = true;
  std::uint64_t simulated = 0;
  for (const auto& e : all) {
    const auto value = e.title.substr(e.title.find('=') + 1);
    if (e.rows.empty()) rows.push_back({value, "-", "-", "no candidate is proved"});
    else
      rows.push_back({value, time_of(e, 0), ratio(e.rows.front().over_default),
                      choices(e.result.best.front()) + others(e.result.best.front())});
    complete = complete && e.result.complete;
    simulated += e.result.simulated;
    if (!e.result.complete || e.result.first_refused) notes += sentences(e);
  }
  if (complete) notes = fmt::format("searched: all {}\n", plural(simulated, "candidate")) + notes;
  return aligned(rows) + "\n" + notes + kProved;
}

std::string explore_file(const Explored& e, std::size_t i, const std::string& command, const MachineDescription& m) {
  const auto& c = e.result.best[i];
  const auto& over = e.rows[i].over_default;
  return fmt::format("# Number {} of {}: {}\n# found by {}\n# {} predicted for {}{}; proved by sdma check\n", i + 1,
                     e.rows.size(), choices(c), command, time_of(e, i), m.name,
                     over ? ", " + ratio(over) + " times as fast as the default" : "") +
         to_text(c.schedule);
}

}  // namespace sdma::tool
