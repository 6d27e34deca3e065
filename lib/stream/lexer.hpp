// SPDX-License-Identifier: MIT
#pragma once
// Turns characters into tokens. Internal: shared by all parsers of the language of docs/text.md.
//
//   Lexer lex{"fence addr=0x1000 value=n-1   # done"};
//   for (Token t = lex.take(); t.kind != Token::end; t = lex.take()) ...
//       word "fence"  word "addr"  = "="  number 0x1000  word "value"  =  word "n"  -  number 1  line  end
//
// A Lexer reads a token only when it is asked for one, so a text of any size costs no memory. A parser reads a loop's
// body again by going back to a position. The tokens of the first `keep` bytes are read once, and each knows where its
// line ends and where a bracket is closed. Later rounds find in them what an earlier one has left there:
//
//   a word        where its name is among all names
//   a condition   whether it holds, and where it ends, if all its names are defined outside loops
//   a line        where the lines after it end, if they have been skipped once
//
// The Lexer skips blanks and comments; a newline is a token. A word may contain splices, `gpu{i+1}`, whose text stays
// as it is; it may begin with one. Words and symbols are compared as numbers. The Lexer does not report errors:
// characters that do not form a token become a `bad` token, which the parser reports.
#include "sdma/core/compiler.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The first eight characters of a word or a symbol as a number.
constexpr std::uint64_t key_of(std::string_view s) noexcept {
  std::uint64_t key = 0;
  for (auto i = std::min<std::size_t>(s.size(), 8); i-- > 0;) key = key * 256 + static_cast<unsigned char>(s[i]);
  return key;
}
/// A symbol or a word of the language, of up to seven characters: its number is that of no other.
struct Key {
  std::uint64_t value{};
  template <std::size_t N> consteval Key(const char (&s)[N]) noexcept : value(key_of({s, N - 1})) {
    static_assert(N <= 8);
  }
  std::string text() const {
    std::string s;
    for (auto v = value; v != 0; v /= 256) s += static_cast<char>(v % 256);
    return s;
  }
};

struct Token {
  enum Kind : std::uint8_t { word, number, symbol, string, line, end, bad_number, bad };
  Kind kind = end;
  bool glued{};    ///< nothing separates it from the token before
  bool spliced{};  ///< a word with splices
  enum Binds : std::uint8_t { nothing, compares, xors, shifts, adds, multiplies };
  Binds binds = nothing;  ///< of a symbol between two values: how strongly
  // Of a token that is kept, in tokens after it; 0: unknown.
  bool lists{};                  ///< the first of a line: a list begins on the line, and ends on a later one
  bool holds{};                  ///< the result of `after`
  std::uint16_t line_end{};      ///< the end of its line
  std::uint16_t closed{};        ///< a bracket: after what closes it
  std::uint16_t after{};         ///< the first of tokens that are always read alike: after them
  mutable std::uint32_t slot{};  ///< a word: its place in Names
  std::size_t at{};              ///< offset of its first character
  std::string_view text{};       ///< "" for line and end; a string has its quotes
  std::uint64_t value{};         ///< the value of a number; otherwise key_of(text)

  bool is(Key k) const noexcept { return kind == symbol && value == k.value; }
  bool is_word(Key k) const noexcept { return kind == word && value == k.value; }
  bool opens() const noexcept { return is("[") || is("("); }
};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  static constexpr std::size_t kMostKept = std::size_t{1} << 16;
  /// Keeps the tokens of the first `keep` bytes, at most kMostKept, if it begins at the text's begin.
  explicit Lexer(std::string_view text, std::size_t begin = 0, std::size_t keep = 0)
      : text_(text), at_(begin), behind_(begin) {
    if (begin == 0 && keep > 0) keep_tokens(keep);
    else scan(scanned_);
  }
  Lexer(const Lexer&) = delete;
  Lexer& operator=(const Lexer&) = delete;

  /// The next token, without taking it.
  const Token& peek() const noexcept { return *next_; }
  /// The reference is valid until the next token is taken.
  SDMA_ALWAYS_INLINE const Token& take() noexcept { return next_ == last_ ? take_scanned() : *next_++; }
  /// The offset after the last token that was taken: where a missing token would be.
  std::size_t behind() const noexcept {
    if (next_ == &scanned_ || next_ == kept_.data()) return behind_;
    return next_[-1].at + next_[-1].text.size();
  }
  /// Where the next token begins, for `go`.
  std::size_t position() const noexcept { return peek().at; }
  void go(std::size_t position) noexcept {
    if (position >= kept_at_.size() || kept_[kept_at_[position]].at != position) return seek(position);
    next_ = &kept_[kept_at_[position]];
    last_ = &kept_.back();
  }
  /// Takes all line tokens that come next.
  void skip_lines() noexcept {
    while (peek().kind == Token::line) take();
  }
  /// Skips to the next line token, or to the end.
  void skip_line() noexcept {
    while (peek().kind != Token::line && peek().kind != Token::end)
      if (peek().line_end > 0) next_ += peek().line_end;
      else take();
  }
  /// The result that `keep` has noted here, if any; skips its tokens.
  std::optional<bool> again() noexcept {
    const Token& t = *next_;
    next_ += t.after;
    return t.after > 0 ? std::optional(t.holds) : std::nullopt;
  }
  /// From this position, the tokens up to here are always read alike, and with this result.
  void keep(std::size_t from, bool holds) noexcept {
    if (next_ == &scanned_ || from >= kept_at_.size()) return;
    auto& t = kept_[kept_at_[from]];
    t.after = distance(&t, next_);
    t.holds = holds;
  }
  /// Skips from a bracket or a parenthesis to after the one that closes it, or to the end of the line.
  void skip_nested() noexcept;

 private:
  /// Goes to where no token that is kept begins.
  void seek(std::size_t position) noexcept;
  void keep_tokens(std::size_t bytes);
  std::size_t keep_line(std::size_t begin) noexcept;
  static std::uint16_t distance(const Token* from, const Token* to) noexcept {
    return static_cast<std::uint16_t>(to - from);
  }
  SDMA_NOINLINE const Token& take_scanned() noexcept;
  void scan(Token&) noexcept;
  bool ends_on_its_line(std::size_t quote) const noexcept;
  void skip_letters() noexcept;
  void scan_word(Token&) noexcept;

  std::string_view text_;
  std::size_t at_, behind_;
  std::vector<Token> kept_{};                          ///< from the begin of the text
  std::vector<std::uint16_t> kept_at_{};               ///< the index of the token at each offset
  std::size_t kept_end_ = 0;                           ///< where the text after them begins
  const Token *next_ = &scanned_, *last_ = &scanned_;  ///< in `kept_`, and its end; or `scanned_`
  Token scanned_{}, taken_{};
};

}}}  // namespace sdma::v0_3::detail
