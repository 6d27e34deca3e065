// SPDX-License-Identifier: MIT
#pragma once
// Numbers, names and arithmetic in the language of docs/text.md. Internal: streams and schedules share it.
//
//   Names names;  names.define("i", 3);
//   Lexer lex{"4K*(i+1)"};
//   Parser{lex, names, source}.expression()   ==   16384
//
//   a+b  a-b  a*b  a/b  a%b  -a  (a)   a<<n  a>>n  a^b   a<b  a<=b  a==b ...: 1 if it holds, 0 if not
//   a ? b : c: only the one that is taken is evaluated   min(a, b, ...)  max(a, b, ...)  sum(a, b, ...), also of lists
//   [a, b, ...]   [a for x in VALUES if CONDITION]   list[i]   list[a..b]   len(list)
//   file("blocks.txt"): a list     table("moe.csv"): rows of numbers, t[i, j]   t[i]   t[i, a..b]   t[a..b, j]
//
// Values and all intermediate results are integers from -(2^63) to 2^64 - 1. A value outside that range is an error,
// and so are a division by zero and an unknown name. Each function reports its errors to the Source and then returns
// nullopt, or a null list.
#include "../core/budget.hpp"
#include "../core/nearest.hpp"
#include "../core/wide.hpp"
#include "lexer.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/result.hpp"
#include "source.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Holds any address and any negative value.
using Number = Wide;
inline constexpr Number kLeast = -Number{std::uint64_t{1} << 63}, kMost = Number{~std::uint64_t{}};
/// The largest magnitude of either part of a value that depends on the epoch.
inline constexpr std::int64_t kMostPerEpoch = std::int64_t{1} << 62;

inline bool fits(Number v) noexcept { return v == static_cast<std::int64_t>(v) || (v >= kLeast && v <= kMost); }
std::string to_string(Number);

/// Numbers in their order. Those of a table are its rows, one after another.
struct List {
  std::vector<Number> values{};
  std::size_t columns = 0;  ///< of a table; 0: it is not one
  std::size_t rows() const noexcept { return columns > 0 ? values.size() / columns : values.size(); }
};
using ListOf = std::shared_ptr<const List>;

/// What a loop's variable is in each round, or what a choice may be: a range, or a list.
struct Values {
  Number first{}, last{}, step = 1;
  ListOf list{};
  Number count() const {
    return list ? Number(list->values.size()) : last > first ? (last - first + step - 1) / step : 0;
  }
  Number at(Number round) const { return list ? list->values[static_cast<std::size_t>(round)] : first + round * step; }
};

/// The names that `let`, `param` and loops define, the files that the text names, and how much more its loops and its
/// lists may repeat. A name is defined only once: no name hides another.
class Names {
 public:
  /// The most rounds that loops and lists may have together, and the most bytes of text that they may read again. A
  /// number that is taken from a list counts as its bytes.
  Budget rounds{1'000'000}, text{100'000'000};
  /// The text of a file, by the name that the language gives. Empty: the text may not read other files.
  std::function<Result<std::string, Diagnostic>(const std::string& name)> read{};
  std::map<std::string, ListOf, std::less<>> files{};  ///< those that were read: `table("moe.csv")`

  /// Why there is no room for `count` rounds: what follows "this loop has ".
  std::string too_many(Number count) const {
    // What a round may keep: numbers of a list, or the values of its loops and the places of its lines, for messages.
    constexpr std::uint64_t kBytes = 64;
    return to_string(count) + " rounds; the loops of a text can have " + std::to_string(rounds.limit()) +
           " together (" + size_text(rounds.limit() * kBytes) + " of memory, " + size_text(kBytes) +
           " bytes for each)" +
           (rounds.left() == rounds.limit() ? "" : ", of which " + std::to_string(rounds.left()) + " are left");
  }

  /// For schedules: no text may define `epoch`, and Parser::linear accepts it.
  void reserve_epoch() noexcept { epoch_ = true; }
  bool epoch_reserved() const noexcept { return epoch_; }

