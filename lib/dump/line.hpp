// SPDX-License-Identifier: MIT
#pragma once
// One line of a dump in text: the numbers at its end, and what is before and after them.
//
//   [  12.345678] amdgpu 0000:c1:00.0: 0x0040: 5 1008  # comment
//                 `------ label -----'  marked cells
//
//   label   words before the first cell. A time stamp of a log is neither a label nor a cell.
//   cell    a hexadecimal number. A marked one says where the line lies: `0x40:`, `[4]`, `ring[4] ==`, `0x40 <ring+8>:`
//   tail    words after the last cell: marks, or the reason why this is not a line of a dump
// A comment ends a line: after `#` or `//`, or in /* */. The functions are pure; any thread may call them.
#include "../core/words.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

constexpr bool is_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct DumpCell {
  std::string_view text;    ///< the number as it stands, with 0x, without a suffix
  std::size_t at = 0;       ///< its first column, from 0
  std::uint64_t value = 0;  ///< of the last 16 digits
  std::uint32_t digits = 0;
  bool prefixed = false, marked = false;
  std::string_view without_prefix() const noexcept { return text.substr(prefixed ? 2 : 0); }
  /// Its value, hexadecimal after 0x and otherwise in this radix; with a digit that the radix does not have, false.
  bool in_radix(unsigned radix, std::uint64_t& value) const noexcept;
  /// 0x0005: the number shows its width.
  bool padded() const noexcept;
};

struct DumpLine {
  std::string_view label;
  std::vector<DumpCell> cells;
  std::string_view tail;
  bool labelled_by_colon = false;  ///< the label ends with ':'
  bool equals = false;             ///< `==` stands between the position and the value

  /// How many leading cells are marked, the unmarked ones before them included.
  std::size_t marked() const noexcept;
  /// Words before the numbers, and nothing that separates them: a
  /// sentence of a log, if the lines of the dump have no such words.
  bool is_sentence() const noexcept { return !label.empty() && !labelled_by_colon && marked() == 0; }
};

/// A line without its carriage return and the time stamp of a log.
std::string_view without_stamp(std::string_view line) noexcept;
DumpLine parse_line(std::string_view line);

/// Calls fn(line, number) for each line, the first of which has this number, until it returns false.
template <class Fn> void each_line(std::string_view text, std::size_t first, Fn fn) {
  for (std::size_t begin = 0; begin < text.size(); ++first) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (!fn(text.substr(begin, end - begin), first)) return;
    begin = end + 1;
  }
}

bool is_blank(std::string_view) noexcept;
/// The value of a hexadecimal, octal or decimal number; with a digit that the radix does not have, false.
bool number_in(std::string_view digits, unsigned radix, std::uint64_t& value) noexcept;

}}}  // namespace sdma::v0_3::detail
