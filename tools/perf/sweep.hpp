// SPDX-License-Identifier: MIT
#pragma once
// Measures one size on a device, in one way or in several that take turns.
//
//   const Way way{Variant::b2b, true};
//   const auto p = measure(settings, table, device, {&way, 1}, 64 << 10, {}, [] { return !interrupted; });
//   if (!p) for (const auto& d : p.error()) ...          // does not bind, a queue stopped, a round timed out
//   for (const auto& point : *p) ...                     // one for each way; empty: `go_on` returned false
//
//   plan, bind | warm-up rounds | timed rounds | verified rounds: poison, patterns, a round, each byte compared
//              |  a b c  a b c  |  a b c  ...  |  a a  b b  c c    | energy: a, b, c | beside a product: a, b, c
//
// A round: arm (prelaunch: publish), settle, then the timed part, start (off: build and publish; prelaunch: the
// trigger) and wait. Filling and comparing are not timed. Each wait ends at Settings::timeout. One thread at a time may
// measure; other threads may use the device meanwhile.
//
// Several ways on one device of CUDA: they are spread over the engines,
// which are all alike there, because an engine has few queues.
#include "collectives/table.hpp"
#include "companions.hpp"
#include "point.hpp"
#include "sdma/device/device.hpp"

#include <functional>
#include <span>

namespace collectives::perf {

/// Called before each round.
using GoOn = std::function<bool()>;

sdma::Result<std::vector<Point>, std::vector<sdma::Diagnostic>> measure(const Settings&, const Table&, sdma::Device&,
                                                                        std::span<const Way>, std::uint64_t bytes,
                                                                        const Companions&, const GoOn&);

}  // namespace collectives::perf
