// SPDX-License-Identifier: MIT
#pragma once
// Words for signals, cut from pages of memory; each has its own cache line. Words are reused in the order in which they
// were given back. So if an engine still stores to a freed word by mistake, that word is not in use again at once.
//
//   while (!(taken = slots.take(where))) slots.add_page(host, va, where);      // under the owner's lock
//
// Not thread-safe. Internal to the library.
#include "sdma/core/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sdma::inline v0::detail {

class SignalSlots {
 public:
  static constexpr std::size_t kLine = 64, kPageBytes = 4096;
  struct Slot {
    std::uint64_t* word{};
    GpuVa va{};
    std::optional<GpuId> where{};
  };

  void add_page(std::byte* host, GpuVa va, std::optional<GpuId> where) {
    for (std::size_t i = 0; i < kPageBytes; i += kLine)
      free_.push_back({.word = reinterpret_cast<std::uint64_t*>(host + i), .va = va + i, .where = where});
  }
  /// A free slot in that place's memory, and its id; nullopt: there is none, add a page.
  std::optional<std::pair<std::uint64_t, Slot>> take(std::optional<GpuId> where) {
    const auto at = std::find_if(free_.begin(), free_.end(), [&](const Slot& s) { return s.where == where; });
    if (at == free_.end()) return {};
    const std::pair taken(next_++, *at);
    taken_.insert(taken);
    free_.erase(at);
    return taken;
  }
  void give_back(std::uint64_t id) {
    const auto it = taken_.find(id);
    if (it == taken_.end()) return;
    free_.push_back(it->second);
    taken_.erase(it);
  }

 private:
  std::vector<Slot> free_{};
  std::unordered_map<std::uint64_t, Slot> taken_{};
  std::uint64_t next_ = 1;
};

}  // namespace sdma::inline v0::detail
