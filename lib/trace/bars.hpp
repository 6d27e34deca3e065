// SPDX-License-Identifier: MIT
#pragma once
// Packets and actions as bars in rows, the first step of every picture of a trace. Internal.
//
//   const Bars b(trace);
//   for (const auto& bar : b.lanes[lane].bars) draw(bar.row, bar.from, bar.to);
//
// An end matches the last beginning with the same position, so packets of an indirect buffer may have the position of
// the ring's packet. A packet without an end lasts until the end of the trace. Bars of a lane that overlap go to
// further rows: nothing is dropped.
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sdma::inline v0::trace::detail {

/// A packet, or an action of a host thread, from its beginning to its end, in the first free row of its lane.
struct Bar {
  const Event* begin{};
  std::uint64_t from{}, to{};
  bool finished{};
  std::size_t row{};
  std::uint64_t epoch{};  ///< of the packet's queue; 0: not recorded

  bool action() const noexcept { return begin->kind == Kind::action_begin; }
};

struct LaneBars {
  std::vector<Bar> bars{};                         ///< by time of beginning
  std::vector<std::vector<std::size_t>> rows{{}};  ///< indices of bars, each row without overlap

  /// The row of the bar that was running at `ns`; if several were, of the one that began last.
  std::optional<std::size_t> row_at(std::uint64_t ns) const;
};

struct Bars {
  explicit Bars(const Trace&);

  std::vector<LaneBars> lanes{};     ///< by LaneId
  std::vector<const Event*> ends{};  ///< packet_end events without a beginning
  std::uint64_t first{}, last{};     ///< times of the first and last event, in ns; both 0 without events
  std::uint64_t start{}, end{};  ///< the first packet's beginning and the last end of a bar; without packets, as above
};

}  // namespace sdma::inline v0::trace::detail
