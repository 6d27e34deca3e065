// SPDX-License-Identifier: MIT
#pragma once
// The conditions that polls of a stream have waited for and that no packet of the stream has changed since. Internal to
// the stream rules.
//
//   Waited w;
//   w.add(0x1000, {Compare::ge, 5}, 0x40);      // the poll at offset 0x40 waits for [0x1000] >= 5
//   w.find(0x1000, {Compare::ge, 3})            // 0x40: that poll implies this one
//   w.stored({.va = 0x1000, .bytes = 4});       // the word may hold anything now
//
// Remembers the last kMost words, so that a long stream does not need unbounded memory.
#include "sdma/packets/overlap.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace sdma::inline v0::detail {

class Waited {
  struct Wait {
    GpuVa word{};
    Condition condition{};
    std::uint64_t packet{};
  };

 public:
  static constexpr std::size_t kMost = 16;

  void add(GpuVa word, const Condition& c, std::uint64_t packet) {
    std::erase_if(waits_, [&](const Wait& w) { return w.word == word; });
    if (waits_.size() == kMost) waits_.erase(waits_.begin());
    waits_.push_back({word, c, packet});
  }
  /// The offset of a poll that has waited for this condition or a stronger one.
  std::optional<std::uint64_t> find(GpuVa word, const Condition& c) const noexcept {
    for (const auto& w : waits_)
      if (w.word == word && implies(w.condition, c)) return w.packet;
    return {};
  }
  void stored(const Region& r) {
    std::erase_if(waits_, [&](const Wait& w) { return meet(Region{.va = w.word, .bytes = 4}, r); });
  }
  void forget() noexcept { waits_.clear(); }

 private:
  std::vector<Wait> waits_;
};

}  // namespace sdma::inline v0::detail
