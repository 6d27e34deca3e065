// SPDX-License-Identifier: MIT
#pragma once
// Reads the texts of options into values, and keeps the first error. Internal to the settings.
//
//   Reader r;
//   r.number("--iters", given.iterations, s.iterations, 1, 1000);      // leaves the value unchanged if the text is ""
//   if (!r.good()) return std::move(r).error();
//
// A Reader belongs to one thread. Errors: Diagnostics that name the option, the value, and valid values.
#include "core/nearest.hpp"
#include "core/words.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/number.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collectives::perf {

inline std::string in_quotes(std::string_view s) { return "'" + std::string(s) + "'"; }

inline std::string hint_of(std::string_view word, std::span<const std::string> known) {
  sdma::Nearest nearest{word};
  std::string list;
  for (const auto& k : known) {
    nearest.offer(k);
    list += (list.empty() ? "" : ", ") + k;
  }
  return (nearest.best().empty() ? "" : "did you mean " + in_quotes(nearest.best()) + "? ") + "choose one of " + list;
}

inline std::vector<std::string> words_of(std::string_view text) {
  const auto all = sdma::detail::between_commas(text);
  return std::vector<std::string>(all.begin(), all.end());
}

/// Reads texts into values, and keeps the first error.
class Reader {
 public:
  bool good() const noexcept { return !wrong_; }
  sdma::Diagnostic error() && { return *std::move(wrong_); }
  void refuse(std::string where, std::string message, std::string hint) {
    if (!wrong_) wrong_ = {.where = std::move(where), .message = std::move(message), .hint = std::move(hint)};
  }

  /// Leaves `to` unchanged if the option was not given.
  template <class N>
  void number(const char* option, const std::string& text, N& to, std::uint64_t least, std::uint64_t most) {
    if (text.empty()) return;
    const auto v = sdma::parse_count(text);
    if (v && *v >= least && *v <= most) return void(to = static_cast<N>(*v));
    refuse(option, in_quotes(text) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most),
           "");
  }
  void size(const char* option, std::string text, std::uint64_t& to) {
    if (text.empty()) return;
    const auto given = text;
    if (text.ends_with('k') || text.ends_with('m') || text.ends_with('g'))
      text.back() = static_cast<char>(text.back() - 'a' + 'A');
    const auto v = sdma::parse_size(text);
    if (v && *v > 0) to = *v;
    else refuse(option, in_quotes(given) + " is not a size", "write at least 1 byte, or 4K, 16M, 1G: powers of 1024");
  }
  template <class E, std::size_t N> void word(const char* option, const std::string& text, E& to, const E (&all)[N]) {
    if (text.empty()) return;
    std::vector<std::string> known;
    for (const auto e : all) {
      if (name(e) == text) return void(to = e);
      known.emplace_back(name(e));
    }
    refuse(option, in_quotes(text) + " is not a valid value", hint_of(text, known));
  }
  void time(const char* option, const std::string& text, std::chrono::nanoseconds& to) {
    if (text.empty()) return;
    if (const auto t = sdma::parse_time(text)) to = *t;
    else refuse(option, in_quotes(text) + " is not a time", "write 10s, 250ms or 50us");
  }
  void seconds(const char* option, const std::string& text, std::chrono::duration<double>& to) {
    if (text.empty()) return;
    constexpr double kMost = 3600;
    const auto v = sdma::parse_real(text);
    if (v && *v > 0 && *v <= kMost) to = std::chrono::duration<double>(*v);
    else refuse(option, in_quotes(text) + " is not a time in seconds", "write 2 or 0.5; at most 3600");
  }

 private:
  std::optional<sdma::Diagnostic> wrong_;
};

}  // namespace collectives::perf
