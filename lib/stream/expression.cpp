// SPDX-License-Identifier: MIT
#include "expression.hpp"

#include "written_elsewhere.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

bool holds(Number a, const Token& op, Number b) noexcept {
  switch (op.value) {
    case key_of("=="): return a == b;
    case key_of("!="): return a != b;
    case key_of("<"): return a < b;
    case key_of("<="): return a <= b;
    case key_of(">"): return a > b;
    default: return a >= b;
  }
}

/// The low 64 bits of a number in two's complement, and its sign.
struct Halves {
  std::uint64_t low;
  bool negative;
};
Halves halves(Number v) noexcept { return {static_cast<std::uint64_t>(v), v < 0}; }

std::optional<Number> times(Number a, Number b) noexcept {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  std::int64_t product{};
  if (x == a && y == b && !__builtin_mul_overflow(x, y, &product)) return product;
  // Both are below 2^65, so the product may not fit in 128 bits: divide before multiplying.
  const auto magnitude = [](Number v) { return v < 0 ? -v : v; };
  if (a != 0 && magnitude(b) > kMost / magnitude(a)) return {};
  return a * b;
}

/// The quotient or the remainder. 64 bits are divided much faster than 128.
Number divided(Number a, Number b, bool remainder) noexcept {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  if (x == a && y == b && y != -1) return remainder ? x % y : x / y;
  return remainder ? a % b : a / b;
}

}  // namespace

std::string to_string(Number v) {
  return v < 0 ? "-" + std::to_string(static_cast<std::uint64_t>(-v)) : std::to_string(static_cast<std::uint64_t>(v));
}

bool Parser::fail(std::size_t at, std::string message, std::string hint) {
  source_.error(at, std::move(message), std::move(hint));
  return false;
}

bool Parser::absent(Key text) { return expected(quote(text.text())); }

std::nullopt_t Parser::none(std::size_t at, std::string message, std::string hint) {
  fail(at, std::move(message), std::move(hint));
  return std::nullopt;
}

bool Parser::expected(std::string_view what, std::string hint) {
  return fail(lex_.peek().at, "expected " + std::string(what) + ", got " + quote(lex_.peek()), std::move(hint));
}

std::optional<std::uint64_t> Parser::number(std::string_view what, Number least, Number most) {
  const auto at = lex_.position();
  const auto v = expression();
  if (!v) return {};
  if (*v >= least && *v <= most) return static_cast<std::uint64_t>(*v);
  return none(at,
              quote(what) + " must be from " + to_string(least) + " to " + to_string(most) + ", got " + to_string(*v));
}

std::optional<Linear> Parser::linear(Allow what) {
  const auto begin = lex_.position();
  epoch_ = what != Allow::sample;
  sample_ = what != Allow::epoch;
  Linear v;
  const bool good = operation(Token::xors, v);
  epoch_ = sample_ = false;
  if (!good) return {};
  if (v.factor == 0) return v;
  for (const auto part : {v.constant, v.factor})
    if (part < -kMostPerEpoch || part > kMostPerEpoch)
      return none(begin, "the constant and the factor of a value that depends on the epoch must fit in 62 bits, got " +
                             to_string(part));
  return v;
}

std::optional<bool> Parser::condition() {
  if (const auto known = lex_.again()) return known;
  const auto begin = lex_.position();
  const auto before = names_.watch();
  compared_ = false;
  const auto v = expression();
  if (!v) return {};
  if (!compared_ || lex_.peek().is("="))
    return expected("one of == != < <= > >=", lex_.peek().is("=") ? "'==' compares" : "write if k % 2 == 0"),
           std::nullopt;
  if (names_.watched(before)) lex_.keep(begin, *v != 0);
  return *v != 0;
}

/// The rest of a choice, from the question mark.
bool Parser::chosen(Linear& v) {
  if (!known_now(lex_.take(), v)) return false;
  const bool holds = v.constant != 0;
  Linear other;
  if (!alternative(holds, v) || !take(":") || !alternative(!holds, other)) return false;
  if (!holds) v = other;
  return true;
}

/// One of the two values of a choice. What is not taken may be wrong for these values: i > 0 ? list[i-1] : 0.
bool Parser::alternative(bool taken, Linear& v) {
  const bool outside = std::exchange(skipping_, skipping_ || !taken);
  const bool good = nested(v);
  skipping_ = outside;
  return good;
}

SDMA_ALWAYS_INLINE inline bool Parser::value(Linear& v) {
  const auto& t = lex_.peek();
  if (skipping_ || depth_ > kDeepestExpression) return operand(v);
  if (t.kind == Token::number) return v = Linear{lex_.take().value}, true;
  if (t.kind != Token::word || t.spliced) return operand(v);
  const auto* e = names_.entry(t);
  if (!e || e->list) return operand(v);
  const auto at = t.at;
  lex_.take();
  if (lex_.peek().is("(")) return lex_.go(at), operand(v);
  return v = Linear{e->value}, true;
}

