#pragma once
// A text, its name, and what is wrong with it. Internal: shared by all parsers of the language of docs/text.md.
//
//   Source s{"bytes=64KB", "a.sdma"};
//   s.error(6, "'64KB' is not a number", "numbers are 4096, 0x1000, ...");     // 6: the offset of the character
//   to_string(s.errors()[0])  ==  "a.sdma:1:7: error: '64KB' is not a number\n  1 | bytes=64KB\n    |       ^\n  hint: ..."
//
// Keeps the first kMost errors: binary data, for example, has an error in every line. One thread at a time.
#include "sdma/core/diagnostic.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

class Source {
 public:
  static constexpr std::size_t kMost = 100;

  /// Both must outlive the Source.
  Source(std::string_view text, std::string_view file) noexcept : text_(text), file_(file) {}

  std::string_view text() const noexcept { return text_; }
  std::string_view file() const noexcept { return file_; }

  void error(std::size_t at, std::string message, std::string hint);
  /// Adds an error about something other than this text.
  void add(Diagnostic d) {
    if (++count_ <= kMost) errors_.push_back(std::move(d));
  }
  /// Sets a suffix for every message from now on, such as " [i=1]": the values of the loops' variables.
  void set_context(std::string c) noexcept { context_ = std::move(c); }

  /// The number of errors so far, including those that were not kept.
  std::size_t count() const noexcept { return count_; }
  std::vector<Diagnostic>& errors() noexcept { return errors_; }
  /// The line of an offset, from 1.
  std::size_t line(std::size_t at) const noexcept;

 private:
  std::string excerpt(std::size_t begin, std::size_t at, std::size_t line) const;

  std::string_view text_, file_;
  std::string context_;
  std::vector<Diagnostic> errors_;
  std::size_t count_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
