// SPDX-License-Identifier: MIT
#include "phrase.hpp"

#include "../core/words.hpp"
#include "line.hpp"
#include "log_times.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::size_t kNeedle = 4;

/// Where `words` end that begin at `at`; npos if they do not.
std::size_t after_words(std::string_view text, std::size_t at, std::string_view words) noexcept {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (at >= text.size()) return text.npos;
    if (words[i] == ' ') {
      if (!is_gap(text[at])) return text.npos;
      while (at < text.size() && is_gap(text[at])) ++at;
    } else if (text[at++] != words[i]) {
      return text.npos;
    }
  }
  return at;
}

std::size_t find_words(std::string_view text, std::size_t from, std::string_view words) noexcept {
  const auto next = [&](std::size_t at) {
    return words.front() == ' ' ? text.find_first_of(" \t", at) : text.find(words.front(), at);
  };
  for (auto at = next(from); at != text.npos; at = next(at + 1))
    if (after_words(text, at, words) != text.npos) return at;
  return text.npos;
}

/// Where a place of this kind ends; `at` if nothing there can be its value. `next`: the words after it.
std::size_t after_place(std::string_view text, std::size_t at, char kind, std::string_view next) noexcept {
  auto end = at;
  if (kind == '*') {
    const auto found = next.empty() ? text.size() : find_words(text, at, next);
    return found == text.npos ? at : found;
  }
  if (kind == 0) {
    constexpr std::string_view kEnds = " \t,;)]\"";
    while (end < text.size() && kEnds.find(text[end]) == kEnds.npos && (next.empty() || text[end] != next.front()))
      ++end;
    return end;
  }
  const bool marked = text.substr(at, 2) == "0x" || text.substr(at, 2) == "0X";
  const bool hex = kind == '$' || marked;
  const auto begin = end = at + (marked ? 2 : 0);
  while (end < text.size() && (hex ? is_hex(text[end]) : text[end] >= '0' && text[end] <= '9')) ++end;
  return end == begin ? at : end;
}

}  // namespace

std::string_view PhraseMatch::operator[](std::string_view place) const noexcept {
  for (std::size_t i = 0; i < used_; ++i)
    if (places_[i].name == place) return places_[i].value;
  return {};
}

std::optional<std::uint64_t> PhraseMatch::number(std::string_view place, int radix) const noexcept {
  auto text = (*this)[place];
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2), radix = 16;
  return whole_number<std::uint64_t>(text, radix);
}

PhraseMatch PhraseMatch::in_copy(std::string_view text, std::string_view copy) const noexcept {
  const auto moved = [&](std::string_view part) {
    return copy.substr(static_cast<std::size_t>(part.data() - text.data()), part.size());
  };
  auto m = *this;
  m.said = moved(said);
  for (std::size_t i = 0; i < used_; ++i) m.places_[i].value = moved(places_[i].value);
  return m;
}

Phrase::Phrase(std::string_view text) {
  std::string_view longest;
  each_place(
      text,
      [&](std::string_view words) {
        parts_.push_back({.words = words});
        for (auto rest = words; !rest.empty();) {
          const auto word = rest.substr(0, rest.find(' '));
          if (word.size() > longest.size()) longest = word;
          rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        }
        if (needle_.empty()) needle_ = words.substr(0, kNeedle);
      },
      [&](char kind, std::string_view name) { parts_.push_back({.place = name, .kind = kind}); });
  if (longest.size() >= kNeedle) needle_ = longest.substr(0, kNeedle);
}

bool Phrase::fits(std::string_view text, std::size_t at, PhraseMatch& m) const noexcept {
  m.used_ = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& p = parts_[i];
    auto end = at;
    if (!p.words.empty()) {
      end = after_words(text, at, p.words);
      if (end == text.npos) return false;
    } else {
      end = after_place(text, at, p.kind, i + 1 < parts_.size() ? parts_[i + 1].words : std::string_view{});
      if (end == at && !(p.kind == '*')) return false;
      if (m.used_ < m.kMost) m.places_[m.used_++] = {p.place, trimmed(text.substr(at, end - at))};
    }
    at = end;
  }
  m.said = {m.said.data(), static_cast<std::size_t>(text.data() + at - m.said.data())};
  return true;
}

std::optional<PhraseMatch> Phrase::find(std::string_view text) const noexcept {
  const bool leads = parts_.front().words.empty();  // with a place, which begins after a blank
  const auto words = parts_[leads ? 1 : 0].words;
  for (auto at = find_words(text, 0, words); at != text.npos; at = find_words(text, at + 1, words)) {
    auto begin = at;
    while (leads && begin > 0 && !is_gap(text[begin - 1])) --begin;
    // "socket: 0, die: 1, {5}3 new ...": a number begins with its first digit.
    while (leads && parts_.front().kind == '#' && begin < at && !(text[begin] >= '0' && text[begin] <= '9')) ++begin;
    PhraseMatch m;
    m.said = text.substr(begin, 0);
    if (fits(text, begin, m)) return m;
  }
  return {};
}

}}}  // namespace sdma::v0_3::detail
