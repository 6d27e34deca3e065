// SPDX-License-Identifier: MIT
// The result of a simulation as a table, as sentences, and as JSON.
#include "sdma/simulate/simulate.hpp"

#include "../core/json.hpp"
#include "../core/time_unit.hpp"
#include "sdma/simulate/lower_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Json;
constexpr std::string_view kKinds[] = {"host", "engine", "link", "memory", "agent"};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// Groups resources of one kind with equal use into one line: "gpu0 engine 14, and 55 like it".
struct Row {
  const Busy* first{};
  std::size_t more{};
  double least{}, most{};
};
std::vector<Row> rows(const Simulation& s) {
  std::vector<Row> out;
  for (const auto& b : s.busy) {
    const auto used = percent(b.busy_ns, s.ns);
    if (b.kind == Busy::Kind::engine && b.bytes == 0 && b.busy_ns == 0) continue;
    const auto alike = std::find_if(out.begin(), out.end(), [&](const Row& r) {
      return b.kind != Busy::Kind::host && b.kind != Busy::Kind::agent && r.first->kind == b.kind &&
             r.first->bytes == b.bytes && std::abs(r.first->rate - b.rate) <= 1e-9 * b.rate;
    });
    if (alike == out.end()) {
      out.push_back({&b, 0, used, used});
    } else {
      ++alike->more;
      alike->least = std::min(alike->least, used);
      alike->most = std::max(alike->most, used);
    }
  }
  return out;
}

constexpr std::string_view kAtBound =
    "its fit ended at a bound: the true value may lie beyond it, and no interval says how far";

}  // namespace

std::string_view name(Phase p) noexcept {
  constexpr std::string_view kNames[] = {"control", "schedule", "copy", "sync", "compute"};
  return kNames[static_cast<std::size_t>(p)];
}

std::string bound_text(Cost c) { return fmt::format("{}: {}", name(c), kAtBound); }

std::string time_text(double ns) {
  const auto unit = detail::time_unit(ns);
  return fmt::format("{:.{}f} {}", ns / unit.ns, unit.decimals, unit.name);
}

std::string judged_text(CopyPattern p, const MachineDescription& m) {
  const auto* const known = m.judgement(p);
  if (!known) return fmt::format("{}: no published measurement judges this machine for such schedules", name(p));
  auto out = fmt::format("{}:", name(p));
  for (const auto& [cells, what] : {std::pair{&known->fitted, "fitted"}, {&known->predicted, "predicted"}})
    if (cells->cells > 0)
      out += fmt::format("{} {} {} {} off by {:.1f} % (worst {:.0f} %)", out.back() == ':' ? "" : ",", cells->cells,
                         what, cells->cells == 1 ? "cell is" : "cells are", 100 * cells->mean, 100 * cells->worst);
  return out;
}

std::string to_table(const Simulation& s, const Sensitivity* hangs, const MachineDescription* m,
                     const LowerBound* least) {
  std::string out = "time        " + time_text(s.ns);
  if (hangs) out += " +- " + time_text(hangs->uncertainty_ns);
  if (s.rounds.size() > 1) out += fmt::format("  (the last of {} rounds)", s.rounds.size());
  for (const auto& a : hangs ? hangs->alternatives : std::vector<Sensitivity::Alternative>{})
    out += fmt::format("\nor          {} if {} ({}={})", time_text(a.ns), a.when, name(a.cost), a.value);
  if (m && s.bytes > 0) out += "\nlike it     " + judged_text(s.pattern, *m);
  if (const auto times = least ? times_of(*least, s) : std::nullopt) out += "\nat least    " + to_text(*least, *times);
  out += fmt::format("\nbottleneck  {}\nwork        packets: {}, bytes moved: {}, doorbells: {}; {} in total\n",
                     s.bottleneck.empty() ? "none: nothing ran" : s.bottleneck, s.packets, s.bytes, s.doorbells,
                     time_text(s.total_ns));
  out += "\nphase       on the critical path\n";
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (s.phase_ns[i] == 0) continue;
    const auto share = percent(s.phase_ns[i], s.ns);
    out += fmt::format("{:<11} {:>10} {:>5.1f} %  {}\n", name(static_cast<Phase>(i)), time_text(s.phase_ns[i]), share,
                       std::string(static_cast<std::size_t>(share / 2.5 + 0.5), '#'));
  }
  out += fmt::format("\n{:<38} {:>13} {:>14} {:>20}\n", "used", "busy", "bytes", "rate while busy");
  for (const auto& r : rows(s)) {
    const auto& b = *r.first;
    auto name = b.name + (r.more ? fmt::format(", and {} like it", r.more) : "");
    const auto busy =
        r.most - r.least < 0.05 ? fmt::format("{:.1f} %", r.least) : fmt::format("{:.1f}-{:.1f} %", r.least, r.most);
    out += fmt::format("{:<38} {:>13}", name, busy);
    if (b.rate > 0)
      out += fmt::format(
          " {:>14} {:>20}", b.bytes,
          fmt::format("{:.1f} of {:.4g} GB/s", b.busy_ns > 0 ? static_cast<double>(b.bytes) / b.busy_ns : 0, b.rate));
    out += '\n';
  }
  if (hangs) {
    out += fmt::format("\n{:<29} {:>12} {:>26}\n", "time depends on", "+1 % gives", "within its uncertainty");
    for (std::size_t i = 0; i < std::min<std::size_t>(hangs->rows.size(), 12); ++i) {
      const auto& r = hangs->rows[i];
      out += fmt::format("{:<29} {:>+10.2f} % {:>26}\n",
                         std::string(name(r.cost)) + (r.together ? " *" : "") + (r.at_bound ? " !" : ""), r.per_percent,
                         time_text(r.low_ns) + " to " + time_text(r.high_ns));
    }
    if (std::any_of(hangs->rows.begin(), hangs->rows.end(), [](const auto& r) { return r.together; }))
      out += "* within its uncertainty alone; the +- of the time uses what the fit knows of these together\n";
    if (std::any_of(hangs->rows.begin(), hangs->rows.end(), [](const auto& r) { return r.at_bound; }))
      out += fmt::format("! {}\n", kAtBound);
  }
  return out;
}

