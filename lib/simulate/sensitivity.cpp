#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma::inline v0 {

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
      auto changed = m;
      changed.parameters[i].value = part ? std::min(value, 1.0) : value;
      const auto r = simulate(s, changed, quiet);
      return r ? r->ns : base->ns;
    };
    // A step of a tenth is large enough that rounding to packets and turns does not hide the effect. It goes down if the
    // value cannot go up.
    const auto step = part && p.value * 1.1 > 1 ? 0.9 : 1.1;
    const auto stepped = time(p.value * step);
    const auto least = unit(static_cast<Cost>(i)) == "ns" ? 0.0 : p.value / 100;
    const auto low = time(std::max(least, p.value - p.uncertainty)), high = time(p.value + p.uncertainty);
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base->ns > 0 ? (stepped / base->ns - 1) / (step - 1) : 0,
                         .low_ns = std::min({low, high, base->ns}),
                         .high_ns = std::max({low, high, base->ns})};
    const auto off = std::max(base->ns - row.low_ns, row.high_ns - base->ns);
    variance += off * off;
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
  }
  out.uncertainty_ns = std::sqrt(variance);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

}  // namespace sdma::inline v0
