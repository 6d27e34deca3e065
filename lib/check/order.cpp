// SPDX-License-Identifier: MIT
// Computes happens-before: the largest order that holds in every execution.
//
// A wait comes after a post if the wait cannot be satisfied without the post, provided that everything that happened
// before obeyed the order. So the clocks start from the order of one execution, and each pass removes what nothing
// justifies, until the rest justifies all that is left. By induction over time, that order holds in every execution.
// (Starting from nothing and adding order would miss barriers that count: there, each arrival is needed because the
// next round's arrivals need this round's.)
#include "alternatives.hpp"
#include "counts.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

constexpr int kMostPasses = 64;

class Clocks {
 public:
  explicit Clocks(Model& m) : m_(m), n_(m.width()), now_(n_), common_(n_), other_(n_) {}

  void run() {
    allocate();
    start_from_execution();
    m_.exceeded.clear();
    for (int pass = 0; pass < kMostPasses && compared_ < m_.limits.pairs(); ++pass)
      if (!narrow()) return;
    if (compared_ >= m_.limits.pairs())
      m_.exceeded.push_back(
          {.what = fmt::format("more than {} pairs of posts have to be compared", m_.limits.pairs())});
    else if (m_.exceeded.empty())
      m_.exceeded.push_back({.what = fmt::format("the order needs more than {} passes", kMostPasses), .fixed = true});
  }

 private:
  void allocate() {
    std::uint32_t next = 0;
    for (auto& a : m_.agents) {
      std::uint32_t row = kNone;
      for (auto& s : a.steps) {
        const bool acquires = s.kind == Step::Kind::begin || s.kind == Step::Kind::poll;
        if (acquires && s.time != kNone) row = next++;
        s.row = row;
      }
    }
    m_.rows.assign(next * n_, 0);
  }

