// SPDX-License-Identifier: MIT
#pragma once
// Energy counters of NVIDIA GPUs, by NVML (libnvidia-ml.so.1), which is loaded when they are asked for.
//
//   auto counters = nvml_counters({"0000:06:00.0", "0000:07:00.0"});
//
// GPUs are found by their PCI addresses, because CUDA_VISIBLE_DEVICES renumbers CUDA's GPUs but not NVML's. One thread.
// Errors: a Diagnostic if the library is missing, or a GPU has no counter.
#include "power.hpp"

#include <string>

namespace collectives::perf {

sdma::Result<EnergyCounters, sdma::Diagnostic> nvml_counters(const std::vector<std::string>& pci);

}  // namespace collectives::perf
