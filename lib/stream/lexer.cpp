// SPDX-License-Identifier: MIT
#include "lexer.hpp"

#include "sdma/core/number.hpp"

#include <algorithm>

namespace sdma::inline v0::detail {
namespace {

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

}  // namespace

void Lexer::keep_tokens(std::size_t bytes) {
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

void Lexer::go(std::size_t position) noexcept {
  if (position < kept_at_.size() && !kept_.empty()) {
    index_ = kept_at_[position];
    // From where no token begins, to the next one.
    if (kept_[index_].at != position)
      index_ = static_cast<std::size_t>(std::lower_bound(kept_.begin(), kept_.end(), position,
                                                         [](const Token& t, std::size_t p) { return t.at < p; }) -
                                        kept_.begin());
    if (index_ < kept_.size()) return;
  }
  index_ = kept_.size() + 1;
  at_ = position;
  next_ = scan();
}

Token Lexer::scan() noexcept {
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

bool Lexer::ends_on_its_line(std::size_t quote) const noexcept {
  const auto close = text_.find_first_of("\"\n", quote + 1);
  return close != std::string_view::npos && text_[close] == '"';
}

Token Lexer::scan_number(std::size_t begin) noexcept {
  while (at_ < text_.size() && (is_digit(text_[at_]) || is_letter(text_[at_]))) ++at_;
  Token t{.kind = Token::number, .text = text_.substr(begin, at_ - begin)};
  if (const auto value = parse_size(t.text)) t.value = *value;
  else t.kind = Token::bad_number;
  return t;
}

Token Lexer::scan_word(std::size_t begin) noexcept {
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

}  // namespace sdma::inline v0::detail
