// SPDX-License-Identifier: MIT
#include "sdma/core/names.hpp"

#include "sdma/core/number.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sdma { inline namespace v0_3 {

bool NameTable::add(GpuVa va, std::uint64_t bytes, std::string_view name) {
  const auto first = va.value, last = first + (bytes - 1);
  if (bytes == 0 || name.empty() || last < first || !extents_.insert({first, bytes}).second) return false;
  const auto index = ranges_.size();
  ranges_.push_back({va, bytes, std::string(name)});

  // Cut the pieces of larger ranges; those of smaller and of equally large ones stay.
  auto at = pieces_.upper_bound(first);
  if (at != pieces_.begin() && std::prev(at)->second.last >= first) --at;
  auto free = first;  // up to here, [first, last] has its pieces
  bool covered = false;
  while (!covered && at != pieces_.end() && at->first <= last) {
    const auto begin = at->first;
    const auto piece = at->second;
    if (ranges_[piece.range].bytes <= bytes) {
      if (begin > free) pieces_.emplace(free, Piece{begin - 1, index});
      covered = piece.last >= last;
      free = piece.last + 1;
      ++at;
      continue;
    }
    at = pieces_.erase(at);
    if (begin < first) pieces_.emplace(begin, Piece{first - 1, piece.range});
    if (piece.last > last) pieces_.emplace(last + 1, Piece{piece.last, piece.range});
    if (piece.last >= last) break;
  }
  if (!covered) pieces_.emplace(free, Piece{last, index});
  return true;
}

void NameTable::add(const NameTable& other) {
  for (const auto& r : other.ranges_) add(r.va, r.bytes, r.name);
}

const NameTable::Range* NameTable::find(GpuVa va) const noexcept {
  const auto after = pieces_.upper_bound(va.value);
  if (after == pieces_.begin()) return nullptr;
  const auto& piece = std::prev(after)->second;
  return va.value <= piece.last ? &ranges_[piece.range] : nullptr;
}

std::string NameTable::text(GpuVa va) const {
  const auto* r = find(va);
  if (!r) return {};
  return va == r->va ? r->name : r->name + "[" + size_text(va - r->va) + "]";
}

bool is_range_name(std::string_view s) noexcept {
  return !s.empty() && !(s[0] >= '0' && s[0] <= '9') && std::all_of(s.begin(), s.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f' &&
           std::string_view("#[]=").find(c) == std::string_view::npos;
  });
}

namespace {

constexpr const char* kNameLine = "write FIRST..+SIZE NAME, such as 0x7f5c00000000..+64M weights";

using detail::take_word;

/// The size of FIRST..+SIZE or FIRST..END, and FIRST.
std::optional<std::pair<GpuVa, std::uint64_t>> extent(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == text.npos) return {};
  const auto first = parse_count(text.substr(0, dots));
  auto end = text.substr(dots + 2);
  const bool sized = end.starts_with('+');
  if (sized) end.remove_prefix(1);
  const auto n = sized ? parse_size(end) : parse_count(end);
  if (!first || !n || (!sized && *n < *first)) return {};
  return std::pair(GpuVa{*first}, sized ? *n : *n - *first);
}

}  // namespace

Result<NameTable, Diagnostic> parse_names(std::string_view text, std::string_view file) {
  struct Line {
    NameTable::Range range{};
    std::size_t number{};
  };
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto rest = detail::take_line(text);
    rest = rest.substr(0, rest.find('#'));
    const auto wrong = [&](std::string message, std::string hint = kNameLine) {
      return error_at({.file = std::string(file), .line = number}, std::move(message), std::move(hint));
    };
    const auto range = take_word(rest);
    if (range.empty()) continue;
    const auto name = take_word(rest), more = take_word(rest);
    const auto where = extent(range);
    if (!where) return wrong(fmt::format("'{}' is not a range of addresses", range));
    const auto [va, bytes] = *where;
    if (bytes == 0) return wrong(fmt::format("the range '{}' is empty", range));
    if (va.value + (bytes - 1) < va.value) return wrong(fmt::format("the range '{}' ends beyond 2^64", range));
    if (name.empty()) return wrong(fmt::format("the range '{}' has no name", range));
    if (!more.empty()) return wrong(fmt::format("'{}' follows the name '{}'", more, name), "a name is one word");
    if (!is_range_name(name))
      return wrong(fmt::format("'{}' is not a name", name),
                   "a name does not begin with a digit, and has none of the characters [ ] =");
    lines.push_back({{va, bytes, std::string(name)}, number});
  }
  // Sorted by address, each range can overlap only its predecessor, if no earlier ones overlap.
  auto sorted = lines;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) { return a.range.va < b.range.va; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const auto *a = &sorted[i - 1], *b = &sorted[i];
    if (b->range.va - a->range.va >= a->range.bytes) continue;
    if (a->number > b->number) std::swap(a, b);
    return error_at(
        {.file = std::string(file), .line = b->number},
        fmt::format("the range of '{}' overlaps that of '{}' on line {}", b->range.name, a->range.name, a->number),
        "give each address one name");
  }
  NameTable table;
  for (const auto& l : lines) table.add(l.range.va, l.range.bytes, l.range.name);
  return table;
}

std::string print_names(const NameTable& t) {
  std::string out;
  for (const auto& r : t.ranges()) out += fmt::format("{:#x}..+{} {}\n", r.va.value, size_text(r.bytes), r.name);
  return out;
}

}}  // namespace sdma::v0_3
