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

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::inline v0::detail {

class Source {
 public:
  static constexpr std::size_t kMost = 100;

  /// Both must outlive the Source.
  Source(std::string_view text, std::string_view file);

  std::string_view text() const noexcept { return text_; }
  std::string_view file() const noexcept { return file_; }

  void error(std::size_t at, std::string message, std::string hint);
  /// Adds an error about something other than this text.
  void add(Diagnostic d) {
    if (++count_ <= kMost) errors_.emplace_back(0, std::move(d));
  }
  /// Sets what gives the suffix of every message from now on, such as " [i=1]": the values of the loops' variables.
  void set_context(std::function<std::string()> c) noexcept { context_ = std::move(c); }

  /// Have so many errors been reported that the text from `at` on should not be read? take_errors says so.
  bool full(std::size_t at) noexcept;
  /// The number of errors so far, including those that were not kept.
  std::size_t count() const noexcept { return count_; }
  /// All errors in the order of their lines, each once, and how many were not kept.
  std::vector<Diagnostic> take_errors();
  /// The line and the column of an offset, from 1.
  std::size_t line(std::size_t at) const noexcept;
  std::size_t column(std::size_t at) const noexcept;

 private:
  std::string excerpt(std::size_t at) const;

  std::string_view text_, file_;
  std::vector<std::size_t> begins_{0};  // of the lines
  std::function<std::string()> context_;
  std::vector<std::pair<std::size_t, Diagnostic>> errors_;  // with their lines
  std::size_t count_ = 0;
  std::optional<std::size_t> unread_;  // where reading has stopped
};

}  // namespace sdma::inline v0::detail