std::optional<Number> Parser::primary() {
  Linear v;
  return value(v) ? std::optional(v.constant) : std::nullopt;
}

bool Parser::operation(Token::Binds least, Linear& left) {
  if (!value(left)) return false;
  while (lex_.peek().binds >= least) {
    const auto op = lex_.take();
    Linear right;
    if (!(op.binds == Token::multiplies ? value(right) : operation(Token::Binds(op.binds + 1), right))) return false;
    if (!skipping_ && !apply(op, left, right)) return false;
    if (op.binds == Token::compares) return true;
  }
  return true;
}

bool Parser::apply(const Token& op, Linear& a, const Linear& b) {
  switch (op.binds) {
    case Token::adds: return add(op, a, b);
    case Token::multiplies: return multiply(op, a, b);
    case Token::compares: return compare(op, a, b);
    default: return bits(op, a, b);
  }
}

bool Parser::compare(const Token& op, Linear& a, const Linear& b) {
  if (a.factor != 0 || b.factor != 0 || a.sample || b.sample)
    return fail(op.at, "this value is known only while the schedule runs, so it cannot be compared here");
  compared_ = true;
  a.constant = holds(a.constant, op, b.constant);
  return true;
}

bool Parser::add(const Token& op, Linear& a, const Linear& b) {
  const bool plus = op.is("+");
  if (b.sample && (a.sample || !plus)) return not_added(op);
  a.constant = plus ? a.constant + b.constant : a.constant - b.constant;
  if (b.factor != 0) a.factor = plus ? a.factor + b.factor : a.factor - b.factor;
  if (!a.sample) a.sample = b.sample;
  return bounded(op, a);
}

bool Parser::multiply(const Token& op, Linear& a, const Linear& b) {
  if (a.sample || b.sample) return not_added(op);
  const bool times = op.is("*");
  if (!times && b.constant == 0 && b.factor == 0) return fail(op.at, "division by zero");
  if (times ? a.factor != 0 && b.factor != 0 : a.factor != 0 || b.factor != 0)
    return fail(op.at, "this value is not linear in epoch",
                "a value may be a*epoch+b: epoch is added, subtracted, or multiplied by a number");
  if (!times) return a.constant = divided(a.constant, b.constant, op.is("%")), true;
  const auto factor = a.factor != 0   ? detail::times(a.factor, b.constant)
                      : b.factor != 0 ? detail::times(a.constant, b.factor)
                                      : std::optional(Number{0});
  const auto constant = detail::times(a.constant, b.constant);
  // A value that 128 bits do not hold is reported as one that 64 bits do not hold.
  a.constant = constant && factor ? *constant : kMost + 1;
  a.factor = factor.value_or(0);
  return bounded(op, a);
}

/// A shift, or an exclusive or. Negative numbers are those of two's complement.
bool Parser::bits(const Token& op, Linear& a, const Linear& b) {
  constexpr Number kMostShifted = 63;
  if (!known_now(op, a) || !known_now(op, b)) return false;
  const auto value = a.constant, other = b.constant;
  const bool shifts = op.binds == Token::shifts;
  if (shifts && (other < 0 || other > kMostShifted))
    return fail(op.at, "a shift is from 0 to " + to_string(kMostShifted) + " bits, got " + to_string(other));
  if (!shifts) {
    const auto left = halves(value), right = halves(other);
    // A number has 64 bits and a sign.
    a.constant = Number{left.low ^ right.low} - (left.negative != right.negative ? kMost + 1 : Number{0});
    return bounded(op, a);
  }
  const Number factor{std::uint64_t{1} << static_cast<unsigned>(other)};
  // Division truncates, and a shift rounds down.
  if (op.is("<<")) a.constant = value * factor;
  else a.constant = (value - (value < 0 ? factor - 1 : Number{0})) / factor;
  return bounded(op, a);
}

bool Parser::operand(Linear& v) {
  if (depth_ > kDeepestExpression) return fail(lex_.peek().at, "this expression is nested too deeply", kDepthHint);
  // A statement ends at the end of its line.
  if (at_line_end()) return expected("a number");
  const Token t = lex_.take();
  if (t.kind == Token::word) return word(t, v);
  if (t.kind == Token::number) return v = Linear{t.value}, true;
  if (t.is("(")) return nested(v) && take(")");
  if (t.is("-")) {
    ++depth_;
    const bool good = value(v);
    --depth_;
    if (!good || (v.sample && !not_added(t))) return false;
    v.constant = -v.constant;
    v.factor = -v.factor;
    return bounded(t, v);
  }
  if (t.kind == Token::bad_number)
    return fail(t.at, quote(t) + " is not a number", "write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)");
  return fail(t.at, "expected a number, got " + quote(t));
}

