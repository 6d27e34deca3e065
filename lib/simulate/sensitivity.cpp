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
  // Of each parameter a step, and both ends of its uncertainty; then what the interval and the alternatives need.
  // A step of a tenth is large enough that rounding to packets and turns does not hide the effect. It goes down if the
  // value cannot go up.
  const auto step = [&](std::size_t i) {
    return unit(static_cast<Cost>(i)) == "fraction" && m.parameters[i].value * 1.1 > 1 ? 0.9 : 1.1;
  };
  constexpr std::size_t kOfEach = 3;
  std::vector<detail::Nearby> asked;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    for (const auto value : {p.value * step(i), p.value - p.uncertainty, p.value + p.uncertainty})
      asked.push_back(detail::possible(m, {i, value}));
  }
  const auto all = detail::nearby(m), others = detail::alternatives(m);
  asked.insert(asked.end(), all.begin(), all.end());
  asked.insert(asked.end(), others.begin(), others.end());
  const auto times = found->near(asked);
  if (found->stopped()) return found->failure()->why;
  if (const auto& failed = found->failure()) {
    auto out = failed->why;
    out.insert(out.begin(), {.where = "sensitivity",
                             .message = fmt::format(
                                 "with {} = {:g}, which is within its uncertainty, the schedule cannot be simulated",
                                 name(static_cast<Cost>(failed->with.parameter)), failed->with.value),
                             .hint = "give the parameter a smaller uncertainty; or use --no-sensitivity"});
    return out;
  }
  Sensitivity out{.ns = base.ns};
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    const auto& stepped = times[kOfEach * i];
    const auto low = times[kOfEach * i + 1].ns, high = times[kOfEach * i + 2].ns;
    Sensitivity::Row row{.cost = static_cast<Cost>(i),
                         .per_percent = base.ns > 0 ? (stepped.ns / base.ns - 1) / (step(i) - 1) : 0,
                         .low_ns = std::min({low, high, base.ns}),
                         .high_ns = std::max({low, high, base.ns}),
                         .together = detail::in_covariance(m, i),
                         .at_bound = p.at_bound};
    for (std::size_t k = 0; k < kPhases; ++k)
      row.phase_ns[k] = (stepped.phase_ns[k] - base.phase_ns[k]) / (step(i) - 1) / 100;
    const auto off = std::max(base.ns - row.low_ns, row.high_ns - base.ns);
    if (std::abs(row.per_percent) > 1e-4 || off > 0) out.rows.push_back(row);
  }
  std::vector<double> moved;
  for (std::size_t k = 0; k < all.size(); ++k) moved.push_back(times[kOfEach * kCosts + k].ns);
  out.alternatives =
      detail::alternatives_of(m, base.ns, others, std::span(times).subspan(kOfEach * kCosts + all.size()));
  out.uncertainty_ns = std::hypot(std::sqrt(detail::variance(m, all, base.ns, moved)),
                                  m.error_of(base.pattern) * detail::latent_part(base) * base.ns);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.per_percent) > std::abs(b.per_percent); });
  return out;
}

}}  // namespace sdma::v0_3
