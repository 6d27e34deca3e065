// SPDX-License-Identifier: MIT
#include "resync.hpp"

#include "plausible.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace sdma::inline v0::detail {
namespace {

/// Each gap costs as much as the evidence that a start needs: a copy after it pays for it, a trap does not.
constexpr std::int64_t kGapCost = 8;
/// What it is worth that the packets end where the dwords end.
constexpr std::int64_t kEndBonus = 8;
constexpr std::size_t kWindow = std::size_t{1} << 22;

PacketView packet_at(std::span<const std::uint32_t> dwords, std::size_t at, const Catalogue& packets) noexcept {
  return Reader{dwords.subspan(at), packets}.next();
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

}  // namespace

bool is_no_packet(const PacketView& v, bool bounded) noexcept {
  return !v.info || (v.cut_off && (bounded || !is_plausible(v)));
}

std::vector<DumpGap> find_gaps(std::span<const std::uint32_t> dwords, std::size_t begin, bool bounded,
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

}  // namespace sdma::inline v0::detail
