// SPDX-License-Identifier: MIT
#pragma once
// What the rules about a stream follow from packet to packet: what a NOP skips, what polls have waited for, and what
// was stored. Internal to the stream rules; no errors.
#include "../packets/overlap.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What a NOP skips. A NOP whose length is wrong swallows the packets
/// after it, and nothing executes them.
///
///   const auto s = skipped_by(view.dwords.subspan(1));
///   s.nonzero          how many of the dwords are not 0, which is what all public code leaves there
///   s.completion       the first packet among them that would complete something; null: there is none
struct SkippedDwords {
  std::size_t nonzero{};
  const PacketInfo* completion{};
  std::size_t at{};  ///< index of its first dword
};

/// Is this a fence, an atomic or a trap that an engine would accept, and not a number that looks like one?
inline bool is_completion(const PacketView& v) noexcept {
  if (!v.is<Fence>() && !v.is<Atomic>() && !v.is<Trap>()) return false;
  for (std::size_t i = 0; i < v.info->head; ++i)
    if ((v.dwords[i] & v.info->reserved(i)) != 0) return false;
  bool plausible = false;
  visit(*v.info, v.dwords, [&](const auto& p) { plausible = fits(p) && (v.is<Trap>() || word(p).va.value != 0); });
  return plausible;
}

inline SkippedDwords skipped_by(std::span<const std::uint32_t> payload) noexcept {
  SkippedDwords s;
  s.nonzero = payload.size() - static_cast<std::size_t>(std::count(payload.begin(), payload.end(), 0u));
  if (s.nonzero == 0) return s;
  for (Reader r{payload}; r;) {
    const auto at = r.position_dwords();
    if (const auto v = r.next(); is_completion(v)) return {s.nonzero, v.info, at};
  }
  return s;
}

/// The conditions that polls of a stream have waited for and that no packet of the stream has changed since.
///
///   Waited w;
///   w.add(0x1000, {Compare::ge, 5}, 0x40);      // the poll at offset 0x40 waits for [0x1000] >= 5
///   w.find(0x1000, {Compare::ge, 3})            // 0x40: that poll implies this one
///   w.stored({.va = 0x1000, .bytes = 4});       // the word may hold anything now
///
/// Remembers the last kMost words, so that a long stream does not need unbounded memory.
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

/// The stores of a stream that nothing has waited for yet: which packet wrote which range.
///
///   Stores s;
///   s.add(0x1000, 64, 0x40);        // the packet at offset 0x40 writes [0x1000, 0x1040)
///   s.find(0x1010, 4)               // 0x40
///   s.erase(0x1010, 4);             // a FENCE or ATOMIC has posted to this word since
///   s.fenced(); s.polled();         // a poll after a fence: all stores before the fence may be complete
///
/// Holds at most kMost ranges, so that a stream that never waits does not need unbounded memory. `full`: there were
/// more, and the rest was ignored.
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
  bool full() const noexcept { return full_; }

 private:
  void add(Ranges& ranges, std::uint64_t begin, std::uint64_t bytes, std::uint64_t packet) {
    auto end = end_of(begin, bytes);
    if (begin == end) return;
    for (auto at = ending_behind(ranges, begin); at != ranges.end() && at->first < end; at = ranges.erase(at)) {
      end = std::max(end, at->second.end);
      begin = std::min(begin, at->first);
    }
    if (ranges.size() < kMost) ranges.insert_or_assign(begin, Range{end, packet});
    else full_ = true;
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
  bool full_ = false;
};

}}}  // namespace sdma::v0_3::detail
