// SPDX-License-Identifier: MIT
#include "line.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::string_view kBlank = " \t";

bool is_word(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == ':' || c == '-' || c == '+' || c == '/' || c == '%' || c == '@' || c == '\'' || c == '"' || c == '!' ||
         c == '?' || c == '&' || c == '~' || c == '$' || c == '^' || static_cast<unsigned char>(c) >= 0x80;
}

/// `word` as a number, if it is one: 0x1008, 1008, 0x1008u.
bool as_cell(std::string_view word, std::size_t at, DumpCell& cell) noexcept {
  auto digits = word;
  const bool prefixed = word.starts_with("0x") || word.starts_with("0X");
  if (prefixed) {
    digits.remove_prefix(2);
    while (digits.size() > 1 && std::string_view("uUlL").find(digits.back()) != std::string_view::npos)
      digits.remove_suffix(1);
  }
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_hex)) return false;
  cell = {.text = word.substr(0, (prefixed ? 2 : 0) + digits.size()),
          .at = at,
          .digits = static_cast<std::uint32_t>(digits.size()),
          .prefixed = prefixed};
  number_in(digits.substr(digits.size() > 16 ? digits.size() - 16 : 0), 16, cell.value);
  return true;
}

/// What has been read of a line so far.
class Items {
 public:
  explicit Items(std::string_view line) : line_(line) {}

  void number(const DumpCell& c) {
    if (words_after_ && dwords_marked()) return;  // part of the tail
    if (words_after_) begin_again();
    line_out_.cells.push_back(c);
  }
  /// A word ends the cells before it. If numbers follow, the earlier ones
  /// were part of the label, unless they are marked as a line of a dump.
  void word(std::size_t at, std::size_t end, bool colon) {
    if (line_out_.cells.empty()) {
      label_end_ = end;
      line_out_.labelled_by_colon = colon;
    } else if (!words_after_) {
      words_after_ = true;
      tail_ = at;
    }
    word_end_ = end;
    word_colon_ = colon;
  }
  void mark_last() noexcept {
    if (!line_out_.cells.empty() && !words_after_) line_out_.cells.back().marked = true;
  }
  bool any() const noexcept { return !line_out_.cells.empty() && !words_after_; }
  void equals() noexcept { line_out_.equals = true; }

  DumpLine finish() {
    // A number alone in brackets at the end is an element of a list.
    auto& cells = line_out_.cells;
    if (!cells.empty() && cells.back().marked && !words_after_ && bracketed_ == cells.size())
      cells.back().marked = false;
    if (words_after_) line_out_.tail = trimmed(line_.substr(tail_));
    line_out_.label = trimmed(line_.substr(0, label_end_));
    return std::move(line_out_);
  }
  void bracketed() noexcept {
    mark_last();
    bracketed_ = line_out_.cells.size();
  }

 private:
  bool dwords_marked() const noexcept {
    const auto& c = line_out_.cells;
    return !c.empty() && !c.back().marked &&
           std::any_of(c.begin(), c.end(), [](const DumpCell& x) { return x.marked; });
  }
  /// A number follows words that follow numbers: all of those were a label.
  void begin_again() {
    line_out_.cells.clear();
    line_out_.equals = false;
    words_after_ = false;
    label_end_ = word_end_;
    line_out_.labelled_by_colon = word_colon_;
    bracketed_ = 0;
  }

  std::string_view line_;
  DumpLine line_out_;
  std::size_t label_end_ = 0, tail_ = 0, word_end_ = 0, bracketed_ = 0;
  bool words_after_ = false, word_colon_ = false;
};

}  // namespace

bool DumpCell::padded() const noexcept { return digits > 1 && without_prefix().front() == '0'; }

bool DumpCell::in_radix(unsigned radix, std::uint64_t& v) const noexcept {
  return number_in(without_prefix(), prefixed ? 16 : radix, v);
}

std::size_t DumpLine::marked() const noexcept {
  std::size_t n = 0;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].marked) n = i + 1;
  return n;
}

bool is_blank(std::string_view s) noexcept { return s.find_first_not_of(kBlank) == std::string_view::npos; }