  struct Entry {
    std::string name{};
    Number value{};
    ListOf list{};                              ///< if it is a list
    std::shared_ptr<const std::string> word{};  ///< what a splice gives instead: of a `param` with words
  };
  const Entry* entry(std::string_view name) const noexcept { return at(find(name, key_of(name))); }
  bool has(std::string_view name, std::uint64_t key) const noexcept { return find(name, key) != kNone; }
  /// Finds a token that has been found before where it was, if that is still its name.
  SDMA_ALWAYS_INLINE const Entry* entry(const Token& word) const noexcept {
    if (word.slot >= slots_.size() || !is(word.slot, word.text, word.value)) word.slot = find(word.text, word.value);
    return at(word.slot);
  }
  void define(std::string_view name, Number value) { define(Entry{.name = std::string(name), .value = value}); }
  void define(Entry&& entry) {
    const auto key = key_of(entry.name);
    auto& first = first_[bucket(key)];
    slots_.push_back({key, std::exchange(first, static_cast<std::uint32_t>(all_.size()))});
    if (all_.empty()) all_.reserve(64);
    all_.push_back(std::move(entry));
  }
  /// Notes a name whose definition has an error. Its uses are not errors, too.
  void lose(std::string_view name) { lost_.emplace(name); }
  bool is_lost(std::string_view name) const { return lost_.contains(name); }
  /// The names so far stay as they are.
  void keep() noexcept { kept_ = static_cast<std::uint32_t>(all_.size()); }
  /// Begins to note which names are found. Returns what was noted before, for `watched`.
  std::uint32_t watch() const noexcept { return std::exchange(newest_, 0); }
  /// Have only names that stay been found since `watch`?
  bool watched(std::uint32_t before) const noexcept {
    const bool kept = newest_ < kept_;
    newest_ = std::max(newest_, before);
    return kept;
  }
  void set_last(Number value) noexcept { all_.back().value = value; }
  std::size_t size() const noexcept { return all_.size(); }
  /// Forgets all names but the first `n`.
  void forget(std::size_t n) {
    for (; all_.size() > n; all_.pop_back(), slots_.pop_back()) first_[bucket(slots_.back().key)] = slots_.back().next;
  }

  const std::vector<Entry>& all() const noexcept { return all_; }

 private:
  static constexpr std::size_t kBuckets = 256;
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::array<std::uint32_t, kBuckets> filled() noexcept {
    std::array<std::uint32_t, kBuckets> all{};
    all.fill(kNone);
    return all;
  }
  /// Names are short and few, and looked up much more often than they are defined.
  static std::size_t bucket(std::uint64_t key) noexcept { return (key * 0x9e3779b97f4a7c15) >> 56; }
  struct Slot {
    std::uint64_t key;
    std::uint32_t next;  ///< of the same bucket, defined before
  };
  const Entry* at(std::uint32_t index) const noexcept {
    newest_ = std::max(newest_, index);
    return index == kNone ? nullptr : &all_[index];
  }
  SDMA_ALWAYS_INLINE bool is(std::uint32_t index, std::string_view name, std::uint64_t key) const noexcept {
    return slots_[index].key == key && (key >> 56 == 0 || is_long(index, name));
  }
  SDMA_NOINLINE bool is_long(std::uint32_t index, std::string_view name) const noexcept {
    return all_[index].name == name;
  }
  std::uint32_t find(std::string_view name, std::uint64_t key) const noexcept {
    auto at = first_[bucket(key)];
    while (at != kNone && !is(at, name, key)) at = slots_[at].next;
    return at;
  }
  std::vector<Entry> all_;
  std::set<std::string, std::less<>> lost_;
  std::vector<Slot> slots_;
  std::array<std::uint32_t, kBuckets> first_ = filled();  ///< index of a bucket's last definition
  std::uint32_t kept_ = 0;
  mutable std::uint32_t newest_ = 0;  ///< of the names that were found; kNone: one was not
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

  std::optional<Number> expression() {
    Linear v;
    return choice(v) ? std::optional(v.constant) : std::nullopt;
  }
  /// A number, a name, -x or (x), as in a list.
  std::optional<Number> primary();
  enum class Allow : std::uint8_t { epoch = 1, sample = 2, both = 3 };
  /// An expression that may use the reserved `epoch` (add it, subtract it, or
  /// multiply it by a number), or one sample (add numbers to it), or both.
  std::optional<Linear> linear(Allow what = Allow::epoch);
  /// An expression whose value is in a range; `what` is its name in a message.
  std::optional<std::uint64_t> number(std::string_view what, Number least, Number most);
  /// A comparison, or an expression with one: does it hold, that is, is it not 0?
  std::optional<bool> condition();
  enum class Splices : std::uint8_t { name, text };
  /// Does a list come next: one in brackets, that of a name or a file, or a part of it that is not one number?
  bool at_list();
  /// Requires that one comes next.
  ListOf list();
  /// What follows `in`: A..B, A..B step C, or a list.
  std::optional<Values> values();
  /// A word, or the text of a message, with its splices replaced by their values: `gpu{i+1}` is "gpu4". Valid until the
  /// next word is expanded.
  std::optional<std::string_view> expand(const Token& word, Splices = Splices::name);

