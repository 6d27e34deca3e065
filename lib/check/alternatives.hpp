// SPDX-License-Identifier: MIT
#pragma once
// The posts to a word that may have happened when a wait is satisfied, according to the current clocks. Internal.
//
//   Alternatives a{model, word, agent, step, clock};     clock: what the agent knows when it arrives at the wait
//   a.known(c)     how many posts of chain c have certainly happened when the agent arrives
//   a.possible(c)  how many can have happened when the wait is satisfied: all that are not ordered after it
#include "model.hpp"

#include <algorithm>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace check_detail {

class Alternatives {
 public:
  Alternatives(const Model& m, const Word& w, std::uint32_t agent, const Step& wait, const std::uint32_t* clock)
      : m_(m), w_(w), wait_(wait) {
    known_.reserve(w.chains.size());
    possible_.reserve(w.chains.size());
    for (const auto& c : w.chains) {
      known_.push_back(reached(c, clock));
      possible_.push_back(first(
          c, [&](const Step& s) { return s.time != kNone && !m_.after(c.agent, s, agent, wait.position); },
          known_.back()));
    }
  }

  std::uint32_t known(std::size_t c) const noexcept { return known_[c]; }
  std::uint32_t possible(std::size_t c) const noexcept { return possible_[c]; }
  const Step& post(std::size_t c, std::uint32_t i) const noexcept { return m_.post(w_.chains[c], i); }

  /// Does post `i` of chain c satisfy the wait, if no other store comes between?
  bool satisfies(std::size_t c, std::uint32_t i) const noexcept {
    return check_detail::satisfies(wait_, w_, post(c, i));
  }
  Position place(std::size_t c, std::uint32_t i) const noexcept { return {w_.chains[c].agent, post(c, i).position}; }

  /// How many posts of a chain have landed, according to a row.
  std::uint32_t reached(const Chain& c, const std::uint32_t* row) const noexcept {
    return first(c, [&](const Step& s) { return m_.landed(row, c.agent, s); });
  }
  /// How many posts of a chain do not come after a post of `agent`.
  std::uint32_t before(const Chain& c, std::uint32_t agent, const Step& post) const noexcept {
    return first(c, [&](const Step& s) { return s.time != kNone && !m_.after(c.agent, s, agent, post); });
  }
  /// How many posts of a chain had happened in the followed execution when the wait was satisfied.
  std::uint32_t happened(const Chain& c) const noexcept {
    return first(c, [&](const Step& s) { return s.time < wait_.time; });
  }

  /// Is post `i` of chain c ordered before a store that, by the counts in `done`, is the last post of another chain?
  bool hidden(std::size_t c, std::uint32_t i, const std::vector<std::uint32_t>& done) const noexcept {
    for (std::size_t d = 0; d < w_.chains.size(); ++d)
      if (d != c && done[d] > 0)
        if (const auto& y = post(d, done[d] - 1);
            y.op == Op::store && m_.after(w_.chains[d].agent, y, w_.chains[c].agent, post(c, i)))
          return true;
    return false;
  }

  /// The value from which additions start: that of the last store, or the initial value.
  struct Base {
    Wide value{};
    std::vector<std::uint32_t> from{};  ///< for each chain, how many of its posts come before that store
  };
  /// The base after the posts in `done`; nullopt if two stores are unordered, or if a store is in `all` but not in
  /// `done`.
  std::optional<Base> base(const std::vector<std::uint32_t>& done, const std::vector<std::uint32_t>& all) const {
    Base b{.value = Wide{w_.init}, .from = std::vector<std::uint32_t>(w_.chains.size(), 0)};
    if (!w_.stores) return w_.known ? std::optional(b) : std::nullopt;
    const Step* last = nullptr;
    std::size_t last_chain = 0;
    for (std::size_t c = 0; c < w_.chains.size(); ++c) {
      for (auto i = done[c]; w_.chains[c].stores && i < all[c]; ++i)
        if (post(c, i).op != Op::add) return {};
      auto i = done[c];
      while (i > 0 && post(c, i - 1).op == Op::add) --i;
      if (i == 0) continue;
      const auto& s = post(c, i - 1);
      if (!last || m_.after(w_.chains[c].agent, s, w_.chains[last_chain].agent, *last)) {
        last = &s;
        last_chain = c;
      }
    }
    if (!last) return w_.known ? std::optional(b) : std::nullopt;
    const auto owner = w_.chains[last_chain].agent;
    b.value = Wide{value_after(*last, w_, w_.init)};
    for (std::size_t c = 0; c < w_.chains.size(); ++c) {
      const auto& chain = w_.chains[c];
      b.from[c] = first(chain, [&](const Step& s) { return &s == last || m_.after(owner, *last, chain.agent, s); });
      // A store of another chain is in `done`, but is not ordered before the last store: the two stores are unordered.
      for (auto i = b.from[c]; w_.chains[c].stores && i < done[c]; ++i)
        if (c != last_chain && post(c, i).op != Op::add) return {};
    }
    return b;
  }

  /// What the word holds if exactly the known posts have happened.
  Wide known_value(const Base& b) const noexcept {
    auto sum = b.value;
    for (std::size_t c = 0; c < w_.chains.size(); ++c)
      if (known_[c] > b.from[c]) sum += w_.chains[c].sums[known_[c]] - w_.chains[c].sums[b.from[c]];
    return sum;
  }

  const Step& wait() const noexcept { return wait_; }
  const std::vector<std::uint32_t>& known() const noexcept { return known_; }
  const std::vector<std::uint32_t>& possible() const noexcept { return possible_; }

 private:
  /// How many posts of a chain, from the first on, have a property that no post after them has.
  /// The first `least` of them are known to have it. Few more have, as a rule: the search widens step by step.
  template <class Fn> std::uint32_t first(const Chain& c, Fn has, std::uint32_t least = 0) const noexcept {
    const auto& steps = m_.agents[c.agent].steps;
    const auto end = static_cast<std::uint32_t>(c.steps.size());
    auto low = least, high = end;
    for (std::uint32_t step = 1; least != 0 && low + step < end; step *= 2) {
      if (!has(steps[c.steps[low + step - 1]])) {
        high = low + step - 1;
        break;
      }
      low += step;
    }
    return static_cast<std::uint32_t>(std::partition_point(c.steps.begin() + static_cast<std::ptrdiff_t>(low),
                                                           c.steps.begin() + static_cast<std::ptrdiff_t>(high),
                                                           [&](std::uint32_t i) { return has(steps[i]); }) -
                                      c.steps.begin());
  }

  const Model& m_;
  const Word& w_;
  const Step& wait_;
  std::vector<std::uint32_t> known_, possible_;
};

}}}  // namespace sdma::v0_3::check_detail
