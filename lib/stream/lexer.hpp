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
#include "sdma/core/number.hpp"

#include <algorithm>
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

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// The length of the symbol that begins with `c`, before the character `next`; 0 if no symbol does.
constexpr std::size_t symbol_length(char c, char next) noexcept {
  switch (c) {
    case '.': return next == '.' ? 2 : 1;
    case '=': return next == '=' ? 2 : 1;
    case '<':
    case '>': return next == '=' || next == c ? 2 : 1;
    case '+': return next == '=' ? 2 : 1;
    case '!':
    case '|': return next == '=' ? 2 : 0;
    case '-':
    case '*':
    case '/':
    case '%':
    case '^':
    case '?':
    case '(':
    case ')':
    case '[':
    case ']':
    case ':':
    case ',': return 1;
    default: return 0;
  }
}

constexpr Token::Binds binding(std::string_view symbol) noexcept {
  switch (symbol.front()) {
    case '*':
    case '/':
    case '%': return Token::multiplies;
    case '+':
    case '-': return symbol.size() == 1 ? Token::adds : Token::nothing;
    case '^': return Token::xors;
    case '<':
    case '>': return symbol.ends_with("<<") || symbol.ends_with(">>") ? Token::shifts : Token::compares;
    case '=':
    case '!': return symbol.size() == 2 ? Token::compares : Token::nothing;
    default: return Token::nothing;
  }
}

class Lexer {
 public:
  /// Keeps the tokens of the first `keep` bytes, if it begins at the text's begin.
  explicit Lexer(std::string_view text, std::size_t begin = 0, std::size_t keep = 0)
      : text_(text), at_(begin), behind_(begin) {
    if (begin == 0 && keep > 0) keep_tokens(keep);
    else scanned_ = scan();
  }
  Lexer(const Lexer&) = delete;
  Lexer& operator=(const Lexer&) = delete;

  /// The next token, without taking it.
  const Token& peek() const noexcept { return *next_; }
  /// The reference is valid until the next token is taken.
  const Token& take() noexcept {
    const Token& taken = *next_;
    behind_ = taken.at + taken.text.size();
    if (more_ == 0) return take_scanned();
    --more_, ++next_;
    return taken;
  }
  /// The offset after the last token that was taken: where a missing token would be.
  std::size_t behind() const noexcept { return behind_; }
  /// Where the next token begins, for `go`.
  std::size_t position() const noexcept { return peek().at; }
  void go(std::size_t position) noexcept {
    if (position < kept_at_.size() && !kept_.empty()) {
      auto index = std::size_t{kept_at_[position]};
      // From where no token begins, to the next one.
      if (kept_[index].at != position)
        index = static_cast<std::size_t>(std::lower_bound(kept_.begin(), kept_.end(), position,
                                                          [](const Token& t, std::size_t p) { return t.at < p; }) -
                                         kept_.begin());
      if (index < kept_.size()) {
        next_ = &kept_[index];
        more_ = kept_.size() - 1 - index;
        return;
      }
    }
    at_ = position;
    scanned_ = scan();
    next_ = &scanned_;
    more_ = 0;
  }
  /// Takes all line tokens that come next.
  void skip_lines() noexcept {
    while (peek().kind == Token::line) take();
  }
  /// Skips to the next line token, or to the end.
  void skip_line() noexcept {
    while (peek().kind != Token::line && peek().kind != Token::end) take();
  }

 private:
  void keep_tokens(std::size_t bytes) {
    kept_at_.resize(std::min(text_.size() + 1, bytes));
    kept_.reserve(kept_at_.size() / 3);
    for (Token t = scan(); t.at < kept_at_.size(); t = scan()) {
      kept_at_[t.at] = static_cast<std::uint32_t>(kept_.size());
      kept_.push_back(t);
      kept_end_ = at_;
      if (t.kind == Token::end) break;
    }
    go(0);
  }
  /// The last token that is kept, or one after it.
  const Token& take_scanned() noexcept {
    if (next_ != &scanned_) at_ = kept_end_;
    taken_ = *next_;
    scanned_ = scan();
    next_ = &scanned_;
    return taken_;
  }
  Token scan() noexcept {
    const auto before = at_;
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    const auto begin = at_;
    Token t{.kind = Token::end, .glued = begin == before, .at = begin};
    if (begin == text_.size()) return t;
    const char c = text_[begin];
    if (c == '\n') ++at_, t.kind = Token::line;
    else if (is_digit(c)) t = scan_number(begin);
    else if (is_letter(c) || c == '{') t = scan_word(begin);
    else if (c == '"' && ends_on_its_line(begin)) {
      at_ = text_.find('"', begin + 1) + 1;
      t.kind = Token::string;
      t.text = text_.substr(begin, at_ - begin);
    } else {
      const auto length = symbol_length(c, begin + 1 < text_.size() ? text_[begin + 1] : '\0');
      t.kind = length > 0 ? Token::symbol : Token::bad;
      at_ += std::max<std::size_t>(length, 1);
      t.text = text_.substr(begin, at_ - begin);
      if (length > 0) t.binds = binding(t.text);
    }
    t.at = begin;
    t.glued = begin == before;
    return t;
  }
  bool ends_on_its_line(std::size_t quote) const noexcept {
    const auto close = text_.find_first_of("\"\n", quote + 1);
    return close != std::string_view::npos && text_[close] == '"';
  }
  Token scan_number(std::size_t begin) noexcept {
    while (at_ < text_.size() && (is_digit(text_[at_]) || is_letter(text_[at_]))) ++at_;
    Token t{.kind = Token::number, .text = text_.substr(begin, at_ - begin)};
    if (const auto value = parse_size(t.text)) t.value = *value;
    else t.kind = Token::bad_number;
    return t;
  }
  Token scan_word(std::size_t begin) noexcept {
    Token t{.kind = Token::word};
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_digit(c) || is_letter(c)) {
        ++at_;
      } else if (c == '{') {
        const auto close = text_.find_first_of("}\n", at_);
        if (close == std::string_view::npos || text_[close] == '\n') {
          t.kind = Token::bad;
          at_ = close == std::string_view::npos ? text_.size() : close;
          break;
        }
        at_ = close + 1;
        t.spliced = true;
      } else {
        break;
      }
    }
    t.text = text_.substr(begin, at_ - begin);
    return t;
  }

  std::string_view text_;
  std::size_t at_, behind_;
  std::vector<Token> kept_{};             ///< from the begin of the text
  std::vector<std::uint32_t> kept_at_{};  ///< the index of the token at each offset
  std::size_t kept_end_ = 0;              ///< where the text after them begins
  const Token* next_ = &scanned_;         ///< in `kept_`, or `scanned_`
  std::size_t more_ = 0;                  ///< tokens of `kept_` after it
  Token scanned_{}, taken_{};
};

}  // namespace sdma::inline v0::detail
