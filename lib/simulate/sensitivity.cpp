// SPDX-License-Identifier: MIT
#include "latent.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdma::inline v0 {

namespace {

/// The machine with another value of one parameter, which stays possible.
MachineDescription changed(const MachineDescription& m, std::size_t i, double value) {
  auto out = m;
  const auto unit = sdma::unit(static_cast<Cost>(i));
  const auto least = unit == "ns" || unit == "copies" ? 0.0 : m.parameters[i].value / 100;
  out.parameters[i].value = std::max(least, unit == "fraction" ? std::min(value, 1.0) : value);
  return out;
}

/// Of both ends of a parameter's uncertainty.
std::pair<double, double> ends(const Parameter& p) { return {p.value - p.uncertainty, p.value + p.uncertainty}; }

/// Only times are wanted of a simulation that is repeated: no trace, no contents.
SimulateOptions times_alone(const SimulateOptions& o) {
  auto out = o;
  out.recorder = nullptr;
  out.contents = false;
  return out;
}

}  // namespace

Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule& s, const MachineDescription& m,
                                                         const SimulateOptions& o) {
  const auto quiet = times_alone(o);
  const auto base = simulate(s, m, quiet);
  if (!base) return base.error();
  // With any other cost, the simulation takes about as many steps.
  constexpr std::uint64_t kSimulations = 3 * kCosts, kMost = 32;
  if (base->steps > o.max_steps * kMost / kSimulations)
    return std::vector<Diagnostic>{
        {.where = "sensitivity",
         .message =
             fmt::format("the sensitivity needs {} simulations of {} steps each, but {} steps are allowed together",
                         kSimulations, base->steps, o.max_steps * kMost),
         .hint = "sdma simulate --no-sensitivity omits it; or repeat less often"}};
  Sensitivity out{.ns = base->ns};
  double variance = 0;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    const auto part = unit(static_cast<Cost>(i)) == "fraction";
    const auto with = [&](double value) {
      auto r = simulate(s, changed(m, i, value), quiet);
      return r ? *std::move(r) : *base;
    };
    // A step of a tenth is large enough that rounding to packets and turns
    // does not hide the effect. It goes down if the value cannot go up.
    const auto step = part && p.value * 1.1 > 1 ? 0.9 : 1.1;
    const auto stepped = with(p.value * step);
    const auto [lower, upper] = ends(p);
    const auto low = with(lower).ns, high = with(upper).ns;
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base->ns > 0 ? (stepped.ns / base->ns - 1) / (step - 1) : 0,
                         .low_ns = std::min({low, high, base->ns}),
                         .high_ns = std::max({low, high, base->ns})};
    for (std::size_t k = 0; k < kPhases; ++k)
      row.phase_ns[k] = (stepped.phase_ns[k] - base->phase_ns[k]) / (step - 1) / 100;
    const auto off = std::max(base->ns - row.low_ns, row.high_ns - base->ns);
    variance += off * off;
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
  }
  out.uncertainty_ns = std::hypot(std::sqrt(variance), m.model_error * detail::latent_part(*base) * base->ns);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

Result<std::vector<SpeedUp>, std::vector<Diagnostic>> speed_ups(const Schedule& baseline,
                                                                std::span<const Schedule* const> all,
                                                                const MachineDescription& m, const SimulateOptions& o) {
  const auto quiet = times_alone(o);
  const auto slow = simulate(baseline, m, quiet);
  if (!slow) return slow.error();
  std::vector<SpeedUp> out(all.size());
  std::vector<double> variances(all.size()), latent(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto fast = simulate(*all[k], m, quiet);
    if (!fast) return fast.error();
    if (fast->ns > 0) out[k].value = slow->ns / fast->ns;
    latent[k] = detail::latent_part(*slow, *fast);
  }
  std::vector<double> off(all.size());
  for (std::size_t i = 0; i < kCosts; ++i) {
    if (m.parameters[i].uncertainty == 0) continue;
    const auto [lower, upper] = ends(m.parameters[i]);
    std::fill(off.begin(), off.end(), 0);
    for (const auto value : {lower, upper}) {
      const auto there = changed(m, i, value);
      const auto a = simulate(baseline, there, quiet);
      for (std::size_t k = 0; a && k < all.size(); ++k)
        if (const auto b = simulate(*all[k], there, quiet); b && b->ns > 0)
          off[k] = std::max(off[k], std::abs(a->ns / b->ns - out[k].value));
    }
    for (std::size_t k = 0; k < all.size(); ++k) variances[k] += off[k] * off[k];
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    out[k].uncertainty = std::hypot(std::sqrt(variances[k]), m.model_error * latent[k] * out[k].value);
  return out;
}

Result<SpeedUp, std::vector<Diagnostic>> speed_up(const Schedule& baseline, const Schedule& s,
                                                  const MachineDescription& m, const SimulateOptions& o) {
  const Schedule* const one[] = {&s};
  auto all = speed_ups(baseline, one, m, o);
  if (!all) return std::move(all.error());
  return all->front();
}

}  // namespace sdma::inline v0
