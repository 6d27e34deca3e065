// SPDX-License-Identifier: MIT
#pragma once
// NCCL's collectives as contenders, on the same GPUs, in the same processes: its kernels, and its copy-engine mode.
//
//   auto nccl = Nccl::open(device, settings, watchdog);        // loads libnccl.so.2, makes communicators, allocates
//   auto c = (*nccl)->prepare({.rival = Rival::nccl_ce}, options);        // warms that size
//
//   a round, on a stream of each rank:   arm     wait until go >= round | ncclAllGather | done = round
//                                        start   the host stores go, in each process
//                                        wait    the host sees `done` of every rank of its process
//
// The copy-engine mode is NCCL_CTA_POLICY_ZERO on buffers that are symmetric windows; it needs NCCL 2.28. An older
// NCCL, or one that makes no windows on this machine, has only its kernels: `ways` and `note` say so.
//
// While a stream waits, NCCL must not load, allocate or free. So everything is allocated once, for the largest size,
// each size runs before anything waits, and nothing is given back: the program ends soon after. Calls of NCCL take no
// deadline: the watchdog bounds them. NCCL's parts have equal sizes, so the last one may have bytes that the
// collective does not need.
//
// One thread. Errors: Diagnostics with NCCL's text. After an error, end the program by end_at_once (watchdog.hpp).
#include "contender.hpp"
#include "watchdog.hpp"

namespace collectives::perf {

class Nccl {
 public:
  static sdma::Result<std::unique_ptr<Nccl>, sdma::Diagnostic> open(sdma::Device&, const Settings&, Watchdog&);
  virtual ~Nccl() = default;

  /// "NCCL 2.28.9"
  virtual std::string version() const = 0;
  /// Those of Settings::rivals that this NCCL offers.
  virtual std::vector<Way> ways() const = 0;
  /// Why others are left out; "" if none is.
  virtual std::string note() const = 0;
  /// The Nccl must outlive the contender.
  virtual sdma::Result<std::unique_ptr<Contender>, sdma::Diagnostic> prepare(const Way&, const Options&) = 0;
};

}  // namespace collectives::perf
