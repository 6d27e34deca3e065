// SPDX-License-Identifier: MIT
#include "latent.hpp"
#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

namespace sdma::inline v0 {

namespace {

/// A machine of which one parameter at a time has another value, which stays possible.
class Variable {
 public:
  explicit Variable(const MachineDescription& m) : m_(m), now_(m) {}

  const MachineDescription& with(std::size_t i, double value) {
    now_.parameters[last_].value = m_.parameters[last_].value;
    const auto unit = sdma::unit(static_cast<Cost>(i));
    const auto least = unit == "ns" || unit == "copies" ? 0.0 : m_.parameters[i].value / 100;
    now_.parameters[last_ = i].value = std::max(least, unit == "fraction" ? std::min(value, 1.0) : value);
    return now_;
  }

 private:
  const MachineDescription& m_;
  MachineDescription now_;
  std::size_t last_ = 0;
};

/// A simulation, and which others would be the same.
struct Base {
  Simulation result{};
  detail::World::Needs needs{};
  bool depends(const MachineDescription& from, const MachineDescription& to) const {
    for (std::size_t i = 0; i < kCosts; ++i) {
      const auto a = from.parameters[i].value, b = to.parameters[i].value;
      if (a != b && std::min(a, b) < needs[i]) return true;
    }
    return false;
  }
};
Result<Base, std::vector<Diagnostic>> base_of(const Schedule& s, const MachineDescription& m,
                                              const SimulateOptions& o) {
  detail::World world{s, m, o};
  auto r = world.run();
  if (!r) return std::move(r.error());
  return Base{*std::move(r), world.needs()};
}

/// Does the machine have a covariance of this parameter with others?
bool in_covariance(const MachineDescription& m, std::size_t i) {
  const auto& of = m.covariance.of;
  return std::find(of.begin(), of.end(), static_cast<Cost>(i)) != of.end();
}

/// Only times are wanted of a simulation that is repeated: no trace, no contents.
SimulateOptions times_alone(const SimulateOptions& o) {
  auto out = o;
  out.recorder = nullptr;
  out.contents = false;
  return out;
}

using Values = std::function<std::vector<double>(const MachineDescription&)>;

/// Adds the variances that parameters without covariance give to what `values` computes for a machine.
void add_alone(const MachineDescription& m, const std::vector<double>& base, const Values& values,
               std::vector<double>& variances) {
  Variable machine{m};
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    if (p.uncertainty == 0 || in_covariance(m, i)) continue;
    std::vector<double> off(base.size());
    for (const auto value : {p.value - p.uncertainty, p.value + p.uncertainty}) {
      const auto there = values(machine.with(i, value));
      for (std::size_t k = 0; k < base.size(); ++k) off[k] = std::max(off[k], std::abs(there[k] - base[k]));
    }
    for (std::size_t k = 0; k < base.size(); ++k) variances[k] += off[k] * off[k];
  }
}

/// Adds those of the others: errors that make up for each other count as far as they do not.
void add_together(const MachineDescription& m, const Values& values, std::vector<double>& variances) {
  constexpr double kStep = 0.01;
  Variable machine{m};
  const auto& c = m.covariance;
  std::vector<std::vector<double>> slopes;
  for (const auto cost : c.of) {
    const auto& p = m.parameter(cost);
    auto& slope = slopes.emplace_back(variances.size());
    if (p.uncertainty == 0) continue;  // declared to be exact
    const auto by = p.value > 0 ? kStep * p.value : p.uncertainty;
    const auto end = [&](double value) {
      const auto& there = machine.with(static_cast<std::size_t>(cost), value);
      return std::pair{there[cost], values(there)};
    };
    const auto high = end(p.value + by), low = end(p.value - by);
    for (std::size_t k = 0; k < slope.size(); ++k)
      slope[k] = (high.second[k] - low.second[k]) / (high.first - low.first);
  }
  for (std::size_t k = 0; k < variances.size(); ++k) {
    double sum = 0;
    for (std::size_t a = 0; a < slopes.size(); ++a)
      for (std::size_t b = 0; b < slopes.size(); ++b)
        sum += slopes[a][k] * slopes[b][k] * c.values[a * slopes.size() + b];
    variances[k] += std::max(0.0, sum);
  }
}

/// Those that change the time `ns` by more than a percent. `time`: with another machine.
std::vector<Sensitivity::Alternative> alternatives_of(const MachineDescription& m, double ns,
                                                      const std::function<double(const MachineDescription&)>& time) {
  constexpr double kLeast = 0.01;
  std::vector<Sensitivity::Alternative> out;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    if (!p.alternative) continue;
    auto other = m;
    other.parameters[i].value = *p.alternative;
    const auto there = time(other);
    if (std::abs(there - ns) > kLeast * ns) out.push_back({static_cast<Cost>(i), *p.alternative, there, p.when});
  }
  return out;
}

}  // namespace

