#include "expression.hpp"

#include "sdma/core/nearest.hpp"

#include <utility>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

constexpr int kDeepest = 64;  // nested parentheses, signs and splices

class Parser {
 public:
  Parser(Lexer& lex, const Names& names, Source& source, bool epoch = false, int depth = 0) noexcept
      : lex_(lex), names_(names), source_(source), epoch_(epoch), depth_(depth) {}

  std::optional<Linear> sum() {
    auto left = product();
    while (left && (lex_.peek().is("+") || lex_.peek().is("-"))) {
      const auto op = lex_.take();
      const auto right = product();
      if (!right) return {};
      left = op.text == "+" ? bounded(op, {left->constant + right->constant, left->factor + right->factor})
                            : bounded(op, {left->constant - right->constant, left->factor - right->factor});
    }
    return left;
  }

  std::optional<Linear> primary() {
    if (depth_ > kDeepest) return fail(lex_.peek(), "this expression is nested too deeply", "");
    // A statement ends at the end of its line.
    if (at_line_end()) return fail(lex_.peek(), "expected a number, got " + quote(lex_.peek()), "");
    const Token t = lex_.take();
    if (t.kind == Token::number) return Linear{t.value};
    if (t.kind == Token::word) return name(t);
    if (t.is("-")) {
      const auto v = deeper([&] { return primary(); });
      return v ? bounded(t, {-v->constant, -v->factor}) : v;
    }
    if (t.is("(")) {
      const auto v = deeper([&] { return sum(); });
      if (v && !lex_.peek().is(")")) return fail(lex_.peek(), "expected ')', got " + quote(lex_.peek()), "");
      if (v) lex_.take();
      return v;
    }
    if (t.kind == Token::bad_number)
      return fail(t, quote(t) + " is not a number", "write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)");
    return fail(t, "expected a number, got " + quote(t), "");
  }

  std::optional<std::string> expand(const Token& word) {
    std::string out;
    for (std::size_t i = 0; i < word.text.size(); ++i) {
      if (word.text[i] != '{') {
        out += word.text[i];
        continue;
      }
      const auto close = word.text.find('}', i);
      // For this expression the text ends at the brace; offsets stay those of the source.
      Lexer inner{source_.text().substr(0, word.at + close), word.at + i + 1};
      Parser p{inner, names_, source_, false, depth_ + 1};
      const auto v = p.sum();
      if (!v) return {};
      if (inner.peek().kind != Token::end) {
        fail(inner.peek(), "expected '}', got " + quote(inner.peek()), "");
        return {};
      }
      if (v->constant < 0) {
        fail(word, "a name cannot contain " + to_string(v->constant), "");
        return {};
      }
      out += to_string(v->constant);
      i = close;
    }
    return out;
  }

 private:
  std::optional<Linear> product() {
    auto left = primary();
    while (left && (lex_.peek().is("*") || lex_.peek().is("/") || lex_.peek().is("%"))) {
      const auto op = lex_.take();
      const auto right = primary();
      if (!right) return {};
      if (op.text != "*" && right->constant == 0 && right->factor == 0) return fail(op, "division by zero", "");
      if (op.text == "*" ? left->factor != 0 && right->factor != 0 : left->factor != 0 || right->factor != 0)
        return fail(op, "this value is not linear in epoch",
                    "a value may be a*epoch+b: epoch is added, subtracted, or multiplied by a number");
      if (op.text == "*") left = times(op, *left, *right);
      else left = Linear{op.text == "/" ? left->constant / right->constant : left->constant % right->constant};
    }
    return left;
  }

  std::optional<Linear> name(const Token& word) {
    const auto full = expand(word);
    if (!full) return {};
    if (names_.epoch_reserved() && *full == "epoch") {
      if (epoch_) return Linear{0, 1};
      return fail(
          word, "'epoch' is not allowed here",
          "it is allowed in values of packets (reference, value, compare), and in set and wait inside a repeat");
    }
    if (const auto* v = names_.find(*full)) return Linear{*v};
    const auto close = names_.nearest(*full);
    return fail(word, "'" + *full + "' is not defined",
                close.empty() ? "let " + *full + " = ... defines it" : "did you mean '" + std::string(close) + "'?");
  }

  static bool fits(Number v) noexcept { return v >= kLeast && v <= kMost; }
  std::optional<Linear> bounded(const Token& op, Linear v) {
    if (fits(v.constant) && fits(v.factor)) return v;
    return fail(op, "this value does not fit in 64 bits", "");
  }
  /// Requires that one of the two does not depend on the epoch.
  std::optional<Linear> times(const Token& op, Linear a, Linear b) {
    if (a.factor != 0) std::swap(a, b);
    const auto constant = times(a.constant, b.constant), factor = times(a.constant, b.factor);
    if (constant && factor) return bounded(op, {*constant, *factor});
    return fail(op, "this value does not fit in 64 bits", "");
  }
  static std::optional<Number> times(Number a, Number b) noexcept {
    // Both are below 2^65, so the product may not fit in 128 bits: divide before multiplying.
    const auto magnitude = [](Number v) { return v < 0 ? -v : v; };
    if (a != 0 && magnitude(b) > kMost / magnitude(a)) return {};
    return a * b;
  }

  template <class Fn> std::optional<Linear> deeper(Fn fn) {
    ++depth_;
    const auto v = fn();
    --depth_;
    return v;
  }
  bool at_line_end() const noexcept { return lex_.peek().kind == Token::line || lex_.peek().kind == Token::end; }
  std::nullopt_t fail(const Token& t, std::string message, std::string hint) {
    source_.error(t.at, std::move(message), std::move(hint));
    return std::nullopt;
  }

  Lexer& lex_;
  const Names& names_;
  Source& source_;
  bool epoch_;
  int depth_;
};

std::optional<Number> constant(const std::optional<Linear>& v) {
  return v ? std::optional<Number>(v->constant) : std::nullopt;
}

}  // namespace

std::string to_string(Number v) {
  return v < 0 ? "-" + std::to_string(static_cast<std::uint64_t>(-v)) : std::to_string(static_cast<std::uint64_t>(v));
}

std::string_view Names::nearest(std::string_view word) const noexcept {
  Nearest n{word};
  for (const auto& e : all_) n.offer(e.name);
  return n.best();
}

std::optional<Number> parse_expression(Lexer& lex, const Names& names, Source& source) {
  return constant(Parser{lex, names, source}.sum());
}
std::optional<Linear> parse_linear(Lexer& lex, const Names& names, Source& source) {
  return Parser{lex, names, source, true}.sum();
}
std::optional<Number> parse_primary(Lexer& lex, const Names& names, Source& source) {
  return constant(Parser{lex, names, source}.primary());
}
std::optional<std::string> expand(const Token& word, const Names& names, Source& source) {
  if (word.text.find('{') == std::string_view::npos) return std::string(word.text);
  Lexer unused{{}};
  return Parser{unused, names, source}.expand(word);
}

std::string quote(const Token& t) {
  if (t.kind == Token::line) return "the end of the line";
  if (t.kind == Token::end) return "the end of the text";
  if (t.kind == Token::bad && !t.text.empty() && (t.text[0] < ' ' || t.text[0] > '~')) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(t.text[0]);
    return std::string("byte 0x") + digits[byte / 16] + digits[byte % 16];
  }
  constexpr std::size_t kLongest = 40;
  return "'" + std::string(t.text.substr(0, kLongest)) + (t.text.size() > kLongest ? "..'" : "'");
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
