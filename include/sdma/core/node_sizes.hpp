// SPDX-License-Identifier: MIT
#pragma once
// How many ranks, or GPUs, each node has. They are grouped in their order; the list of numbers is repeated as needed.
//
//   const NodeSizes nodes{{3, 2}};         // of three and of two, in turn; {{4}}: of four each; {}: one node has all
//   nodes.of(4) == 1    nodes.first(1) == 3    nodes.size(1) == 2    nodes.count(10) == 4
//   to_string(nodes) == "3,2"              // parse_node_sizes (number.hpp) reads it
//
// No size is 0. Pure functions; only those of text and lists allocate.
#include "sdma/core/standard.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

struct NodeSizes {
  std::vector<std::uint32_t> sizes{};  ///< of the nodes, in turn

  /// Is there more than one node?
  bool grouped() const noexcept { return !sizes.empty(); }
  /// How many a node has. With one node, ~0.
  std::uint32_t size(std::uint32_t node) const noexcept { return grouped() ? sizes[node % sizes.size()] : ~0u; }
  /// The number of the node's first one.
  std::uint32_t first(std::uint32_t node) const noexcept {
    std::uint32_t out = 0;
    for (std::uint32_t n = 0; n < node; ++n) out += size(n);
    return out;
  }
  /// The node that has number `i`.
  std::uint32_t of(std::uint32_t i) const noexcept {
    std::uint32_t node = 0;
    for (; i >= size(node); ++node) i -= size(node);
    return node;
  }
  /// How many nodes these are; nothing if the last one is not whole.
  std::optional<std::uint32_t> count(std::uint32_t all) const noexcept {
    const auto nodes = all == 0 ? 0 : of(all - 1) + 1;
    return !grouped() || first(nodes) == all ? std::optional(nodes) : std::nullopt;
  }
  /// What the largest of these nodes has.
  std::uint32_t most(std::uint32_t all) const noexcept {
    std::uint32_t out = 0;
    for (std::uint32_t i = 0; i < all; i += size(of(i))) out = std::max(out, std::min(all - i, size(of(i))));
    return out;
  }
  bool operator==(const NodeSizes&) const = default;
};

inline std::string to_string(const NodeSizes& n) {
  std::string out;
  for (const auto one : n.sizes) out += (out.empty() ? "" : ",") + std::to_string(one);
  return out;
}

}}  // namespace sdma::v0_3
