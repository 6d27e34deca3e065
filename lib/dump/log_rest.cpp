// SPDX-License-Identifier: MIT
#include "log_rest.hpp"

#include "line.hpp"
#include "log_lines.hpp"
#include "sdma/dump/descriptors.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Marks how many lines are not kept.
constexpr char kNotKept = '-';
/// A row, or as many as this if it is a whole list of dwords.
constexpr std::size_t kList = 2;

std::size_t rows_in(std::string_view line) {
  if (!is_dump_row(line)) return 0;
  constexpr std::size_t kDwords = 4;
  const auto l = parse_line(line);
  const auto dwords = std::count_if(l.cells.begin(), l.cells.end(),
                                    [](const DumpCell& c) { return !c.marked && (c.prefixed || c.digits == 8); });
  return static_cast<std::size_t>(dwords) >= kDwords ? kList : 1;
}

}  // namespace

void RestOfLog::look(std::string_view part) noexcept {
  for (const std::string_view words : {"ring name:", "Decoding IB at 0x"})
    heading_ = heading_ || ::memmem(part.data(), part.size(), words.data(), words.size()) != nullptr;
}

void RestOfLog::add(std::size_t number, LineKind kind, std::string_view line) {
  rows_ += kind == LineKind::row;
  bare_rows_ += kind == LineKind::bare_row;
  if (kind != LineKind::other) here_ = 0;
  else if (!beside_) here_ += rows_in(without_stamp(line));
  beside_ = beside_ || here_ >= kList;
  if (kind == LineKind::other || kind == LineKind::said) heading_ = heading_ || has_descriptors(line);
  if (is_log_ && kind == LineKind::log) return;
  keep(number, kind, line);
  if (is_log_ && !shows_dump() && text_.size() > most_) forget();
}

void RestOfLog::keep(std::size_t number, LineKind kind, std::string_view line) {
  if (number == number_) {
    text_.pop_back();  // the line goes on
  } else {
    if (number > number_ + 1) text_.append(1, kNotKept).append(std::to_string(number - number_ - 1)) += '\n';
    text_ += static_cast<char>('0' + static_cast<int>(kind));
  }
  number_ = number;
  text_.append(line) += '\n';
}

void RestOfLog::leave_out() {
  if (!std::exchange(is_log_, true)) forget();
}

template <class Fn> void RestOfLog::each_kept(Fn fn) const {
  std::size_t number = 0, at = 0;
  each_line(text_, 1, [&](std::string_view line, std::size_t) {
    const auto left = text_.size() - at;
    at += line.size() + 1;
    const char mark = line.front();
    line.remove_prefix(1);
    if (mark == kNotKept) number += whole_number<std::size_t>(line).value_or(0);
    else fn(++number, static_cast<LineKind>(mark - '0'), line, left);
    return true;
  });
}

/// What stands too far before a dump, if one follows, and lines of the log.
void RestOfLog::forget() {
  RestOfLog kept;
  each_kept([&](std::size_t number, LineKind kind, std::string_view line, std::size_t left) {
    const bool row = kind == LineKind::row || kind == LineKind::bare_row;
    if (kind != LineKind::log && (row || shows_dump() || left <= kBefore)) kept.keep(number, kind, line);
  });
  text_ = std::move(kept.text_);
  number_ = kept.number_;
  most_ = std::max(2 * kBefore, 2 * text_.size());
}

std::string RestOfLog::whole() const {
  std::string all;
  each_kept([&](std::size_t, LineKind, std::string_view line, std::size_t) { all.append(line) += '\n'; });
  return all;
}

bool RestOfLog::has_dump(std::size_t records) const noexcept {
  return shows_dump() || rows_ > 1 || (bare_rows_ > 1 && bare_rows_ * 2 > records);
}

std::string RestOfLog::take(std::size_t records) const {
  const bool own = rows_ > 1, bare = bare_rows_ > 1 && bare_rows_ * 2 > records;
  std::string rest;
  std::size_t before = 1;
  each_kept([&](std::size_t number, LineKind kind, std::string_view line, std::size_t) {
    const bool kept = kind == LineKind::other      ? shows_dump()
                      : kind == LineKind::row      ? own || heading_
                      : kind == LineKind::bare_row ? bare || heading_
                                                   : kind == LineKind::said && heading_;
    if (!kept) return;
    rest.append(number - before, '\n').append(line);
    before = number;
  });
  return rest += '\n';
}

}}}  // namespace sdma::v0_3::detail
