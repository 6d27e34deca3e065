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
#include "plausible.hpp"
#include "sdma/core/number.hpp"
#include "sdma/dump/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

inline std::string quoted(std::string_view s) { return "'" + std::string(s.substr(0, 40)) + "'"; }
inline std::string_view first_word(std::string_view s) noexcept { return s.substr(0, s.find_first_of(" \t,;")); }

class DumpRows {
 public:
  DumpRows(const DumpLayout& layout, std::string_view file, TextDump& out) : layout_(layout), file_(file), out_(out) {}

  Result<void, Diagnostic> add(std::string_view text, std::size_t number) {
    line_ = number;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (static_cast<unsigned char>(text[i]) < ' ' && text[i] != '\t' && !(text[i] == '\r' && i + 1 == text.size()))
        return error(i, "this is not text", "--input=binary reads it as the ring's bytes");
    const auto line = without_stamp(text);
    const auto shift = static_cast<std::size_t>(line.data() - text.data());
    if (is_blank(line)) return {};
    if (trimmed(line) == "*") {
      if (last_.empty() || !offset_) return error(0, "'*' repeats the previous line, which has no offset", "");
      star_ = true;
      return {};
    }
    const auto cut = cut_characters(line);
    const auto& l = cut.line;
    std::string wrong, hint;
    std::size_t column = 0;
    const auto kind = classify(l, wrong, hint, column);
    if (kind == Kind::bad) return error(shift + column, std::move(wrong), std::move(hint));
    if (kind == Kind::text) {
      if (l.cells.empty() && l.label.empty() && l.tail.empty()) return {};  // a comment
      if (skipped_++ == 0) {
        first_skipped_ = number;
        skipped_text_ = trimmed(line).substr(0, 60);
      }
      return {};
    }
    const auto c = layout_.offset_column();
    if (c < layout_.positions && (l.marked() > c || !layout_.marked)) {
      std::uint64_t now;
      const auto& cell = l.cells[c];
      if (cell.digits > 16 || !cell.in_radix(layout_.position[c].radix, now))
        return error(shift + cell.at, quoted(cell.text) + " is not an offset", "");
      if (kind == Kind::end) drop_padding(now);
      if (!follow(now, wrong, hint)) return error(0, std::move(wrong), std::move(hint));
      const auto at = now * layout_.position[c].bytes;
      if (!out_.first && kind == Kind::data) out_.first = at;
      if (l.equals) mark(l.tail, at);
    }
    if (star_) return error(0, "'*' on the previous line needs an offset here, which says how often it repeats", "");
    if (kind == Kind::end) return {};
    if (out_.line == 0) out_.line = number;
    std::vector<std::uint8_t> bytes;
    const auto lead = layout_.marked && l.marked() == 0 ? 0 : layout_.positions;
    for (auto i = lead; i < l.cells.size(); ++i) append_bytes(bytes, l.cells[i], layout_.unit);
    take(std::move(bytes));
    return {};
  }
  Result<void, Diagnostic> finish(std::vector<Diagnostic>& notes) {
    if (star_) return error(0, "'*' at the end needs an offset after it, which says how often it repeats", "");
    if (!rest_.empty())
      return error(0, fmt::format("the size is not a multiple of 4 bytes: {} left over at the end", rest_.size()),
                   "a ring consists of whole dwords: check that no byte is missing");
    const auto note = [&](std::string message) {
      notes.push_back({.severity = Severity::note, .where = file_, .message = std::move(message)});
    };
    if (skipped_ > 0)
      note(fmt::format("skipped {} line{} of other text, first line {}: '{}'", skipped_, skipped_ == 1 ? "" : "s",
                       first_skipped_, skipped_text_));
    if (restarts_ > 0)
      note(fmt::format("offsets restart {} time{}: the dumps are read one after another", restarts_,
                       restarts_ > 1 ? "s" : ""));
    return {};
  }

