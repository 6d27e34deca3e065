// SPDX-License-Identifier: MIT
#include "moved.hpp"

#include "latent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace detail {

Nearby possible(const MachineDescription& m, const Nearby& n) {
  const auto unit = sdma::unit(static_cast<Cost>(n.parameter));
  const auto least = unit == "ns" || unit == "copies" ? 0.0 : m.parameters[n.parameter].value / 100;
  return {n.parameter, std::max(least, unit == "fraction" ? std::min(n.value, 1.0) : n.value)};
}

bool Base::depends(const Nearby& n) const {
  const auto here = machine_->parameters[n.parameter].value;
  return here != n.value && std::min(here, n.value) < needs_[n.parameter];
}

/// Can the value change what happens, and not only when?
bool Base::steers(const Nearby& n) const {
  const auto use = uses_[n.parameter];
  const auto here = machine_->parameters[n.parameter].value;
  return use == CostUse::decides || (use == CostUse::switches && (here == 0) != (n.value == 0));
}

std::vector<Base::Times> Base::near(std::span<const Nearby> all) {
  std::vector<Times> out(all.size(), Times{result_.ns, result_.phase_ns, 0});
  std::vector<std::size_t> together, apart, first(all.size());  // first: with the same value
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto alike = [&](const Nearby& n) { return n.parameter == all[k].parameter && n.value == all[k].value; };
    first[k] = static_cast<std::size_t>(std::find_if(all.begin(), all.end(), alike) - all.begin());
    if (first[k] == k && depends(all[k])) (steers(all[k]) ? apart : together).push_back(k);
  }
  for (const auto k : apart) alone(all[k], out[k]);
  // Only one of both worlds at a time: each needs much memory.
  if (!together.empty()) world_.reset();
  constexpr auto kOthers = kLanes - 1;  // the first lane is the machine itself
  const std::span<const std::size_t> left = together;
  std::vector<std::size_t> astray;
  for (std::size_t from = 0; from < left.size(); from += kOthers) {
    const auto some = at_once(all, left.subspan(from, std::min(kOthers, left.size() - from)), out);
    astray.insert(astray.end(), some.begin(), some.end());
  }
  lanes_.reset();
  for (const auto k : astray) alone(all[k], out[k]);
  // What was late has made the others look small.
  for (bool more = true; std::exchange(more, false);)
    for (const auto k : weighty(all, together, out))
      if (std::find(astray.begin(), astray.end(), k) == astray.end()) {
        alone(all[k], out[k]);
        astray.push_back(k);
        more = true;
      }
  for (std::size_t k = 0; k < all.size(); ++k) out[k] = out[first[k]];
  return out;
}

/// Those of parameters that make up more than a tenth of the interval, a hundredth of its variance. Each has a run of
/// its own, because in a run of many what happens is the same as on the machine itself, and may be late for it.
std::vector<std::size_t> Base::weighty(std::span<const Nearby> all, std::span<const std::size_t> some,
                                       std::span<const Times> times) const {
  constexpr double kShare = 1.0 / 100;
  std::array<double, kCosts> square{};
  for (const auto k : some) {
    const auto i = all[k].parameter;
    const auto& p = machine_->parameters[i];
    const auto off = (times[k].ns - result_.ns) * p.uncertainty / std::abs(all[k].value - p.value);
    square[i] = std::max(square[i], off * off);
  }
  const auto least = kShare * std::accumulate(square.begin(), square.end(), 0.0);
  std::vector<std::size_t> out;
  std::copy_if(some.begin(), some.end(), std::back_inserter(out),
               [&](auto k) { return square[all[k].parameter] > least; });
  return out;
}

template <class Time> void Base::fails(const World<Time>& w, const Nearby& n, std::vector<Diagnostic> why) {
  stopped_ = stopped_ || w.stopped();
  if (!failure_) failure_ = Failure{n, std::move(why)};
}

void Base::alone(const Nearby& n, Times& out) {
  if (stopped_) return;
  auto costs = World<double>::costs_of(*machine_);
  costs[n.parameter] = n.value;
  if (!world_) {
    world_ = std::make_unique<World<double>>(*schedule_, *machine_, options_);
    world_->times_alone();
    (void)world_->can_begin();  // it could before
  }
  if (auto r = world_->again(costs)) out = world_->times();
  else fails(*world_, n, std::move(r.error()));
}

