// SPDX-License-Identifier: MIT
#pragma once
// The copies that routes consist of, and when each could begin if nothing but the links took time. Internal.
//
//   auto steps = steps_of(task, net, routes, pieces);
//   order(task, net, routes, steps);                      // sets `start`: the order of each queue
//
// Of the copies that an edge could begin with, it takes the one whose bytes have furthest to go. As each begins after
// those that it needs, any number of queues with copies in this order cannot wait for each other in a circle.
#include "routed.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// A copy: a piece of a route over one of its edges.
struct Step {
  std::uint32_t item{}, route{}, piece{}, edge{};
  std::uint64_t begin{}, bytes{};    ///< of the item
  std::uint32_t left{};              ///< how many copies still follow it
  std::vector<std::size_t> after{};  ///< the steps that it needs
  double start{}, end{};
};

std::vector<Step> steps_of(const Task&, const Net&, const Routes&, std::uint32_t pieces);
void order(const Task&, const Net&, const Routes&, std::vector<Step>&);

}}}  // namespace sdma::v0_3::detail
