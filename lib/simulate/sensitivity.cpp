// SPDX-License-Identifier: MIT
// Finds which parameters of a machine the time of a schedule depends on, and how much.
#include "latent.hpp"
#include "moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 {

Result<Sensitivity, std::vector<Diagnostic>> sensitivity(const Schedule& s, const MachineDescription& m,
                                                         const SimulateOptions& o) {
  auto found = detail::Base::of(s, m, o);
  if (!found) return found.error();
  const auto& base = found->result();
  // With any other cost, the simulation takes about as many steps.
  constexpr std::uint64_t kMost = 32;
  auto left = o.max_steps * kMost;
  bool enough = true;
  detail::Variable machine{m};
  struct Times {
    double ns{};
    std::array<double, kPhases> phase_ns{};
  };
  std::vector<Diagnostic> failed;  // of the first machine on which the simulation ends with an error
  const auto at = [&](const MachineDescription& there) -> Times {
    const Times same{base.ns, base.phase_ns};
    if (!failed.empty() || !found->depends(there)) return same;
    enough = enough && left >= base.steps;
    if (!enough) return same;
    left -= base.steps;
    const auto r = found->on(there);
    if (!r) failed = r.error();
    return r ? Times{r->ns, r->phase_ns} : same;
  };
  std::vector<double> moved;
  const auto all = detail::nearby(m);
  Sensitivity out{.ns = base.ns};
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    const auto with = [&](double value) {
      const auto before = failed.empty();
      const auto t = at(machine.with(i, value));
      if (before && !failed.empty())
        failed.insert(failed.begin(), {.where = "sensitivity",
                                       .message = fmt::format("with {} = {:g}, which is within its uncertainty, the "
                                                              "schedule cannot be simulated",
                                                              name(static_cast<Cost>(i)), value),
                                       .hint = "give the parameter a smaller uncertainty; or use --no-sensitivity"});
      return t;
    };
    // A step of a tenth is large enough that rounding to packets and turns
    // does not hide the effect. It goes down if the value cannot go up.
    const auto step = unit(static_cast<Cost>(i)) == "fraction" && p.value * 1.1 > 1 ? 0.9 : 1.1;
    const auto stepped = with(p.value * step);
    const auto low = with(p.value - p.uncertainty).ns, high = with(p.value + p.uncertainty).ns;
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base.ns > 0 ? (stepped.ns / base.ns - 1) / (step - 1) : 0,
                         .low_ns = std::min({low, high, base.ns}),
                         .high_ns = std::max({low, high, base.ns}),
                         .together = detail::in_covariance(m, i),
                         .at_bound = p.at_bound};
    for (std::size_t k = 0; k < kPhases; ++k)
      row.phase_ns[k] = (stepped.phase_ns[k] - base.phase_ns[k]) / (step - 1) / 100;
    const auto off = std::max(base.ns - row.low_ns, row.high_ns - base.ns);
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
    for (const auto& n : all)
      if (n.parameter == i) moved.push_back(row.together ? with(n.value).ns : n.value < p.value ? low : high);
  }
  out.alternatives = detail::alternatives_of(m, base.ns, [&](const auto& there) { return at(there).ns; });
  if (!failed.empty()) return failed;
  if (!enough)
    return std::vector<Diagnostic>{
        {.where = "sensitivity",
         .message = fmt::format("the sensitivity needs more than {} simulations of {} steps each, but {} steps are "
                                "allowed together",
                                (o.max_steps * kMost - left) / base.steps, base.steps, o.max_steps * kMost),
         .hint = "sdma simulate --no-sensitivity omits it; or repeat less often"}};
  out.uncertainty_ns = std::hypot(std::sqrt(detail::variance(m, all, base.ns, moved)),
                                  m.error_of(base.pattern) * detail::latent_part(base) * base.ns);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

}}  // namespace sdma::v0_3
