// SPDX-License-Identifier: MIT
// Finds polls that wait for each other because they hold their engines, over any number of engines. X2: a poll that is
// not satisfied yet may hold its engine, so that no other queue of the engine executes packets.
//
//   engine 0   a: poll x, fence y      b: fence z         a holds engine 0 while it needs c's fence x;
//   engine 1   c: poll z, fence x                         c waits for b's fence z, which comes after a
//
// An edge leads from wait p to wait p' if p needs a post that may have to come after p': p' is an earlier wait of the
// agent that posts, or of a host that submits the post, or it holds the engine of the post. Without the last kind, the
// edges follow the order of the followed execution and form no cycle. So each cycle depends on X2, and if there is no
// cycle, no execution gets stuck because of X2.
//
// A flag needs the post that satisfied it in the followed execution; if the flag is not met, that post has not
// happened. A count needs the last post of each agent that had added to it.
#include "../core/listed.hpp"
#include "alternatives.hpp"
#include "engine_plan.hpp"
#include "reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class HeldEngines {
 public:
  HeldEngines(const Model& m, Reporter& r) : m_(m), r_(r), clock_(m.width()) {
    nodes();
    for (std::uint32_t q = 0; q < m.queue_count(); ++q) sharing_[m.programs[q].engine].push_back(q);
  }

  void run() {
    if (m_.profile.poll_yields || !shared()) return;
    index_.assign(waits_.size(), kNone);
    low_.assign(waits_.size(), 0);
    on_stack_.assign(waits_.size(), false);
    for (std::uint32_t n = 0; n < waits_.size() && edges_ <= m_.limits.edges() && !waits_for_itself_; ++n)
      if (index_[n] == kNone) components(n);
    if (waits_for_itself_) report_self_waits();
    if (waits_for_itself_ || !reported_.empty()) r_.engine_plans(engine_plans(m_));
    if (!waits_for_itself_ && edges_ > m_.limits.edges())
      r_.add({.rule = "not-all-engines",
              .message = fmt::format("more than {} pairs of waits share engines: whether polls that hold their engines "
                                     "wait for each other is not known",
                                     m_.limits.edges()),
              .hint = r_.larger_limit() + ", or put the queues on different engines",
              .rests_on = {"X2"}});
  }

 private:
  struct Wait {
    std::uint32_t agent, step;
  };
  /// Edges to the waits from `begin` to `end`, because of a post.
  struct Edges {
    std::uint32_t begin, end;
    Position post;
    bool holds;  ///< they hold the post's engine
  };

  /// Does a queue need its own engine for what it waits for, which it holds?
  static const Edges* to_itself(std::uint32_t node, const std::vector<Edges>& all) {
    const auto self = std::find_if(all.begin(), all.end(),
                                   [&](const Edges& e) { return e.holds && e.begin <= node && node < e.end; });
    return self == all.end() ? nullptr : &*self;
  }
  /// Reports the first such wait of each queue. A search for circles of several queues is worth its time without them.
  void report_self_waits() {
    for (std::uint32_t n = 0; n < waits_.size(); ++n) {
      const auto all = edges(n);
      const auto* self = to_itself(n, all);
      if (!self) continue;
      describe({n}, {*self});
      n = first_[waits_[n].agent + 1] - 1;
    }
  }

  /// Numbers the waits: those of an agent are consecutive, in program order.
  void nodes() {
    first_.assign(m_.agents.size() + 1, 0);
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a) {
      first_[a] = static_cast<std::uint32_t>(waits_.size());
      const auto& steps = m_.agents[a].steps;
      for (std::uint32_t i = 0; i < steps.size(); ++i)
        if (steps[i].kind == Step::Kind::poll && steps[i].time != kNone && !steps[i].assumed_satisfied)
          waits_.push_back({a, i});
    }
    first_.back() = static_cast<std::uint32_t>(waits_.size());
  }
  bool polls(std::uint32_t agent) const { return first_[agent] != first_[agent + 1]; }
  bool shared() const {
    return std::any_of(sharing_.begin(), sharing_.end(), [&](const auto& e) {
      return e.second.size() > 1 && std::any_of(e.second.begin(), e.second.end(), [&](auto q) { return polls(q); });
    });
  }

  const Step& step(std::uint32_t node) const { return m_.agents[waits_[node].agent].steps[waits_[node].step]; }
  Position place(std::uint32_t node) const { return {waits_[node].agent, step(node).position}; }

  /// The first wait of an agent after `position`.
  std::uint32_t after(std::uint32_t agent, std::uint32_t position) const {
    return static_cast<std::uint32_t>(
        std::partition_point(waits_.begin() + static_cast<std::ptrdiff_t>(first_[agent]),
                             waits_.begin() + static_cast<std::ptrdiff_t>(first_[agent + 1]),
                             [&](const Wait& w) { return m_.agents[agent].steps[w.step].position <= position; }) -
        waits_.begin());
  }

  /// The posts that a wait needs and that have not certainly landed on its arrival, whose row is in clock_.
  std::vector<Position> needs(std::uint32_t node) {
    const auto& s = step(node);
    const auto& w = m_.words[s.sync->word];
    m_.arrive(waits_[node].agent, waits_[node].step, clock_);
    const Alternatives alt{m_, w, waits_[node].agent, s, clock_.data()};
    std::vector<Position> all;
    const Step* last = nullptr;
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      const auto done = alt.happened(w.chains[c]);
      if (w.adds && done > alt.known(c)) all.push_back(alt.place(c, done - 1));
      if (w.adds || done == 0 || !alt.satisfies(c, done - 1)) continue;
      const auto& post = alt.post(c, done - 1);
      if (last && post.time <= last->time) continue;
      last = &post;
      all.clear();
      if (done > alt.known(c)) all.push_back(alt.place(c, done - 1));
    }
    return all;
  }

  std::vector<Edges> edges(std::uint32_t node) {
    std::vector<Edges> out;
    const auto self = waits_[node].agent;
    const auto here = step(node).position;
    const auto add = [&](std::uint32_t begin, std::uint32_t end, Position post, bool holds) {
      if (begin < end) out.push_back({begin, end, post, holds});
    };
    // The waits of an agent that may be pending while this one is.
    const auto pending = [&](std::uint32_t agent) {
      return agent == self ? after(agent, here - 1) : after(agent, clock_[agent]);
    };
    for (const auto x : needs(node)) {
      add(pending(x.agent), after(x.agent, x.position - 1), x, false);
      if (x.agent >= m_.queue_count()) continue;
      for (const auto [host, submit] : submits(x)) add(pending(host), after(host, submit), x, false);
      for (const auto q : sharing_.at(m_.programs[x.agent].engine)) {
        if (q == x.agent) continue;
        // A wait that comes after the post in every execution does not hold it up.
        const auto begin = pending(q);
        const auto end =
            std::partition_point(waits_.begin() + static_cast<std::ptrdiff_t>(begin),
                                 waits_.begin() + static_cast<std::ptrdiff_t>(std::max(begin, first_[q + 1])),
                                 [&](const Wait& w) { return !landed_before(w, x); });
        add(begin, static_cast<std::uint32_t>(end - waits_.begin()), x, true);
      }
    }
    for (const auto& e : out) edges_ += e.end - e.begin;
    return out;
  }
  bool landed_before(const Wait& w, Position post) const {
    const auto* row = m_.row_before(w.agent, w.step);
    const auto* step = m_.post_at(post.agent, post.position);  // null where rptr alone moves
    return step ? m_.landed(row, post.agent, *step) : row[post.agent] >= post.position;
  }
  /// The submits that may publish the packet at `x`.
  std::vector<Position> submits(Position x) const {
    const auto& agent = m_.agents[x.agent];
    std::vector<Position> out;
    if (agent.shared) {
      for (std::uint32_t h = m_.queue_count(); h < m_.agents.size(); ++h)
        if (!m_.agents[h].steps.empty()) out.push_back({h, m_.agents[h].steps.back().position});
      return out;
    }
    const auto epoch = m_.epoch_at(x.agent, x.position);
    // Each epoch of a queue starts with its begin.
    const auto begin =
        std::partition_point(agent.steps.begin(), agent.steps.end(), [&](const Step& s) { return s.epoch < epoch; });
    if (begin != agent.steps.end() && begin->target != kNone) out.push_back({begin->target, begin->target_position});
    return out;
  }

  /// Tarjan's strongly connected components, without recursion.
  void components(std::uint32_t root) {
    struct Frame {
      std::uint32_t node;
      std::vector<Edges> edges;
      std::size_t range = 0;
      std::uint32_t next = 0;
    };
    std::vector<Frame> frames;
    const auto enter = [&](std::uint32_t n) {
      index_[n] = low_[n] = count_++;
      stack_.push_back(n);
      on_stack_[n] = true;
      frames.push_back({n, edges(n)});
      waits_for_itself_ = waits_for_itself_ || to_itself(n, frames.back().edges);
      if (!frames.back().edges.empty()) frames.back().next = frames.back().edges[0].begin;
    };
    enter(root);
    while (!frames.empty() && !waits_for_itself_) {
      auto& f = frames.back();
      if (f.range < f.edges.size() && edges_ <= m_.limits.edges()) {
        const auto to = f.next++;
        if (f.next == f.edges[f.range].end && ++f.range < f.edges.size()) f.next = f.edges[f.range].begin;
        if (index_[to] == kNone) enter(to);
        else if (on_stack_[to]) low_[f.node] = std::min(low_[f.node], index_[to]);
        continue;
      }
      const auto n = f.node;
      frames.pop_back();
      if (!frames.empty()) low_[frames.back().node] = std::min(low_[frames.back().node], low_[n]);
      if (low_[n] != index_[n]) continue;
      std::vector<std::uint32_t> members;
      do {
        members.push_back(stack_.back());
        on_stack_[stack_.back()] = false;
        stack_.pop_back();
      } while (members.back() != n);
      if (edges_ <= m_.limits.edges()) report(members);
    }
  }

  /// Reports the shortest cycle through the first wait of a component, if there is one.
  void report(std::vector<std::uint32_t>& members) {
    std::sort(members.begin(), members.end());
    const auto start = members.front();
    struct Way {
      std::uint32_t from;
      Edges edge;
    };
    std::map<std::uint32_t, Way> came;
    std::vector<std::uint32_t> reached{start};
    for (std::size_t i = 0; i < reached.size() && !came.contains(start); ++i)
      for (const auto& e : edges(reached[i]))
        for (auto m = std::lower_bound(members.begin(), members.end(), e.begin); m != members.end() && *m < e.end; ++m)
          if (came.try_emplace(*m, Way{reached[i], e}).second) reached.push_back(*m);
    if (!came.contains(start)) return;
    std::vector<std::uint32_t> cycle;
    std::vector<Edges> why;
    for (auto n = start; cycle.empty() || n != start;) {
      const auto& way = came.at(n);
      cycle.insert(cycle.begin(), way.from);
      why.insert(why.begin(), way.edge);
      n = way.from;
    }
    std::vector<std::uint64_t> key;
    for (const auto n : cycle) key.push_back(std::uint64_t{waits_[n].agent} << 32 | step(n).source);
    if (!reported_.insert(key).second) return;
    describe(cycle, why);
  }

  void describe(const std::vector<std::uint32_t>& cycle, const std::vector<Edges>& why) {
    Finding f{.rule = "engine-wait", .rests_on = {"X2"}};
    if (cycle.size() == 1) {
      const auto by = why[0].post;
      f.places = {by, place(cycle[0])};
      f.message =
          r_.agent(waits_[cycle[0]].agent) + " waits for " + r_.agent(by.agent) + ", which is on the same engine";
      f.hint = "put the two queues on different engines, or merge them";
      r_.add(std::move(f));
      return;
    }
    std::vector<std::string> agents;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto next = cycle[(i + 1) % cycle.size()];
      f.places.push_back(place(cycle[i]));
      f.notes.push_back(fmt::format("waits for {}, in {}, which {} {} {}", r_.place(why[i].post),
                                    r_.agent(why[i].post.agent), why[i].holds ? "needs the engine of" : "comes after",
                                    r_.place(place(next)), "(" + r_.agent(waits_[next].agent) + ")"));
      agents.push_back(r_.agent(waits_[cycle[i]].agent));
    }
    f.message = listed(agents) + " may wait for each other forever, because a waiting poll may hold its engine";
    f.hint = "put queues that wait for each other on different engines";
    r_.add(std::move(f));
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::uint32_t> clock_;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> first_;  ///< by agent: its first wait
  std::map<std::uint64_t, std::vector<std::uint32_t>> sharing_;
  bool waits_for_itself_ = false;
  std::vector<std::uint32_t> index_, low_, stack_;
  std::vector<bool> on_stack_;
  std::uint32_t count_ = 0;
  std::size_t edges_ = 0;
  std::set<std::vector<std::uint64_t>> reported_;
};

}  // namespace

void find_held_engines(const Model& m, Reporter& r) { HeldEngines{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