  /// Sets each clock to what had happened in the followed execution: an upper bound.
  void start_from_execution() {
    struct Event {
      std::uint32_t time, agent, step;
    };
    std::vector<Event> events;
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a)
      for (std::uint32_t i = 0; i < m_.agents[a].steps.size(); ++i)
        if (const auto t = m_.agents[a].steps[i].time; t != kNone) events.push_back({t, a, i});
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
    std::vector<std::uint32_t> frontier(n_, 0);
    for (const auto& e : events) {
      const auto& s = m_.agents[e.agent].steps[e.step];
      const bool queue = m_.agents[e.agent].kind == Agent::Kind::queue;
      if (queue) frontier[e.agent] = std::max(frontier[e.agent], m_.barrier(e.agent, s.position));
      if (s.kind == Step::Kind::begin || s.kind == Step::Kind::poll)
        std::copy(frontier.begin(), frontier.end(), &m_.rows[s.row * n_]);
      if (!queue || s.kind == Step::Kind::post || (m_.profile.poll_full && s.kind == Step::Kind::poll))
        frontier[e.agent] = s.position;
      if (s.kind == Step::Kind::flag) frontier[e.agent] = std::max(frontier[e.agent], m_.before_flag(e.agent, s));
      if (s.column != kNone) frontier[s.column] = 1;
      if (covers(e.agent, s)) frontier[m_.programs[e.agent].column] = s.position;
      if (s.kind == Step::Kind::poll && (!queue || m_.profile.poll_full)) m_.rows[s.row * n_ + e.agent] = s.position;
    }
  }

  /// One pass over all acquires. Returns true if a clock has changed.
  bool narrow() {
    bool changed = false;
    neighbours_.clear();
    rests_.assign(m_.words.size(), {});
    needed_.clear();
    joined_.word = nullptr;
    for (const auto& [a, i] : m_.acquires) {
      const auto& agent = m_.agents[a];
      const auto& s = agent.steps[i];
      m_.arrive(a, i, now_);
      if (s.kind == Step::Kind::begin) begin(a, s);
      else wait(a, s);
      if (agent.kind != Agent::Kind::queue || (m_.profile.poll_full && s.kind == Step::Kind::poll))
        now_[a] = std::max(now_[a], s.position);
      auto* row = &m_.rows[s.row * n_];
      if (!std::equal(now_.begin(), now_.end(), row)) {
        std::copy(now_.begin(), now_.end(), row);
        changed = true;
      }
    }
    return changed;
  }

  /// What an agent knows that sees this post, or follows this submit.
  void knowledge(std::uint32_t agent, const Step& s, std::vector<std::uint32_t>& out) const {
    if (s.kind == Step::Kind::read) return void(std::fill(out.begin(), out.end(), 0));  // H8
    const auto* r = m_.row(s.row);
    std::copy(r, r + n_, out.begin());
    const auto own = s.kind == Step::Kind::flag ? m_.before_flag(agent, s) : s.position;
    out[agent] = std::max(out[agent], own);
    if (agent < m_.queue_count()) out[agent] = std::max(out[agent], m_.barrier(agent, s.position));
    if (s.column != kNone) out[s.column] = 1;
    if (returns(agent, s))
      for (const auto& earlier : m_.agents[agent].steps) {
        if (earlier.position >= s.position) break;
        if (earlier.column != kNone) out[earlier.column] = 1;
      }
    if (covers(agent, s)) {
      auto& moved = out[m_.programs[agent].column];
      moved = std::max(moved, s.position);
    }
  }
  /// Does the network bring this post back to the sender's node? It comes after all that have come back before it.
  bool returns(std::uint32_t agent, const Step& s) const {
    const auto* program = agent < m_.queue_count() ? &m_.programs[agent] : nullptr;
    return program && s.kind == Step::Kind::post && s.source < program->returns.size() && program->returns[s.source];
  }
  /// Q2: does this flag land after all copies, fills and writes before it?
  bool covers(std::uint32_t agent, const Step& s) const {
    return s.kind == Step::Kind::flag && m_.programs[agent].column != kNone &&
           m_.item_at(agent, s.position)->what == What::write;
  }
  void join(std::uint32_t agent, const Step& s) {
    knowledge(agent, s, other_);
    raise(now_, other_);
  }
  static void raise(std::vector<std::uint32_t>& clock, const std::vector<std::uint32_t>& by) noexcept {
    std::transform(clock.begin(), clock.end(), by.begin(), clock.begin(),
                   [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
  }

  void begin(std::uint32_t queue, const Step& s) {
    if (m_.agents[queue].shared) return begin_shared(queue, s.epoch);
    if (s.target != kNone) join(s.target, m_.agents[s.target].steps[s.target_position - 1]);
  }

  /// Several host threads ring the doorbell: this begin follows whatever all submits know that may be the `epoch`-th.
  void begin_shared(std::uint32_t queue, std::uint32_t epoch) {
    const auto& all = submits(queue);
    // Each is compared with each other one.
    if (const auto pairs = all.size() * all.size(); pairs > m_.limits.packets) {
      if (m_.exceeded.empty())
        m_.exceeded.push_back(
            {.what = fmt::format("threads submit {} {} times, and {} pairs of submits have to be compared",
                                 detail::queue_name(m_.schedule.queues[queue]), all.size(), pairs),
             .packets = pairs});
      return;
    }
    const auto precedes = [&](const Submit& a, const Submit& b) {
      if (a.agent == b.agent) return a.step->position < b.step->position;
      return m_.row(b.step->row)[a.agent] >= a.step->position;
    };
    // Counted once in a pass: in the last one, no clock changes.
    auto& counts = neighbours_[queue];
    if (counts.empty())
      for (const auto& b : all) {
        auto& [before, after] = counts.emplace_back();
        for (const auto& a : all) {
          before += precedes(a, b);
          after += precedes(b, a);
        }
      }
    bool any = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& b = all[i];
      if (counts[i].before >= epoch || all.size() - counts[i].after < epoch) continue;
      knowledge(b.agent, *b.step, other_);
      if (!any) common_ = other_;
      else
        for (std::size_t k = 0; k < n_; ++k) common_[k] = std::min(common_[k], other_[k]);
      any = true;
    }
    for (std::size_t k = 0; any && k < n_; ++k) now_[k] = std::max(now_[k], common_[k]);
  }
  struct Submit {
    std::uint32_t agent;
    const Step* step;
  };
  const std::vector<Submit>& submits(std::uint32_t queue) {
    auto& all = submits_[queue];
    if (all.empty())
      for (auto a = m_.queue_count(); a < m_.agents.size(); ++a)
        for (const auto& s : m_.agents[a].steps)
          if (s.kind == Step::Kind::submit && s.target == queue) all.push_back({a, &s});
    return all;
  }

  void wait(std::uint32_t a, const Step& s) {
    const auto& w = m_.words[s.sync->word];
    if (s.assumed_satisfied || w.copied || (s.sync->finite && !m_.profile.finite_poll_edge)) return;
    if (!w.unmodelled && settled(a, s, w)) return;
    const Alternatives alt{m_, w, a, s, now_.data()};
    if (w.unmodelled) return order_as_followed(w, alt);
    if (w.adds) order_by_additions(w, s, alt);
    else order_by_stores(w, s, alt);
  }

  /// For a counter that only rises: the posts without which the others never reach the value, whatever the waiting
  /// agent knows. If the order that they bring is all that is left of the order of the execution, it is the result.
  bool settled(std::uint32_t a, const Step& s, const Word& w) {
    const auto least = least_of(s, w);
    if (!least) return false;
    auto [at, added] = needed_.try_emplace({s.sync->word, *least});
    auto& clock = at->second;
    if (added) {
      clock.assign(n_, 0);
      const auto& all = rests(w);
      for (std::size_t c = 0; c < w.chains.size(); ++c) {
        const auto end = std::partition_point(all[c].begin(), all[c].end(), [&](Wide rest) { return rest < *least; });
        if (end == all[c].begin()) continue;
        const auto& post = m_.post(w.chains[c], static_cast<std::size_t>(end - all[c].begin()) - 1);
        if (post.time == kNone) clock.assign(n_, kNone);  // no wait for this value has ended
        if (post.time == kNone) break;
        knowledge(w.chains[c].agent, post, other_);
        raise(clock, other_);
      }
    }
    other_ = now_;
    raise(other_, clock);
    if (m_.agents[a].kind != Agent::Kind::queue || m_.profile.poll_full) other_[a] = std::max(other_[a], s.position);
    if (!std::equal(other_.begin(), other_.end(), &m_.rows[s.row * n_])) return false;
    now_.swap(other_);
    return true;
  }

  /// For a word whose values are not known: a warning leaves the schedule unproved. The wait is assumed to come after
  /// the posts that it came after in the followed execution, so that no error rests on what is not known.
  void order_as_followed(const Word& w, const Alternatives& alt) {
    for (const auto& c : w.chains)
      if (const auto k = alt.happened(c); k > 0 && !m_.open) join(c.agent, m_.post(c, k - 1));
  }

  /// For a word with stores only: the wait comes after everything that all stores which may satisfy it have in common.
  void order_by_stores(const Word& w, const Step& s, const Alternatives& alt) {
    bool any = false, first_value = m_.may_satisfy(s, w);
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      if (const auto k = alt.known(c); k > 0) {
        first_value = false;
        // Satisfied on arrival: the wait tells nothing new.
        if (alt.satisfies(c, k - 1) && !alt.hidden(c, k - 1, alt.known())) return;
      }
      for (auto i = alt.known(c); i < alt.possible(c); ++i) {
        if (!alt.satisfies(c, i)) continue;
        knowledge(w.chains[c].agent, alt.post(c, i), other_);
        if (!any) common_ = other_;
        else
          for (std::size_t k = 0; k < n_; ++k) common_[k] = std::min(common_[k], other_[k]);
        any = true;
        break;  // later posts of the chain know more
      }
    }
    if (!any || first_value) return;
    for (std::size_t k = 0; k < n_; ++k) now_[k] = std::max(now_[k], common_[k]);
  }

  /// For a word with additions: the wait comes after each addition without which the others do not suffice.
  void order_by_additions(const Word& w, const Step& s, const Alternatives& alt) {
    if (s.sync->bytes == 4 && s.sync->mask != ~0u) return;
    // The high half counts as a part of the whole word, if nothing changes only a half.
    if (s.sync->high && w.halves) return;
    const auto all = alt.possible();
    const auto base = alt.base(alt.known(), all);
    if (!base) return;
    Wide low = base->value, high = low;
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      high += extreme(w.chains[c], base->from[c], alt.known(c), all[c], +1);
      low -= extreme(w.chains[c], base->from[c], alt.known(c), all[c], -1);
    }
    const auto values = satisfying(s, w, low, high);
    if (!values || values->from > values->to) return;
    if (values->from > low) order_by_bound(w, s, alt, *base, all, values->from, +1);
    if (values->to < high) order_by_bound(w, s, alt, *base, all, values->to, -1);
  }

  /// Orders the wait after each addition without which the counter cannot reach `bound`, from below (sign +1) or above.
  void order_by_bound(const Word& w, const Step& s, const Alternatives& alt, const Alternatives::Base& base,
                      const std::vector<std::uint32_t>& all, Wide bound, int sign) {
    const auto n = w.chains.size();
    std::vector<Wide> extremes(n);
    Wide total = base.value, known = base.value;
    for (std::size_t c = 0; c < n; ++c) {
      extremes[c] = extreme(w.chains[c], base.from[c], alt.known(c), all[c], sign);
      total += extremes[c] * sign;
      known += extreme(w.chains[c], base.from[c], alt.known(c), alt.known(c), sign) * sign;
    }
    const auto enough = [&](Wide value) { return sign > 0 ? value >= bound : value <= bound; };
    if (!enough(total)) return;  // never satisfied, which is reported elsewhere
    if (enough(known)) return;   // satisfied on arrival
    const bool one_way = !w.stores && std::all_of(w.chains.begin(), w.chains.end(),
                                                  [&](const Chain& c) { return sign > 0 ? c.up : c.down; });
    std::vector<std::uint32_t> limit(n);
    for (std::size_t c = 0; c < n; ++c) {
      const auto& chain = w.chains[c];
      const auto from = std::max(alt.known(c), base.from[c]);
      // Finds the last post that is needed: without it, and without everything after it, the rest does not suffice.
      // No pass finds more order than the one before.
      auto lo = from, hi = std::max(all[c], from);
      if (one_way) hi = std::clamp(alt.reached(chain, m_.row(s.row)), from, hi);
      while (lo < hi) {
        const auto i = lo + (hi - lo) / 2;
        const auto& post = alt.post(c, i);
        const Wide own = extreme(chain, base.from[c], alt.known(c), i, sign) * sign;
        Wide rest = total - extremes[c] * sign + own;
        if (n > 1 && one_way && enough(rest)) rest = rests(w)[c][i];
        if (n > 1 && enough(rest) && compared_ < m_.limits.pairs()) {
          compared_ += n;
          rest = base.value + own;
          for (std::size_t d = 0; d < n; ++d)
            if (d != c) {
              const auto up_to = std::min(all[d], alt.before(w.chains[d], chain.agent, post));
              rest += extreme(w.chains[d], base.from[d], alt.known(d), up_to, sign) * sign;
            }
        }
        if (enough(rest)) hi = i;
        else lo = i + 1;
      }
      // What is known already adds nothing, but makes waits alike.
      limit[c] = lo > from || from == alt.known(c) ? lo : 0;
    }
    learn(w, limit);
  }

  /// For a word whose posts all add in one direction, by chain and post: what the counter reaches without this post and
  /// without what comes after it. Computed row by row, once in a pass.
  const std::vector<std::vector<Wide>>& rests(const Word& w) {
    auto& all = rests_[static_cast<std::size_t>(&w - m_.words.data())];
    if (!all.empty()) return all;
    for (const auto& c : w.chains) {
      auto& sums = all.emplace_back(c.sums.begin(), std::prev(c.sums.end()));
      for (auto& s : sums) s += Wide{w.init};
    }
    const auto n = w.chains.size();
    std::vector<std::size_t> next(n);
    for (std::size_t d = 0; d < n; ++d) {
      const auto& chain = w.chains[d];
      std::fill(next.begin(), next.end(), 0);
      const auto came = [&](std::size_t before, auto is_after) {
        for (std::size_t c = 0; c < n; ++c)
          for (; c != d && next[c] < all[c].size() && is_after(w.chains[c], next[c]); ++next[c])
            all[c][next[c]] += chain.sums[before];
      };
      std::size_t i = 0;
      for (; i < chain.steps.size() && m_.post(chain, i).time != kNone; ++i)
        came(i, [&](const Chain& c, std::size_t k) {
          return m_.after(chain.agent, m_.post(chain, i), c.agent, m_.post(c, k));
        });
      came(i, [](const Chain&, std::size_t) { return true; });
      compared_ += n;
    }
    return all;
  }

  /// Joins the clocks of the last post of each chain that is needed. Waits of one round often need the same posts.
  void learn(const Word& w, std::vector<std::uint32_t>& limit) {
    if (joined_.word != &w || joined_.limit != limit) {
      joined_.word = &w;
      joined_.limit.swap(limit);
      joined_.clock.assign(n_, 0);
      for (std::size_t c = 0; c < w.chains.size(); ++c) {
        if (joined_.limit[c] == 0) continue;
        knowledge(w.chains[c].agent, m_.post(w.chains[c], joined_.limit[c] - 1), other_);
        raise(joined_.clock, other_);
      }
    }
    raise(now_, joined_.clock);
  }

  Model& m_;
  std::size_t n_;
  std::vector<std::uint32_t> now_, common_, other_;
  std::map<std::uint32_t, std::vector<Submit>> submits_;  ///< of queues that threads share
  /// How many submits of the queue come before one, and after it.
  struct Neighbours {
    std::uint32_t before = 0, after = 0;
  };
  std::map<std::uint32_t, std::vector<Neighbours>> neighbours_;
  std::size_t compared_ = 0;
  std::vector<std::vector<std::vector<Wide>>> rests_;                            ///< by word
  std::map<std::pair<std::uint32_t, Wide>, std::vector<std::uint32_t>> needed_;  ///< by word and value
  /// What waits that need the same posts have learnt from them.
  struct Joined {
    const Word* word{};
    std::vector<std::uint32_t> limit{}, clock{};
  } joined_;
};

}  // namespace

void find_order(Model& m) { Clocks{m}.run(); }

}}}  // namespace sdma::v0_3::check_detail
