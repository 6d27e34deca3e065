// SPDX-License-Identifier: MIT
#pragma once
// Lines, words and numbers of a text, for readers of small formats. Internal.
//
//   for (std::string_view rest = text; !rest.empty();) {
//     auto line = take_line(rest);                        // without the line's end; "\r" stays
//     const auto name = take_word(line);                  // "" if there is none
//     const auto n = whole_number<std::uint32_t>(trimmed(line), 16);
//   }
//   for (const auto word : between_commas("a,b"))          // a, b
//   has_word("scatter and gather", "gather")              == true
//
// Pure functions; the views that they return lie in the text. Only between_commas allocates. No errors.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What separates words.
inline constexpr std::string_view kBlanks = " \t\r";

/// The text without the blanks at its ends.
inline std::string_view trimmed(std::string_view s, std::string_view blanks = kBlanks) noexcept {
  s.remove_prefix(std::min(s.find_first_not_of(blanks), s.size()));
  return s.substr(0, s.find_last_not_of(blanks) + 1);
}

/// Removes the first word of a line, and the blanks before it.
inline std::string_view take_word(std::string_view& line, std::string_view blanks = kBlanks) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const auto word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

/// Removes the first line of a text.
inline std::string_view take_line(std::string_view& text) noexcept {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

/// What commas separate: one more than there are commas.
inline std::vector<std::string_view> between_commas(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at <= text.size(); at += all.back().size() + 1)
    all.push_back(text.substr(at, std::min(text.find(',', at), text.size()) - at));
  return all;
}

/// Is `word` one of a list for people, such as "bytes align at" or "broadcast, scatter and gather"?
constexpr bool has_word(std::string_view list, std::string_view word) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  const auto letter = [&](std::size_t at) { return at < list.size() && kLetters.find(list[at]) != kLetters.npos; };
  for (auto at = list.find(word); at != list.npos; at = list.find(word, at + 1))
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

/// The number that the whole text is, without a mark of the radix; nullopt if T cannot hold it.
template <class T> std::optional<T> whole_number(std::string_view text, int radix = 10) noexcept {
  T n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, radix);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

}}}  // namespace sdma::v0_3::detail
