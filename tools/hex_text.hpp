#pragma once
// Dwords from pasted text: a log, a hex dump, a C array.
//
//   00000000: 00000001 00000fff 00000000 22334000        offset and dwords; xxd -e, hexdump with 1/4 "%08x "
//   [  12.345678] amdgpu 0000:c1:00.0: 0x0040: 5 1008    a log's prefix, up to its last colon
//   0x00000005, 0x00001008, 0x7f00,                      C
//   00000000  05 00 00 00 08 10 00 00  |........|        bytes, the lowest first: hexdump -C, xxd -g1
//   *                                                    repeats the previous line, up to the offset of the next line;
//                                                        all of them together repeat at most 1 GiB, the size of the largest ring
//   # comment
//
// No number is dropped silently. A dword is 0x and 1 to 8 digits, 8 digits, or up to 5 digits (`0`, `fff`). A line of pairs
// is bytes, and so is a line of pairs after 0x (xxd -i) if one of them begins with 0. Only what cannot be data is skipped, and
// only after a check:
//   - text up to the last colon that a blank follows is a label. If its last word is a number (0x..., or at least 4 digits),
//     that is an offset, and offsets must grow by the bytes that were read: a gap in a dump is an error. A note counts other
//     labels. A dword inside a label is an error, and so is a label of numbers alone. A debugger's <symbol+8> is skipped.
//   - a column at the end of the line is skipped if it shows exactly the bytes of the line as characters. Lines of more than 1,024
//     characters have no such column (xxd prints at most 256 bytes a line), and at most 63 gaps are before it.
// Anything else is an error with line and column: groups of 4 digits (their byte order is unknown), words, 64 bits,
// [4] before a dword, and numbers that grow from line to line like offsets but have no colon.
#include "../lib/core/budget.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool {

class HexText {
 public:
  explicit HexText(std::string file) : file_(std::move(file)) {}

  /// Appends the dwords of one line, given without its newline. While `repeats`, call `repeat` before the next line.
  Result<void, Diagnostic> line(std::string_view, std::vector<std::uint32_t>& out);
  /// Is a `*` before the last line still to be repeated? Its bytes may be a million times as many as those of the text, so they come
  /// in pieces.
  bool repeats() const noexcept { return repeat_ > 0; }
  /// Appends at most about a MiB of the repeated bytes and, after the last of them, the line itself.
  Result<void, Diagnostic> repeat(std::vector<std::uint32_t>& out);
  /// Ends the text: odd bytes are an error, and a note counts the labels.
  Result<void, Diagnostic> finish(std::vector<Diagnostic>& notes) const;

 private:
  struct Parsed {
    std::string_view label;  ///< the text before the last colon
    std::optional<std::uint64_t> offset;
    std::vector<std::uint8_t> bytes;  ///< in memory order
    bool pairs = false;               ///< the line shows bytes, not dwords
    std::size_t bad = 0;              ///< column of the error
    std::string wrong, hint;
  };
  Parsed parse(std::string_view line) const;
  bool tokens(std::string_view line, std::size_t begin, Parsed&) const;
  std::string_view without_characters(std::string_view line, bool& swapped) const;
  bool follow_offset(Parsed&);
  bool offset_without_colon(const Parsed&);
  Result<void, Diagnostic> take(Parsed, std::vector<std::uint32_t>& out);
  void move_dwords(std::vector<std::uint32_t>& out);
  Diagnostic error(std::size_t column, std::string message, std::string hint) const;

  std::string file_;
  std::size_t line_ = 0;
  std::optional<std::uint64_t> offset_;  // that of the last line with an offset
  std::uint64_t since_ = 0;              // bytes read since then, including that line
  unsigned unit_ = 0;                    // unit of offsets: 1 byte, or 4 if they count dwords; 0: unknown
  bool star_ = false, bytes_without_colon_ = false;
  bool pairs_ = false;                  // the last line was bytes
  std::optional<std::uint32_t> first_;  // first dword of the last line, if it may be an offset
  std::size_t dwords_ = 0;              // in the last line
  unsigned indices_ = 0;                // consecutive lines that seem to begin with the index of a dword
  std::vector<std::uint8_t> last_;      // bytes of the last line
  std::uint64_t repeat_ = 0;            // bytes of a `*` that are still to be repeated, before `waiting_`
  Parsed waiting_;                      // the line after the `*`: its label, which is an offset, is not read again
  detail::Budget repeated_{std::uint64_t{1} << 30};
  std::vector<std::uint8_t> rest_;  // bytes that do not fill a dword yet
  std::size_t labels_ = 0, first_label_line_ = 0, restarts_ = 0;
  std::string first_label_;
};

}  // namespace sdma::tool
