// SPDX-License-Identifier: MIT
#pragma once
// "did you mean": finds the candidate that is closest to a mistyped word.
//
//   Nearest n{"copy_liner"};
//   for (const auto& p : kPackets) n.offer(p.name);
//   n.best()   ==   "copy_linear"       // "" if more than a third of the letters, or more than 3, differ
//
// A word that begins a candidate differs from it by one letter: `ref` of `reference`. A word of one or two letters
// has to end before a '_'. Among candidates that differ by as many letters, one that has all letters of the word comes
// first: `--sed` is `--seed`, and not `--set`.
//
//   did_you_mean("adv", {"strict", "adversarial"})   ==   "; did you mean 'adversarial'?"
//
// Words may have up to 64 letters; a longer word has no closest candidate. A Nearest belongs to one thread, allocates
// nothing, and keeps views of the words, which must outlive it. No errors.
#include "sdma/core/standard.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

class Nearest {
 public:
  explicit Nearest(std::string_view word) noexcept
      : word_(word), distance_(std::min<std::size_t>(3, (word.size() + 2) / 3) + 1) {}

  /// Considers one more candidate. Keeps a reference to its text.
  void offer(std::string_view candidate) noexcept {
    const auto rest = candidate.starts_with(word_) ? candidate.substr(word_.size()) : std::string_view{};
    const bool part = !rest.empty() && (word_.size() >= kTelling || (!word_.empty() && rest.front() == '_'));
    const auto d = part ? 1 : edits(word_, candidate);
    const bool whole = has_letters(candidate, word_);
    if (d < distance_ || (d == distance_ && !best_.empty() && whole && !whole_)) {
      distance_ = d;
      whole_ = whole;
      best_ = candidate;
    }
  }
  /// The nearest candidate so far; empty if none is near enough.
  std::string_view best() const noexcept { return best_; }

 private:
  static constexpr std::size_t kLongest = 64;
  static constexpr std::size_t kTelling = 3;

  /// Does `all` have these letters, in this order?
  static bool has_letters(std::string_view all, std::string_view letters) noexcept {
    std::size_t found = 0;
    for (const char c : all) found += found < letters.size() && c == letters[found];
    return found == letters.size();
  }

  /// How many letters must be inserted, deleted, replaced, or swapped with a neighbour to turn `a` into `b`.
  static std::size_t edits(std::string_view a, std::string_view b) noexcept {
    if (a.size() > kLongest || b.size() > kLongest) return kLongest;
    std::array<std::array<std::size_t, kLongest + 1>, 3> rows{};
    for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      auto& row = rows[i % 3];
      const auto &above = rows[(i + 2) % 3], &two_above = rows[(i + 1) % 3];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
    return rows[a.size() % 3][b.size()];
  }

  std::string_view word_, best_{};
  std::size_t distance_;
  bool whole_ = false;  ///< the best one has all letters of the word
};

/// A hint: "did you mean 'x'?", or `otherwise` if no candidate is near.
inline std::string meant_hint(const Nearest& n, std::string otherwise) {
  return n.best().empty() ? std::move(otherwise) : "did you mean '" + std::string(n.best()) + "'?";
}

/// The end of a message: "; did you mean 'x'?", or "". A word that begins exactly one candidate means that candidate,
/// even if most of its letters are missing.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  Nearest nearest{word};
  std::string_view longer;
  std::size_t begin_so = 0;
  for (const auto k : known) {
    nearest.offer(k);
    if (!word.empty() && k.starts_with(word)) longer = k, ++begin_so;
  }
  const auto meant = begin_so == 1 ? longer : nearest.best();
  return meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?";
}

}}  // namespace sdma::v0_3
