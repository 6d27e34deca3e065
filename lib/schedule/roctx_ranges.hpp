// SPDX-License-Identifier: MIT
#pragma once
// Ranges of roctx that rocprofv3 has recorded, and in which of them a program asked for its copies. Internal.
//
//   RoctxRanges ranges;                            // of one process
//   ranges.range({.thread = 41, .begin = 10, .end = 90, .name = "forward"});
//   ranges.copy(7, 0);                             // the first copy: the call of correlation 7 has made it
//   ranges.call(7, 41, 30);                        // of HIP or HSA: its thread, and when it began
//   ranges.resolve([&](std::size_t copy, std::string phase) { rows[copy].phase = std::move(phase); return true; });
//
//   thread 41   |---- forward ----------------|
//                    |-- layer 3 --|                 phase: "forward > layer 3"
//                        call 7
//
// A range says what a thread of the program did, not what an engine did. So a copy belongs to the ranges in which its
// call began, on the thread of the call, whenever the copy itself ran. A mark has no length and is not a phase. Ranges
// that begin and end on two threads count for the thread of their record. If more than 16 are in each other, the
// phase names the outer 16 and says how many more there are. Only calls of copies have a phase; time grows as n log n.
// No errors: what is not recorded has no phase.
#include "copies_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

struct RoctxRange {
  std::uint64_t thread{}, begin{}, end{};
  std::string name{};
};

/// The ranges of a thread that are open at a moment, which only moves on.
class OpenRanges {
 public:
  explicit OpenRanges(const std::vector<RoctxRange>& all) : all_(all) {}

  /// Opens what has begun, and closes what has ended.
  void move_to(std::uint64_t thread, std::uint64_t time) {
    if (thread != thread_) open_.clear(), ends_ = {}, thread_ = thread;
    for (; next_ < all_.size() && std::tie(all_[next_].thread, all_[next_].begin) <= std::tie(thread, time); ++next_) {
      if (all_[next_].thread != thread) continue;
      open_.insert(next_);
      ends_.emplace(all_[next_].end, next_);
    }
    for (; !ends_.empty() && ends_.top().first < time; ends_.pop()) open_.erase(ends_.top().second);
  }
  std::string names() const {
    std::string out;
    std::size_t named = 0;
    for (const auto i : open_) {
      if (named++ == kMostNamed) return out + fmt::format(" > {} more", open_.size() - kMostNamed);
      out += (out.empty() ? "" : " > ") + all_[i].name;
    }
    return out;
  }

 private:
  static constexpr std::size_t kMostNamed = 16;
  using End = std::pair<std::uint64_t, std::size_t>;
  const std::vector<RoctxRange>& all_;
  std::uint64_t thread_ = 0;
  std::size_t next_ = 0;
  std::set<std::size_t> open_;  ///< the outer ones first
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

class RoctxRanges {
 public:
  using Range = RoctxRange;
  /// Do the records of this kind have a length and a name that the program gave? ROCm 7 has renamed the kind.
  static bool is_range(std::string_view kind) noexcept {
    return kind == "MARKER_CORE_RANGE_API" || kind == "MARKER_CORE_API";
  }

  /// One of thread 0 is of none: rocprofv3 of ROCm 6 writes so what roctxRangeStart begins.
  void range(Range r) {
    if (r.end <= r.begin || r.name.empty()) return;
    if (r.thread == 0) ++without_thread_;
    else ranges_.push_back(std::move(r));
  }
  void copy(std::uint64_t correlation, std::size_t index) { copies_.push_back({correlation, index}); }
  /// Without a correlation, the call of a copy is not known.
  void copy_without_call() noexcept { ++unknown_; }
  void call(std::uint64_t correlation, std::uint64_t thread, std::uint64_t begin) {
    calls_.push_back({correlation, thread, begin});
  }

  bool any() const noexcept { return !ranges_.empty(); }
  /// Everything has been read: calls f(index of a copy, its phase) until it returns false, for each copy that has a
  /// phase. Returns the number of copies whose call is not recorded; 0 if there are no ranges.
  std::size_t resolve(const std::function<bool(std::size_t, std::string)>& f);
  std::size_t without_thread() const noexcept { return without_thread_; }
  /// Adds what is not known if so many copies have no call, and so many ranges no thread.
  static void say(std::size_t copies, std::size_t ranges, std::vector<std::string>& unknown);

 private:
  struct Copy {
    std::uint64_t correlation{};
    std::size_t index{};
  };
  struct Call {
    std::uint64_t correlation{}, thread{}, begin{};
  };
  std::vector<Range> ranges_;
  std::vector<Copy> copies_;
  std::vector<Call> calls_;
  std::size_t unknown_ = 0, without_thread_ = 0;
};

inline std::size_t RoctxRanges::resolve(const std::function<bool(std::size_t, std::string)>& f) {
  if (!any()) return 0;
  std::sort(copies_.begin(), copies_.end(), [](const Copy& a, const Copy& b) {
    return std::tie(a.correlation, a.index) < std::tie(b.correlation, b.index);
  });
  const auto of = [&](const Call& c) {
    return std::lower_bound(copies_.begin(), copies_.end(), c.correlation,
                            [](const Copy& a, std::uint64_t correlation) { return a.correlation < correlation; });
  };
  const auto makes_none = [&](const Call& c) {
    const auto found = of(c);
    return found == copies_.end() || found->correlation != c.correlation;
  };
  calls_.erase(std::remove_if(calls_.begin(), calls_.end(), makes_none), calls_.end());
  std::stable_sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);  // the outer one first
  });
  std::stable_sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
    return std::tie(a.thread, a.begin) < std::tie(b.thread, b.begin);
  });
  OpenRanges open(ranges_);
  std::vector<bool> known(copies_.size());
  for (const auto& c : calls_) {
    open.move_to(c.thread, c.begin);
    const auto phase = open.names();
    for (auto i = of(c); i != copies_.end() && i->correlation == c.correlation; ++i) {
      const auto at = static_cast<std::size_t>(i - copies_.begin());
      if (known[at]) continue;
      known[at] = true;
      if (!phase.empty() && !f(i->index, phase)) return 0;
    }
  }
  return unknown_ + static_cast<std::size_t>(std::count(known.begin(), known.end(), false));
}

inline void RoctxRanges::say(std::size_t copies, std::size_t ranges, std::vector<std::string>& unknown) {
  if (copies > 0)
    unknown.push_back(
        fmt::format("phases: ranges of roctx are recorded, but not the calls of {} (--hip-trace, --hsa-trace)",
                    plural_of_copies(copies)));
  if (ranges > 0)
    unknown.push_back(fmt::format("phases: {} of roctx {} no thread in the file, so no copy is in {}",
                                  ranges == 1 ? "1 range" : fmt::format("{} ranges", ranges),
                                  ranges == 1 ? "has" : "have", ranges == 1 ? "it" : "them"));
}

}}}  // namespace sdma::v0_3::detail
