// SPDX-License-Identifier: MIT
#pragma once
// The measuring half of sdma calibrate: single mechanisms of a
// device as a table, and the machine from which their fit starts.
//
// Errors are reported; `code` is then the verb's exit code.
#include "sdma/device/open.hpp"
#include "sdma/simulate/mechanisms.hpp"

namespace sdma::tool {

struct DeviceMeasurement {
  std::uint64_t passes = 9, most_bytes = std::uint64_t{64} << 20;
  bool busy = false;                ///< accept times that vary
  std::vector<std::string> also{};  ///< schedules to measure and to predict, but not to fit to
  std::string save{};               ///< a folder for the table, its schedules and the machine; "": not saved
};
struct Measured {
  int code{};
  Measurements table{};
  MachineDescription start{};
};
Measured measure_device(DeviceKind, const DeviceMeasurement&);

}  // namespace sdma::tool
