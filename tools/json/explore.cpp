// SPDX-License-Identifier: MIT
#include "explore.hpp"

#include <fmt/format.h>

namespace sdma::json {
namespace {

/// The choices by name; an order has a list of numbers per loop.
Json choices_of(const std::vector<Decision>& all) {
  auto out = Json::object();
  for (const auto& d : all) {
    if (d.order) out[d.name].push_back(Json::parse(d.value));
    else if (d.alternatives > 1) out[d.name] = Json::parse(d.value);
  }
  return out;
}

}  // namespace

Explored explored(std::string title, SearchResult result, const MachineDescription& m) {
  Explored e{.title = std::move(title), .result = std::move(result)};
  const auto& r = e.result;
  std::vector<const Schedule*> schedules;
  for (const auto& c : r.best) schedules.push_back(&c.schedule);
  const auto compared = [&](const Candidate& base) {
    const auto s = speed_ups(base.schedule, schedules, m);
    std::vector<std::optional<SpeedUp>> out(schedules.size());
    if (s) out.assign(s->begin(), s->end());
    for (std::size_t i = 0; i < out.size(); ++i)
      if (base.decisions == r.best[i].decisions) out[i] = {1, 0};
    return out;
  };
  std::vector<std::optional<SpeedUp>> over_default(schedules.size()), over_best;
  if (r.initial) over_default = compared(*r.initial);
  if (!r.best.empty()) over_best = compared(r.best.front());
  if (!r.best.empty()) {
    e.least = lower_bound(r.best.front().schedule, m);
    if (auto t = simulate(r.best.front().schedule, m)) e.simulated = *std::move(t);
  }
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    const auto s = sensitivity(r.best[i].schedule, m);
    e.rows.push_back({.over_default = over_default[i], .over_best = over_best[i]});
    if (s) e.rows.back().uncertainty_ns = s->uncertainty_ns;
    if (!knows_energy(m)) continue;
    const auto here = simulate(r.best[i].schedule, m), first = simulate(r.best.front().schedule, m);
    if (here && first) e.rows.back().over_best_joules = energy_between(*first, *here, m);
  }
  return e;
}

std::string text_of(const SpeedUp& s) {
  if (s.uncertainty == 0) return fmt::format("{:.2f}", s.value);
  return fmt::format("{:.2f} +- {:.2f}{}", s.value, s.uncertainty, s.tie() ? " tie" : "");
}
Json of(const SpeedUp& s) { return {{"value", s.value}, {"uncertainty", s.uncertainty}, {"tie", s.tie()}}; }

Json of(const Explored& e) {
  const auto& r = e.result;
  Json j = Json::object();
  if (!e.title.empty()) j["set"] = e.title;
  j["simulated"] = r.simulated;
  j["candidates"] = r.candidates;
  j["complete"] = r.complete;
  j["refused"] = r.refused;
  j["unproved"] = r.unproved;
  j["assumes"] = r.assumes;
  if (const auto& f = r.first_refused)
    j["first_refused"] = {{"choices", choices_of(f->decisions)},
                          {"rule", f->reason.rule},
                          {"where", f->reason.where},
                          {"message", f->reason.message},
                          {"hint", f->reason.hint}};
  j["at_least"] = e.simulated ? of(e.least, *e.simulated) : Json();
  j["default_ns"] = r.initial ? Json(r.initial->ns) : Json();
  auto& best = j["best"] = Json::array();
  const auto known = [](const auto& v) { return v ? Json(of(*v)) : Json(); };
  for (std::size_t i = 0; i < e.rows.size(); ++i) {
    const auto& row = e.rows[i];
    best.push_back({{"ns", r.best[i].ns},
                    {"uncertainty_ns", row.uncertainty_ns ? Json(*row.uncertainty_ns) : Json()},
                    {"over_default", known(row.over_default)},
                    {"over_best", known(row.over_best)},
                    {"same", r.best[i].same},
                    {"choices", choices_of(r.best[i].decisions)}});
    if (!e.energy) continue;
    best.back()["energy"] = of(r.best[i].energy);
    best.back()["over_best_joules"] = row.over_best_joules ? of(*row.over_best_joules) : Json();
  }
  if (e.energy) {
    auto& front = j["front"] = Json::array();
    for (const auto& c : r.front)
      front.push_back({{"ns", c.ns}, {"joules", of(c.energy.joules)}, {"choices", choices_of(c.decisions)}});
  }
  return j;
}

Json of(std::span<const Explored> all, const MachineDescription& m, const Interruption& i) {
  Json out{{"machine", m.name},
           {"interrupted", i.interrupted},
           {"not_searched", i.not_searched},
           {"defaults", defaults_of(m)},
           {"searches", Json::array()}};
  if (i.interrupted) out["complete"] = false;
  for (const auto& e : all) out["searches"].push_back(of(e));
  return out;
}

}  // namespace sdma::json
