// SPDX-License-Identifier: MIT
#pragma once
// How the bytes of a collective go through a node: trees over its links, such that no link carries much more than
// others. Internal.
//
//   Net net = net_of(topology, machine, gpus);
//   auto all = balanced_routes(net, items, 64, 60);   // some trees for each item, each with a part of its bytes
//   auto direct = direct_routes(net, items);    // nothing if two GPUs that exchange bytes have no link
//
// An item is bytes of one GPU that others need: one of them, or all. A tree leads from that GPU to them; each GPU of
// the tree gets the bytes once. An item is cut into units, and each unit is given the cheapest tree, where a link costs
// the more, the fuller it is. Units are then moved again and again, at ever steeper prices, and the best state is kept:
// the usual approximation of the optimum of a linear program.
#include "sdma/simulate/machine.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

struct NetEdge {
  std::uint32_t from{}, to{};
  double rate{};  ///< bytes/ns
  std::vector<std::uint32_t> shares{};
  bool network{};  ///< between nodes
};
struct Net {
  std::uint32_t gpus{};
  std::vector<NetEdge> edges{};
  std::vector<double> shared{};  ///< the rates of what several edges share
  /// The same with each edge in the other direction.
  Net reversed() const;
};
/// Of the first GPUs of the machine; links of unknown rate are left out.
Net net_of(const MachineDescription&, std::uint32_t gpus);

struct Item {
  std::uint32_t root{};
  std::optional<std::uint32_t> to{};  ///< nothing: all GPUs
  std::uint64_t bytes{};
};

/// A tree, and the part of its item's bytes that takes it.
struct Route {
  std::vector<std::uint32_t> edge{};  ///< the edge that leads to each GPU; kNoEdge: none
  std::uint64_t begin{}, bytes{};
};
inline constexpr std::uint32_t kNoEdge = ~0u;
using Routes = std::vector<std::vector<Route>>;  ///< of each item

/// GPUs that cannot be reached from another one: the first such pair.
std::optional<std::pair<std::uint32_t, std::uint32_t>> unreachable(const Net&);

std::optional<Routes> direct_routes(const Net&, const std::vector<Item>&);
/// Trees with as few copies in a row as possible.
Routes shortest_routes(const Net&, const std::vector<Item>&);
/// Requires that there is a way for each item. Each item is cut into at most so many units.
Routes balanced_routes(const Net&, const std::vector<Item>&, std::uint64_t granule, std::uint64_t units);

/// For each edge: how long what crosses it takes, with what it shares.
std::vector<double> busy_ns(const Net&, const Routes&);

}}}  // namespace sdma::v0_3::detail
