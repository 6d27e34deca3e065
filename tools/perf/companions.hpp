// SPDX-License-Identifier: MIT
#pragma once
// What --against, --energy and --beside need, opened in the right order and kept until the program ends.
//
//   OpenCompanions::prepare(settings);                              // before the device is opened
//   auto c = OpenCompanions::open(device, settings);                // libraries, memory, idle power, the product alone
//   measure(settings, table, device, ways, bytes, (*c)->all(), go_on);
//
// One thread. Errors: the Diagnostic of what is missing: a library, a counter.
#include "nccl.hpp"
#include "sweep.hpp"

#include <memory>
#include <string>

namespace collectives::perf {

class OpenCompanions {
 public:
  /// Sets variables that drivers read once, unless they are set. Starts HIP if it is needed: ROCr refuses to share the
  /// kernel driver with a device that was opened before.
  static sdma::Result<void, sdma::Diagnostic> prepare(const Settings&);
  /// Both arguments must outlive it.
  static sdma::Result<std::unique_ptr<OpenCompanions>, sdma::Diagnostic> open(sdma::Device&, const Settings&);

  Companions all();
  /// Those of Settings::rivals that can be measured.
  std::vector<Way> rivals() const { return nccl_ ? nccl_->ways() : std::vector<Way>{}; }
  /// '#' lines for the header.
  std::string remarks() const;
  std::optional<double> idle_watts() const { return power_ ? std::optional(power_->idle()) : std::nullopt; }

 private:
  explicit OpenCompanions(const Settings& s) : settings_(s) {}
  sdma::Result<void, sdma::Diagnostic> open(sdma::Device&);

  const Settings& settings_;
  Watchdog dog_{};
  std::unique_ptr<Nccl> nccl_{};
  std::unique_ptr<Product> product_{};
  std::optional<PowerMeter> power_{};
};

}  // namespace collectives::perf
