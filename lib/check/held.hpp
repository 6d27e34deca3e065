// SPDX-License-Identifier: MIT
#pragma once
// What memory holds while an execution is followed, as pieces of first contents, of known bytes, and of bytes about
// which nothing is known. Internal.
//
//   Memory now;
//   Pieces bytes;
//   now.take(src, 4096, bytes);                        one piece: the first contents of src
//   for (const auto& b : bytes) now.put(dst, b.bytes, b.held);
//
// Allocates. One thread at a time. No errors.
#include "model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace check_detail {

/// What consecutive bytes hold; `at` counts bytes from where their kind begins.
struct Held {
  enum class Kind : std::uint8_t {
    first,    ///< what the bytes from address `at` hold before anything runs, which is not known
    pattern,  ///< the bytes of `value`, which repeat
    data,     ///< the bytes at `data`
    opaque,   ///< those that the store with the number `value` has put there
    sum,      ///< those of the sum with the number `value` (sums.hpp)
  };
  Kind kind{};
  std::uint64_t at{}, value{};
  const std::byte* data{};
  Position by{kNone, 0};  ///< what has put them there; agent kNone: nothing has

  bool known() const noexcept { return kind == Kind::pattern || kind == Kind::data; }
  /// Only for known bytes.
  std::byte byte(std::uint64_t i) const noexcept {
    if (kind == Kind::data) return data[at + i];
    return static_cast<std::byte>(value >> (8 * ((at + i) % 8)));
  }
  Held from(std::uint64_t i) const noexcept {
    auto rest = *this;
    rest.at += i;
    return rest;
  }
  /// Are both the same bytes of the same thing?
  bool same(const Held& o) const noexcept { return kind == o.kind && at == o.at && value == o.value && data == o.data; }
};

struct Piece {
  std::uint64_t bytes{};
  Held held{};
};
using Pieces = std::vector<Piece>;

/// What a range of addresses holds.
class Memory {
 public:
  /// The pieces of a range, in its order. What was never stored holds its first contents.
  void take(std::uint64_t begin, std::uint64_t bytes, Pieces& out) const {
    const auto end = begin + bytes;
    auto c = cells_.upper_bound(begin);
    if (c != cells_.begin() && std::prev(c)->second.end > begin) --c;
    for (auto at = begin; at < end;) {
      const bool gap = c == cells_.end() || c->first > at;
      const auto until = gap ? (c == cells_.end() ? end : std::min(end, c->first)) : std::min(end, c->second.end);
      add(out, {until - at, gap ? Held{.at = at} : c->second.held.from(at - c->first)});
      if (!gap) ++c;
      at = until;
    }
  }
  void put(std::uint64_t begin, std::uint64_t bytes, const Held& held) {
    if (bytes == 0) return;
    split(begin);
    split(begin + bytes);
    const auto first = cells_.lower_bound(begin);
    const auto next = cells_.erase(first, cells_.lower_bound(begin + bytes));
    cells_.emplace_hint(next, begin, Cell{begin + bytes, held});
  }
  /// Calls fn(held) for each piece that was stored.
  template <class Fn> void each(Fn fn) const {
    for (const auto& [begin, cell] : cells_) fn(cell.held);
  }
  static void add(Pieces& all, const Piece& p) {
    if (!all.empty()) {
      auto& last = all.back();
      if (last.held.from(last.bytes).same(p.held) && last.held.by.agent == p.held.by.agent &&
          last.held.by.position == p.held.by.position)
        return void(last.bytes += p.bytes);
    }
    all.push_back(p);
  }

 private:
  struct Cell {
    std::uint64_t end{};
    Held held{};
  };
  void split(std::uint64_t at) {
    auto next = cells_.lower_bound(at);
    if (next == cells_.begin()) return;
    auto& before = *std::prev(next);
    if (before.second.end <= at) return;
    cells_.emplace_hint(next, at, Cell{before.second.end, before.second.held.from(at - before.first)});
    before.second.end = at;
  }
  std::map<std::uint64_t, Cell> cells_;
};

}}}  // namespace sdma::v0_3::check_detail
