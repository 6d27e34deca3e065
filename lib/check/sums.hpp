// SPDX-License-Identifier: MIT
#pragma once
// What sums hold, as numbers that are equal if the sums are. Internal.
//
//   Sums sums;
//   auto ab = sums.add({.type = f32}, {a, b}, by);      a Held of Kind::sum
//   sums.add({.type = f32}, {*ab, c}, by)               equal: a + b + c, b + a + c. Not equal: a + c + b
//   sums.parts(*abc)                                    a, b and c, in an order of their own
//
//   integers      additions commute and associate: a sum is its parts, without zeros
//   fixed order   a + b and b + a are the same bytes, but (a + b) + c and a + (b + c) are not
//   free order    each store may add in an order of its own: its sum is equal to itself alone. Two parts have only one
//                 order
//
// A sum goes through memory like other bytes: Held::at counts from where its first part begins, and elements begin
// where `at` is equal to `phase` modulo their size. Allocates. One thread at a time.
#include "held.hpp"

#include <map>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace check_detail {

class Sums {
 public:
  using Type = Schedule::Sum::Type;

  /// What the sum of these parts holds, each from the beginning of an element on; nothing if that is not followed.
  std::optional<Held> add(const Schedule::Sum&, const std::vector<Held>& parts, Position by);
  /// What is added, each as often as it is, sorted; what is not a sum, itself.
  std::vector<Held> parts(const Held&) const;
  Type type(const Held& sum) const { return of(sum).type; }
  /// Is the order of an addition in it open?
  bool open(const Held& h) const { return h.kind == Held::Kind::sum && of(h).open; }
  /// Where in its first element are these bytes? 0 for what is not a sum.
  std::uint64_t phase(const Held& h) const {
    return h.kind == Held::Kind::sum ? (h.at - of(h).phase) % of(h).element() : 0;
  }

 private:
  struct Node {
    Type type{};
    bool open{};
    std::uint64_t phase{};
    std::vector<Held> parts{};  ///< relative to the sum's `at`
    std::uint64_t element() const noexcept { return Schedule::Sum{.type = type}.element(); }
  };
  const Node& of(const Held& h) const { return nodes_[static_cast<std::size_t>(h.value)]; }
  std::optional<Held> node(Type, std::vector<Held> parts, Position by);

  std::vector<Node> nodes_;
  std::map<std::vector<std::uint64_t>, std::uint64_t> numbers_;  ///< what makes a node: its index
};

}}}  // namespace sdma::v0_3::check_detail