 protected:
  bool at(Key word) const noexcept { return lex_.peek().is_word(word); }
  bool at_line_end() const noexcept { return lex_.peek().kind == Token::line || lex_.peek().kind == Token::end; }
  /// Takes this symbol or word, or reports that it is missing.
  SDMA_ALWAYS_INLINE bool take(Key text) {
    return lex_.peek().is(text) || at(text) ? (lex_.take(), true) : absent(text);
  }
  /// Reports an error at an offset of the text. `fail` returns false, `none` nullopt.
  SDMA_COLD bool fail(std::size_t at, std::string message, std::string hint = "");
  SDMA_COLD std::nullopt_t none(std::size_t at, std::string message, std::string hint = "");
  SDMA_COLD bool absent(Key);
  /// Reports that the next token is not `what`.
  SDMA_COLD bool expected(std::string_view what, std::string hint = "");

  /// Skips to the next `word` or comma, or to the end of the brackets or of the line.
  void skip_to(Key word);
  /// VALUE for NAME in VALUES if CONDITION: the value begins at `begin`, and `for` comes next. Calls `value`, which
  /// reads the value, for each, and continues after the last condition.
  bool each_of(std::size_t begin, const std::function<bool()>& value);

  static std::optional<Linear> constant(const std::optional<Number>& v) {
    return v ? std::optional<Linear>(Linear{*v}) : std::nullopt;
  }

  Lexer& lex_;
  Names& names_;
  Source& source_;
  Names* samples_ = nullptr;  ///< the names of values that are known only when a thread runs; null: there are none

 private:
  // These store a value, and return false after an error.
  /// A value, or CONDITION ? VALUE : VALUE.
  SDMA_ALWAYS_INLINE bool choice(Linear& v) {
    return operation(Token::compares, v) && (!lex_.peek().is("?") || chosen(v));
  }
  bool chosen(Linear&);
  bool alternative(bool taken, Linear&);
  /// Values, and the operators between them that bind at least so strongly.
  bool operation(Token::Binds least, Linear&);
  /// A number or the name of one; what else it may be, `operand` reads.
  bool value(Linear&);
  bool operand(Linear&);
  SDMA_ALWAYS_INLINE bool nested(Linear& v) {
    ++depth_;
    const bool good = choice(v);
    --depth_;
    return good;
  }
  bool word(const Token&, Linear&);
  /// The epoch, a sample, a name with splices, or an error.
  bool name(const Token&, Linear&);
  bool folded(const Token& word, Linear&);
  bool length(Linear&);
  /// The index may define names, and forget them: the list stays, because its own name is older.
  bool element(const List&, const Token& word, Linear&);
  /// The result of an operator, in the place of its first value.
  bool apply(const Token& op, Linear&, const Linear&);
  bool compare(const Token& op, Linear&, const Linear&);
  bool add(const Token& op, Linear&, const Linear&);
  bool multiply(const Token& op, Linear&, const Linear&);
  bool bits(const Token& op, Linear&, const Linear&);
  /// Requires that the value of a part of an expression depends neither on the epoch nor on a sample.
  bool known_now(const Token& word, const Linear& v) { return (v.factor == 0 && !v.sample) || not_known(word); }
  SDMA_COLD bool not_known(const Token& word);
  /// Is this the word before the name of a file in parentheses?
  static bool names_file(const Token& word) noexcept { return word.is_word("file") || word.is_word("table"); }
  ListOf file(const Token& word);
  std::optional<List> numbers_of(std::string_view text, const Token& name, bool table);
  /// What an index in brackets selects.
  struct Index {
    std::size_t from{}, to{};
    bool one{};  ///< it is not a range
  };
  bool index(const Token& word, std::size_t count, std::string_view what, Index&);
  SDMA_COLD bool no_element(std::size_t at, const Token& word, std::size_t count, std::string_view what,
                            const std::string& asked);
  SDMA_COLD bool not_one(const List&, const Token& word);
  struct Part {
    Index rows{}, columns{};
  };
  bool part(const List&, const Token& word, Part&);
  /// Skips a bracket up to the one that closes it. Is there a range or a comma in it, outside further ones?
  struct Skipped {
    bool range{}, comma{};
  };
  Skipped skip_index();
  std::optional<std::vector<Number>> elements();
  std::optional<List> rows();
  SDMA_COLD bool not_added(const Token& op);
  bool bounded(const Token& op, const Linear& v) { return (fits(v.constant) && fits(v.factor)) || not_bounded(op); }
  SDMA_COLD bool not_bounded(const Token& op);

  static constexpr int kDeepestExpression = 64;
  static constexpr const char* kDepthHint = "64 levels are allowed: name a part with 'let'";
  bool epoch_ = false, sample_ = false;  // they are allowed
  bool compared_ = false;                // the expression has a comparison
  bool skipping_ = false;                // its value is not taken: only its form matters
  int depth_ = 0;                        // of parentheses, signs, lists, choices and splices
  std::string expanded_{};               // the last word with splices
};

}}}  // namespace sdma::v0_3::detail
