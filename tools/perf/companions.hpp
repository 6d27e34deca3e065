// SPDX-License-Identifier: MIT
#pragma once
// What --against, --energy and --beside need, opened in the right order and kept until the program ends.
//
//   OpenCompanions::prepare(settings);                              // before the device is opened
//   auto c = OpenCompanions::open(device, settings);                // libraries, memory, idle power, the product alone
//   measure(settings, table, device, ways, bytes, (*c)->all(), go_on);
//
// Nccl: NCCL's collectives as contenders, on the same GPUs and in the same processes: its kernels and copy engines.
//
//   a round, on a stream of each rank:   arm     wait until go >= round | ncclAllGather | done = round
//                                        start   the host stores go, in each process
//                                        wait    the host sees `done` of every rank of its process
//
// The copy-engine mode is NCCL_CTA_POLICY_ZERO on buffers that are symmetric windows; it needs NCCL 2.28. An older
// NCCL, or one that makes no windows on this machine, has only its kernels: `ways` and `note` say so.
//
// While a stream waits, NCCL must not load, allocate or free. So everything is allocated once, for the largest size,
// each size runs before anything waits, and nothing is given back: the program ends soon after. NCCL's parts have equal
// sizes, so the last one may have bytes that the collective does not need.
//
// Product: matrix products by cuBLAS or hipBLAS, which keep every GPU busy: what a collective has to share it with.
// C = A^T B, bf16 with sums in fp32, on pseudo-random numbers, because constants would use less power than data does.
//
//   thread   gemm -> n | gemm -> n+1 | gemm -> n+2       at most three in flight per GPU; each is followed by a store
//   GPU                gemm .............. gemm ....     of its number to a word of the host, which the thread reads
//
// One thread calls. Calls of a library take no deadline: the watchdog bounds them. Errors: the Diagnostic of what is
// missing, or one with the library's text. After an error, end the program by end_at_once (watchdog.hpp).
#include "contender.hpp"
#include "power_meter.hpp"
#include "watchdog.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collectives::perf {

/// NCCL or RCCL, for as long as one of these exists.
struct Nccl {
  static sdma::Result<Nccl, sdma::Diagnostic> open(sdma::Device&, const Settings&, Watchdog&);
  std::string version{};    ///< "NCCL 2.28.9"
  std::vector<Way> ways{};  ///< those of Settings::rivals that it offers
  std::string note{};       ///< why others are left out; "" if none is
  PrepareRival prepare{};   ///< warms that size; the Nccl must outlive the contender
};

class Product {
 public:
  /// Loads, allocates and fills matrices before anything waits on a GPU, and measures the product alone.
  static sdma::Result<std::unique_ptr<Product>, sdma::Diagnostic> open(sdma::Device&, const Settings&, Watchdog&);
  virtual ~Product() = default;

  /// TFLOP/s of a GPU without a collective, the mean over GPUs.
  virtual double alone() const = 0;
  /// Feeds the streams from a thread, and waits for busy GPUs.
  virtual sdma::Result<void, sdma::Diagnostic> begin() = 0;
  /// TFLOP/s of a GPU since begin; nothing runs any more.
  virtual sdma::Result<double, sdma::Diagnostic> end() = 0;
};

/// What a measurement uses besides the device; null: nothing.
struct Companions {
  PrepareRival rival{};
  PowerMeter* power{};
  Product* product{};
};

class OpenCompanions {
 public:
  /// Sets variables that drivers read once, unless they are set. Starts HIP if it is needed: ROCr refuses to share the
  /// kernel driver with a device that was opened before.
  static sdma::Result<void, sdma::Diagnostic> prepare(const Settings&);
  /// Both arguments must outlive it.
  static sdma::Result<std::unique_ptr<OpenCompanions>, sdma::Diagnostic> open(sdma::Device&, const Settings&);

  Companions all();
  /// Those of Settings::rivals that can be measured.
  std::vector<Way> rivals() const { return nccl_ ? nccl_->ways : std::vector<Way>{}; }
  /// '#' lines for the header.
  std::string remarks() const;
  std::optional<double> idle_watts() const { return power_ ? std::optional(power_->idle()) : std::nullopt; }

 private:
  explicit OpenCompanions(const Settings& s) : settings_(s) {}
  sdma::Result<void, sdma::Diagnostic> open(sdma::Device&);

  const Settings& settings_;
  Watchdog dog_{};
  std::optional<Nccl> nccl_{};
  std::unique_ptr<Product> product_{};
  std::optional<PowerMeter> power_{};
};

}  // namespace collectives::perf
