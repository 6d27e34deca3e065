// SPDX-License-Identifier: MIT
#include "calibrate.hpp"

#include <algorithm>
#include <cmath>

namespace sdma::json {
namespace {

Json of(const Measurements& all, std::span<const Fit::Prediction> predictions) {
  auto j = Json::array();
  for (std::size_t i = 0; i < all.observations.size(); ++i)
    j.push_back({{"id", all.observations[i].id},
                 {"measured", all.observations[i].value},
                 {"model", predictions[i].value},
                 {"error", predictions[i].error}});
  return j;
}

void add_errors(Json& j, const FitErrors& e) {
  for (const auto& [key, k] : {std::pair{"times_and_speed_ups", &e.relative}, {"shares", &e.share}})
    if (k->count > 0)
      j[key] = {{"count", k->count}, {"mean_error", k->mean}, {"worst_error", k->worst}, {"worst", k->at->id}};
}

/// The errors of one kind of cells; null without such cells.
Json of(const HeldOutErrors& e, bool shares) {
  if (e.cells == 0) return {};
  Json j{{"cells", e.cells}, {"mean_error", e.mean}, {"worst_error", e.worst}};
  if (shares) return j;
  j["mean_error_after_factor"] = e.after_factor > 0 ? Json(e.after_factor) : Json();
  j["rows"] = e.rows;
  j["rows_compared"] = e.compared;
  j["rows_with_best_variant"] = e.best;
  j["inside_one_interval"] = e.inside_one;
  j["inside_one_interval_deviation"] = e.inside_one_deviation;
  j["inside_two_intervals"] = e.inside_two;
  return j;
}

Json judged(const Measurements& m, std::span<const HeldOut* const> parts) {
  return {{"times_and_speed_ups", of(errors_of(m, parts, false), false)},
          {"shares", of(errors_of(m, parts, true), true)}};
}

}  // namespace

std::string_view state_of(const Measurements::Row& r, const MachineDescription& m) {
  return m.fitted_to(r.source) ? "fitted" : "predicted";
}

FitErrors fit_errors(const Measurements& m, std::span<const Fit::Prediction> predictions,
                     const std::function<bool(std::size_t)>& counts) {
  FitErrors out;
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    const auto& o = m.observations[i];
    if (counts ? !counts(i) : o.weight == 0) continue;
    auto& kind = o.kind == Observation::Kind::share ? out.share : out.relative;
    const auto e = std::abs(predictions[i].error);
    ++kind.count;
    kind.mean += e;
    if (kind.at && e <= kind.worst) continue;
    kind.worst = e;
    kind.at = &o;
    kind.predicted = predictions[i].value;
  }
  for (auto* k : {&out.relative, &out.share})
    if (k->count > 0) k->mean /= static_cast<double>(k->count);
  return out;
}

Json of(const Fit& f, const FitOptions& options, const MachineDescription& m, const Measurements& all,
        std::span<const Fit::Prediction> predictions) {
  Json j{{"end", name(f.end)}, {"simulations", f.simulations}};
  add_errors(j, fit_errors(all, predictions));
  j["parameters"] = Json::array();
  for (std::size_t i = 0; i < options.free.size(); ++i) {
    const auto cost = options.free[i].cost;
    const auto& p = m.parameter(cost);
    j["parameters"].push_back({{"name", name(cost)},
                               {"value", p.value},
                               {"uncertainty", p.uncertainty},
                               {"unit", unit(cost)},
                               {"state", name(f.states[i])},
                               {"source", p.source}});
  }
  j["alike"] = Json::array();
  for (const auto& a : f.alike)
    j["alike"].push_back({{"a", name(a.a)}, {"b", name(a.b)}, {"correlation", a.correlation}});
  j["measurements"] = of(all, predictions);
  return j;
}

Json predicted(const Measurements& all, std::span<const Fit::Prediction> predictions, const MachineDescription& m) {
  Json j{{"machine", m.name}, {"measurements", of(all, predictions)}};
  for (std::size_t i = 0; i < all.observations.size(); ++i) {
    const auto& o = all.observations[i];
    j["measurements"][i]["state"] = state_of(all.rows[i], m);
    if (o.kind != Observation::Kind::share) j["measurements"][i]["half_interval"] = half_interval(o, m);
  }
  add_errors(j, fit_errors(all, predictions, [](std::size_t) { return true; }));
  for (const std::string state : {"fitted", "predicted"}) {
    Json errors = Json::object();
    add_errors(errors, fit_errors(all, predictions, [&](std::size_t i) { return state_of(all.rows[i], m) == state; }));
    j[state] = std::move(errors);
  }
  return j;
}

Json of(const Measurements& m, std::span<const HeldOut> parts) {
  Json j{{"parts", Json::array()}, {"kinds", Json::array()}};
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<const HeldOut*> same;
    const auto kind = parts[i].kind;
    for (; i < parts.size() && parts[i].kind == kind; ++i) {
      const auto* const part = &parts[i];
      same.push_back(part);
      j["parts"].push_back({{"kind", name(kind)}, {"name", part->name}});
      j["parts"].back().update(judged(m, {&part, 1}));
    }
    j["kinds"].push_back({{"kind", name(kind)}, {"parts", same.size()}});
    j["kinds"].back().update(judged(m, same));
  }
  return j;
}

Json of(const EnergyFit& f) {
  Json j{{"terms", Json::array()}, {"includes", Json::array()}, {"rows", Json::array()}};
  for (const auto& v : f.values) j["terms"].push_back({{"name", v.column}, {"value", of(v.value)}});
  for (const auto& [whole, part] : f.includes) j["includes"].push_back({{"term", name(whole)}, {"part", name(part)}});
  for (const auto& p : f.predictions)
    j["rows"].push_back({{"name", p.name},
                         {"judged", p.judged},
                         {"measured_watts", p.watts},
                         {"model_watts", p.predicted},
                         {"error", p.error}});
  j["worst_error_fitted"] = f.worst(false);
  j["worst_error_judged"] = f.worst(true);
  return j;
}

}  // namespace sdma::json
