// SPDX-License-Identifier: MIT
#pragma once
// Words of a message with typed places between them. Internal.
//
//   const Phrase p{"ring {ring} timeout, signaled seq={#n}"};
//   if (auto m = p.find(line)) use((*m)["ring"]);           // "sdma1.0"
//
//   {name}    a word: it ends before a blank, before one of , ; ) ] " and before what follows the place
//   {#name}   a number: decimal, or hexadecimal after 0x
//   {$name}   a hexadecimal number, with 0x or without
//   {*name}   anything up to what follows the place; at the end, the rest of the line
//
// A blank of the phrase stands for one or more blanks or tabs of the text. Pure; only the constructor allocates. The
// text of a phrase has to outlive it. Any thread may use one. No errors.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Where a phrase was found, and what its places hold.
class PhraseMatch {
 public:
  std::string_view said{};  ///< from its first word to its last
  /// What the place holds; "" if the phrase does not have it.
  std::string_view operator[](std::string_view place) const noexcept;
  /// The same as a number: decimal, or hexadecimal after 0x or if `radix` is 16.
  std::optional<std::uint64_t> number(std::string_view place, int radix = 10) const noexcept;
  /// The same in a copy of the text.
  PhraseMatch in_copy(std::string_view text, std::string_view copy) const noexcept;

 private:
  friend class Phrase;
  struct Place {
    std::string_view name{}, value{};
  };
  static constexpr std::size_t kMost = 8;
  std::array<Place, kMost> places_{};
  std::size_t used_ = 0;
};

/// Walks over a phrase: `words(text)` for what stands between its places, `place(kind, name)` for each of them. The
/// kind is '#', '$', '*' or, of a word, 0.
template <class Words, class Place> void each_place(std::string_view phrase, Words words, Place place) {
  while (!phrase.empty()) {
    const auto open = phrase.find('{');
    if (open > 0) words(phrase.substr(0, open));
    if (open == phrase.npos) return;
    const auto close = phrase.find('}', open);
    const auto inside = phrase.substr(open + 1, close - open - 1);
    const bool typed = std::string_view("#$*").find(inside.front()) != std::string_view::npos;
    place(typed ? inside.front() : '\0', inside.substr(typed));
    phrase.remove_prefix(close + 1);
  }
}

class Phrase {
 public:
  explicit Phrase(std::string_view text);
  /// The first place of the text where it fits.
  std::optional<PhraseMatch> find(std::string_view text) const noexcept;
  /// Four characters without which no text has the phrase.
  std::string_view needle() const noexcept { return needle_; }

 private:
  struct Part {
    std::string_view words{};  ///< or, if it is empty, a place
    std::string_view place{};
    char kind = 0;
  };
  bool fits(std::string_view text, std::size_t at, PhraseMatch&) const noexcept;

  std::vector<Part> parts_{};
  std::string_view needle_{};
};

}}}  // namespace sdma::v0_3::detail
