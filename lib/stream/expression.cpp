// SPDX-License-Identifier: MIT
#include "expression.hpp"

#include <utility>

namespace sdma::inline v0::detail {
namespace {

constexpr int kDeepest = 64;

bool compares(const Token& t) noexcept {
  return t.is("==") || t.is("!=") || t.is("<") || t.is("<=") || t.is(">") || t.is(">=");
}

bool holds(Number a, const Token& op, Number b) noexcept {
  if (a == b) return op.is("==") || op.is("<=") || op.is(">=");
  return op.is("!=") || (a < b ? op.is("<") || op.is("<=") : op.is(">") || op.is(">="));
}

bool fits(Number v) noexcept { return v >= kLeast && v <= kMost; }

std::optional<Number> times(Number a, Number b) noexcept {
  // Both are below 2^65, so the product may not fit in 128 bits: divide before multiplying.
  const auto magnitude = [](Number v) { return v < 0 ? -v : v; };
  if (a != 0 && magnitude(b) > kMost / magnitude(a)) return {};
  return a * b;
}

}  // namespace

std::string to_string(Number v) {
  return v < 0 ? "-" + std::to_string(static_cast<std::uint64_t>(-v)) : std::to_string(static_cast<std::uint64_t>(v));
}

bool Parser::take(std::string_view text) {
  if (!lex_.peek().is(text) && !at(text)) return expected(quote(text));
  lex_.take();
  return true;
}

std::nullopt_t Parser::none(std::size_t at, std::string message, std::string hint) {
  source_.error(at, std::move(message), std::move(hint));
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
  const auto v = sum();
  epoch_ = sample_ = false;
  if (!v || v->factor == 0) return v;
  for (const auto part : {v->constant, v->factor})
    if (part < -kMostPerEpoch || part > kMostPerEpoch)
      return none(begin, "the constant and the factor of a value that depends on the epoch must fit in 62 bits, got " +
                             to_string(part));
  return v;
}

std::optional<bool> Parser::condition() {
  compared_ = false;
  const auto v = expression();
  if (!v) return {};
  if (!compared_ || lex_.peek().is("="))
    return expected("one of == != < <= > >=", lex_.peek().is("=") ? "'==' compares" : "write if k % 2 == 0"),
           std::nullopt;
  return *v != 0;
}

std::optional<Linear> Parser::comparison() {
  const auto left = sum();
  if (!left || !compares(lex_.peek())) return left;
  const auto op = lex_.take();
  const auto right = sum();
  if (!right) return {};
  for (const auto& side : {*left, *right})
    if (side.factor != 0 || side.sample)
      return none(op.at, "this value is known only while the schedule runs, so it cannot be compared here");
  compared_ = true;
  return Linear{holds(left->constant, op, right->constant)};
}

std::optional<Linear> Parser::sum() {
  auto left = product();
  while (left && (lex_.peek().is("+") || lex_.peek().is("-"))) {
    const auto op = lex_.take();
    const auto right = product();
    if (!right) return {};
    const int sign = op.text == "+" ? 1 : -1;
    if (right->sample && (left->sample || sign < 0)) return not_added(op);
    left = bounded(op, {left->constant + sign * right->constant, left->factor + sign * right->factor,
                        left->sample ? left->sample : right->sample});
  }
  return left;
}

std::optional<Linear> Parser::product() {
  auto left = value();
  while (left && (lex_.peek().is("*") || lex_.peek().is("/") || lex_.peek().is("%"))) {
    const auto op = lex_.take();
    const auto right = value();
    if (!right) return {};
    if (left->sample || right->sample) return not_added(op);
    if (op.text != "*" && right->constant == 0 && right->factor == 0) return none(op.at, "division by zero");
    if (op.text == "*" ? left->factor != 0 && right->factor != 0 : left->factor != 0 || right->factor != 0)
      return none(op.at, "this value is not linear in epoch",
                  "a value may be a*epoch+b: epoch is added, subtracted, or multiplied by a number");
    if (op.text == "*") left = times(op, *left, *right);
    else left = Linear{op.text == "/" ? left->constant / right->constant : left->constant % right->constant};
  }
  return left;
}

std::optional<Linear> Parser::value() {
  if (depth_ > kDeepest) return none(lex_.peek().at, "this expression is nested too deeply");
  // A statement ends at the end of its line.
  if (at_line_end()) return expected("a number"), std::nullopt;
  const Token t = lex_.take();
  if (t.kind == Token::number) return Linear{t.value};
  if (t.kind == Token::word)
    return lex_.peek().is("(") && (t.text == "min" || t.text == "max") ? least_or_most(t) : name(t);
  if (t.is("-")) {
    const auto v = nested(&Parser::value);
    if (v && v->sample) return not_added(t);
    return v ? bounded(t, {-v->constant, -v->factor}) : v;
  }
  if (t.is("(")) {
    const auto v = nested(&Parser::comparison);
    return v && take(")") ? v : std::nullopt;
  }
  if (t.kind == Token::bad_number)
    return none(t.at, quote(t) + " is not a number", "write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)");
  return none(t.at, "expected a number, got " + quote(t));
}

std::optional<Linear> Parser::nested(std::optional<Linear> (Parser::*part)()) {
  ++depth_;
  const auto v = (this->*part)();
  --depth_;
  return v;
}

std::optional<Linear> Parser::least_or_most(const Token& word) {
  std::optional<Number> best;
  do {
    lex_.take();  // the parenthesis or the comma
    const auto v = nested(&Parser::comparison);
    if (!v) return {};
    if (v->factor != 0 || v->sample)
      return none(word.at, "this value is known only while the schedule runs, so " + quote(word) + " cannot take it");
    if (!best || (word.text == "min" ? v->constant < *best : v->constant > *best)) best = v->constant;
  } while (lex_.peek().is(","));
  return take(")") ? std::optional(Linear{*best}) : std::nullopt;
}

std::optional<std::string> Parser::expand(const Token& word, Splices in) {
  // Names are stored for each declaration and each GPU, so a long one in a loop would need much memory.
  constexpr std::size_t kLongest = 255;
  const auto too_long = [&] { return none(word.at, "a name can have at most 255 characters"); };
  const auto long_name = [&](std::size_t length) { return in == Splices::name && length > kLongest; };
  if (word.text.find('{') == word.text.npos) {
    if (long_name(word.text.size())) return too_long();
    return std::string(word.text);
  }
  std::string out;
  for (std::size_t i = 0; i < word.text.size(); ++i) {
    if (word.text[i] != '{') {
      out += word.text[i];
      continue;
    }
    const auto close = word.text.find('}', i);
    if (close == word.text.npos) {  // only in the text of a message
      out += word.text[i];
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
    if (*v < 0 && in == Splices::name) return none(word.at, "a name cannot contain " + to_string(*v));
    out += to_string(*v);
    i = close;
    if (long_name(out.size())) return too_long();
  }
  if (long_name(out.size())) return too_long();
  return out;
}

std::optional<Linear> Parser::name(const Token& word) {
  const auto full = expand(word);
  if (!full) return {};
  if (names_.epoch_reserved() && *full == "epoch") {
    if (epoch_) return Linear{0, 1};
    return none(word.at, "'epoch' is not allowed here",
                "it is allowed in values of packets (reference, value, compare), and in set and wait inside a repeat");
  }
  if (const auto* sample = samples_ ? samples_->entry(*full) : nullptr) {
    if (sample_) return Linear{0, 0, sample};
    return none(word.at, quote(*full) + " is sampled while the schedule runs, so it is not known here",
                "the value of a set, an add or a wait may use it");
  }
  if (const auto* v = names_.find(*full)) return Linear{*v};
  const auto close = nearest(*full, names_.all(), &Names::Entry::name);
  return none(word.at, quote(*full) + " is not defined",
              close.best().empty() ? "let " + *full + " = ... defines it" : suggestion(close));
}

std::nullopt_t Parser::not_added(const Token& op) {
  return none(op.at, "a value can only be one sample with numbers added to it", "write wait host.count >= n + 4");
}

std::optional<Linear> Parser::bounded(const Token& op, Linear v) {
  if (fits(v.constant) && fits(v.factor)) return v;
  return none(op.at, "this value does not fit in 64 bits");
}

/// Requires that one of the two does not depend on the epoch.
std::optional<Linear> Parser::times(const Token& op, Linear a, Linear b) {
  if (a.factor != 0) std::swap(a, b);
  const auto constant = detail::times(a.constant, b.constant), factor = detail::times(a.constant, b.factor);
  // A value that 128 bits do not hold is reported as one that 64 bits do not hold.
  return bounded(op, constant && factor ? Linear{*constant, *factor} : Linear{kMost + 1});
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

std::string quote(std::string_view s) { return "'" + std::string(s) + "'"; }

std::string suggestion(const Nearest& n, std::string more) {
  if (n.best().empty()) return more;
  return "did you mean " + quote(n.best()) + "?" + (more.empty() ? "" : " " + more);
}

}  // namespace sdma::inline v0::detail
