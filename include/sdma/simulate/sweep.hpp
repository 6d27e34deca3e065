// SPDX-License-Identifier: MIT
#pragma once
// Sweeps: one parameter after another value of it, and the parameter that hides its effect.
//
//   auto a = sweep_axis("engine.window_bytes=16K..256K*2");      // or chunk=1K..1G, or xgmi.rate=48,61,100
//   if (const auto* why = std::get_if<std::string>(&a)) ...      // what is wrong with the text
//   machine.set(axis.name, axis.values[0]);                      // a parameter of the machine: its name has a dot
//   auto caps = caps_of(schedule, machine, "xgmi.rate", 61, 122);     // {"engine.bytes_per_ns"}
//
// A name with a dot is a parameter of the machine, as MachineDescription::set takes it. Any other name is a param of
// the schedule, whose values are whole numbers.
//
// A cap is found by trial: `caps_of` relaxes every other parameter, one at a time, and reports each parameter whose
// relaxation makes the two values give different times. If there is none, no single parameter is the cap; perhaps the
// schedule does not use what the parameter describes.
//
// Pure functions that allocate; any thread may call them. Errors: texts, and the Diagnostics of `simulate`.
#include "sdma/simulate/simulate.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A number that a sweep varies, and its values.
struct SweepAxis {
  std::string name{};            ///< a param of the schedule, or, with a dot, a parameter of the machine
  std::vector<double> values{};  ///< in the order of the sweep
  /// Does it vary a parameter of the machine, rather than a param of the schedule?
  bool of_machine() const noexcept { return name.find('.') != name.npos; }
  /// "64K" for a number of bytes or a param, "0.5" for other numbers.
  std::string text(double value) const;
};

/// The most values of an axis.
inline constexpr std::size_t kMostSwept = 10'000;

/// The axis of "NAME=A..B" (doubled at each step), "NAME=A..B*F", or "NAME=A,B,C"; or what is wrong with the text. A, B
/// and C may be arithmetic of numbers: "N=2*4,16".
std::variant<SweepAxis, std::string> sweep_axis(std::string_view text);

/// Sets the machine's parameter of this axis to one of its values. Refuses a name that is neither a parameter nor a
/// rate of links that the machine has, and a value that it cannot have. Requires axis.of_machine().
Result<void, Diagnostic> set(MachineDescription&, const SweepAxis& axis, double value);

/// True if the times differ by less than rounding does.
bool same_time(double ns, double other_ns) noexcept;

/// The parameters that keep `name` from changing the time between these values; requires that the times are the same.
Result<std::vector<std::string>, std::vector<Diagnostic>> caps_of(const Schedule&, const MachineDescription&,
                                                                  std::string_view name, double from, double to);
/// "engine.bytes_per_ns caps it"; if there is none, that no other parameter alone does.
std::string caps_text(const std::vector<std::string>& caps);

}}  // namespace sdma::v0_3
