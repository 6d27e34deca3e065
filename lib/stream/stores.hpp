// SPDX-License-Identifier: MIT
#pragma once
// The stores of a stream that nothing has waited for yet: which packet wrote which range. Internal to the stream rules.
//
//   Stores s;
//   s.add(0x1000, 64, 0x40);        // the packet at offset 0x40 writes [0x1000, 0x1040)
//   s.find(0x1010, 4)               // 0x40
//   s.erase(0x1010, 4);             // a FENCE or ATOMIC has posted to this word since
//   s.fenced(); s.polled();         // a poll after a fence: all stores before the fence may be complete
//
// Holds at most kMost ranges and ignores the rest, so that a stream that never waits does not need unbounded memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace sdma::inline v0::detail {

class Stores {
  struct Range {
    std::uint64_t end{}, packet{};
  };
  using Ranges = std::map<std::uint64_t, Range>;

  static std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) noexcept {
    return begin + bytes < begin ? ~std::uint64_t{} : begin + bytes;
  }
  /// The first range that ends after `begin`. Ranges in one map never overlap.
  template <class R> static auto ending_behind(R& ranges, std::uint64_t begin) {
    auto at = ranges.upper_bound(begin);
    if (at != ranges.begin() && std::prev(at)->second.end > begin) --at;
    return at;
  }

 public:
  static constexpr std::size_t kMost = 65536;

  void add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t packet) { add(recent_, begin, bytes, packet); }

  /// The offset of a packet that wrote some of these bytes.
  std::optional<std::uint64_t> find(std::uint64_t begin, std::uint64_t bytes) const {
    const auto end = end_of(begin, bytes);
    for (const auto* ranges : {&recent_, &fenced_})
      if (const auto at = ending_behind(*ranges, begin); at != ranges->end() && at->first < end)
        return at->second.packet;
    return {};
  }
  void erase(std::uint64_t begin, std::uint64_t bytes) {
    erase(recent_, begin, end_of(begin, bytes));
    erase(fenced_, begin, end_of(begin, bytes));
  }
  void fenced() {
    for (const auto& [begin, r] : recent_) add(fenced_, begin, r.end - begin, r.packet);
    recent_.clear();
  }
  void polled() noexcept { fenced_.clear(); }

 private:
  static void add(Ranges& ranges, std::uint64_t begin, std::uint64_t bytes, std::uint64_t packet) {
    auto end = end_of(begin, bytes);
    if (begin == end) return;
    for (auto at = ending_behind(ranges, begin); at != ranges.end() && at->first < end; at = ranges.erase(at)) {
      end = std::max(end, at->second.end);
      begin = std::min(begin, at->first);
    }
    if (ranges.size() < kMost) ranges.insert_or_assign(begin, Range{end, packet});
  }
  static void erase(Ranges& ranges, std::uint64_t begin, std::uint64_t end) {
    for (auto at = ending_behind(ranges, begin); at != ranges.end() && at->first < end;) {
      const auto [from, range] = *at;
      at = ranges.erase(at);
      if (from < begin) ranges.insert_or_assign(from, Range{begin, range.packet});
      if (range.end > end) ranges.insert_or_assign(end, range);
    }
  }

  Ranges recent_, fenced_;
};

}  // namespace sdma::inline v0::detail