/// Some values in one run. Returns those that need a run of their own, because with them flows would begin and end, or
/// packets be served, in another order, by more than a thousandth of the time.
std::vector<std::size_t> Base::at_once(std::span<const Nearby> all, std::span<const std::size_t> some,
                                       std::vector<Times>& out) {
  constexpr double kAstray = 1e-3;
  std::vector<std::size_t> astray;
  if (stopped_) return astray;
  if (!lanes_) {
    lanes_ = std::make_unique<World<Lanes<kLanes>>>(*schedule_, *machine_, options_);
    lanes_->times_alone();
    if (!lanes_->can_begin()) lanes_.reset();
  }
  auto costs = World<Lanes<kLanes>>::costs_of(*machine_);
  for (std::size_t i = 0; i < some.size(); ++i) costs[all[some[i]].parameter].v[i + 1] = all[some[i]].value;
  // What happens is the same as on the machine itself, so that it fails only if that does.
  if (!lanes_) return {some.begin(), some.end()};
  if (auto r = lanes_->again(costs); !r) {
    if (lanes_->stopped()) fails(*lanes_, all[some.front()], std::move(r.error()));
    return {some.begin(), some.end()};
  }
  const auto& t = lanes_->times();
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto& o = out[some[i]];
    o.ns = t.ns.v[i + 1];
    for (std::size_t p = 0; p < kPhases; ++p) o.phase_ns[p] = t.phase_ns[p].v[i + 1];
    if (!(t.strayed.v[i + 1] <= kAstray * result_.ns)) astray.push_back(some[i]);
  }
  return astray;
}

Result<Base, std::vector<Diagnostic>> Base::of(const Schedule& s, const MachineDescription& m,
                                               const SimulateOptions& o) {
  auto quiet = o;
  quiet.recorder = nullptr;
  quiet.contents = false;
  Base out;
  out.world_ = std::make_unique<World<double>>(s, m, quiet);
  out.schedule_ = &s;
  out.machine_ = &m;
  out.options_ = quiet;
  out.world_->times_alone();
  auto r = out.world_->run();
  if (!r) return std::move(r.error());
  out.result_ = *std::move(r);
  out.needs_ = out.world_->needs();
  out.uses_ = out.world_->uses();
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
      for (const auto value : {p.value - p.uncertainty, p.value + p.uncertainty})
        out.push_back(possible(m, {i, value}));
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

std::vector<Nearby> alternatives(const MachineDescription& m) {
  std::vector<Nearby> out;
  for (std::size_t i = 0; i < kCosts; ++i)
    if (m.parameters[i].alternative) out.push_back({i, *m.parameters[i].alternative});
  return out;
}

std::vector<Sensitivity::Alternative> alternatives_of(const MachineDescription& m, double ns,
                                                      std::span<const Nearby> all, std::span<const Base::Times> times) {
  constexpr double kLeastChange = 0.01;
  std::vector<Sensitivity::Alternative> out;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (std::abs(times[k].ns - ns) > kLeastChange * ns)
      out.push_back(
          {static_cast<Cost>(all[k].parameter), all[k].value, times[k].ns, m.parameters[all[k].parameter].when});
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
  const auto all = nearby(m), others = detail::alternatives(m);
  auto asked = all;
  asked.insert(asked.end(), others.begin(), others.end());
  const auto times = base->near(asked);
  if (base->stopped()) return base->failure()->why;
  if (const auto& failed = base->failure()) out.failed = static_cast<Cost>(failed->with.parameter);
  for (std::size_t k = 0; k < all.size(); ++k) {
    out.moved.push_back(times[k].ns);
    if (const auto cost = static_cast<Cost>(all[k].parameter);
        m.parameter(cost).at_bound && out.moved.back() != ns && (out.at_bound.empty() || out.at_bound.back() != cost))
      out.at_bound.push_back(cost);
  }
  out.uncertainty_ns = std::hypot(std::sqrt(variance(m, all, ns, out.moved)), out.model_error * out.latent * ns);
  out.alternatives = detail::alternatives_of(m, ns, others, std::span(times).subspan(all.size()));
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
