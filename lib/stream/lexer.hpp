// SPDX-License-Identifier: MIT
#pragma once
// Turns characters into tokens. Internal: shared by all parsers of the language of docs/text.md.
//
//   Lexer lex{"fence addr=0x1000 value=n-1   # done"};
//   for (Token t = lex.take(); t.kind != Token::end; t = lex.take()) ...
//       word "fence"  word "addr"  = "="  number 0x1000  word "value"  =  word "n"  -  number 1  line  end
//
// A Lexer reads a token only when it is asked for one, so a text of any size costs no memory. A parser reads a loop's
// body again by going back to a position. The Lexer skips blanks and comments; a newline is a token. A word may contain
// splices, `gpu{i+1}`, whose text stays as it is. The Lexer does not report errors: characters that do not form a token
// become a `bad` token, which the parser reports.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sdma::inline v0::detail {

struct Token {
  enum Kind : std::uint8_t { word, number, symbol, string, line, end, bad_number, bad };
  Kind kind = end;
  bool glued{};             ///< nothing separates it from the token before
  std::size_t at{};         ///< offset of its first character
  std::string_view text{};  ///< "" for line and end; a string has its quotes
  std::uint64_t value{};    ///< the value of a number

  bool is(std::string_view s) const noexcept { return kind == symbol && text == s; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text, std::size_t begin = 0) noexcept
      : text_(text), at_(begin), behind_(begin), next_(scan()) {}

  /// The next token, without taking it.
  const Token& peek() const noexcept { return next_; }
  Token take() noexcept;
  /// The offset after the last token that was taken: where a missing token would be.
  std::size_t behind() const noexcept { return behind_; }
  /// Where the next token begins, for `go`.
  std::size_t position() const noexcept { return next_.at; }
  void go(std::size_t position) noexcept {
    at_ = position;
    next_ = scan();
  }
  /// Takes all line tokens that come next.
  void skip_lines() noexcept {
    while (next_.kind == Token::line) take();
  }
  /// Skips to the next line token, or to the end.
  void skip_line() noexcept {
    while (next_.kind != Token::line && next_.kind != Token::end) take();
  }

 private:
  Token scan() noexcept;
  bool ends_on_its_line(std::size_t quote) const noexcept;
  Token scan_number(std::size_t begin) noexcept;
  Token scan_word(std::size_t begin) noexcept;

  std::string_view text_;
  std::size_t at_, behind_;
  Token next_;
};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace sdma::inline v0::detail