 private:
  enum class Kind { text, data, end, bad };
  Kind classify(const DumpLine& l, std::string& wrong, std::string& hint, std::size_t& column) const {
    const auto bad = [&](std::size_t at, std::string what, std::string todo) {
      column = at;
      wrong = std::move(what);
      hint = std::move(todo);
      return Kind::bad;
    };
    if (l.cells.empty()) return Kind::text;
    if (l.is_sentence() && !layout_.sentences) return Kind::text;
    if (!l.label.empty() && l.cells.back().marked) return Kind::text;  // "ring dump of engine 3:"
    const bool styled = has_style(l);
    const bool plain = l.label.empty() || layout_.labelled || layout_.sentences;
    if (layout_.marked && l.marked() == 0 && !plain) return Kind::text;
    if (!plain && !(styled && (layout_.digits == 8 || l.marked() == layout_.positions))) return Kind::text;
    if (!l.tail.empty() && !l.equals) {
      const bool marked = l.label.empty() && l.marked() > 0 && l.cells.size() > l.marked();
      if (!marked && (!styled || !plain)) return Kind::text;
      return bad(static_cast<std::size_t>(l.tail.data() - l.cells.front().text.data()) + l.cells.front().at,
                 quoted(first_word(l.tail)) + " is not a dword",
                 "only numbers, what says where they lie, and `# comments` are read; a column of characters must show "
                 "the line's bytes");
    }
    if (layout_.positions > 0 && l.cells.size() == layout_.positions && layout_.unit != DumpUnit::dword)
      return Kind::end;
    if (layout_.positions > 0 && l.cells.size() == layout_.positions && l.label.empty() && !l.cells.back().marked)
      return Kind::end;
    if (styled) {
      if (layout_.marked && l.marked() > layout_.positions)
        return bad(l.cells.front().at, "the numbers before the dwords are not marked as on the other lines",
                   "if it is not part of the dump, write it after a #");
      return Kind::data;
    }
    for (auto i = std::min(layout_.positions, l.cells.size()); i < l.cells.size(); ++i) {
      const auto& c = l.cells[i];
      if (fits(c)) continue;
      const bool decimal = c.text.find_first_not_of("0123456789") == std::string_view::npos;
      if (layout_.digits != 0)
        return bad(c.at,
                   fmt::format("{} does not have {} digits{}, as the other numbers do", quoted(c.text), layout_.digits,
                               layout_.prefixed ? " after 0x" : ""),
                   "if it is not part of the dump, write it after a #");
      return bad(
          c.at, quoted(c.text) + " is not a dword",
          decimal && c.digits <= 10 ? "numbers are hexadecimal" : "write 64 bits as two dwords, the low one first");
    }
    if (!l.label.empty()) return Kind::text;
    return bad(l.cells.front().at, "this line has no dwords after its position",
               "if it is not part of the dump, write it after a #");
  }
  /// Is this number written as those of the layout are?
  bool fits(const DumpCell& c) const noexcept {
    if (layout_.digits == 0) return c.digits <= 8;
    // The last of several long lines is shorter.
    return c.prefixed == layout_.prefixed &&
           (c.digits == layout_.digits || (layout_.digits > 16 && c.digits < layout_.digits && c.digits % 2 == 0));
  }
  bool has_style(const DumpLine& l) const noexcept {
    if (l.cells.size() <= layout_.positions) return false;
    return std::all_of(l.cells.begin() + static_cast<std::ptrdiff_t>(layout_.positions), l.cells.end(),
                       [&](const DumpCell& c) { return !c.marked && fits(c); });
  }
  bool follow(std::uint64_t now, std::string& wrong, std::string& hint) {
    const auto column = layout_.offset_column();
    const auto unit = layout_.position[column].bytes;
    const bool star = std::exchange(star_, false);
    if (star && offset_ && now <= *offset_) {
      wrong = "this offset does not say how often the preceding '*' repeats";
      hint = "it must be greater than the offset before the '*'";
      return false;
    }
    if (offset_ && now < *offset_) ++restarts_;
    if (offset_ && now == *offset_ && since_ > 0) return true;  // a repeated number is a name, not an offset
    if (offset_ && now > *offset_) {
      const auto steps = now - *offset_;
      const auto delta = steps > ~std::uint64_t{} / unit ? ~std::uint64_t{} : steps * unit;
      if (star && delta > since_ && !last_.empty() && (delta - since_) % last_.size() == 0) {
        const auto repeat = delta - since_;
        if (!repeated_.take(repeat)) {
          wrong = fmt::format("the '*' before this offset repeats {} bytes, but all '*' of a text can repeat only {}",
                              size_text(repeat), size_text(repeated_.limit()));
          hint = "give only the part of the dump that has packets";
          return false;
        }
        repeat_last(repeat);
      }
      if (delta != since_) {
        wrong =
            fmt::format("this offset is {} more than the previous one, but {} bytes lie between them", delta, since_);
        hint = "lines are missing; if it is not part of the dump, write it after a #";
        return false;
      }
    }
    offset_ = now;
    since_ = 0;
    return true;
  }
  /// `od -tx8` fills its last number with zeros; the offset after it says how many bytes there are.
  void drop_padding(std::uint64_t end) {
    const auto since =
        offset_ && end > *offset_ ? (end - *offset_) * layout_.position[layout_.offset_column()].bytes : 0;
    const bool half = since + 4 == since_ && rest_.empty() && !out_.dwords.empty() && out_.dwords.back() == 0;
    if (!half || layout_.unit != DumpUnit::qword) return;
    out_.dwords.pop_back();
    since_ = since;
  }
  void take(std::vector<std::uint8_t> bytes) {
    rest_.insert(rest_.end(), bytes.begin(), bytes.end());
    since_ += bytes.size();
    last_ = std::move(bytes);
    const auto whole = rest_.size() / 4, before = out_.dwords.size();
    out_.dwords.resize(before + whole);
    if (whole > 0) std::memcpy(out_.dwords.data() + before, rest_.data(), whole * 4);
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(whole * 4));
  }
  /// `bytes`: a multiple of the last line's.
  void repeat_last(std::uint64_t bytes) {
    const auto line = last_;
    // Lines of whole dwords are copied as dwords; others are rare and short.
    if (!rest_.empty() || line.size() % 4 != 0) {
      for (std::uint64_t n = 0; n < bytes; n += line.size()) take(line);
      return;
    }
    std::vector<std::uint32_t> words(line.size() / 4);
    std::memcpy(words.data(), line.data(), line.size());
    const auto size = out_.dwords.size() + static_cast<std::size_t>(bytes / 4);
    out_.dwords.reserve(size);
    if (leading_zeros(words) == words.size()) out_.dwords.resize(size);
    while (out_.dwords.size() < size) out_.dwords.insert(out_.dwords.end(), words.begin(), words.end());
    since_ += bytes;
  }
  /// umr marks the read and the write pointer by letters after the dword: "rwD". D is the driver's copy of wptr.
  void mark(std::string_view tail, std::uint64_t at) {
    const auto word = first_word(tail);
    if (word.empty() || word.find_first_not_of("rwD.") != std::string_view::npos) return;
    if (word.find('r') != std::string_view::npos && !out_.rptr) out_.rptr = at;
    if (word.find('w') != std::string_view::npos && !out_.wptr) out_.wptr = at;
  }
  Diagnostic error(std::size_t column, std::string message, std::string hint) const {
    return error_at({.file = std::string(file_), .line = line_, .column = column + 1}, std::move(message),
                    std::move(hint));
  }

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

}}}  // namespace sdma::v0_3::detail