bool Parser::word(const Token& t, Linear& v) {
  if (skipping_) {
    while (lex_.peek().opens()) lex_.skip_nested();
    return v = Linear{}, true;
  }
  if (lex_.peek().is("(")) {
    if (t.is_word("min") || t.is_word("max") || t.is_word("sum")) return folded(t, v);
    if (t.is_word("len")) return length(v);
    if (names_file(t)) {
      const auto list = file(t);
      return list && element(*list, t, v);
    }
  }
  const auto* e = t.spliced ? nullptr : names_.entry(t);
  return e && e->list ? element(*e->list, t, v) : name(t, v);
}

bool Parser::not_known(const Token& word) {
  return fail(word.at, "this value is known only while the schedule runs, so " + quote(word) + " cannot take it");
}

std::optional<std::string_view> Parser::expand(const Token& word, Splices in) {
  // Names are stored for each declaration and each GPU, so a long one in a loop would need much memory.
  constexpr std::size_t kLongest = 255;
  const auto too_long = [&] { return none(word.at, "a name can have at most 255 characters"); };
  const auto long_name = [&](std::size_t length) { return in == Splices::name && length > kLongest; };
  if (!word.spliced && in == Splices::name) {
    if (long_name(word.text.size())) return too_long();
    return word.text;
  }
  auto& out = expanded_;
  out.clear();
  for (std::size_t i = 0; i < word.text.size(); ++i) {
    // In the text of a message, a brace may have no other.
    const auto open = word.text.find('{', i), close = word.text.find('}', open);
    out.append(word.text, i, close == word.text.npos ? close : open - i);
    if (close == word.text.npos) break;
    i = open;
    if (const auto* e = names_.entry(word.text.substr(i + 1, close - i - 1)); e && !e->list && e->value >= 0) {
      if (e->word) out += *e->word;
      else if (e->value < 10) out += static_cast<char>('0' + static_cast<int>(e->value));
      else out += to_string(e->value);
      i = close;
      continue;
    }
    // For this expression the text ends at the brace; offsets stay those of the source.
    Lexer inner{source_.text().substr(0, word.at + close), word.at + i + 1};
    Parser p{inner, names_, source_};
    p.depth_ = depth_ + 1;
    p.samples_ = samples_;
    const auto v = p.expression();
    if (!v) return {};
    if (inner.peek().kind != Token::end) return p.expected("'}'"), std::nullopt;
    if (*v < 0 && in == Splices::name)
      return none(word.at, "a name cannot contain " + to_string(*v), "% keeps the sign: (i+N-1)%N is never negative");
    out += to_string(*v);
    i = close;
    if (long_name(out.size())) return too_long();
  }
  if (long_name(out.size())) return too_long();
  if (in == Splices::name && !is_letter(out.front()))
    return none(word.at, "a name begins with a letter, but this is " + quote(out));
  return out;
}

bool Parser::name(const Token& word, Linear& v) {
  const auto full = expand(word);
  if (!full) return false;
  if (names_.epoch_reserved() && *full == "epoch") {
    v = Linear{0, 1};
    return epoch_ || fail(word.at, "'epoch' is not allowed here",
                          "it is allowed in values of packets (reference, value, compare), and in set and wait inside "
                          "a repeat");
  }
  if (const auto* sample = samples_ ? samples_->entry(*full) : nullptr) {
    v = Linear{0, 0, sample};
    return sample_ || fail(word.at, quote(*full) + " is sampled while the schedule runs, so it is not known here",
                           "the value of a set, an add or a wait may use it");
  }
  if (const auto* e = names_.entry(*full)) return e->list ? element(*e->list, word, v) : (v = Linear{e->value}, true);
  if (names_.is_lost(*full)) return source_.follows(), false;
  if (lex_.peek().is("("))
    return fail(word.at, quote(*full) + " is not a function",
                *full == "range" ? std::string(kLoopForm) : "there are min, max, sum and len");
  const auto close = nearest(*full, names_.all(), &Names::Entry::name);
  return fail(word.at, quote(*full) + " is not defined",
              close.best().empty() ? "let " + std::string(*full) + " = ... defines it" : suggestion(close));
}

bool Parser::not_added(const Token& op) {
  return fail(op.at, "a value can only be one sample with numbers added to it", "write wait host.count >= n + 4");
}

bool Parser::not_bounded(const Token& op) { return fail(op.at, "this value does not fit in 64 bits"); }

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

std::string quote(std::string_view s) { return "'" + std::string(s) + "'"; }

std::string suggestion(const Nearest& n, std::string more) {
  if (n.best().empty()) return more;
  return "did you mean " + quote(n.best()) + "?" + (more.empty() ? "" : " " + more);
}

}}}  // namespace sdma::v0_3::detail