Result<std::vector<Sensitivity::Alternative>, std::vector<Diagnostic>> alternatives(const Schedule& s,
                                                                                    const MachineDescription& m,
                                                                                    const SimulateOptions& o) {
  const auto quiet = times_alone(o);
  const auto base = base_of(s, m, quiet);
  if (!base) return base.error();
  return alternatives_of(m, base->result.ns, [&](const MachineDescription& there) {
    if (!base->depends(m, there)) return base->result.ns;
    const auto r = simulate(s, there, quiet);
    return r ? r->ns : base->result.ns;
  });
}

Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule& s, const MachineDescription& m,
                                                         const SimulateOptions& o) {
  const auto quiet = times_alone(o);
  const auto found = base_of(s, m, quiet);
  if (!found) return found.error();
  const auto& base = found->result;
  // With any other cost, the simulation takes about as many steps.
  constexpr std::uint64_t kMost = 32;
  auto left = o.max_steps * kMost;
  bool enough = true;
  Variable machine{m};
  const auto at = [&](const MachineDescription& there) {
    if (!found->depends(m, there)) return base;
    enough = enough && left >= base.steps;
    if (!enough) return base;
    left -= base.steps;
    auto r = simulate(s, there, quiet);
    return r ? *std::move(r) : base;
  };
  Sensitivity out{.ns = base.ns};
  std::vector<double> variance(1);
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    const auto with = [&](double value) { return at(machine.with(i, value)); };
    // A step of a tenth is large enough that rounding to packets and turns
    // does not hide the effect. It goes down if the value cannot go up.
    const auto step = unit(static_cast<Cost>(i)) == "fraction" && p.value * 1.1 > 1 ? 0.9 : 1.1;
    const auto stepped = with(p.value * step);
    const auto low = with(p.value - p.uncertainty).ns, high = with(p.value + p.uncertainty).ns;
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base.ns > 0 ? (stepped.ns / base.ns - 1) / (step - 1) : 0,
                         .low_ns = std::min({low, high, base.ns}),
                         .high_ns = std::max({low, high, base.ns}),
                         .together = in_covariance(m, i)};
    for (std::size_t k = 0; k < kPhases; ++k)
      row.phase_ns[k] = (stepped.phase_ns[k] - base.phase_ns[k]) / (step - 1) / 100;
    const auto off = std::max(base.ns - row.low_ns, row.high_ns - base.ns);
    if (!row.together) variance[0] += off * off;
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
  }
  out.alternatives = alternatives_of(m, base.ns, [&](const auto& there) { return at(there).ns; });
  add_together(
      m, [&](const auto& there) { return std::vector<double>{at(there).ns}; }, variance);
  if (!enough)
    return std::vector<Diagnostic>{
        {.where = "sensitivity",
         .message = fmt::format("the sensitivity needs more than {} simulations of {} steps each, but {} steps are "
                                "allowed together",
                                (o.max_steps * kMost - left) / base.steps, base.steps, o.max_steps * kMost),
         .hint = "sdma simulate --no-sensitivity omits it; or repeat less often"}};
  out.uncertainty_ns = std::hypot(std::sqrt(variance[0]), m.model_error * detail::latent_part(base) * base.ns);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

Result<std::vector<SpeedUp>, std::vector<Diagnostic>> speed_ups(const Schedule& baseline,
                                                                std::span<const Schedule* const> all,
                                                                const MachineDescription& m, const SimulateOptions& o) {
  const auto quiet = times_alone(o);
  const auto slow = base_of(baseline, m, quiet);
  if (!slow) return slow.error();
  const auto n = all.size();
  std::vector<SpeedUp> out(n);
  std::vector<Base> bases;
  std::vector<double> values(2 * n);  // the ratios, then the times
  for (std::size_t k = 0; k < n; ++k) {
    auto fast = all[k] == &baseline ? slow : base_of(*all[k], m, quiet);
    if (!fast) return fast.error();
    out[k].ns = values[n + k] = fast->result.ns;
    if (out[k].ns > 0) out[k].value = values[k] = slow->result.ns / out[k].ns;
    bases.push_back(*std::move(fast));
  }
  const auto time = [&](const Base& base, const Schedule& s, const MachineDescription& there) -> std::optional<double> {
    if (!base.depends(m, there)) return base.result.ns;
    const auto r = simulate(s, there, quiet);
    return r ? std::optional(r->ns) : std::nullopt;
  };
  const auto there = [&](const MachineDescription& machine) {
    auto at = values;
    const auto a = time(*slow, baseline, machine);
    for (std::size_t k = 0; k < n; ++k) {
      const auto b = all[k] == &baseline ? a : time(bases[k], *all[k], machine);
      if (b) at[n + k] = *b;
      if (a && b && *b > 0) at[k] = *a / *b;
    }
    return at;
  };
  std::vector<double> variance(2 * n);
  add_alone(m, values, there, variance);
  add_together(m, there, variance);
  for (std::size_t k = 0; k < n; ++k) {
    const auto with_model = [&](double of_parameters, double value, double latent) {
      return std::hypot(std::sqrt(of_parameters), m.model_error * latent * value);
    };
    const auto& base = bases[k].result;
    out[k].uncertainty = with_model(variance[k], out[k].value, detail::latent_part(slow->result, base));
    out[k].uncertainty_ns = with_model(variance[n + k], out[k].ns, detail::latent_part(base));
  }
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