std::string explain(const Simulation& s, const Sensitivity& hangs) {
  constexpr std::size_t kMost = 4;
  constexpr double kLeast = 1e-4;  // of the phase, for one percent: less is rounding
  std::string out =
      fmt::format("{:<11} {:<31} {:>18} {:>19}\n", "phase", "depends on", "+1 %: the phase", "+1 %: the time");
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (s.phase_ns[i] == 0) continue;
    std::vector<const Sensitivity::Row*> order;
    for (const auto& r : hangs.rows)
      if (std::abs(r.phase_ns[i]) > kLeast * s.phase_ns[i]) order.push_back(&r);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto* a, auto* b) { return std::abs(a->phase_ns[i]) > std::abs(b->phase_ns[i]); });
    if (order.empty()) out += fmt::format("{:<11} no parameter of the machine\n", name(static_cast<Phase>(i)));
    for (std::size_t k = 0; k < std::min(order.size(), kMost); ++k) {
      const auto& r = *order[k];
      out += fmt::format("{:<11} {:<31} {:>+16.2f} % {:>+17.2f} %\n", k == 0 ? name(static_cast<Phase>(i)) : "",
                         name(r.cost), percent(r.phase_ns[i], s.phase_ns[i]), r.per_percent);
    }
    if (order.size() > kMost) out += fmt::format("{:<11} and {} more\n", "", order.size() - kMost);
  }
  return out;
}

std::string to_json(const Simulation& s, const Sensitivity* hangs) {
  Json j{{"ns", s.ns}, {"total_ns", s.total_ns}, {"bottleneck", s.bottleneck}};
  if (hangs) j["uncertainty_ns"] = hangs->uncertainty_ns;
  j["packets"] = s.packets;
  j["bytes"] = s.bytes;
  j["doorbells"] = s.doorbells;
  for (std::size_t i = 0; i < kPhases; ++i) j["phases"][std::string(name(static_cast<Phase>(i)))] = s.phase_ns[i];
  j["rounds"] = Json::array();
  for (const auto& r : s.rounds) j["rounds"].push_back({{"begin_ns", r.begin_ns}, {"end_ns", r.end_ns}});
  j["path"] = Json::array();
  for (const auto& p : s.path)
    j["path"].push_back({{"begin_ns", p.begin_ns},
                         {"end_ns", p.end_ns},
                         {"phase", name(p.phase)},
                         {"where", p.where},
                         {"what", p.what}});
  j["busy"] = Json::array();
  for (const auto& b : s.busy)
    j["busy"].push_back({{"kind", kKinds[static_cast<std::size_t>(b.kind)]},
                         {"name", b.name},
                         {"busy_ns", b.busy_ns},
                         {"bytes", b.bytes},
                         {"bytes_per_ns", b.rate}});
  if (hangs) {
    j["sensitivity"] = Json::array();
    for (const auto& r : hangs->rows) {
      Json phases = Json::object();
      for (std::size_t i = 0; i < kPhases; ++i) phases[std::string(name(static_cast<Phase>(i)))] = r.phase_ns[i];
      j["sensitivity"].push_back({{"parameter", name(r.cost)},
                                  {"percent_for_one_percent", r.per_percent},
                                  {"phase_ns_for_one_percent", std::move(phases)},
                                  {"low_ns", r.low_ns},
                                  {"high_ns", r.high_ns}});
      if (r.at_bound) j["sensitivity"].back()["at_bound"] = true;
    }
    j["alternatives"] = Json::array();
    for (const auto& a : hangs->alternatives)
      j["alternatives"].push_back({{"if", a.when}, {"parameter", name(a.cost)}, {"value", a.value}, {"ns", a.ns}});
  }
  return detail::json_text(j, 2) + "\n";
}

}}  // namespace sdma::v0_3
