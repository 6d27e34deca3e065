// SPDX-License-Identifier: MIT
#pragma once
// Where reading is lost in dwords that begin with a packet, and where it resumes.
//
//   for (const DumpGap& g : find_gaps(dwords, 0, true, packets)) skip(g.at, g.end);
//
// Every dword after a gap is a candidate for the next start. The value of a start is the plausibility of all
// packets from it on, up to the end or to the next gap, which is decided in the same way; so one pass from the end
// to the gap values all of them. Dwords are valued in windows of 4 Mi; a start in a later window is not compared
// with those of an earlier one.
//
// Without a gap, the dwords are read once, and nothing is allocated. Any thread may call these functions. No errors.
#include "plausible.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Each gap costs as much as the evidence that a start needs: a copy after it pays for it, a trap does not.
inline constexpr std::int64_t kGapCost = 8;
/// What it is worth that the packets end where the dwords end.
inline constexpr std::int64_t kEndBonus = 8;
inline constexpr std::size_t kWindow = std::size_t{1} << 22;
inline PacketView packet_at(std::span<const std::uint32_t> dwords, std::size_t at, const Catalogue& packets) noexcept {
  return Reader{dwords.subspan(at), packets}.next();
}

/// Can this not be a packet? `bounded`: the engine stops where the dwords end, so no packet reaches past them.
inline bool is_no_packet(const PacketView& v, bool bounded) noexcept {
  return !v.info || (v.cut_off && (bounded || !is_plausible(v)));
}

/// What each start in a window is worth.
class Worth {
 public:
  Worth(std::span<const std::uint32_t> dwords, std::size_t begin, bool bounded, const Catalogue& packets)
      : begin_(begin), end_(std::min(dwords.size(), begin + kWindow)), last_(end_ == dwords.size()) {
    const auto n = end_ - begin_;
    read_.assign(n + 1, kNever);
    skip_.assign(n + 1, 0);
    read_[n] = kEndBonus;
    const auto here = dwords.first(end_);
    for (auto i = n; i-- > 0;) {
      const auto v = packet_at(here, begin_ + i, packets);
      skip_[i] = std::max(skip_[i + 1], resumed(i + 1)) - 1;
      if (is_no_packet(v, bounded && last_)) continue;
      const auto next = i + v.dwords.size();
      read_[i] = plausibility(v) + (v.cut_off ? kEndBonus + 1 : read_[next] == kNever ? skip_[next] : read_[next]);
    }
  }
  bool covers(std::size_t at) const noexcept { return at >= begin_ && at < (last_ ? end_ : begin_ + kWindow / 2); }
  /// Where reading resumes if it is lost at `at`; the window's end if no start is worth it.
  std::size_t next(std::size_t at) const noexcept {
    auto i = at - begin_ + 1;
    while (i < end_ - begin_ && resumed(i) < skip_[i]) ++i;
    return begin_ + i;
  }
  bool last() const noexcept { return last_; }
  std::size_t end() const noexcept { return end_; }

 private:
  static constexpr auto kNever = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t resumed(std::size_t i) const noexcept {
    return i == end_ - begin_ || read_[i] == kNever ? kNever : read_[i] - kGapCost;
  }

  std::size_t begin_, end_;
  bool last_;
  std::vector<std::int64_t> read_, skip_;  // of each dword: if a packet begins there, if it belongs to a gap
};

struct DumpGap {
  std::size_t at = 0, end = 0;  ///< the dwords [at, end) belong to no packet
};
/// The gaps from `begin` on, where a packet begins.
inline std::vector<DumpGap> find_gaps(std::span<const std::uint32_t> dwords, std::size_t begin, bool bounded,
                                      const Catalogue& packets) {
  std::vector<DumpGap> gaps;
  std::optional<Worth> worth;
  for (auto at = begin; at < dwords.size();) {
    if (dwords[at] == 0) {
      at += leading_zeros(dwords.subspan(at));
      continue;
    }
    const auto v = packet_at(dwords, at, packets);
    if (!is_no_packet(v, bounded)) {
      at += v.dwords.size();
      continue;
    }
    DumpGap gap{at, at};
    for (bool found = false; !found && gap.end < dwords.size();) {
      const auto from = gap.end == gap.at ? gap.at : gap.end - 1;  // the last dword that is known to be skipped
      if (!worth || !worth->covers(from)) worth.emplace(dwords, from, bounded, packets);
      gap.end = worth->next(from);
      found = worth->last() || gap.end < worth->end();
    }
    // A last packet that is cut off, with nothing to resume at, is what it seems to be.
    if (gap.end < dwords.size() || bounded || !v.info) gaps.push_back(gap);
    at = gap.end;
  }
  return gaps;
}

}}}  // namespace sdma::v0_3::detail
