// SPDX-License-Identifier: MIT
#pragma once
// Energy counters of GPUs, which are found by their PCI addresses.
//
//   auto counters = nvml_counters({"0000:06:00.0", "0000:07:00.0"});       // or hwmon_counters
//   const auto joules = counters->front()();
//
// NVIDIA: NVML (libnvidia-ml.so.1), which is loaded when it is asked for. CUDA_VISIBLE_DEVICES renumbers CUDA's GPUs
// but not NVML's. AMD: files of the kernel's hardware monitor:
//
//   /sys/bus/pci/devices/0000:06:00.0/hwmon/hwmon3/energy1_input     microjoules
//                                                  power1_average    microwatts, or power1_input: summed over time
//
// One thread. Errors: a Diagnostic if the library is missing, or a GPU has no counter.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <functional>
#include <string>
#include <vector>

namespace collectives::perf {

/// The joules of a GPU since any moment, which never fall.
using EnergyCounter = std::function<sdma::Result<double, sdma::Diagnostic>()>;
using EnergyCounters = std::vector<EnergyCounter>;

sdma::Result<EnergyCounters, sdma::Diagnostic> nvml_counters(const std::vector<std::string>& pci);
/// `root` replaces the folder of the devices in tests.
sdma::Result<EnergyCounters, sdma::Diagnostic> hwmon_counters(const std::vector<std::string>& pci,
                                                              const std::string& root = "/sys/bus/pci/devices");

}  // namespace collectives::perf
