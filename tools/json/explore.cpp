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

/// Is there an interval, of all parameters?
bool has_interval(const Candidate& c) { return c.spread && !c.spread->failed; }

}  // namespace

Explored explored(std::string title, SearchResult result, const MachineDescription& m) {
  Explored e{.title = std::move(title), .result = std::move(result)};
  const auto& r = e.result;
  if (r.best.empty()) return e;
  const auto& first = r.best.front();
  e.least = lower_bound(first.schedule, m);
  const auto compared = [&](const Candidate& base, const Candidate& c) -> std::optional<SpeedUp> {
    if (base.decisions == c.decisions) return SpeedUp{1, 0};
    if (!has_interval(base) || !has_interval(c)) return {};
    return speed_up(*base.spread, *c.spread, m);
  };
  for (const auto& c : r.best) {
    auto& row = e.rows.emplace_back();
    if (has_interval(c)) row.uncertainty_ns = c.spread->uncertainty_ns;
    if (r.initial) row.over_default = compared(*r.initial, c);
    row.over_best = compared(first, c);
    if (knows_energy(m)) row.over_best_joules = energy_between(first.simulation, c.simulation, m);
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
  j["stopped"] = r.stopped;
  j["refused"] = r.refused;
  j["unproved"] = r.unproved;
  j["assumes"] = r.assumes;
  if (const auto& f = r.first_refused)
    j["first_refused"] = {{"choices", choices_of(f->decisions)},
                          {"rule", f->reason.rule},
                          {"where", f->reason.where},
                          {"message", f->reason.message},
                          {"hint", f->reason.hint}};
  j["at_least"] = r.best.empty() ? Json() : of(e.least, r.best.front().simulation);
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
