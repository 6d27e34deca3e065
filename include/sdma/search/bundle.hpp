// SPDX-License-Identifier: MIT
#pragma once
// A bundle to cite: one file with a schedule, a machine, the checker's verdict with what it assumes, the simulator's
// prediction, and the version that made it. `sdma simulate --bundle` writes one; `sdma check` and `sdma simulate`
// repeat it.
//
//   if (auto made = bundle_text(schedule, "ag.sdma", machine)) save_file("cite.json", *made);
//   auto b = read_bundle(text, "cite.json");
//   if (!b) puts(to_string(b.error().front()).c_str());
//   for (const auto& d : repeat_bundle(*b).differences) puts(d.c_str());    // "prediction: ns was 6540, and is 7100"
//
// The verdict is that of the rules of docs/ordering.md alone, on the machine's topology. The file is JSON. Errors:
// Diagnostics, with the line where the file is not JSON, and the line of its schedule where that is wrong. Allocates.
#include "sdma/check/check.hpp"
#include "sdma/simulate/simulate.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// What is said about a schedule on a machine.
struct Claims {
  std::string verdict{};                ///< "proved", "unproved", "refuted"
  std::vector<std::string> assumes{};   ///< CheckReport::assumes
  std::vector<std::string> findings{};  ///< the rules of the findings
  /// ns, total_ns, packets, bytes, doorbells; empty: it cannot be simulated.
  std::vector<std::pair<std::string, double>> prediction{};
};
/// What the file says.
struct Bundle {
  std::string version{};         ///< of the sdma that made it
  std::string file{};            ///< what the schedule was called
  Schedule schedule{};           ///< with nothing left open
  MachineDescription machine{};  ///< with each parameter
  Claims claims{};               ///< when it was made
};
/// A bundle, as it is now.
struct Repeated {
  Claims claims{};                         ///< of this version
  std::vector<std::string> differences{};  ///< a sentence each; empty: everything is as the bundle says
};

/// Is this text a bundle? By its beginning.
bool is_bundle(std::string_view text) noexcept;
/// Checks and simulates the schedule. Nothing that cannot be simulated has a bundle.
Result<std::string, std::vector<Diagnostic>> bundle_text(const Schedule&, const std::string& file,
                                                         const MachineDescription&);
/// What a file holds; `file`: its name in errors.
Result<Bundle, std::vector<Diagnostic>> read_bundle(std::string_view text, const std::string& file);
/// Checks and simulates again.
Repeated repeat_bundle(const Bundle&);

}}  // namespace sdma::v0_3
