// SPDX-License-Identifier: MIT
#include "sdma/simulate/fit.hpp"
#include "sdma/simulate/measurements.hpp"

#include "fit_search.hpp"
#include "fit_uncertainty.hpp"
#include "latent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Certainty;
using detail::Objective;

constexpr int kRounds = 4;        // of both searches
constexpr double kEnough = 1e-4;  // of the cost: a round that gains less is the last
constexpr double kMostPower = 16, kMostCommon = 1000;

/// What is wrong with the options for this machine.
std::vector<Diagnostic> problems(const FitOptions& o, const MachineDescription& initial) {
  std::vector<Diagnostic> out;
  if (o.free.empty()) out.push_back({.where = "fit", .message = "no parameter is free", .hint = "name at least one"});
  if (!(o.power >= 1 && o.power <= kMostPower))
    out.push_back({.where = "fit", .message = "the power is not from 1 to 16", .hint = "2 gives least squares"});
  if (!(o.common >= 0 && o.common <= kMostCommon))
    out.push_back({.where = "fit",
                   .message = "the spread of shared errors is not from 0 to 1000",
                   .hint = "1: as large as that of an observation's own error"});
  if (!(o.unlike >= 0 && o.unlike <= 1))
    out.push_back({.where = "fit",
                   .message = "the error of unlike schedules is not from 0 to 1",
                   .hint = "0.1: they may be off by 10 % more"});
  for (std::size_t i = 0; i < o.free.size(); ++i) {
    const auto& p = o.free[i];
    const auto complain = [&](std::string message, std::string hint) {
      out.push_back({.where = std::string(name(p.cost)), .message = std::move(message), .hint = std::move(hint)});
    };
    for (std::size_t k = 0; k < i; ++k)
      if (o.free[k].cost == p.cost) complain("this parameter is free twice", "name it once");
    const auto b = detail::bounded(p, initial[p.cost]);
    if (!(p.low >= 0) || !(b.low < b.high) || p.high < p.low)
      complain("its bounds exclude every value", "the lower bound is 0 or more, and less than the upper bound");
    else if (unit(p.cost) == "fraction" && b.high > 1)
      complain("its upper bound is more than 1", "a fraction is at most 1");
  }
  return out;
}

/// `v` with `few` significant digits; with `many` if the first is a 1, so that a step is never more than 0.5 %.
double digits(double v, int few, int many) {
  if (!(v > 0)) return v;
  const auto first = std::pow(10, std::floor(std::log10(v)));
  const auto count = v / first < 2 ? many : few;
  // Read back from text: multiplying by a power of ten would leave a value such as 0.6940000000000001.
  return std::strtod(fmt::format("{:.{}e}", v, count - 1).c_str(), nullptr);
}

std::string list(const std::vector<Cost>& all) {
  std::string out;
  for (const auto c : all) out += (out.empty() ? "" : ", ") + std::string(name(c));
  return out;
}

/// The source of a parameter that is not `undetermined`.
std::string source(const FreeParameter& p, std::size_t observations, const Certainty& all,
                   const Certainty::Parameter& own) {
  auto out = "fitted: " +
             (p.note.empty() ? fmt::format("{} measurement{}", observations, observations == 1 ? "" : "s") : p.note);
  if (own.state == Fit::State::range)
    return out + (unit(p.cost) == "bytes" ? fmt::format("; {:.0f} to {:.0f} fit equally well", own.from, own.to)
                                          : fmt::format("; {:.4g} to {:.4g} fit equally well", own.from, own.to));
  if (own.state == Fit::State::at_bound) out += own.lower ? "; at its lower bound" : "; at its upper bound";
  if (!own.alike.empty()) out += "; cannot be distinguished from " + list(own.alike);
  if (!own.together.empty()) out += "; known only together with " + list(own.together);
  if (!all.known) out += "; its uncertainty is not determined";
  return out;
}

/// Adds parameters whose errors are independent of those that are there.
void append(Covariance& to, const Covariance& more) {
  const auto old = std::exchange(to.values, {});
  const auto n = to.of.size(), k = more.of.size();
  to.of.insert(to.of.end(), more.of.begin(), more.of.end());
  to.values.resize((n + k) * (n + k));
  for (std::size_t a = 0; a < n + k; ++a)
    for (std::size_t b = 0; b < n + k; ++b)
      if ((a < n) == (b < n)) to.values[a * (n + k) + b] = a < n ? old[a * n + b] : more.values[(a - n) * k + b - n];
}

