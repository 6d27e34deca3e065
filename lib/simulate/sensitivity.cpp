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

}  // namespace

Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule& s, const MachineDescription& m,
                                                         const SimulateOptions& o) {
  auto quiet = o;
  quiet.recorder = nullptr;
  quiet.contents = false;
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
    const auto time = [&](double value) {
      const auto r = simulate(s, changed(m, i, value), quiet);
      return r ? r->ns : base->ns;
    };
    // A step of a tenth is large enough that rounding to packets and turns does not hide the effect. It goes down if the
    // value cannot go up.
    const auto step = part && p.value * 1.1 > 1 ? 0.9 : 1.1;
    const auto stepped = time(p.value * step);
    const auto [lower, upper] = ends(p);
    const auto low = time(lower), high = time(upper);
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base->ns > 0 ? (stepped / base->ns - 1) / (step - 1) : 0,
                         .low_ns = std::min({low, high, base->ns}),
                         .high_ns = std::max({low, high, base->ns})};
    const auto off = std::max(base->ns - row.low_ns, row.high_ns - base->ns);
    variance += off * off;
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
  }
  out.uncertainty_ns = std::hypot(std::sqrt(variance), m.model_error * base->ns);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

Result<SpeedUp, std::vector<Diagnostic>> speed_up(const Schedule& baseline, const Schedule& s,
                                                  const MachineDescription& m, const SimulateOptions& o) {
  auto quiet = o;
  quiet.recorder = nullptr;
  quiet.contents = false;
  const auto slow = simulate(baseline, m, quiet);
  if (!slow) return slow.error();
  const auto fast = simulate(s, m, quiet);
  if (!fast) return fast.error();
  if (!(fast->ns > 0)) return SpeedUp{};
  SpeedUp out{.value = slow->ns / fast->ns};
  double variance = 0;
  for (std::size_t i = 0; i < kCosts; ++i) {
    if (m.parameters[i].uncertainty == 0) continue;
    const auto [lower, upper] = ends(m.parameters[i]);
    double off = 0;
    for (const auto value : {lower, upper}) {
      const auto there = changed(m, i, value);
      const auto a = simulate(baseline, there, quiet), b = simulate(s, there, quiet);
      if (a && b && b->ns > 0) off = std::max(off, std::abs(a->ns / b->ns - out.value));
    }
    variance += off * off;
  }
  out.uncertainty = std::hypot(std::sqrt(variance), m.model_error * out.value);
  return out;
}

}  // namespace sdma::inline v0
