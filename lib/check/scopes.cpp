// SPDX-License-Identifier: MIT
// Flags of kernels at agent scope: only kernels of the same GPU see what is stored at that scope, and a wait at that
// scope sees only what they store (C3, C4). races.cpp asks the same question about data.
//
//   set gpu0.go = 1 scope=agent     a queue polls gpu0.go: it may never see the 1
//   wait gpu1.n == 1 scope=agent    a queue adds to gpu1.n: an L2 may hold the old value for ever
//   add gpu0.n += 1 scope=agent     a queue adds to gpu0.n, too: one of the additions may be lost
#include "reporter.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Scopes {
 public:
  Scopes(const Model& m, Reporter& r) : m_(m), r_(r), posts_(m.words.size()), looks_(m.words.size()) {}

  void run() {
    if (std::none_of(m_.agents.begin(), m_.agents.end(), [](const Agent& a) { return a.kind == Agent::Kind::kernel; }))
      return;
    collect();
    for (auto a = m_.queue_count(); a < m_.agents.size(); ++a)
      for (const auto& s : m_.agents[a].steps)
        if (m_.agents[a].kind == Agent::Kind::kernel && s.sync && s.sync->word != kNone &&
            !m_.action(a, s).system_scope)
          examine(a, s);
  }

 private:
  void collect() {
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a)
      for (const auto& s : m_.agents[a].steps) {
        if (!s.sync || s.sync->word == kNone) continue;
        auto& first = (s.posts() ? posts_ : looks_)[s.sync->word];
        if (first.empty() || first.back().agent != a) first.push_back({a, s.position});
      }
    // A condition or a copy reads a flag, too.
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      for (std::uint32_t i = 0; i < m_.programs[q].items.size(); ++i) {
        const auto& item = m_.programs[q].items[i];
        for (auto t = item.touch; t < item.touch + item.touches; ++t)
          if (const auto& touch = m_.programs[q].touches[t]; touch.mode == Mode::condition || touch.mode == Mode::read)
            for (std::size_t w = 0; w < m_.words.size(); ++w)
              if (touch.begin < m_.words[w].address + m_.words[w].bytes && m_.words[w].address < touch.end)
                looks_[w].push_back({q, i + 1});
      }
  }

  /// The first of these accesses that another kernel of this GPU has not made; null if there is none.
  const Position* outsider(std::uint32_t kernel, const std::vector<Position>& all) const {
    const auto p = std::find_if(all.begin(), all.end(), [&](Position x) { return !m_.on_one_gpu(kernel, x.agent); });
    return p == all.end() ? nullptr : &*p;
  }

  void examine(std::uint32_t a, const Step& s) {
    if (!reported_.insert({a, s.source}).second) return;
    const auto& posts = posts_[s.sync->word];
    const auto word = r_.word(m_.words[s.sync->word]);
    const Position here{a, s.position};
    if (s.posts()) {
      const auto* by = outsider(a, looks_[s.sync->word]);
      const bool sees = by != nullptr;
      if (!by) by = outsider(a, posts);
      if (by)
        r_.add({.rule = "kernel-scope",
                .places = {*by, here},
                .message = r_.agent(a) + " changes " + word + " at the scope of its GPU, but " + r_.agent(by->agent) +
                           (sees ? " waits for it: the value may stay in an L2"
                                 : " changes it too: one of the changes may be lost in an L2"),
                .hint = "omit scope=agent: put buffer_wbl2 sc1 and s_waitcnt vmcnt(0) before the store, and store at "
                        "system scope",
                .rests_on = {"C3"}});
      return;
    }
    const auto* by = outsider(a, posts);
    const bool probed = m_.profile.l2_probed && by && m_.agents[by->agent].kind == Agent::Kind::queue;
    if (by && !probed)
      r_.add({.rule = "kernel-scope",
              .places = {*by, here},
              .message = r_.agent(a) + " waits for " + word + " at the scope of its GPU, but " + r_.agent(by->agent) +
                         " stores to it: an L2 may hold the old value for ever",
              .hint = "omit scope=agent: load at system scope, and put buffer_inv sc0 sc1 after the wait",
              .rests_on = {"C4"}});
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::vector<Position>> posts_, looks_;            ///< of each word: the first of each agent
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported_;  ///< agent, action
};

}  // namespace

bool Model::on_one_gpu(std::uint32_t kernel, std::uint32_t other) const noexcept {
  const auto &a = agents[kernel], &b = agents[other];
  return a.kind == Agent::Kind::kernel && b.kind == Agent::Kind::kernel &&
         schedule.kernels[a.index].place == schedule.kernels[b.index].place;
}

std::uint32_t Model::released(std::uint32_t kernel, std::uint32_t position, bool gpu) const noexcept {
  for (auto i = first_step_after(kernel, position); i < agents[kernel].steps.size(); ++i) {
    const auto& s = agents[kernel].steps[i];
    if (s.kind == Step::Kind::submit || (s.posts() && (gpu || action(kernel, s).system_scope))) return s.position;
  }
  return kNone;
}

const Step* Model::acquired(std::uint32_t kernel, std::uint32_t position, bool gpu) const noexcept {
  const auto& steps = agents[kernel].steps;
  for (auto i = first_step_after(kernel, position); i-- > 0;)
    if (const auto& s = steps[i];
        (s.kind == Step::Kind::poll || s.kind == Step::Kind::sample) && (gpu || action(kernel, s).system_scope))
      return &s;
  return nullptr;
}

void find_in_kernels(const Model& m, Reporter& r) { Scopes{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