void describe(Fit& out, const Certainty& c, const MachineDescription& initial, const FitOptions& o,
              std::size_t observations) {
  for (std::size_t i = 0; i < o.free.size(); ++i) {
    const auto& own = c.parameters[i];
    auto& p = out.machine.parameter(o.free[i].cost);
    out.states.push_back(own.state);
    if (own.state == Fit::State::undetermined) {
      p = initial.parameter(o.free[i].cost);
      p.source = "not determined by these measurements; " + p.source;
      continue;
    }
    if (c.known || own.state == Fit::State::range) p.uncertainty = own.deviation;
    out.machine.covariance.drop(o.free[i].cost);
    p.source = source(o.free[i], observations, c, own);
    p.at_bound = own.state == Fit::State::at_bound;
  }
  // What an earlier fit knows of other parameters stays.
  auto& kept = out.machine.covariance;
  for (const auto cost : c.covariance.of) kept.drop(cost);
  if (c.known) append(kept, c.covariance);
  out.correlation = c.correlation;
  out.alike = c.alike;
}

/// How much of an observation's value no link decides: what its errors
/// are relative to. Nothing if so little that it says nothing of them.
std::optional<double> latent_part(const Observation& o, const MachineDescription& m) {
  constexpr double kLeast = 0.25;
  const auto own = simulate(*o.schedule, m);
  if (!own) return {};
  auto part = detail::latent_part(*own);
  if (o.kind == Observation::Kind::ratio) {
    const auto base = simulate(*o.baseline, m);
    if (!base) return {};
    part = detail::latent_part(*base, *own);
  }
  return part < kLeast ? std::nullopt : std::optional(part);
}

/// What 68 % of these do not exceed. Requires one.
double most_of(std::vector<double> sizes) {
  constexpr double kOneDeviation = 0.6827;
  std::sort(sizes.begin(), sizes.end());
  return sizes[static_cast<std::size_t>(kOneDeviation * static_cast<double>(sizes.size()))];
}
/// What 68 % of the errors of times and ratios do not exceed, relative to their latent parts, if there are more of them
/// than parameters. That parameters bend towards what they are fitted to is not in it: predictions have the parameters'
/// uncertainty beside it.
double left_over(std::span<const Observation> all, const std::vector<double>& errors, std::size_t parameters,
                 const MachineDescription& m) {
  std::vector<double> sizes;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].weight > 0 && all[k].kind != Observation::Kind::share)
      if (const auto part = latent_part(all[k], m)) sizes.push_back(std::abs(errors[k]) / *part);
  return sizes.size() <= parameters ? 0 : most_of(std::move(sizes));
}

/// Both searches in turn, until they gain no more or a limit is reached.
bool minimise(Objective& f, Objective::Point& best) {
  for (int i = 0; i < kRounds; ++i) {
    const auto before = best.cost;
    if (!detail::descend(f, best) || !detail::search(f, best)) return false;
    if (best.cost >= before * (1 - kEnough)) break;
  }
  return true;
}

}  // namespace

Result<Fit, std::vector<Diagnostic>> fit(std::span<const Observation> all, const MachineDescription& initial,
                                         const FitOptions& o) {
  auto bad = problems(o, initial);
  auto wrong = detail::problems(all);
  bad.insert(bad.end(), std::move_iterator(wrong.begin()), std::move_iterator(wrong.end()));
  const auto counted =
      static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](auto& x) { return x.weight > 0; }));
  if (counted == 0)
    bad.push_back({.where = "fit", .message = "there are no measurements", .hint = "give at least one"});
  if (!bad.empty()) return bad;

  Objective f{all, initial, o};
  auto start = f.initial();
  if (!start) return std::move(start.error());
  auto best = std::move(*start);
  const auto finished = minimise(f, best);
  Fit out{.machine = f.machine(best.x)};
  out.machine.judged.clear();  // of the machine from which it started
  const auto certainty = finished ? detail::uncertainty(f, best) : std::nullopt;
  if (certainty) {
    describe(out, *certainty, initial, o, counted);
  } else {
    out.states.assign(o.free.size(), Fit::State::fitted);
    out.correlation.assign(o.free.size() * o.free.size(), 0);
    for (const auto& p : o.free)
      out.machine.parameter(p.cost).source = fmt::format("fitted: not to the end, because {}", name(f.end()));
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    out.predictions.push_back({best.predictions[k], best.errors[k], best.shared[k]});
  if (certainty)
    out.machine.model_error = std::hypot(left_over(all, best.errors, o.free.size(), out.machine), o.unlike);
  out.mean_error = best.mean;
  out.worst_error = best.worst;
  out.worst = best.worst_at;
  out.simulations = f.simulations();
  out.end = f.end();
  return out;
}

