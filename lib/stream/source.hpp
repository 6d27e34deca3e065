// SPDX-License-Identifier: MIT
#pragma once
// A text, its name, and what is wrong with it. Internal: shared by all parsers of the language of docs/text.md.
//
//   Source s{"bytes=64KB", "a.sdma"};
//   s.error(6, "'64KB' is not a number", "numbers are 4096, 0x1000, ...");     // 6: the offset of the character
//   to_string(s.take_errors()[0])
//       == "a.sdma:1:7: error: '64KB' is not a number\n  1 | bytes=64KB\n    |       ^\n  hint: ..."
//
// Keeps the first kMost errors: binary data, for example, has an error in every line. A parser asks `full` before each
// statement, and stops if it is. A text may be read more than once: an error that is reported again counts, but is
// shown once. One thread at a time.
#include "sdma/core/diagnostic.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Makes a quote from the text safe to show: it may be of any length, and may contain control characters.
inline std::string shown(std::string s) {
  constexpr std::size_t kLongest = 400, kEnd = 100;
  for (auto& c : s)
    if (c < ' ' || c > '~') c = '?';
  if (s.size() > kLongest) s.replace(kLongest - kEnd, s.size() - kLongest, "..");
  return s;
}

class Source {
 public:
  static constexpr std::size_t kMost = 100;

  /// Both must outlive the Source.
  Source(std::string_view text, std::string_view file) : text_(text), file_(file) {
    for (auto at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) begins_.push_back(at + 1);
  }

  std::string_view text() const noexcept { return text_; }
  std::string_view file() const noexcept { return file_; }

  void error(std::size_t at, std::string message, std::string hint) {
    if (++count_ > kMost) return;
    at = std::min(at, text_.size());
    auto error = error_at({.file = std::string(file_), .line = line(at), .column = column(at)},
                          shown(std::move(message)) + (context_ ? context_() : ""), shown(std::move(hint)));
    error.excerpt = excerpt(at);
    errors_.push_back({line(at), std::move(error)});
  }
  /// Adds an error about something other than this text.
  void add(Diagnostic d) {
    if (++count_ <= kMost) errors_.emplace_back(0, std::move(d));
  }
  /// Notes an error that only follows from one that was reported: it counts, but is not shown.
  void follows() noexcept { ++followed_; }
  /// Gives the last error a hint, if it is one of those after the first `before`, says what it expected, and has none.
  void advise(std::size_t before, std::string_view hint) {
    if (count() == before || count_ > kMost || errors_.empty()) return;
    auto& last = errors_.back().second;
    if (last.hint.empty() && last.message.starts_with("expected ")) last.hint = hint;
  }
  /// Sets what gives the suffix of every message from now on, such as " [i=1]": the values of the loops' variables.
  void set_context(std::function<std::string()> c) noexcept { context_ = std::move(c); }

  /// Have so many errors been reported that the text from `at` on should not be read? take_errors says so.
  bool full(std::size_t at) noexcept {
    if (count_ < kMost) return false;
    if (!unread_) unread_ = at;
    return true;
  }
  /// The number of errors so far, including those that were not kept, and those that follow from others.
  std::size_t count() const noexcept { return count_ + followed_; }
  /// All errors in the order of their lines, each once, and how many were not kept.
  std::vector<Diagnostic> take_errors() {
    std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Diagnostic> out;
    for (auto& entry : errors_) {
      const auto same = [&e = entry.second](const auto& o) { return o.where == e.where && o.message == e.message; };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(entry.second));
    }
    if (unread_)
      out.push_back({.where = std::string(file_),
                     .message = "after " + std::to_string(kMost) + " errors, the text from line " +
                                std::to_string(line(std::min(*unread_, text_.size()))) + " on was not read"});
    else if (count_ > kMost)
      out.push_back(
          {.where = std::string(file_), .message = std::to_string(count_ - kMost) + " more errors are not shown"});
    return out;
  }
  /// The line and the column of an offset, from 1.
  std::size_t line(std::size_t at) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) - begins_.begin());
  }
  std::size_t column(std::size_t at) const noexcept { return at - begins_[line(at) - 1] + 1; }

 private:
  std::string excerpt(std::size_t at) const {
    // The line of a big WRITE is megabytes long: show only the part around the place.
    constexpr std::size_t kBefore = 72, kAfter = 40;
    const auto number = line(at), begin = begins_[number - 1];
    const auto end = std::min(text_.find('\n', at), text_.size());
    const auto from = at - begin > kBefore ? at - kBefore : begin;
    const auto until = std::min(end, at + kAfter);
    const std::string margin = "  " + std::to_string(number) + " | ";

    std::string out = margin;
    if (from > begin) out += "..";
    for (auto c : text_.substr(from, until - from)) out += c == '\t' || (c >= ' ' && c <= '~') ? c : '?';
    if (until < end) out += "..";
    out.append("\n").append(margin.size() - 2, ' ').append("| ");
    if (from > begin) out += "  ";
    // Tabs stay tabs, so that the caret is below its character whatever their width.
    for (auto c : text_.substr(from, at - from)) out += c == '\t' ? '\t' : ' ';
    return out += '^';
  }

  std::string_view text_, file_;
  std::vector<std::size_t> begins_{0};  // of the lines
  std::function<std::string()> context_;
  std::vector<std::pair<std::size_t, Diagnostic>> errors_;  // with their lines
  std::size_t count_ = 0, followed_ = 0;
  std::optional<std::size_t> unread_;  // where reading has stopped
};

}}}  // namespace sdma::v0_3::detail
