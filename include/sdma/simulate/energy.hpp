// SPDX-License-Identifier: MIT
#pragma once
// What a machine's work costs in joules: the terms of a machine's file, and the energy of a simulated round.
//
//   auto t = simulate(schedule, *m);
//   const auto e = energy(*t, *m);                               // or with its Sensitivity, for the +- of the time
//   for (const auto& c : e.components) printf("%s %.3g J\n", c.name.c_str(), c.joules.value);
//   if (!e.missing.empty()) puts("not all of it: the machine does not say what the rest costs");
//
//   term                   a round has of it                          unit of the term
//   *.idle_watts           its time, for each GPU (or host)           W
//   engine.active_watts    the time in which engines move bytes       W
//   kernel.active_watts    the time of kernels, by their share        W, for all compute units of a GPU
//   *.pj_per_byte          bytes that cross it                        pJ
//   gpu.limit_watts, xcd.*                                            for power_limit.hpp: a round has none of them
//
// A term has bounds, which no source narrows, and not a standard deviation. So a sum has the sum of the bounds. What no
// source separates is one term, which names the others that it `includes`. A term that is absent costs nothing here,
// and whatever a round has of it is named in `Energy::missing`: there is no default.
//
// Levels differ: a figure of a device leaves out what its board loses on the way to it. So a total has the terms of the
// board alone; `Component::counted` says which rows those are.
//
// Plain values that allocate; pure functions. No errors.
#include "sdma/core/standard.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

struct MachineDescription;
struct Sensitivity;
struct Simulation;

/// One term of a machine's energy, or a figure of its clocks.
enum class Power : std::uint8_t {
  gpu_idle,       ///< a whole GPU's board that does nothing
  xcd_idle,       ///< of that, the compute dies
  iod_idle,       ///< the dies with the fabric and the engines
  hbm_idle,       ///< the memory
  host_idle,      ///< a node's host
  kernel_active,  ///< all compute units of a GPU at work, above idle
  engine_active,  ///< an engine that moves bytes, above idle
  host_active,    ///< a host thread that does not wait, above idle
  engine_byte,    ///< a byte that an engine moves, with its way through the fabric of its GPU
  kernel_byte,    ///< a byte that compute units load or store
  hbm_byte,       ///< a byte that a GPU's memory reads or writes
  host_byte,      ///< a byte that the host's memory reads or writes
  xgmi_byte,      ///< a byte over a link between GPUs, both ends
  pcie_byte,      ///< a byte over a link to the host, both ends
  nic_byte,       ///< a byte over any other link
  gpu_limit,      ///< the most that a GPU's board may take
  xcd_most,       ///< the highest clock of compute dies
  xcd_loaded,     ///< their clock while matrix products take all that the board may
  xcd_exponent,   ///< by which power of the clock kernel_active grows
};
inline constexpr std::size_t kPowers = 19;  ///< how many there are
/// "hbm.pj_per_byte"; `power_named` is the inverse.
std::string_view name(Power) noexcept;
/// "W", "pJ", "MHz", "power".
std::string_view unit(Power) noexcept;
/// The index of the term with this name; kPowers if there is none.
std::size_t power_named(std::string_view) noexcept;

/// What a round has of each term: ns of those in watts, bytes of the others.
using Activity = std::array<double, kPowers>;

/// A value and its bounds.
struct Bounds {
  double low{};    ///< the least that it can be
  double value{};  ///< the best guess
  double high{};   ///< the most that it can be
  /// Adds each of the three.
  Bounds& operator+=(const Bounds& o) noexcept {
    low += o.low;
    value += o.value;
    high += o.high;
    return *this;
  }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// A term of a machine.
struct EnergyTerm {
  /// What its figure includes: `device` is the part alone; `board` also what supplies it, as a board's counter has it.
  enum class Level : std::uint8_t { board, device };
  Bounds value{};                 ///< in the term's unit: unit(Power)
  Level level{};                  ///< what the figure includes
  std::vector<Power> includes{};  ///< other terms that it contains, because no source separates them
  std::string source{};           ///< where it comes from, for people: "fitted: ..." to published ratios
  /// Was it fitted? Then a ratio that it was fitted to says nothing about the model.
  bool fitted() const noexcept { return source.starts_with("fitted"); }
  friend bool operator==(const EnergyTerm&, const EnergyTerm&) = default;
};
/// The terms of a machine, by Power. Those that its file leaves out are not known.
using EnergyTerms = std::array<std::optional<EnergyTerm>, kPowers>;

/// The energy of a simulation's last round.
struct Energy {
  /// Terms of one part of the machine.
  struct Component {
    std::string name{};       ///< "HBM"; "XCD, IOD, HBM" if no source separates them
    Bounds joules{};          ///< of all GPUs together
    bool counted{};           ///< it is in the total: its terms are of the board's level
    bool fitted{};            ///< one of its terms was fitted to published ratios
    std::vector<Power> of{};  ///< its terms
  };
  double ns{};                          ///< the time of the round
  std::vector<Component> components{};  ///< those that the round has something of
  Bounds joules{};                      ///< the sum of those that are counted
  std::vector<Power> missing{};         ///< terms that the round has something of, and the machine has not
  /// Mean power during the round, in watts.
  Bounds watts(const Bounds& j) const noexcept {
    return ns > 0 ? Bounds{j.low / ns * 1e9, j.value / ns * 1e9, j.high / ns * 1e9} : Bounds{};
  }
};

/// Does the machine know any term that counts in a total?
bool knows_energy(const MachineDescription&) noexcept;
/// The energy of the last round. With a Sensitivity, the bounds allow for the uncertainty of its time.
Energy energy(const Simulation&, const MachineDescription&, const Sensitivity* = nullptr);
/// By how many joules the second round exceeds the first: with the same value of each term for both.
Bounds energy_between(const Simulation&, const Simulation&, const MachineDescription&);

/// The unit in which joules are written.
struct JoulesUnit {
  std::string_view name{};  ///< "mJ"
  double joules{};          ///< how much it is
};
/// The unit in which so many joules have at most three digits before the point.
JoulesUnit joules_unit(double joules) noexcept;
/// "1.25 mJ", "340 J".
std::string joules_text(double joules);
/// "1.25 mJ (0.9 mJ to 2.1 mJ)".
std::string to_text(const Bounds& joules);
/// What a total lacks because the machine's file does not have it: a line for people, or "".
std::string missing_text(const Energy&);
/// For people: each component, the total, and what is not in it. Ends with a newline.
std::string to_table(const Energy&);

}}  // namespace sdma::v0_3
