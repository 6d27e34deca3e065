// SPDX-License-Identifier: MIT
#pragma once
// The lines of one dump, in the layout that a survey found: bytes, gaps, repeats, and lines that are not part of it.
//
//   DumpRows rows{layout, "dmesg.txt", dump};
//   for (each line) if (auto r = rows.add(line, number); !r) return r.error();
//   if (auto r = rows.finish(); !r) return r.error();
//
// One thread at a time. Errors: Diagnostics with file:line:column.
#include "../core/budget.hpp"
#include "layout.hpp"
#include "sdma/dump/text.hpp"

namespace sdma::inline v0::detail {

class DumpRows {
 public:
  DumpRows(const DumpLayout& layout, std::string_view file, TextDump& out) : layout_(layout), file_(file), out_(out) {}

  Result<void, Diagnostic> add(std::string_view line, std::size_t number);
  Result<void, Diagnostic> finish(std::vector<Diagnostic>& notes);

 private:
  enum class Kind { text, data, end, bad };
  Kind classify(const DumpLine&, std::string& wrong, std::string& hint, std::size_t& column) const;
  bool fits(const DumpCell&) const noexcept;
  bool has_style(const DumpLine&) const noexcept;
  bool follow(std::uint64_t now, std::string& wrong, std::string& hint);
  void take(std::vector<std::uint8_t> bytes);
  void repeat_last(std::uint64_t bytes);
  void mark(std::string_view tail, std::uint64_t at);
  Diagnostic error(std::size_t column, std::string message, std::string hint) const;

  const DumpLayout& layout_;
  std::string file_;
  TextDump& out_;
  std::size_t line_ = 0;
  std::optional<std::uint64_t> offset_;  // that of the last line with an offset
  std::uint64_t since_ = 0;              // bytes read since then, including that line
  bool star_ = false;
  std::vector<std::uint8_t> last_, rest_;  // bytes of the last line; bytes that do not fill a dword yet
  Budget repeated_{std::uint64_t{1} << 30};
  std::size_t skipped_ = 0, first_skipped_ = 0, restarts_ = 0;
  std::string skipped_text_;
};

}  // namespace sdma::inline v0::detail
