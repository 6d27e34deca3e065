#pragma once
// Packets as bars in rows: what every picture of a trace begins with. Internal.
//
//   const Bars b(trace);
//   for (const auto& bar : b.lanes[lane].bars) draw(bar.row, bar.from, bar.to);
//
// An end finds the last beginning of its position, so that packets of an indirect buffer may carry the ring's. A packet
// without an end lasts until the trace does. Bars of a lane that overlap go to further rows: nothing is dropped.
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace trace {
namespace detail {

/// A packet from its beginning to its end, in the first row of its lane that is free.
struct Bar {
  const Event* begin{};
  std::uint64_t from{}, to{};
  bool finished{};
  std::size_t row{};
};

struct LaneBars {
  std::vector<Bar> bars{};                         ///< by time of beginning
  std::vector<std::vector<std::size_t>> rows{{}};  ///< indices of bars, each row without overlap

  /// The row of the bar that was running at `ns`, the one begun last.
  std::optional<std::size_t> row_at(std::uint64_t ns) const;
};

struct Bars {
  explicit Bars(const Trace&);

  std::vector<LaneBars> lanes{};     ///< by LaneId
  std::vector<const Event*> ends{};  ///< packet_end without a beginning
  std::uint64_t first{}, last{};     ///< of all events, ns; 0 and 0 without any
};

}  // namespace detail
}  // namespace trace
}  // namespace v0
}  // namespace sdma
