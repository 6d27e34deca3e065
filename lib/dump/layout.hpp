// SPDX-License-Identifier: MIT
#pragma once
// How the lines of a dump are laid out: which columns hold addresses or offsets, and what the other numbers are.
//
//   DumpLayout layout = survey(text);
//   layout.describe()  ==  "an offset in bytes, then 4 dwords a line"
//
// A survey reads at most kSurveyed lines that have numbers. What it finds holds for the whole text; the reader
// (text.cpp) checks every line against it. Pure and allocating; any thread may call it.
#include "line.hpp"

#include <array>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What a number of the dump is.
enum class DumpUnit : std::uint8_t {
  dword,  ///< its value, with leading zeros or without
  byte,   ///< two digits
  half,   ///< 16 bits; the lower half of a dword comes first
  qword,  ///< 64 bits; the lower dword comes first
  group,  ///< two or more bytes in memory order
};

/// What a column before the dwords counts.
struct DumpPosition {
  std::uint32_t bytes = 0;  ///< how many bytes one step stands for; 0: it counts lines, or is a name
  unsigned radix = 16;
};

struct DumpLayout {
  static constexpr std::size_t kMostPositions = 2;

  std::size_t positions = 0;  ///< leading columns
  std::array<DumpPosition, kMostPositions> position{};
  DumpUnit unit = DumpUnit::dword;
  std::uint32_t digits = 0;  ///< of each number; 0: they vary
  bool prefixed = false;
  bool marked = false;       ///< lines of the dump mark a position
  bool labelled = false;     ///< lines of the dump begin with words and a colon
  bool sentences = false;    ///< every line begins with words that nothing separates from the numbers
  std::size_t per_line = 0;  ///< numbers on most lines
  bool any = false;          ///< the text has numbers at all
  std::string doubt{};       ///< why the layout cannot be determined, or ""
  std::string doubt_hint{};
  std::size_t doubt_line = 0, doubt_column = 0;

  /// The column that counts bytes; none: positions if no column does.
  std::size_t offset_column() const noexcept;
  std::string describe() const;
};

/// A line, cut before its column of characters.
struct CutLine {
  DumpLine line;
  enum class Shows : std::uint8_t { nothing, values, memory, both } shows = Shows::nothing;
};
/// Cuts off a column that shows exactly the bytes of the line as characters, and returns their order: that of the value
/// (lowest byte first), or that of the digits.
CutLine cut_characters(std::string_view line);

DumpLayout survey(std::string_view text);

/// Appends the bytes of a number in memory order.
void append_bytes(std::vector<std::uint8_t>& out, const DumpCell& cell, DumpUnit unit);

}}}  // namespace sdma::v0_3::detail
