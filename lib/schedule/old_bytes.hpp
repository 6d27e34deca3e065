// SPDX-License-Identifier: MIT
#pragma once
// What buffers held before a run, for expectations that say `old`. Internal.
//
//   OldBytes old{bound};  old.remember();      // after all contents are stored, before anything runs
//   old.bytes(range)                           // of a range that an expectation compares
//
// Saves each whole buffer once, however many expectations compare it. One thread remembers; any may read. No errors.
// What another node has cannot be read: `far` says what it was filled with.
#include "sdma/schedule/bind.hpp"
#include "symbols.hpp"

#include <functional>

#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {

class OldBytes {
 public:
  explicit OldBytes(const Bound& b) : bound_(b), s_(b.schedule()) {}

  /// Fills the bytes of each buffer for which it returns some.
  using Fill = std::function<void(const std::function<std::span<std::byte>(std::size_t)>&)>;

  void remember(const Fill& far) {
    for (const auto& e : s_.expectations) remember_right(e);
    each_action(s_, [this](const auto& a) { remember_right(a); });
    far([this](std::size_t buffer) -> std::span<std::byte> {
      const auto l = *find_symbol(s_, resolve(s_, link_buffer(buffer)));
      const auto at = old_.find({false, l.index});
      if (l.signal || at == old_.end() || !is_far(l)) return {};
      return std::span(at->second)
          .subspan(static_cast<std::size_t>(l.offset), static_cast<std::size_t>(s_.buffers[buffer].bytes));
    });
  }
  std::span<const std::byte> bytes(const Schedule::Range& r) const {
    const auto l = root(r);
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
    const auto l = root(r);
    auto& kept = old_[{l.signal, l.index}];
    if (!kept.empty()) return;
    const auto now = bytes_now(l);
    kept.assign(now.begin(), now.end());
    kept.resize(static_cast<std::size_t>(bytes_of(s_, l)));
  }
  /// Aliases of a buffer share what is kept of it.
  SymbolOffset root(const Schedule::Range& r) const {
    const auto to = find_symbol(s_, resolve(s_, r.va));
    return to ? *to : *find_symbol(s_, r.va);
  }
  std::span<std::byte> bytes_now(const SymbolOffset& l) const {
    return bound_.bytes({link_address({l.signal, l.index, 0}), bytes_of(s_, l)});
  }
  bool is_far(const SymbolOffset& l) const { return bytes_now(l).empty(); }

  const Bound& bound_;
  const Schedule& s_;
  std::map<std::pair<bool, std::size_t>, std::vector<std::byte>> old_;
};

}}}  // namespace sdma::v0_3::detail
