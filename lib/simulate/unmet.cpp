// SPDX-License-Identifier: MIT
#include "sdma/simulate/simulate.hpp"

namespace sdma::inline v0 {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26, kMostSteps = std::uint64_t{1} << 18;

}  // namespace

std::vector<std::string> unmet_expectations(const Schedule& s) {
  if (s.expectations.empty()) return {};
  std::uint64_t bytes = 0;
  for (const auto& b : s.buffers) {
    bytes += b.bytes;
    if (b.bytes > kMostBytes || bytes > kMostBytes) return {};
  }
  // The checker asks for each text that it tries.
  static const auto machine = mi300x_machine();
  if (!machine) return {};
  const auto r = simulate(s, *machine, {.contents = true, .max_steps = kMostSteps});
  std::vector<std::string> unmet;
  for (std::size_t i = 0; r && i < r->findings.size(); ++i)
    unmet.push_back(r->findings[i].where + ": " + r->findings[i].message);
  return unmet;
}

}  // namespace sdma::inline v0
