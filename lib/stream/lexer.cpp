// SPDX-License-Identifier: MIT
#include "lexer.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {
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

void Lexer::seek(std::size_t position) noexcept {
  if (position < kept_at_.size()) {
    const auto before = [](const Token& t, std::size_t p) { return t.at < p; };
    if (const auto at = std::lower_bound(kept_.begin(), kept_.end(), position, before); at != kept_.end()) {
      next_ = &*at;
      last_ = &kept_.back();
      return;
    }
  }
  at_ = position;
  scan(scanned_);
  next_ = last_ = &scanned_;
}

void Lexer::skip_nested() noexcept {
  if (peek().closed > 0) {
    next_ += peek().closed;
    return;
  }
  for (int open = 0; peek().kind != Token::line && peek().kind != Token::end;) {
    const Token& t = take();
    if (t.opens()) ++open;
    else if ((t.is("]") || t.is(")")) && --open == 0) return;
  }
}

void Lexer::keep_tokens(std::size_t bytes) {
  kept_at_.resize(std::min({text_.size() + 1, bytes, kMostKept}));
  kept_.reserve(kept_at_.size() / 6);
  for (std::size_t line = 0;;) {
    auto& t = kept_.emplace_back();
    scan(t);
    if (t.at >= kept_at_.size()) {
      kept_.pop_back();
      break;
    }
    kept_at_[t.at] = static_cast<std::uint16_t>(kept_.size() - 1);
    kept_end_ = at_;
    const bool last = t.kind == Token::end;
    if (last || t.kind == Token::line) line = keep_line(line);
    if (last) break;
  }
  if (kept_.empty()) kept_at_.clear();
  go(0);
}

/// Notes where the tokens of a line are closed. Returns where the next line begins.
std::size_t Lexer::keep_line(std::size_t begin) noexcept {
  auto* const end = &kept_.back();
  auto* open = end;  // the innermost bracket; in its `closed`, how far before it is the one around it
  const auto close = [&](const Token* after) {
    auto* const around = open->closed == 0 ? end : open - open->closed;
    open->closed = distance(open, after);
    open = around;
  };
  int lists = 0;
  for (auto* t = &kept_[begin]; t < end; ++t) {
    t->line_end = distance(t, end);
    if (t->is("[")) ++lists;
    if (t->is("]") && lists > 0) --lists;
    if (t->opens()) t->closed = open == end ? std::uint16_t{0} : distance(open, t), open = t;
    if ((t->is("]") || t->is(")")) && open != end) close(t + 1);
  }
  while (open != end) close(end);
  kept_[begin].lists = lists > 0;
  return kept_.size();
}

/// The last token that is kept, or one after it.
const Token& Lexer::take_scanned() noexcept {
  if (next_ != &scanned_) at_ = kept_end_;
  taken_ = *next_;
  behind_ = taken_.at + taken_.text.size();
  scan(scanned_);
  next_ = last_ = &scanned_;
  return taken_;
}

void Lexer::scan(Token& t) noexcept {
  const auto before = at_;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  auto begin = before;
  while (begin < text_.size() && blank(text_[begin])) ++begin;
  if (begin < text_.size() && text_[begin] == '#') begin = std::min(text_.find('\n', begin), text_.size());
  at_ = begin;
  t = {.kind = Token::end, .glued = begin == before, .at = begin};
  if (begin == text_.size()) return;
  const char c = text_[begin];
  if (c == '\n') {
    ++at_;
    t.kind = Token::line;
    return;
  }
  if (is_digit(c)) {
    skip_letters();
    t.kind = Token::number;
  } else if (is_letter(c) || c == '{') {
    scan_word(t);
  } else if (c == '"' && ends_on_its_line(begin)) {
    at_ = text_.find('"', begin + 1) + 1;
    t.kind = Token::string;
  } else {
    const auto length = symbol_length(c, begin + 1 < text_.size() ? text_[begin + 1] : '\0');
    t.kind = length > 0 ? Token::symbol : Token::bad;
    at_ += std::max<std::size_t>(length, 1);
  }
  t.text = text_.substr(begin, at_ - begin);
  if (t.kind == Token::symbol) t.binds = binding(t.text);
  if (t.kind != Token::number) {
    t.value = key_of(t.text);
    return;
  }
  if (const auto value = parse_size(t.text)) t.value = *value;
  else t.kind = Token::bad_number;
}

bool Lexer::ends_on_its_line(std::size_t quote) const noexcept {
  const auto close = text_.find_first_of("\"\n", quote + 1);
  return close != std::string_view::npos && text_[close] == '"';
}

void Lexer::skip_letters() noexcept {
  auto at = at_;
  while (at < text_.size() && (is_letter(text_[at]) || is_digit(text_[at]))) ++at;
  at_ = at;
}

void Lexer::scan_word(Token& t) noexcept {
  t.kind = Token::word;
  for (skip_letters(); at_ < text_.size() && text_[at_] == '{'; skip_letters()) {
    const auto close = text_.find_first_of("}\n", at_);
    t.spliced = close != text_.npos && text_[close] == '}';
    at_ = t.spliced ? close + 1 : std::min(close, text_.size());
    if (!t.spliced) {
      t.kind = Token::bad;
      return;
    }
  }
}

}}}  // namespace sdma::v0_3::detail
