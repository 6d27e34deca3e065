#pragma once
// Measures one size in one way on a device.
//
//   const auto p = measure(settings, table, device, {Variant::b2b, true}, 64 << 10, [] { return !interrupted; });
//   if (!p) for (const auto& d : p.error()) ...          // does not bind, a queue stopped, a round timed out
//   if (*p) use(**p);                                    // null: `go_on` returned false
//
//   plan, bind | warm-up rounds | timed rounds | verified rounds: poison, patterns, a round, each byte compared
//
// The timed part of a round is start (off: build and publish; prelaunch: the trigger) and wait. Publishing the next
// round, filling and comparing are not timed. Each wait ends at Settings::timeout. One thread at a time may measure;
// other threads may use the device meanwhile.
#include "collectives/table.hpp"
#include "point.hpp"
#include "sdma/device/device.hpp"

#include <functional>

namespace collectives::perf {

/// Called before each round.
using GoOn = std::function<bool()>;

sdma::Result<std::optional<Point>, std::vector<sdma::Diagnostic>> measure(const Settings&, const Table&, sdma::Device&,
                                                                          const Way&, std::uint64_t bytes, const GoOn&);

}  // namespace collectives::perf
