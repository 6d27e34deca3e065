// SPDX-License-Identifier: MIT
#pragma once
// The measuring half of sdma calibrate --energy: a table of a device's joules, by NVML's counters or the kernel's
// hardware monitor, which are only read.
//
//   auto table = measure_joules(DeviceKind::cuda, {.seconds = 2});
//   auto f = fit_energy(*table);                                // sdma/simulate/energy_fit.hpp
//
// Rows to fit to: idle; the copies of the mechanisms (sdma/simulate/mechanisms.hpp), one at a time; a matrix product on
// every GPU. Rows to judge by: each copy beside the product. All GPUs of the node together.
//
// Errors: the Diagnostic of a missing counter, library or device; one whose message is "interrupted" after Ctrl-C.
#include "sdma/device/open.hpp"
#include "sdma/simulate/energy_fit.hpp"

namespace collectives::perf {

struct JoulesMeasurement {
  double seconds = 2;                             ///< of each row
  bool product = true;                            ///< also matrix products, by cuBLAS or hipBLAS
  std::uint64_t bytes = std::uint64_t{64} << 20;  ///< of the largest copy
};
sdma::Result<sdma::EnergyMeasurements, std::vector<sdma::Diagnostic>> measure_joules(sdma::DeviceKind,
                                                                                     const JoulesMeasurement&);

}  // namespace collectives::perf
