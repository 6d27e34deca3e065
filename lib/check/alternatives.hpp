#pragma once
// What may have been posted to a word when a wait is met, by the clocks as they are. Internal.
//
//   Alternatives a{model, word, agent, step, clock};     clock: what the agent knows when it arrives at the wait
//   a.known(c)     posts of chain c that have happened by then
//   a.possible(c)  those that can have happened when it is met: all that do not come after it
#include "model.hpp"

#include <algorithm>
#include <optional>

namespace sdma {
inline namespace v0 {
namespace check_detail {

class Alternatives {
 public:
  Alternatives(const Model& m, const Word& w, std::uint32_t agent, const Step& wait, const std::uint32_t* clock)
      : m_(m), w_(w), wait_(wait) {
    known_.reserve(w.chains.size());
    possible_.reserve(w.chains.size());
    for (const auto& c : w.chains) {
      known_.push_back(reached(c, clock[c.agent]));
      possible_.push_back(before(c, agent, wait.position));
    }
  }

  std::uint32_t known(std::size_t c) const noexcept { return known_[c]; }
  std::uint32_t possible(std::size_t c) const noexcept { return std::max(possible_[c], known_[c]); }
  const Step& post(std::size_t c, std::uint32_t i) const noexcept {
    const auto& chain = w_.chains[c];
    return m_.agents[chain.agent].steps[chain.steps[i]];
  }

  /// How many posts of a chain stand at or before `position` of its agent.
  std::uint32_t reached(const Chain& c, std::uint32_t position) const noexcept {
    const auto& steps = m_.agents[c.agent].steps;
    return static_cast<std::uint32_t>(
        std::partition_point(c.steps.begin(), c.steps.end(),
                             [&](std::uint32_t i) { return steps[i].position <= position; }) -
        c.steps.begin());
  }
  /// How many posts of a chain do not come after `position` of `agent`.
  std::uint32_t before(const Chain& c, std::uint32_t agent, std::uint32_t position) const noexcept {
    const auto& a = m_.agents[c.agent];
    return static_cast<std::uint32_t>(std::partition_point(c.steps.begin(), c.steps.end(),
                                                           [&](std::uint32_t i) {
                                                             const auto& s = a.steps[i];
                                                             return s.time != kNone &&
                                                                    !m_.after(a, c.agent, s, agent, position);
                                                           }) -
                                      c.steps.begin());
  }
  /// How many posts of a chain have happened in the execution that was followed when the wait was met.
  std::uint32_t happened(const Chain& c) const noexcept {
    const auto& steps = m_.agents[c.agent].steps;
    return static_cast<std::uint32_t>(
        std::partition_point(c.steps.begin(), c.steps.end(),
                             [&](std::uint32_t i) { return steps[i].time < wait_.time; }) -
        c.steps.begin());
  }

  /// Does the last known post of chain c come before the last known one of another chain that stores?
  bool hidden(std::size_t c, std::uint32_t i, const std::vector<std::uint32_t>& done) const noexcept {
    for (std::size_t d = 0; d < w_.chains.size(); ++d)
      if (d != c && done[d] > 0)
        if (const auto& y = post(d, done[d] - 1);
            y.sync->op == Op::store &&
            m_.after(m_.agents[w_.chains[d].agent], w_.chains[d].agent, y, w_.chains[c].agent, post(c, i).position))
          return true;
    return false;
  }

  /// What additions begin from: a store after which nothing else was stored, or the first value.
  struct Base {
    Wide value{};
    std::vector<std::uint32_t> from{};  ///< a chain: how many of its posts the store comes after
  };
  /// By the posts in `done`; nothing where two stores are in no order, or one of `possible` is not done.
  std::optional<Base> base(const std::vector<std::uint32_t>& done, const std::vector<std::uint32_t>& all) const {
    Base b{.value = Wide{w_.init}, .from = std::vector<std::uint32_t>(w_.chains.size(), 0)};
    if (!w_.stores) return w_.known ? std::optional(b) : std::nullopt;
    const Step* last = nullptr;
    std::size_t last_chain = 0;
    for (std::size_t c = 0; c < w_.chains.size(); ++c) {
      for (auto i = done[c]; w_.chains[c].stores && i < all[c]; ++i)
        if (post(c, i).sync->op != Op::add) return {};
      auto i = done[c];
      while (i > 0 && post(c, i - 1).sync->op == Op::add) --i;
      if (i == 0) continue;
      const auto& s = post(c, i - 1);
      const auto& a = m_.agents[w_.chains[c].agent];
      if (!last || m_.after(a, w_.chains[c].agent, s, w_.chains[last_chain].agent, last->position)) {
        last = &s;
        last_chain = c;
      }
    }
    if (!last) return w_.known ? std::optional(b) : std::nullopt;
    const auto owner = w_.chains[last_chain].agent;
    b.value = Wide{posted(*last, w_, w_.init)};
    for (std::size_t c = 0; c < w_.chains.size(); ++c) {
      const auto agent = w_.chains[c].agent;
      b.from[c] = reached(w_.chains[c], agent == owner ? last->position : m_.row(last->row)[agent]);
      // A store of another chain that is done and not before the last one: no order between them.
      for (auto i = b.from[c]; w_.chains[c].stores && i < done[c]; ++i)
        if (c != last_chain && post(c, i).sync->op != Op::add) return {};
    }
    return b;
  }

  const std::vector<std::uint32_t>& known() const noexcept { return known_; }
  std::vector<std::uint32_t> possible() const {
    auto all = possible_;
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = possible(c);
    return all;
  }

 private:
  const Model& m_;
  const Word& w_;
  const Step& wait_;
  std::vector<std::uint32_t> known_, possible_;
};

}  // namespace check_detail
}  // namespace v0
}  // namespace sdma
