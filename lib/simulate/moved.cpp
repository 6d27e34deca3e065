// SPDX-License-Identifier: MIT
#include "moved.hpp"

#include "latent.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace detail {

const MachineDescription& Variable::with(std::size_t i, double value) {
  now_.parameters[last_].value = m_.parameters[last_].value;
  const auto unit = sdma::unit(static_cast<Cost>(i));
  const auto least = unit == "ns" || unit == "copies" ? 0.0 : m_.parameters[i].value / 100;
  now_.parameters[last_ = i].value = std::max(least, unit == "fraction" ? std::min(value, 1.0) : value);
  return now_;
}

bool Base::depends(const MachineDescription& to) const {
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto a = machine_->parameters[i].value, b = to.parameters[i].value;
    if (a != b && std::min(a, b) < needs_[i]) return true;
  }
  return false;
}

Result<Base, std::vector<Diagnostic>> Base::of(const Schedule& s, const MachineDescription& m,
                                               const SimulateOptions& o) {
  auto quiet = o;
  quiet.recorder = nullptr;
  quiet.contents = false;
  Base out;
  out.world_ = std::make_unique<World>(s, m, quiet);
  out.machine_ = &m;
  out.world_->times_alone();
  auto r = out.world_->run();
  if (!r) return std::move(r.error());
  out.result_ = *std::move(r);
  out.needs_ = out.world_->needs();
  return out;
}

bool in_covariance(const MachineDescription& m, std::size_t i) {
  const auto& of = m.covariance.of;
  return std::find(of.begin(), of.end(), static_cast<Cost>(i)) != of.end();
}

std::vector<Nearby> nearby(const MachineDescription& m) {
  constexpr double kStep = 0.01;
  std::vector<Nearby> out;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    if (p.uncertainty == 0) continue;  // declared to be exact
    if (!in_covariance(m, i)) {
      for (const auto value : {p.value - p.uncertainty, p.value + p.uncertainty}) out.push_back({i, value});
      continue;
    }
    const auto by = p.value > 0 ? kStep * p.value : p.uncertainty;
    const auto unit = sdma::unit(static_cast<Cost>(i));
    if (unit != "ns") out.push_back({i, p.value - by});
    out.push_back({i, unit == "fraction" ? std::min(1.0, p.value + by) : p.value + by});
  }
  return out;
}

double variance(const MachineDescription& m, std::span<const Nearby> all, double base, std::span<const double> moved) {
  std::array<double, kCosts> off{}, slope{};
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto i = all[k].parameter;
    off[i] = std::max(off[i], std::abs(moved[k] - base));
    const bool both = k > 0 && all[k - 1].parameter == i;
    const auto from = both ? all[k - 1].value : m.parameters[i].value;
    if (all[k].value != from) slope[i] = (moved[k] - (both ? moved[k - 1] : base)) / (all[k].value - from);
  }
  double alone = 0, together = 0;
  for (std::size_t i = 0; i < kCosts; ++i)
    if (!in_covariance(m, i)) alone += off[i] * off[i];
  // Errors that make up for each other count as far as they do not.
  const auto& c = m.covariance;
  for (std::size_t a = 0; a < c.of.size(); ++a)
    for (std::size_t b = 0; b < c.of.size(); ++b)
      together += slope[static_cast<std::size_t>(c.of[a])] * slope[static_cast<std::size_t>(c.of[b])] *
                  c.values[a * c.of.size() + b];
  return alone + std::max(0.0, together);
}

std::vector<Sensitivity::Alternative> alternatives_of(const MachineDescription& m, double ns,
                                                      const std::function<double(const MachineDescription&)>& time) {
  constexpr double kLeastChange = 0.01;
  std::vector<Sensitivity::Alternative> out;
  for (std::size_t i = 0; i < kCosts; ++i) {
    const auto& p = m.parameters[i];
    if (!p.alternative) continue;
    auto other = m;
    other.parameters[i].value = *p.alternative;
    const auto there = time(other);
    if (std::abs(there - ns) > kLeastChange * ns) out.push_back({static_cast<Cost>(i), *p.alternative, there, p.when});
  }
  return out;
}

}  // namespace detail

using detail::nearby, detail::variance;

Result<Spread, std::vector<Diagnostic>> spread(const Schedule& s, const MachineDescription& m,
                                               const SimulateOptions& o) {
  auto base = detail::Base::of(s, m, o);
  if (!base) return base.error();
  const auto ns = base->result().ns;
  Spread out{
      .ns = ns, .latent = detail::latent_part(base->result()), .model_error = m.error_of(base->result().pattern)};
  // A machine on which the schedule does not end, as with too many steps, says nothing.
  const auto time = [&](const MachineDescription& there) {
    if (!base->depends(there)) return ns;
    const auto r = base->on(there);
    return r ? r->ns : ns;
  };
  detail::Variable machine{m};
  const auto all = nearby(m);
  for (const auto& n : all) {
    out.moved.push_back(time(machine.with(n.parameter, n.value)));
    if (const auto cost = static_cast<Cost>(n.parameter);
        m.parameter(cost).at_bound && out.moved.back() != ns && (out.at_bound.empty() || out.at_bound.back() != cost))
      out.at_bound.push_back(cost);
  }
  out.uncertainty_ns = std::hypot(std::sqrt(variance(m, all, ns, out.moved)), out.model_error * out.latent * ns);
  out.alternatives = detail::alternatives_of(m, ns, time);
  return out;
}

SpeedUp speed_up(const Spread& baseline, const Spread& s, const MachineDescription& m) {
  SpeedUp out{.ns = s.ns, .uncertainty_ns = s.uncertainty_ns};
  if (s.ns <= 0) return out;
  out.value = baseline.ns / s.ns;
  auto ratios = baseline.moved;
  for (std::size_t k = 0; k < ratios.size(); ++k) ratios[k] = s.moved[k] > 0 ? ratios[k] / s.moved[k] : out.value;
  const auto latent = std::hypot(baseline.latent * baseline.model_error, s.latent * s.model_error) / std::sqrt(2.0);
  out.uncertainty = std::hypot(std::sqrt(variance(m, nearby(m), out.value, ratios)), latent * out.value);
  return out;
}

Result<std::vector<SpeedUp>, std::vector<Diagnostic>> speed_ups(const Schedule& baseline,
                                                                std::span<const Schedule* const> all,
                                                                const MachineDescription& m, const SimulateOptions& o) {
  const auto slow = spread(baseline, m, o);
  if (!slow) return slow.error();
  std::vector<SpeedUp> out;
  for (const auto* s : all) {
    const auto fast = s == &baseline ? slow : spread(*s, m, o);
    if (!fast) return fast.error();
    out.push_back(speed_up(*slow, *fast, m));
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

}}  // namespace sdma::v0_3
