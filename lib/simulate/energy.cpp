// SPDX-License-Identifier: MIT
// The energy of a simulated round: how much it has of each term, times the term's value in the machine's file.
#include "sdma/simulate/energy.hpp"

#include "energy_file.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 {
namespace {

struct PowerKind {
  std::string_view name, unit, component;
};
// In the order of Power.
constexpr std::array<PowerKind, kPowers> kPowerKinds{{
    {"gpu.idle_watts", "W", "GPU"},      {"xcd.idle_watts", "W", "XCD"},     {"iod.idle_watts", "W", "IOD"},
    {"hbm.idle_watts", "W", "HBM"},      {"host.idle_watts", "W", "host"},   {"kernel.active_watts", "W", "XCD"},
    {"engine.active_watts", "W", "IOD"}, {"host.active_watts", "W", "host"}, {"engine.pj_per_byte", "pJ", "IOD"},
    {"kernel.pj_per_byte", "pJ", "XCD"}, {"hbm.pj_per_byte", "pJ", "HBM"},   {"host.pj_per_byte", "pJ", "host"},
    {"xgmi.pj_per_byte", "pJ", "xGMI"},  {"pcie.pj_per_byte", "pJ", "PCIe"}, {"nic.pj_per_byte", "pJ", "network"},
    {"gpu.limit_watts", "W", ""},        {"xcd.most_mhz", "MHz", ""},        {"xcd.loaded_mhz", "MHz", ""},
    {"xcd.clock_exponent", "power", ""},
}};
static_assert(static_cast<std::size_t>(Power::xcd_exponent) + 1 == kPowers);

constexpr std::size_t index(Power p) noexcept { return static_cast<std::size_t>(p); }
const PowerKind& kind(Power p) noexcept { return kPowerKinds[index(p)]; }

/// A GPU's idle power is that of its parts: a machine that has these lacks nothing.
constexpr bool whole(Power p) noexcept { return p == Power::gpu_idle; }

/// Joules of one unit of the term for one unit of the activity: W x ns, or pJ.
double factor(Power p) noexcept { return kind(p).unit == "W" ? 1e-9 : 1e-12; }

/// "HBM", or "XCD, IOD" if the term includes others.
std::string component_of(Power p, const EnergyTerm& t) {
  std::vector<std::string_view> parts;
  if (!whole(p)) parts.push_back(kind(p).component);
  for (const auto i : t.includes)
    if (std::find(parts.begin(), parts.end(), kind(i).component) == parts.end()) parts.push_back(kind(i).component);
  return parts.empty() ? std::string(kind(p).component) : fmt::format("{}", fmt::join(parts, ", "));
}

Bounds times(const Bounds& b, double low, double value, double high) {
  return {b.low * low, b.value * value, b.high * high};
}

}  // namespace

std::string_view name(Power p) noexcept { return kind(p).name; }
std::string_view unit(Power p) noexcept { return kind(p).unit; }
std::size_t power_named(std::string_view n) noexcept {
  return static_cast<std::size_t>(
      std::find_if(kPowerKinds.begin(), kPowerKinds.end(), [&](const PowerKind& k) { return k.name == n; }) -
      kPowerKinds.begin());
}

bool knows_energy(const MachineDescription& m) noexcept {
  for (std::size_t i = 0; i < index(Power::gpu_limit); ++i)
    if (m.energy[i] && m.energy[i]->level == EnergyTerm::Level::board) return true;
  return false;
}

Energy energy(const Simulation& s, const MachineDescription& m, const Sensitivity* why) {
  Energy out{.ns = s.ns};
  const auto off = why && s.ns > 0 ? std::min(1.0, why->uncertainty_ns / s.ns) : 0;
  for (std::size_t i = 0; i < kPowers; ++i) {
    const auto p = static_cast<Power>(i);
    const auto amount = s.activity[i] * factor(p);
    if (amount == 0) continue;
    const auto& t = m.energy[i];
    if (!t) {
      if (!whole(p) && !detail::included(p, m.energy)) out.missing.push_back(p);
      continue;
    }
    // Only time is uncertain: the bytes of a schedule are given.
    const auto time = unit(p) == "W" ? off : 0;
    const auto joules = times(t->value, amount * (1 - time), amount, amount * (1 + time));
    const auto name = component_of(p, *t);
    const auto counted = t->level == EnergyTerm::Level::board;
    auto c = std::find_if(out.components.begin(), out.components.end(),
                          [&](const auto& known) { return known.name == name && known.counted == counted; });
    if (c == out.components.end())
      c = out.components.insert(c, {.name = name, .joules = {}, .counted = counted, .fitted = false, .of = {}});
    c->joules += joules;
    c->fitted = c->fitted || t->fitted();
    c->of.push_back(p);
    if (counted) out.joules += joules;
  }
  return out;
}

Bounds energy_between(const Simulation& a, const Simulation& b, const MachineDescription& m) {
  Bounds out;
  for (std::size_t i = 0; i < kPowers; ++i) {
    const auto& t = m.energy[i];
    if (!t || t->level != EnergyTerm::Level::board) continue;
    const auto more = (b.activity[i] - a.activity[i]) * factor(static_cast<Power>(i));
    const auto ends = std::minmax({t->value.low * more, t->value.high * more});
    out += {ends.first, t->value.value * more, ends.second};
  }
  return out;
}

JoulesUnit joules_unit(double joules) noexcept {
  constexpr JoulesUnit kUnits[] = {{"J", 1}, {"mJ", 1e-3}, {"uJ", 1e-6}};
  for (const auto& unit : kUnits)
    if (std::abs(joules) >= unit.joules || joules == 0) return unit;
  return {"nJ", 1e-9};
}

std::string joules_text(double j) {
  const auto unit = joules_unit(j);
  return fmt::format("{:.3g} {}", j / unit.joules, unit.name);
}

std::string to_text(const Bounds& b) {
  return fmt::format("{} ({} to {})", joules_text(b.value), joules_text(b.low), joules_text(b.high));
}

std::string missing_text(const Energy& e) {
  std::vector<std::string_view> names;
  for (const auto p : e.missing) names.push_back(name(p));
  return names.empty()
             ? ""
             : fmt::format("not counted, because the machine's file does not have: {}\n", fmt::join(names, ", "));
}

std::string to_table(const Energy& e) {
  auto out = fmt::format("{:<38} {:>10} {:>24} {:>10} {:>20}\n", "energy of the round", "joules", "at least, at most",
                         "watts", "at least, at most");
  const auto row = [&](const std::string& name, const Bounds& j) {
    const auto w = e.watts(j);
    out += fmt::format("{:<38} {:>10} {:>24} {:>10.4g} {:>20}\n", name, joules_text(j.value),
                       joules_text(j.low) + ", " + joules_text(j.high), w.value,
                       fmt::format("{:.4g}, {:.4g}", w.low, w.high));
  };
  bool fitted = false;
  for (const auto& c : e.components) {
    row(c.name + (c.fitted ? " *" : "") + (c.counted ? "" : ", device alone"), c.joules);
    fitted = fitted || c.fitted;
  }
  if (e.components.empty()) out += "not known: the machine's file has no energy of what this round does\n";
  else
    row("all of these" +
            std::string(std::all_of(e.components.begin(), e.components.end(), [](const auto& c) { return c.counted; })
                            ? ""
                            : " but the device's own figures"),
        e.joules);
  out += missing_text(e);
  if (fitted) out += "* in part fitted to published ratios: no prediction of these ratios\n";
  return out;
}

}}  // namespace sdma::v0_3
