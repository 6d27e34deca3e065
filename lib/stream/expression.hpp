// SPDX-License-Identifier: MIT
#pragma once
// Numbers, names and arithmetic in the language of docs/text.md. Internal: streams and schedules share it.
//
//   Names names;  names.define("i", 3);
//   Lexer lex{"4K*(i+1)"};
//   Parser{lex, names, source}.expression()   ==   16384
//
//   a+b  a-b  a*b  a/b  a%b  -a  (a)   min(a, b, ...)  max(a, b, ...)   a<b  a<=b  a==b ...: 1 if it holds, 0 if not
//
// Values and all intermediate results are integers from -(2^63) to 2^64 - 1. A value outside that range is an error,
// and so are a division by zero and an unknown name. Each function reports its errors to the Source and then returns
// nullopt.
#include "lexer.hpp"
#include "sdma/core/nearest.hpp"
#include "source.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdma::inline v0::detail {

/// Holds any address and any negative value.
__extension__ typedef __int128 Number;
inline constexpr Number kLeast = -(Number{1} << 63), kMost = (Number{1} << 64) - 1;
/// The largest magnitude of either part of a value that depends on the epoch.
inline constexpr std::int64_t kMostPerEpoch = std::int64_t{1} << 62;

std::string to_string(Number);

/// The names that `let`, `param` and loops define. A name is defined only once: no name hides another.
class Names {
 public:
  /// For schedules: no text may define `epoch`, and Parser::linear accepts it.
  void reserve_epoch() noexcept { epoch_ = true; }
  bool epoch_reserved() const noexcept { return epoch_; }

  struct Entry {
    std::string name;
    Number value{};
  };
  const Entry* entry(std::string_view name) const noexcept {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &all_[at->second];
  }
  const Number* find(std::string_view name) const noexcept {
    const auto* e = entry(name);
    return e ? &e->value : nullptr;
  }
  void define(std::string_view name, Number value) {
    index_.emplace(name, all_.size());
    all_.push_back({.name = std::string(name), .value = value});
  }
  void set_last(Number value) noexcept { all_.back().value = value; }
  std::size_t size() const noexcept { return all_.size(); }
  /// Forgets all names but the first `n`.
  void forget(std::size_t n) {
    for (; all_.size() > n; all_.pop_back()) index_.erase(all_.back().name);
  }

  const std::vector<Entry>& all() const noexcept { return all_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<Entry> all_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;  ///< into all_
  bool epoch_ = false;
};

/// epoch * factor + constant, and perhaps a sample.
struct Linear {
  Number constant{}, factor{};
  const Names::Entry* sample = nullptr;  ///< valid until the next one is defined or forgotten
};

/// "'x'", "the end of the line": how a token is quoted in a message.
std::string quote(const Token&);
/// "'x'".
std::string quote(std::string_view);
/// The closest of many words. `word_of`: a projection, from an element to its word.
template <class All, class WordOf = std::identity>
Nearest nearest(std::string_view word, const All& all, WordOf word_of = {}) {
  Nearest n{word};
  for (const auto& x : all) n.offer(std::invoke(word_of, x));
  return n;
}
/// A hint: "did you mean 'x'?" and then `more`; only `more` if no candidate is close.
std::string suggestion(const Nearest&, std::string more = "");

/// Reads expressions. The base of all that reads the language: it takes tokens, and reports what is wrong with them.
class Parser {
 public:
  /// All must outlive the Parser.
  Parser(Lexer& lex, Names& names, Source& source) noexcept : lex_(lex), names_(names), source_(source) {}

  std::optional<Number> expression() { return constant(comparison()); }
  /// A number, a name, -x or (x), as in a list.
  std::optional<Number> primary() { return constant(value()); }
  enum class Allow : std::uint8_t { epoch = 1, sample = 2, both = 3 };
  /// An expression that may use the reserved `epoch` (add it, subtract it, or
  /// multiply it by a number), or one sample (add numbers to it), or both.
  std::optional<Linear> linear(Allow what = Allow::epoch);
  /// An expression whose value is in a range; `what` is its name in a message.
  std::optional<std::uint64_t> number(std::string_view what, Number least, Number most);
  /// A comparison, or an expression with one: does it hold, that is, is it not 0?
  std::optional<bool> condition();
  enum class Splices : std::uint8_t { name, text };
  /// A word, or the text of a message, with its splices replaced by their values: `gpu{i+1}` is "gpu4".
  std::optional<std::string> expand(const Token& word, Splices = Splices::name);

 protected:
  bool at(std::string_view word) const noexcept { return lex_.peek().kind == Token::word && lex_.peek().text == word; }
  bool at_line_end() const noexcept { return lex_.peek().kind == Token::line || lex_.peek().kind == Token::end; }
  /// Takes this symbol or word, or reports that it is missing.
  bool take(std::string_view text);
  /// Reports an error at an offset of the text. `fail` returns false, `none` nullopt.
  bool fail(std::size_t at, std::string message, std::string hint = "") { return none(at, message, hint), false; }
  std::nullopt_t none(std::size_t at, std::string message, std::string hint = "");
  /// Reports that the next token is not `what`.
  bool expected(std::string_view what, std::string hint = "");

  /// Of an expression that used neither `epoch` nor a sample.
  static std::optional<Number> constant(const std::optional<Linear>& v) {
    return v ? std::optional<Number>(v->constant) : std::nullopt;
  }
  static std::optional<Linear> constant(const std::optional<Number>& v) {
    return v ? std::optional<Linear>(Linear{*v}) : std::nullopt;
  }

  Lexer& lex_;
  Names& names_;
  Source& source_;
  Names* samples_ = nullptr;  ///< the names of values that are known only when a thread runs; null: there are none

 private:
  std::optional<Linear> comparison();
  std::optional<Linear> sum();
  std::optional<Linear> product();
  std::optional<Linear> value();
  std::optional<Linear> nested(std::optional<Linear> (Parser::*part)());
  std::optional<Linear> name(const Token&);
  std::optional<Linear> least_or_most(const Token& word);
  std::nullopt_t not_added(const Token& op);
  std::optional<Linear> bounded(const Token& op, Linear);
  std::optional<Linear> times(const Token& op, Linear, Linear);

  bool epoch_ = false, sample_ = false;  // they are allowed
  bool compared_ = false;                // the expression has a comparison
  int depth_ = 0;                        // of parentheses, signs and splices
};

}  // namespace sdma::inline v0::detail
