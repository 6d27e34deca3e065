// SPDX-License-Identifier: MIT
#pragma once
// What a fetch consists of, whatever executes it: blocks are dealt to lanes, and lanes get groups of packets.
//
//   blocks   0 1 2 3 4 5 6 7        engines 1, 0 with 2 queues each: four lanes
//   lane     0 2 1 3 0 2 1 3        lane = engine * queues + queue; consecutive blocks go to different engines
//
//   way          groups                                     the host waits for all lanes
//   looped       one block each                             after each group for the last lane, and at the end
//   batched      one block each                             at the end
//   b2b          all blocks of a lane                       at the end
//   prelaunched  all blocks of a lane, after a poll         at the end, timed from the trigger
//
// A group is `[poll] copies completion`, with one doorbell. mover.hpp executes groups, simulated.hpp simulates them.
//
// Plain values; any thread may use these functions. No errors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace collectives::kv {

enum class Way : std::uint8_t { looped, batched, b2b, prelaunched };
inline constexpr Way kWays[] = {Way::looped, Way::batched, Way::b2b, Way::prelaunched};
inline std::string_view name(Way w) noexcept {
  constexpr std::string_view kNames[] = {"looped", "batched", "b2b", "prelaunched"};
  return kNames[static_cast<std::size_t>(w)];
}

struct Request {
  Way way = Way::b2b;
  std::uint32_t engines = 1, queues = 1;  ///< `queues` on each engine
  std::uint64_t blocks{}, bytes{};        ///< `bytes` per block
  std::size_t lanes() const noexcept { return std::size_t{engines} * queues; }
};

struct Group {
  std::size_t lane{};
  std::vector<std::size_t> blocks{};
  bool wait{};  ///< after this group, the host waits for all lanes
};
/// In the order in which the host publishes them. A lane without blocks has no group.
inline std::vector<Group> groups_of(const Request& r) {
  const auto lane_of = [&](std::uint64_t block) { return block % r.engines * r.queues + block / r.engines % r.queues; };
  const bool one_each = r.way == Way::looped || r.way == Way::batched;
  std::vector<Group> all;
  if (!one_each)
    for (std::size_t lane = 0; lane < r.lanes(); ++lane) all.push_back({.lane = lane});
  for (std::uint64_t i = 0; i < r.blocks; ++i)
    if (one_each) all.push_back({lane_of(i), {i}, r.way == Way::looped && (i + 1) % r.lanes() == 0});
    else all[lane_of(i)].blocks.push_back(i);
  std::erase_if(all, [](const Group& g) { return g.blocks.empty(); });
  all.back().wait = true;
  return all;
}

/// Seconds for all blocks of a request, in each direction.
struct Times {
  double fetch{}, give{};
};

}  // namespace collectives::kv
