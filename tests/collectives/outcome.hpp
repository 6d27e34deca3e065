// SPDX-License-Identifier: MIT
#pragma once
// What is wrong with a schedule of a collective: when it is checked, run on the software device, and simulated.
#include "sdma/check/check.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <string>

namespace collectives::test {

using namespace sdma;

/// Its findings when it is checked; "" if it is proved, with all its expectations.
inline std::string unproved(const Schedule& s, const CheckOptions& o = {}) {
  const auto proof = check(s, o);
  std::string out;
  for (const auto& f : proof.findings)
    if (f.diagnostic.severity != Severity::note) out += to_string(f.diagnostic) + "\n";
  if (!proof.proved() || proof.expectations != s.expectations.size()) out += "not proved\n";
  return out;
}
/// And when it is run and simulated.
inline std::string outcome(const Schedule& s, const MachineDescription& machine, Ordering order,
                           const CheckOptions& o = {}) {
  auto out = unproved(s, o);
  const auto device = SoftDevice::open({.gpus = s.gpus, .ordering = order, .seed = 5});
  REQUIRE(device);
  const auto bound = bind(s, **device);
  REQUIRE(bound);
  for (const auto& f : run(*bound, {.time_limit = std::chrono::seconds(60), .seed = 3}).findings)
    out += to_string(f) + "\n";
  const auto time = simulate(s, machine, {.contents = true});
  REQUIRE(time);
  for (const auto& f : time->findings) out += to_string(f) + "\n";
  return out;
}

}  // namespace collectives::test
