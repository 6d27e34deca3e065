// SPDX-License-Identifier: MIT
#pragma once
// Ranges of roctx in the JSON of rocprofv3, and in which of them the program asked for a copy. Internal.
//
//   RoctxRanges ranges;                            // of one process
//   ranges.kind("MARKER_CORE_RANGE_API");          // the kinds of records, in the order of their numbers
//   ranges.record({.kind = 0, .correlation = 7, .thread = 41, .begin = 10, .end = 90});
//   ranges.name(7, "forward");                     // by correlation
//   ranges.call(12, 41, 30);                       // of HIP or HSA
//   ranges.resolve();
//   ranges.phase(12)                               // "forward": that of the call of correlation 12; "": none
//
//   thread 41   |---- forward ----------------|
//                    |-- layer 3 --|                 phase: "forward > layer 3"
//                        call 12
//
// A range says what a thread of the program did, not what an engine did. So a copy belongs to the ranges in which its
// call began, on the thread of the call, whenever the copy itself ran. A mark has no length and is not a phase. Ranges
// that begin and end on two threads count for the thread of their record. No errors: what is not recorded has no phase.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class RoctxRanges {
 public:
  struct Record {
    std::uint64_t kind{}, correlation{}, thread{}, begin{}, end{};
  };
  void kind(std::string name) { kinds_.push_back(std::move(name)); }
  void name(std::uint64_t correlation, std::string name) { names_[correlation] = std::move(name); }
  void record(const Record& r) { records_.push_back(r); }
  void call(std::uint64_t correlation, std::uint64_t thread, std::uint64_t begin) {
    calls_.push_back({.correlation = correlation, .thread = thread, .begin = begin});
  }

  /// Everything has been read.
  void resolve();
  bool any() const noexcept { return ranges_ > 0; }
  bool has_call(std::uint64_t correlation) const { return phases_.count(correlation) != 0; }
  std::string phase(std::uint64_t correlation) const {
    const auto p = phases_.find(correlation);
    return p == phases_.end() ? std::string{} : p->second;
  }

 private:
  std::vector<std::string> kinds_;
  std::map<std::uint64_t, std::string> names_, phases_;  ///< by correlation
  std::vector<Record> records_, calls_;
  std::size_t ranges_ = 0;
};

}}}  // namespace sdma::v0_3::detail
