// SPDX-License-Identifier: MIT
#pragma once
// Words of a line, and numbers without a mark, as the kernel writes them. Internal.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma::inline v0::doctor {

/// Removes the first word of a line; "" if there is none.
inline std::string_view take_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const auto end = std::min(line.find(' ', begin), line.size());
  const auto word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

/// Removes the first line of a text.
inline std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

template <class T> std::optional<T> bare_number(std::string_view text, int radix) {
  T n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, radix);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

template <class T> std::optional<T> bare_hex(std::string_view text) { return bare_number<T>(text, 16); }

}  // namespace sdma::inline v0::doctor
