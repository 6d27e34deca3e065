// SPDX-License-Identifier: MIT
#pragma once
// Energy counters of AMD GPUs, from files of the kernel's hardware monitor.
//
//   auto counters = hwmon_counters({"0000:06:00.0"});
//
//   /sys/bus/pci/devices/0000:06:00.0/hwmon/hwmon3/energy1_input     microjoules
//                                                  power1_average    microwatts, or power1_input: summed over time
//
// `root` replaces /sys/bus/pci/devices in tests. One thread. Errors: a Diagnostic if a GPU has none of these files.
#include "power.hpp"

#include <string>

namespace collectives::perf {

inline constexpr const char* kPciDevices = "/sys/bus/pci/devices";

sdma::Result<EnergyCounters, sdma::Diagnostic> hwmon_counters(const std::vector<std::string>& pci,
                                                              const std::string& root = kPciDevices);

}  // namespace collectives::perf
