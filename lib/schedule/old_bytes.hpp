// SPDX-License-Identifier: MIT
#pragma once
// What buffers held before a run, for expectations that say `old`. Internal.
//
//   OldBytes old{bound};  old.remember();      // after all contents are stored, before anything runs
//   old.bytes(range)                           // of a range that an expectation compares
//
// Saves each whole buffer once, however many expectations compare it. One thread remembers; any may read. No errors.
#include "sdma/schedule/bind.hpp"
#include "symbols.hpp"

#include <map>

namespace sdma::inline v0::detail {

class OldBytes {
 public:
  explicit OldBytes(const Bound& b) : bound_(b), s_(b.schedule()) {}

  void remember() {
    for (const auto& e : s_.expectations) remember_right(e);
    each_action(s_, [this](const auto& a) { remember_right(a); });
  }
  std::span<const std::byte> bytes(const Schedule::Range& r) const {
    const auto l = *find_symbol(s_, r.va);
    return std::span<const std::byte>(old_.at({l.signal, l.index}))
        .subspan(static_cast<std::size_t>(l.offset), static_cast<std::size_t>(r.bytes));
  }

 private:
  template <class Expects> void remember_right(const Expects& e) {
    if (e.old && !e.sum) remember(e.right);
    for (const auto& p : e.sum.parts)
      if (e.old) remember(p);
  }
  void remember(const Schedule::Range& r) {
    const auto l = *find_symbol(s_, r.va);
    auto& kept = old_[{l.signal, l.index}];
    if (!kept.empty()) return;
    const auto now = bound_.bytes({link_address({l.signal, l.index, 0}), bytes_of(s_, l)});
    kept.assign(now.begin(), now.end());
  }

  const Bound& bound_;
  const Schedule& s_;
  std::map<std::pair<bool, std::size_t>, std::vector<std::byte>> old_;
};

}  // namespace sdma::inline v0::detail
