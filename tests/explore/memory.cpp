// SPDX-License-Identifier: MIT
// Splits memory into cells, and says what each holds at first.
#include "program.hpp"

#include <algorithm>
#include <set>

namespace sdma::explore::detail {
namespace {

std::uint64_t mix(std::uint64_t z) noexcept {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void fill(const Schedule& s, std::vector<Cell>& cells, std::size_t i) {
  const auto& b = s.buffers[i];
  const auto begin = canonical(s, link_buffer(i));
  for (auto& c : cells) {
    if (c.va < begin || c.va + c.bytes > begin + b.bytes) continue;
    // Poison stands for bytes that nothing has written, whatever a run stores there.
    c.unknown = b.init != Init::zero;
    c.value = c.unknown ? c.tag : 0;
  }
}

}  // namespace

std::uint64_t canonical(const Schedule& s, GpuVa va) {
  for (int hops = 0; hops < 64; ++hops) {
    const auto l = find_symbol(s, va);
    if (!l) break;
    const auto& at = l->signal ? s.signals[l->index].at : s.buffers[l->index].at;
    if (!at) break;
    va = *at + l->offset;
  }
  return va.value;
}

bool make_cells(const Schedule& s, const std::vector<Range>& ranges, const std::vector<Copied>& copies,
                std::vector<Cell>& out) {
  std::set<std::uint64_t> edges;
  for (const auto& r : ranges) edges.insert({r.begin, r.end});
  const auto inside = [&](std::uint64_t va) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.begin <= va && va < r.end; });
  };
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    const auto begin = canonical(s, link_buffer(i));
    edges.insert({begin, begin + s.buffers[i].bytes});
  }
  for (std::size_t i = 0; i < s.signals.size(); ++i) {
    const auto begin = canonical(s, link_signal(i));
    edges.insert({begin, begin + s.signals[i].bits / 8});
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& c : copies) {
      for (const auto& [x, y] : {std::pair{c.from, c.to}, std::pair{c.to, c.from}}) {
        std::vector<std::uint64_t> found(edges.upper_bound(x), edges.lower_bound(x + c.bytes));
        for (const auto e : found) more = edges.insert(e - x + y).second || more;
      }
      if (edges.size() > 4 * kMostCells) return false;
    }
  }
  for (auto e = edges.begin(); e != edges.end() && std::next(e) != edges.end(); ++e)
    if (inside(*e)) out.push_back({.va = *e, .bytes = *std::next(e) - *e});
  if (out.size() > kMostCells) return false;
  for (auto& c : out) {
    c.tag = mix(c.va);
    if (c.bytes < 8) c.tag &= (std::uint64_t{1} << (8 * c.bytes)) - 1;
    c.value = c.tag;
  }
  // The order of a run: buffers, then aliases whose init says so, then signals.
  for (const bool alias : {false, true})
    for (std::size_t i = 0; i < s.buffers.size(); ++i)
      if (const auto& b = s.buffers[i]; b.at.has_value() == alias && !(alias && b.init == Init::poison))
        fill(s, out, i);
  for (std::size_t i = 0; i < s.signals.size(); ++i) {
    const auto begin = canonical(s, link_signal(i));
    for (auto& c : out) {
      if (c.va < begin || c.va + c.bytes > begin + s.signals[i].bits / 8) continue;
      c.unknown = false;
      c.value = s.signals[i].value >> (8 * (c.va - begin));
      if (c.bytes < 8) c.value &= (std::uint64_t{1} << (8 * c.bytes)) - 1;
    }
  }
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    const auto begin = canonical(s, link_buffer(i));
    for (auto& c : out) c.buffer = c.buffer || (c.va >= begin && c.va < begin + s.buffers[i].bytes);
  }
  return true;
}

Word cells_of(const std::vector<Cell>& cells, std::uint64_t va, std::uint64_t bytes) {
  // The copies in an L2 come after all cells of memory.
  const auto end = std::adjacent_find(cells.begin(), cells.end(), [](auto& a, auto& b) { return a.va >= b.va; });
  const auto last = end == cells.end() ? end : std::next(end);
  const auto from = std::lower_bound(cells.begin(), last, va, [](const Cell& c, std::uint64_t v) { return c.va < v; });
  auto to = from;
  while (to != last && to->va < va + bytes) ++to;
  return {static_cast<std::uint16_t>(from - cells.begin()), static_cast<std::uint16_t>(to - from),
          static_cast<std::uint8_t>(bytes)};
}

}  // namespace sdma::explore::detail
