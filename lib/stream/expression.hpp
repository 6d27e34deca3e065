#pragma once
// Numbers, names and arithmetic in the language of docs/text.md. Internal: streams and schedules share it.
//
//   Names names;  names.define("i", 3);
//   Lexer lex{"4K*(i+1)"};
//   parse_expression(lex, names, source)   ==   16384
//
// Values and all intermediate results are integers from -(2^63) to 2^64 - 1. A value outside that range is an error,
// and so are a division by zero and an unknown name. Each function reports its errors to the Source and then returns
// nullopt.
#include "lexer.hpp"
#include "source.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

/// Holds any address and any negative value.
__extension__ typedef __int128 Number;
inline constexpr Number kLeast = -(Number{1} << 63), kMost = (Number{1} << 64) - 1;

std::string to_string(Number);

/// The names that `let`, `param` and loops define. A name is defined only once: no name hides another.
class Names {
 public:
  /// For schedules: no text may define `epoch`, and parse_linear accepts it.
  void reserve_epoch() noexcept { epoch_ = true; }
  bool epoch_reserved() const noexcept { return epoch_; }

  const Number* find(std::string_view name) const noexcept {
    for (auto n = all_.rbegin(); n != all_.rend(); ++n)
      if (n->name == name) return &n->value;
    return nullptr;
  }
  void define(std::string_view name, Number value) { all_.push_back({std::string(name), value}); }
  void set_last(Number value) noexcept { all_.back().value = value; }
  std::size_t size() const noexcept { return all_.size(); }
  /// Forgets all names but the first `n`.
  void forget(std::size_t n) { all_.resize(n); }
  /// The name closest to `word`, "" if none is close.
  std::string_view nearest(std::string_view word) const noexcept;

 private:
  struct Entry {
    std::string name;
    Number value{};
  };
  std::vector<Entry> all_;
  bool epoch_ = false;
};

/// epoch * factor + constant.
struct Linear {
  Number constant{}, factor{};
};

std::optional<Number> parse_expression(Lexer&, const Names&, Source&);
/// An expression that may use the reserved `epoch`: add it, subtract it, or multiply it by a number.
std::optional<Linear> parse_linear(Lexer&, const Names&, Source&);
/// A number, a name, -x or (x), as in a list.
std::optional<Number> parse_primary(Lexer&, const Names&, Source&);
/// A word with its splices replaced by their values: `gpu{i+1}` is "gpu4".
std::optional<std::string> expand(const Token& word, const Names&, Source&);

/// "'x'", "the end of the line": how a token is quoted in a message.
std::string quote(const Token&);

}  // namespace detail
}  // namespace v0
}  // namespace sdma
