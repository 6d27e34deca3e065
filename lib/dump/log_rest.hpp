// SPDX-License-Identifier: MIT
#pragma once
// The lines of a text that a reader of dumps may need, while the log around them is read. Internal: log.hpp uses it.
//
//   RestOfLog rest;
//   rest.look(lines);                                   // for headings of dumps; before the lines of this part
//   rest.add(12, LineKind::other, "0x0040: 00000005");
//   rest.leave_out();                                   // once it is certain that the text is a log
//   const bool dump = rest.has_dump(records);
//   std::string text = rest.take(lines);                // each line where it stood; the others are empty
//
// Two rows between lines of the log, or beside them, or one that has several dwords, show a dump; then nothing that may
// be a part of it is left out. What stands before the first row or heading is kept up to kBefore bytes: positions and
// names of a ring stand near its dwords. Lines of the log itself are not kept.
//
// Memory in proportion to what is kept. One thread at a time. No errors.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What a line of the text is.
enum class LineKind : std::uint8_t {
  other,
  log,      ///< of a log, by its form
  said,     ///< of a log, because of what it says, or perhaps: it has a date
  row,      ///< of a dump that the driver printed into the log
  bare_row  ///< the same without a word about what it shows
};

class RestOfLog {
 public:
  static constexpr std::size_t kBefore = std::size_t{1} << 20;

  void look(std::string_view part) noexcept;
  void add(std::size_t number, LineKind, std::string_view line);
  /// The text is a log: from now on, lines of a log are not kept.
  void leave_out();
  /// `records`: how many the log has, with its rows.
  bool has_dump(std::size_t records) const noexcept;
  std::size_t size() const noexcept { return text_.size(); }
  std::string take(std::size_t records) const;
  /// Every line: without leave_out.
  std::string whole() const;

 private:
  bool shows_dump() const noexcept { return beside_ || heading_; }
  void keep(std::size_t number, LineKind, std::string_view line);
  void forget();
  template <class Fn> void each_kept(Fn fn) const;

  std::string text_{};      // the lines that are kept, each behind a character with its kind, or how many are not
  std::size_t number_ = 0;  // of the last one
  std::size_t most_ = 2 * kBefore;
  std::size_t here_ = 0;  // rows since the last line of the log
  std::size_t rows_ = 0, bare_rows_ = 0;
  bool is_log_ = false, beside_ = false, heading_ = false;
};

}}}  // namespace sdma::v0_3::detail
