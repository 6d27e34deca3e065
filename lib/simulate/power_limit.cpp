// SPDX-License-Identifier: MIT
// The clock of compute dies under a limit of power: the one at which a round takes what the limit leaves for kernels.
#include "sdma/simulate/power_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::size_t at(Power p) noexcept { return static_cast<std::size_t>(p); }
/// The slowest clock, relative to that under load: no source has the lowest level.
constexpr double kSlowest = 0.1;

class Limiting {
 public:
  Limiting(const Schedule& s, const MachineDescription& m, const PowerLimit& limit, const SimulateOptions& o)
      : s_(s), m_(m), limit_(limit), o_(o) {}

  Result<LimitedRun, std::vector<Diagnostic>> run() {
    std::string lacking;
    for (const auto p : {Power::gpu_idle, Power::kernel_active, Power::gpu_limit, Power::xcd_most, Power::xcd_loaded,
                         Power::xcd_exponent})
      if (!m_.energy[at(p)]) lacking += (lacking.empty() ? "" : ", ") + std::string(name(p));
    if (!lacking.empty())
      return refused("the machine's file does not have " + lacking, "a limit needs them (docs/simulate.md)");
    const auto idle = value(Power::gpu_idle), own = value(Power::gpu_limit);
    if (!(limit_.watts > idle && limit_.watts <= own))
      return refused(fmt::format("{} W is not a limit of a board that takes {} W when idle, and {} W at most",
                                 limit_.watts, idle, own),
                     fmt::format("write a number above {}, up to {}", idle, own));
    const auto& exponent = m_.energy[at(Power::xcd_exponent)]->value;
    LimitedRun out;
    for (const auto e : {exponent.low, exponent.high, exponent.value}) {
      auto r = with(e);
      if (!r) return std::move(r.error());
      const auto ns = r->simulation.ns;
      const auto before = out.ns;
      out = *std::move(r);
      out.ns = before.value == 0 ? Bounds{ns, ns, ns} : Bounds{std::min(before.low, ns), ns, std::max(before.high, ns)};
    }
    return out;
  }

 private:
  static std::vector<Diagnostic> refused(std::string message, std::string hint) {
    return {{.where = "power limit", .message = std::move(message), .hint = std::move(hint)}};
  }
  double value(Power p) const { return m_.energy[at(p)]->value.value; }

  /// A round at this clock.
  Result<LimitedRun, std::vector<Diagnostic>> round(double clock, double exponent) {
    auto o = o_;
    o.clock = clock;
    auto s = simulate(s_, m_, o);
    if (!s) return std::move(s.error());
    // A kernel's work takes 1 / clock of its time, at clock ^ exponent of its power.
    auto there = m_;
    const auto factor = std::pow(clock, exponent - 1);
    auto& k = there.energy[at(Power::kernel_active)]->value;
    k = {k.low * factor, k.value * factor, k.high * factor};
    LimitedRun out{.clock = clock, .mhz = clock * value(Power::xcd_loaded), .simulation = *std::move(s)};
    out.energy = energy(out.simulation, there);
    out.held = out.energy.watts(out.energy.joules).value <= limit_.watts * s_.gpus * (1 + 1e-3);
    return out;
  }

  Result<LimitedRun, std::vector<Diagnostic>> with(double exponent) {
    const auto idle = value(Power::gpu_idle);
    const auto most = std::max(1.0, value(Power::xcd_most) / value(Power::xcd_loaded));
    if (limit_.policy == PowerPolicy::uniform) {
      const auto part = (limit_.watts - idle) / (value(Power::gpu_limit) - idle);
      return round(std::clamp(std::pow(part, 1 / exponent), kSlowest, most), exponent);
    }
    // More clock takes more power, so halve the range until it is narrow.
    constexpr int kHalvings = 20;
    auto low = kSlowest, high = most;
    auto fastest = round(high, exponent);
    if (!fastest || fastest->held) return fastest;
    for (int i = 0; i < kHalvings; ++i) {
      const auto middle = (low + high) / 2;
      const auto r = round(middle, exponent);
      if (!r) return r;
      (r->held ? low : high) = middle;
    }
    return round(low, exponent);
  }

  const Schedule& s_;
  const MachineDescription& m_;
  const PowerLimit& limit_;
  const SimulateOptions& o_;
};

}  // namespace

Result<LimitedRun, std::vector<Diagnostic>> limit_power(const Schedule& s, const MachineDescription& m,
                                                        const PowerLimit& limit, const SimulateOptions& o) {
  return Limiting{s, m, limit, o}.run();
}

std::string to_text(const LimitedRun& r, const PowerLimit& limit, double unlimited_ns) {
  auto out = fmt::format("at {} W for each GPU, {}: compute dies at {:.0f} MHz; {} ({} to {}), {:+.1f} % of time\n",
                         limit.watts, limit.policy == PowerPolicy::uniform ? "uniform" : "component", r.mhz,
                         time_text(r.ns.value), time_text(r.ns.low), time_text(r.ns.high),
                         unlimited_ns > 0 ? 100 * (r.ns.value / unlimited_ns - 1) : 0);
  if (!r.held) out += "the limit is not held: the round takes more in the mean, and only this clock can be set\n";
  return out;
}

}}  // namespace sdma::v0_3
