#pragma once
// One size in one way, measured on a device.
//
//   const auto p = measure(settings, table, device, {Variant::b2b, true}, 64 << 10, [] { return !interrupted; });
//   if (!p) for (const auto& d : p.error()) ...          // does not bind, a queue stopped, a round did not end
//   if (*p) use(**p);                                    // none: `go_on` said no
//
//   plan, bind | warm-up rounds | timed rounds | verified rounds: poison, patterns, a round, each byte compared
//
// Of a round, what is timed is start (off: building and publishing; prelaunch: the trigger) and wait. Publishing the next
// round, filling and comparing are outside. Each wait ends at Settings::timeout. One thread; the device may be used by others.
#include "collectives/table.hpp"
#include "point.hpp"
#include "sdma/device/device.hpp"

#include <functional>

namespace collectives::perf {

/// Asked before each round.
using GoOn = std::function<bool()>;

sdma::Result<std::optional<Point>, std::vector<sdma::Diagnostic>> measure(const Settings&, const Table&, sdma::Device&,
                                                                          const Way&, std::uint64_t bytes, const GoOn&);

}  // namespace collectives::perf