bool number_in(std::string_view digits, unsigned radix, std::uint64_t& value) noexcept {
  value = 0;
  for (const char c : digits) {
    const auto d = static_cast<unsigned>(c <= '9' ? c - '0' : c >= 'a' ? c - 'a' + 10 : c - 'A' + 10);
    if (d >= radix) return false;
    value = value * radix + d;
  }
  return true;
}

std::string_view without_stamp(std::string_view line) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  // The kernel's log: "<6>[  12.345678] ", with a level or without.
  auto rest = line.substr(std::min(line.find_first_not_of(kBlank), line.size()));
  if (rest.size() > 2 && rest[0] == '<' && rest[1] >= '0' && rest[1] <= '9')
    if (const auto close = rest.find('>'); close != std::string_view::npos && close <= 3) rest.remove_prefix(close + 1);
  if (!rest.starts_with('[')) return line;
  const auto close = rest.find(']');
  if (close == std::string_view::npos) return line;
  const auto inside = trimmed(rest.substr(1, close - 1));
  const bool time = inside.find_first_of(".:") != std::string_view::npos && inside.front() >= '0' &&
                    inside.front() <= '9' && inside.find_first_not_of("0123456789.:") == std::string_view::npos;
  return time ? rest.substr(close + 1) : line;
}

DumpLine parse_line(std::string_view line) {
  Items items{line};
  const auto at_or_blank = [&](std::size_t i) {
    return i >= line.size() || kBlank.find(line[i]) != std::string_view::npos;
  };
  // "$1 = {0x5, ...": what is before the list is a label.
  const auto opens_list = [&](std::size_t i) {
    const auto next = line.find_first_not_of(kBlank, i);
    return next != std::string_view::npos && (line[next] == '{' || line[next] == '[');
  };
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    const bool starts = i == 0 || kBlank.find(line[i - 1]) != std::string_view::npos;
    if (starts && (c == '#' || line.substr(i, 2) == "//")) break;
    if (line.substr(i, 2) == "/*") {
      const auto close = line.find("*/", i + 2);
      if (close == std::string_view::npos) break;
      i = close + 2;
      continue;
    }
    if (c == '<') {
      // A debugger shows the symbol after the address: 0x7ffff7fb1000 <ring+16>:
      const auto close = line.find('>', i);
      if (close != std::string_view::npos && items.any() && !line.substr(i).starts_with("<repeats")) {
        i = close + 1;
        if (i < line.size() && line[i] == ':') items.mark_last(), ++i;
        continue;
      }
    }
    if (c == '=') {
      const auto run = std::min(line.find_first_not_of("=>", i), line.size()) - i;
      // "=>" is a debugger's mark at the beginning; "rptr == 5" names a value.
      if (items.any()) items.mark_last(), items.equals();
      else if (line.substr(i, run) != "=>") items.word(i, i + run, opens_list(i + run));
      i += run;
      continue;
    }
    if (c == '[') {
      const auto close = line.find(']', i);
      DumpCell cell;
      const auto inside =
          close == std::string_view::npos ? std::string_view() : trimmed(line.substr(i + 1, close - i - 1));
      if (as_cell(inside, static_cast<std::size_t>(inside.data() - line.data()), cell)) {
        items.number(cell);
        items.bracketed();
        i = close + 1;
        if (i < line.size() && line[i] == ':') ++i;
        continue;
      }
    }
    if (!is_word(c)) {
      const bool separator =
          kBlank.find(c) != std::string_view::npos || std::string_view(",;{}[]()").find(c) != std::string_view::npos;
      if (!separator) items.word(i, i + 1, false);
      ++i;
      continue;
    }
    auto end = i;
    while (end < line.size() && is_word(line[end])) ++end;
    auto word = line.substr(i, end - i);
    const bool colon = word.size() > 1 && word.ends_with(':') && at_or_blank(end);
    if (colon) word.remove_suffix(1);
    DumpCell cell;
    if (word == ":" && !items.any() && opens_list(end)) items.word(i, end, true);
    else if (word == ":") items.mark_last();
    else if (as_cell(word, i, cell)) {
      items.number(cell);
      if (colon) items.mark_last();
    } else items.word(i, end, colon);
    i = end;
  }
  return items.finish();
}

}}}  // namespace sdma::v0_3::detail
