// SPDX-License-Identifier: MIT
#pragma once
// Reads the texts of options into values, and keeps the first error. Internal to the settings.
//
//   Reader r{given};
//   r.number("--iters", s.iterations, 1, 1000);                        // leaves the value unchanged if it is not given
//   if (!r.good()) return std::move(r).error();
//
// A Reader belongs to one thread. Errors: Diagnostics that name the option, the value, and valid values.
#include "core/nearest.hpp"
#include "core/words.hpp"
#include "schedule_file.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/number.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collectives::perf {

inline constexpr std::uint64_t kMostRounds = 1'000'000;

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
class Reader : public Given {
 public:
  explicit Reader(const Given& g) : Given(g) {}
  /// The texts of an option that may be repeated, by its long name.
  const std::vector<std::string>& all(std::string_view option) const {
    static const std::vector<std::string> kNone;
    const auto at = texts.find(option);
    return at == texts.end() ? kNone : at->second;
  }
  bool given(std::string_view option) const { return !all(option).empty(); }
  std::string operator[](std::string_view option) const { return given(option) ? all(option).back() : ""; }
  /// Those of the form NAME=VALUE.
  std::vector<ParamSetting> pairs(std::string_view option) const {
    std::vector<ParamSetting> out;
    for (const auto& w : all(option)) out.push_back({w.substr(0, w.find('=')), w.substr(w.find('=') + 1)});
    return out;
  }

  bool good() const noexcept { return !wrong_; }
  sdma::Diagnostic error() && { return *std::move(wrong_); }
  void refuse(std::string where, std::string message, std::string hint) {
    if (!wrong_) wrong_ = {.where = std::move(where), .message = std::move(message), .hint = std::move(hint)};
  }

  /// Leaves `to` unchanged if the option was not given. `text`: in place of that of the option.
  template <class N>
  void number(const char* option, N& to, std::uint64_t least, std::uint64_t most, std::string text = "") {
    if (text.empty() && (text = (*this)[option]).empty()) return;
    const auto v = sdma::parse_count(text);
    if (v && *v >= least && *v <= most) return void(to = static_cast<N>(*v));
    refuse(option, in_quotes(text) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most),
           "");
  }
  void size(const char* option, std::uint64_t& to) {
    auto text = (*this)[option];
    if (text.empty()) return;
    const auto given = text;
    if (text.ends_with('k') || text.ends_with('m') || text.ends_with('g'))
      text.back() = static_cast<char>(text.back() - 'a' + 'A');
    const auto v = sdma::parse_size(text);
    if (v && *v > 0) to = *v;
    else refuse(option, in_quotes(given) + " is not a size", "write at least 1 byte, or 4K, 16M, 1G: powers of 1024");
  }
  template <class E, std::size_t N> void word(const char* option, E& to, const E (&words)[N], std::string text = "") {
    if (text.empty() && (text = (*this)[option]).empty()) return;
    std::vector<std::string> known;
    for (const auto e : words) {
      if (name(e) == text) return void(to = e);
      known.emplace_back(name(e));
    }
    refuse(option, in_quotes(text) + " is not a valid value", hint_of(text, known));
  }
  void time(const char* option, std::chrono::nanoseconds& to) {
    const auto text = (*this)[option];
    if (text.empty()) return;
    if (const auto t = sdma::parse_time(text)) to = *t;
    else refuse(option, in_quotes(text) + " is not a time", "write 10s, 250ms or 50us");
  }
  void seconds(const char* option, std::chrono::duration<double>& to) {
    const auto text = (*this)[option];
    if (text.empty()) return;
    constexpr double kMost = 3600;
    const auto v = sdma::parse_real(text);
    if (v && *v > 0 && *v <= kMost) to = std::chrono::duration<double>(*v);
    else refuse(option, in_quotes(text) + " is not a time in seconds", "write 2 or 0.5; at most 3600");
  }

 private:
  std::optional<sdma::Diagnostic> wrong_{};
};

// Parts of `settings_of`, in the order of their calls.
void read_habits(Reader&, Settings&);  ///< of nccl-tests, which scripts give; after sizes and GPUs
void read_nodes(Reader&, Settings&);   ///< --ranks-per-node; after processes, GPUs, collective and root
void read_axes(Reader&, Settings&);    ///< --sweep; after all others

}  // namespace collectives::perf
