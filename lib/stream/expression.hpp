#pragma once
// Numbers, names and arithmetic of the language of docs/text.md. Internal: streams and schedules share it.
//
//   Names names;  names.define("i", 3);
//   Lexer lex{"4K*(i+1)"};
//   parse_expression(lex, names, source)   ==   16384
//
// Values are integers from -(2^63) to 2^64 - 1, and so is every intermediate result: what leaves that range is an error, as
// are a division by zero and an unknown name. Each function reports to the Source and returns nothing when it has.
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

/// `let`, `param` and the variables of loops. A name is defined once: nothing hides another.
class Names {
 public:
  /// Of a schedule: `epoch` is no name that anybody defines, and stands where parse_linear is asked.
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
  /// Forgets what was defined since there were `n` names.
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
/// An expression that may name the reserved `epoch`, which it adds, subtracts, or multiplies by numbers.
std::optional<Linear> parse_linear(Lexer&, const Names&, Source&);
/// A number, a name, -x or (x): what stands in a list.
std::optional<Number> parse_primary(Lexer&, const Names&, Source&);
/// A word with its splices replaced by their values: `gpu{i+1}` is "gpu4".
std::optional<std::string> expand(const Token& word, const Names&, Source&);

/// "'x'", "the end of the line": how a token is quoted in a message.
std::string quote(const Token&);

}  // namespace detail
}  // namespace v0
}  // namespace sdma
