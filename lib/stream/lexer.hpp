// SPDX-License-Identifier: MIT
#pragma once
// Turns characters into tokens. Internal: shared by all parsers of the language of docs/text.md.
//
//   Lexer lex{"fence addr=0x1000 value=n-1   # done"};
//   for (Token t = lex.take(); t.kind != Token::end; t = lex.take()) ...
//       word "fence"  word "addr"  = "="  number 0x1000  word "value"  =  word "n"  -  number 1  line  end
//
// A Lexer reads a token only when it is asked for one, so a text of any size costs no memory. A parser reads a loop's
// body again by going back to a position; the tokens of the first `keep` bytes are read once. The Lexer skips blanks
// and comments; a newline is a token. A word may contain splices, `gpu{i+1}`, whose text stays as it is; it may begin
// with one. The Lexer does not report errors: characters that do not form a token become a `bad` token, which the
// parser reports.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sdma::inline v0::detail {

struct Token {
  enum Kind : std::uint8_t { word, number, symbol, string, line, end, bad_number, bad };
  Kind kind = end;
  bool glued{};    ///< nothing separates it from the token before
  bool spliced{};  ///< a word with splices
  enum Binds : std::uint8_t { nothing, compares, xors, shifts, adds, multiplies };
  Binds binds = nothing;    ///< of a symbol between two values: how strongly
  std::size_t at{};         ///< offset of its first character
  std::string_view text{};  ///< "" for line and end; a string has its quotes
  std::uint64_t value{};    ///< the value of a number

  bool is(std::string_view s) const noexcept {
    return kind == symbol && text.size() == s.size() && text.front() == s.front() && text.back() == s.back();
  }
};

class Lexer {
 public:
  /// Keeps the tokens of the first `keep` bytes, if it begins at the text's begin.
  explicit Lexer(std::string_view text, std::size_t begin = 0, std::size_t keep = 0)
      : text_(text), at_(begin), behind_(begin) {
    if (begin == 0 && keep > 0) keep_tokens(keep);
    else next_ = scan();
  }

  /// The next token, without taking it.
  const Token& peek() const noexcept { return index_ < kept_.size() ? kept_[index_] : next_; }
  Token take() noexcept {
    const Token taken = peek();
    behind_ = taken.at + taken.text.size();
    if (++index_ >= kept_.size()) scan_next();
    return taken;
  }
  /// The offset after the last token that was taken: where a missing token would be.
  std::size_t behind() const noexcept { return behind_; }
  /// Where the next token begins, for `go`.
  std::size_t position() const noexcept { return peek().at; }
  void go(std::size_t position) noexcept;
  /// Takes all line tokens that come next.
  void skip_lines() noexcept {
    while (peek().kind == Token::line) take();
  }
  /// Skips to the next line token, or to the end.
  void skip_line() noexcept {
    while (peek().kind != Token::line && peek().kind != Token::end) take();
  }

 private:
  void keep_tokens(std::size_t bytes);
  /// After the last token that is kept, or the one after that.
  void scan_next() noexcept {
    if (index_ == kept_.size()) at_ = kept_end_;
    next_ = scan();
  }
  Token scan() noexcept;
  bool ends_on_its_line(std::size_t quote) const noexcept;
  Token scan_number(std::size_t begin) noexcept;
  Token scan_word(std::size_t begin) noexcept;

  std::string_view text_;
  std::size_t at_, behind_;
  std::vector<Token> kept_{};             ///< from the begin of the text
  std::vector<std::uint32_t> kept_at_{};  ///< the index of the token at each offset
  std::size_t kept_end_ = 0;              ///< where the text after them begins
  std::size_t index_ = 0;                 ///< of the next token; from the end of `kept_` on, next_ is it
  Token next_{};
};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace sdma::inline v0::detail
