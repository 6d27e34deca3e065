// SPDX-License-Identifier: MIT
#pragma once
// What no device accepts, whatever its memory holds: bind asks before it allocates, and the checker asks the same
// function, so a schedule that is proved can be bound. Internal.
//
//   for (const auto& r : refused(schedule, topology, gpus)) r.rule, r.message ...
//
//   alignment        a word of 4 or 8 bytes at an address that is not a multiple of its size
//   no-such-gpu      the node has fewer GPUs, or a GPU is chosen twice
//   ib-alignment     an INDIRECT that would not end at a multiple of 8 dwords in the ring
//   other-node       an engine, a host thread or a kernel reaches into another machine
//   engine-refused   no engine for a peer, an engine that the node does not have, or more queues than it serves at once
//
// The packets themselves are not examined here: engine/admit.hpp says which of them an engine refuses.
// A pure function; allocates.
#include "gpu_set.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/schedule/schedule.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

struct Refusal {
  std::string_view rule{};             ///< of docs/rules.md
  std::optional<std::size_t> queue{};  ///< its index, if a queue is refused
  std::size_t dword{};                 ///< of the packet in the queue
  const Schedule::Action* action{};    ///< that is refused
  std::string where{};                 ///< "gpus", "gpu1", "queue gpu0.push", "signal host.done"
  std::string message{}, hint{};
};

/// `gpus`: the node's GPU for each GPU of the schedule; empty: the same numbers. `elsewhere`: GPUs of the schedule that
/// are in another machine, whose topology is not known here; the rule other-node is then left to map_nodes.
std::vector<Refusal> refused(const Schedule&, const Topology&, std::span<const GpuId> gpus = {},
                             const GpuSet& elsewhere = {});
/// Only those of the rule other-node: the first of each queue and each actor. Requires GPUs that exist.
std::vector<Refusal> across_nodes(const Schedule&, const Topology&, std::span<const GpuId> gpus = {});

/// In which node everything is that a node uses.
struct NodeMap {
  std::map<std::pair<bool, std::size_t>, std::uint32_t> symbols{};  ///< signal?, index
  std::map<std::size_t, std::uint32_t> actors{};                    ///< by index
  /// Words of the host that only the network sets and no thread uses: they are put in the peer's node, but nothing in
  /// the schedule says so.
  std::set<std::pair<bool, std::size_t>> assumed{};
  std::vector<Refusal> refusals{};  ///< of the rule other-node
};
/// `nodes`: that of each GPU. Requires a schedule without problems.
NodeMap map_nodes(const Schedule&, const std::vector<std::uint32_t>& nodes);

}}}  // namespace sdma::v0_3::detail
