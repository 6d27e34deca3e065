// SPDX-License-Identifier: MIT
// Builds the words that are polled and posted to, their initial values and their chains.
#include "../schedule/contents.hpp"
#include "model.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {

void Model::join_words() {
  std::vector<Sync*> all;
  for (auto& p : programs)
    for (auto& i : p.items)
      if (i.sync.word != kNone) all.push_back(&i.sync);
  for (auto& h : action_syncs_)
    for (auto& y : h)
      if (y.word != kNone) all.push_back(&y);
  for (auto& p : programs)
    if (p.rptr) all.push_back(&*p.rptr);
  for (const auto* y : all)
    if (y->bytes == 8) wide_.push_back(y->address & ~std::uint64_t{7});
  std::sort(wide_.begin(), wide_.end());
  wide_.erase(std::unique(wide_.begin(), wide_.end()), wide_.end());
  for (auto* y : all) y->word = add_word(*y);
  for (auto* y : all) y->high = words[y->word].bytes == 8 && y->bytes == 4 && (y->address & 4) != 0;
}

std::uint32_t Model::add_word(const Sync& y) {
  const auto base = y.address & ~std::uint64_t{7};
  const bool wide = std::binary_search(wide_.begin(), wide_.end(), base);
  const auto address = wide ? base : y.address;
  const auto [at, added] = word_of_.try_emplace(address, static_cast<std::uint32_t>(words.size()));
  if (added) words.push_back({.address = address, .bytes = wide ? 8u : 4u});
  return at->second;
}

void Model::set_first_values() {
  const detail::FirstContents first{schedule};
  for (auto& w : words) {
    const auto value = rptr_of(w.address) ? 0 : first.word(GpuVa{w.address}, w.bytes);
    w.known = value.has_value();
    w.init = value.value_or(0);
  }
}

bool Model::may_satisfy(const Step& wait, const Word& w) const noexcept {
  return w.known ? satisfied(wait, w, w.init) : !open;
}

void Model::build_chains() {
  find_algebra();
  for (std::uint32_t a = 0; a < agents.size(); ++a) {
    const auto& agent = agents[a];
    for (std::uint32_t i = 0; i < agent.steps.size(); ++i) {
      const auto& s = agent.steps[i];
      if (!s.sync || s.sync->word == kNone) continue;
      auto& w = words[s.sync->word];
      if (s.kind == Step::Kind::poll || s.kind == Step::Kind::sample) w.polled = true;
      if (!s.posts()) continue;
      // A 64-bit value stored by two fences counts as a 32-bit one if its high half never changes.
      if (s.sync->high && !s.whole && !w.in_order && !w.unmodelled) continue;
      // A post that lands in no order with the others is a chain of its own.
      const bool apart = s.column != kNone;
      auto last = w.chains.rbegin();
      while (!apart && last != w.chains.rend() && last->agent == a && last->apart) ++last;
      if (apart || last == w.chains.rend() || last->agent != a) {
        w.chains.push_back({.agent = a, .sums = {0}, .apart = apart});
        last = w.chains.rbegin();
      }
      auto& c = *last;
      if (!c.steps.empty()) {
        const auto before = value_after(agent.steps[c.steps.back()], w, w.init), now = value_after(s, w, w.init);
        c.rising = c.rising && before <= now;
        c.low_rising = c.low_rising && truncate(4, before) <= truncate(4, now);
      }
      c.steps.push_back(i);
      const auto n = s.op == Op::add ? addend(s) : Wide{0};
      c.sums.push_back(c.sums.back() + n);
      c.up = c.up && n >= 0;
      c.down = c.down && n <= 0;
      c.stores = c.stores || s.op != Op::add;
      (s.op == Op::add ? w.adds : w.stores) = true;
    }
  }
  for (auto& w : words) {
    const bool rises = std::all_of(w.chains.begin(), w.chains.end(), [](const Chain& c) { return c.up; });
    if (!w.known || !w.adds || w.stores || !rises) continue;
    w.most = Wide{w.init};
    for (const auto& c : w.chains) w.most += c.sums.back();
  }
  // Marks every word to which a copy, fill or write stores what is not known, or what it should not.
  for (const auto& p : programs)
    for (const auto& item : p.items) {
      if (item.flag()) continue;
      for (auto i = item.touch; i < item.touch + item.touches; ++i) copied(p.touches[i]);
    }
  for (const auto& all : actions_)
    for (const auto* a : all) {
      if (a->kind != Schedule::Action::Kind::store) continue;
      const auto begin = canonical(a->range.va);
      copied({begin, begin + a->range.bytes, Mode::write});
    }
}

void Model::build_chains_again() {
  executed_ = true;
  for (auto& w : words) w = {.address = w.address, .init = w.init, .bytes = w.bytes, .known = w.known};
  build_chains();
}

void Model::copied(const Touch& t) {
  if (t.mode != Mode::write) return;
  // The last word that begins at or before the bytes may reach into them.
  auto at = word_of_.upper_bound(t.begin);
  if (at != word_of_.begin()) --at;
  for (; at != word_of_.end() && at->first < t.end; ++at)
    if (auto& w = words[at->second]; t.begin < w.address + w.bytes) w.copied = true;
}

}}}  // namespace sdma::v0_3::check_detail