Result<std::vector<Fit::Prediction>, std::vector<Diagnostic>> predict(std::span<const Observation> all,
                                                                      const MachineDescription& m, double common) {
  if (auto bad = detail::problems(all); !bad.empty()) return bad;
  const FitOptions nothing{.common = common};
  auto p = Objective{all, m, nothing}.initial();
  if (!p) return std::move(p.error());
  std::vector<Fit::Prediction> out;
  for (std::size_t k = 0; k < all.size(); ++k) out.push_back({p->predictions[k], p->errors[k], p->shared[k]});
  return out;
}

Result<std::vector<Judged>, std::vector<Diagnostic>> judge(std::span<const Measurements> tables,
                                                           const MachineDescription& m) {
  constexpr std::size_t kLeast = 5;
  std::array<Judged, kPatterns> seen{};
  std::array<std::array<std::vector<double>, 2>, kPatterns> sizes;  // of fitted cells, and of predicted ones
  for (const auto& t : tables) {
    const auto all = predict(t.observations, m);
    if (!all) return all.error();
    for (std::size_t k = 0; k < all->size(); ++k) {
      const auto& o = t.observations[k];
      if (o.kind == Observation::Kind::share) continue;
      const auto s = simulate(*o.schedule, m);
      if (!s) return s.error();
      const auto at = static_cast<std::size_t>(s->pattern);
      const auto size = std::abs((*all)[k].error);
      const bool fitted = m.fitted_to(t.rows[k].source);
      auto& cells = fitted ? seen[at].fitted : seen[at].predicted;
      ++cells.cells;
      cells.mean += size;
      cells.worst = std::max(cells.worst, size);
      if (const auto part = latent_part(o, m)) sizes[at][fitted ? 0 : 1].push_back(size / *part);
    }
  }
  std::vector<Judged> out;
  for (std::size_t i = 0; i < kPatterns; ++i) {
    auto& j = seen[i];
    j.pattern = static_cast<CopyPattern>(i);
    if (sizes[i][0].size() + sizes[i][1].size() >= kLeast)
      for (auto& some : sizes[i])
        if (!some.empty()) j.model_error = std::max(j.model_error, most_of(std::move(some)));
    for (auto* c : {&j.fitted, &j.predicted})
      if (c->cells > 0) c->mean /= c->cells;
    if (j.fitted.cells + j.predicted.cells > 0) out.push_back(j);
  }
  return out;
}

MachineDescription rounded(const Fit& f, const FitOptions& o) {
  auto m = f.machine;
  m.model_error = digits(m.model_error, 2, 2);
  for (std::size_t i = 0; i < o.free.size(); ++i) {
    auto& p = m.parameter(o.free[i].cost);
    if (f.states[i] == Fit::State::undetermined) continue;
    const auto size = unit(o.free[i].cost) == "bytes";
    p.uncertainty = size ? std::round(p.uncertainty) : digits(p.uncertainty, 2, 2);
    if (size) p.value = std::round(p.value);
    else if (f.states[i] != Fit::State::range) p.value = digits(p.value, 3, 4);
  }
  return m;
}

std::string_view name(Fit::State s) noexcept {
  constexpr std::string_view kNames[] = {"fitted", "a range", "at a bound", "undetermined"};
  return kNames[static_cast<std::size_t>(s)];
}

std::string_view name(Fit::End e) noexcept {
  constexpr std::string_view kNames[] = {"the search converged", "the limit of simulations was reached",
                                         "the time was over", "the caller stopped it"};
  return kNames[static_cast<std::size_t>(e)];
}

}}  // namespace sdma::v0_3
