#include "lexer.hpp"

#include <charconv>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::string_view kLongSymbols[] = {"..", "|=", "==", "!=", "<=", ">="};
constexpr std::string_view kSymbols = "=+-*/%()[].,<>";

/// Parses all of `s` as INT [ K | M | G ] or HEX, in 64 bits.
bool parse(std::string_view s, std::uint64_t& value) noexcept {
  int base = 10, shift = 0;
  if (s.starts_with("0x")) {
    s.remove_prefix(2);
    base = 16;
  } else if (s.ends_with('K') || s.ends_with('M') || s.ends_with('G')) {
    shift = s.back() == 'K' ? 10 : s.back() == 'M' ? 20 : 30;
    s.remove_suffix(1);
  }
  if (s.empty()) return false;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc{} || end != s.data() + s.size() || value > ~std::uint64_t{} >> shift) return false;
  value <<= shift;
  return true;
}

}  // namespace

Token Lexer::take() noexcept {
  const Token taken = next_;
  behind_ = taken.at + taken.text.size();
  next_ = scan();
  return taken;
}

Token Lexer::scan() noexcept {
  const auto before = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      break;
    }
  }
  const auto begin = at_;
  Token t{.kind = Token::end, .glued = begin == before, .at = begin};
  if (begin == text_.size()) return t;
  const char c = text_[begin];
  if (c == '\n') {
    ++at_;
    t.kind = Token::line;
    return t;
  }
  if (is_digit(c)) t = scan_number(begin);
  else if (is_letter(c)) t = scan_word(begin);
  else {
    t.kind = Token::bad;
    std::size_t length = 1;
    for (const auto s : kLongSymbols)
      if (text_.substr(begin).starts_with(s)) {
        t.kind = Token::symbol;
        length = s.size();
        break;
      }
    if (kSymbols.find(c) != std::string_view::npos) t.kind = Token::symbol;
    t.text = text_.substr(begin, length);
    at_ += length;
  }
  t.at = begin;
  t.glued = begin == before;
  return t;
}

Token Lexer::scan_number(std::size_t begin) noexcept {
  while (at_ < text_.size() && (is_digit(text_[at_]) || is_letter(text_[at_]))) ++at_;
  Token t{.kind = Token::number, .text = text_.substr(begin, at_ - begin)};
  if (!parse(t.text, t.value)) t.kind = Token::bad_number;
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
    } else {
      break;
    }
  }
  t.text = text_.substr(begin, at_ - begin);
  return t;
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
