// SPDX-License-Identifier: MIT
#include "edits.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

std::string text(EpochValue v) {
  if (v.factor == 0) return std::to_string(v.constant);
  std::string out = v.factor == 1 ? "epoch" : std::to_string(v.factor) + "*epoch";
  if (v.constant > 0) out += "+";
  if (v.constant != 0) out += std::to_string(v.constant);
  return out;
}

/// The comparison and the value of a wait to suggest.
struct Wanted {
  Compare func{};
  EpochValue value{};
  bool of_all = false;  ///< a count that needs all posts
};

class Edge {
 public:
  Edge(const Model& m, const Reporter& r, Position a, Position b) : m_(m), r_(r), a_(a), b_(b) {}

  Proposal proposal() const {
    if (a_.agent == b_.agent)
      return {before() +
              "fence addr=SIGNAL value=N and poll_mem addr=SIGNAL func=eq reference=N, with a new N each "
              "time"};
    const auto* post = queue(a_) ? m_.next_post(a_.agent, a_.position) : nullptr;
    const auto* early = queue(a_) && !post ? m_.previous_post(a_.agent, a_.position) : nullptr;
    if (early && announces(*early)) early = nullptr;
    if (!post && !early) return {own_signal()};
    const auto& used = post ? *post : *early;
    const auto where = r_.place({a_.agent, used.position});
    const auto from = post ? where + " announces it; " + before()
                           : "move " + where + " after " + r_.place(a_) + "; " + before(" there must be: ");
    // If the post itself comes after b, b cannot wait for it.
    if (used.row != kNone && m_.row(used.row)[b_.agent] >= b_.position) return {own_signal()};
    const auto& w = m_.words[used.sync->word];
    const bool store = used.op == Op::store;
    const auto v = store ? flag(used, w) : count(used, w);
    if (!v) return {own_signal()};
    if (post)
      if (auto text = stale(used.sync->word, *v)) return {*text};
    CheckEdit edit{.line = r_.own_line(b_), .text = wait(r_.word(w), *v)};
    Proposal p{.hint = from + edit.text + (v->of_all ? ", the count when all are complete" : "")};
    if (post && edit.line != 0) p.edit = std::move(edit);
    return p;
  }

 private:
  bool queue(Position x) const { return m_.agents[x.agent].kind == Agent::Kind::queue; }
  /// Is there data between this post and the one before it? Then the post announces that data and must not be moved.
  bool announces(const Step& post) const {
    const auto epoch = m_.epoch_at(a_.agent, post.position);
    for (auto p = post.position - 1; p > 0 && m_.epoch_at(a_.agent, p) == epoch; --p) {
      const auto what = m_.item_at(a_.agent, p)->what;
      if (what == What::post) return false;
      if (what == What::copy || what == What::write) return true;
    }
    return false;
  }
  std::string before(const char* what = " add: ") const { return "before " + r_.place(b_) + what; }
  std::string wait(const std::string& word, const Wanted& v) const {
    const auto value = check_detail::text(v.value);
    if (!queue(b_)) return "wait " + word + " " + std::string(detail::sign_of(v.func)) + " " + value;
    const auto func = grammar::names<Compare>[static_cast<std::size_t>(v.func)].text;
    return "poll_mem addr=" + word + " func=" + std::string(func) + " reference=" + value;
  }

  /// What to say if this very wait is there already, and so does not help.
  std::optional<std::string> stale(std::uint32_t word, const Wanted& v) const {
    const auto& steps = m_.agents[b_.agent].steps;
    for (const auto& s : steps)
      if (s.kind == Step::Kind::poll && s.position < b_.position && s.sync->word == word &&
          alike(s.sync->func, v.func) && s.sync->value == v.value && m_.round_at(b_.agent, s.position) == round(b_))
        return r_.place({b_.agent, s.position}) +
               " waits for it, but another value can satisfy that wait too: store a value that is new each time, as "
               "value=epoch is, and wait for that value";
    return {};
  }

  /// Does a wait for a value with the one comparison end no later than with the other?
  static bool alike(Compare there, Compare wanted) noexcept {
    return there == wanted || (there == Compare::eq && (wanted == Compare::ge || wanted == Compare::le));
  }

  /// The round that a position belongs to; 0 if there are no rounds.
  std::uint32_t round(Position x) const { return m_.round_at(x.agent, x.position); }
  /// How many rounds later b is than a, at most 1: a wait for the previous round also covers all earlier rounds, and
  /// its value fits the first round.
  std::int64_t behind() const { return std::min(std::int64_t{round(b_)} - std::int64_t{round(a_)}, std::int64_t{1}); }
  /// The value of a, as an expression in b's epoch; nullopt if a packet in b's first round could not hold it.
  std::optional<EpochValue> at_b(EpochValue v) const {
    const auto mine = round(a_), other = round(b_);
    if (other == 0 || mine == 0) return EpochValue{0, static_cast<std::int64_t>(v.at(std::max(mine, 1u)))};
    if (v.factor == 0) return v;
    v.constant -= v.factor * behind();
    if (v.factor + v.constant < 0) return {};
    return v;
  }

  /// The value that the word holds once a is done, and not before.
  std::optional<Wanted> flag(const Step& post, const Word& w) const {
    if (w.chains.size() == 1 && w.chains[0].steps.size() == 1) return Wanted{Compare::eq, post.sync->value};
    if (auto v = at_b(post.sync->value)) return Wanted{Compare::ge, *v};
    // The last post of the round announces at least as much, and its value may fit the first round too.
    const auto* last = &post;
    for (const auto& s : m_.agents[a_.agent].steps)
      if (s.kind == Step::Kind::post && s.epoch == post.epoch && s.sync->word == post.sync->word) last = &s;
    if (auto v = at_b(last->sync->value)) return Wanted{Compare::ge, *v};
    return {};
  }

  /// The value of a counter once this post has counted, if one agent alone counts up; else once all posts of this round
  /// have. nullopt if b's agent counts too, at b or later.
  std::optional<Wanted> count(const Step& post, const Word& w) const {
    const auto all = last_count(w);
    if (!all) return {};
    if (const auto& c = w.chains.front(); w.chains.size() == 1 && c.up && m_.agents[a_.agent].submits <= 1)
      for (std::size_t i = 0; i + 1 < c.steps.size(); ++i)
        if (&m_.post(c, i) == &post)
          return Wanted{Compare::ge,
                        EpochValue{static_cast<std::int64_t>(w.init + static_cast<std::uint64_t>(c.sums[i + 1]))}};
    for (const auto& c : w.chains)
      if (c.agent == b_.agent && m_.post(c, c.steps.size() - 1).position >= b_.position) return {};
    const auto init = static_cast<std::int64_t>(w.init), last = static_cast<std::int64_t>(*all);
    const auto rounds = std::max(m_.agents[a_.agent].submits, 1u);
    if (rounds == 1) return Wanted{Compare::eq, EpochValue{last}, true};
    if ((last - init) % rounds != 0) return {};
    const auto v = at_b({(last - init) / rounds, init});
    if (!v) return {};
    return Wanted{last >= init ? Compare::ge : Compare::le, *v, true};
  }

  std::string own_signal() const {
    const auto mine = round(a_), other = round(b_);
    const bool rounds = mine != 0 && other != 0 && mine <= other;
    const Wanted value{rounds ? Compare::ge : Compare::eq, rounds ? EpochValue{1, -behind()} : EpochValue{1}};
    const auto stored = rounds ? std::string("epoch") : std::string("1");
    return "after " + r_.place(a_) + " add: " + (queue(a_) ? "fence addr=SIGNAL value=" : "set SIGNAL = ") + stored +
           ", and " + before() + wait("SIGNAL", value);
  }

  const Model& m_;
  const Reporter& r_;
  Position a_, b_;
};

}  // namespace

Proposal edge(const Model& m, const Reporter& r, Position a, Position b) { return Edge{m, r, a, b}.proposal(); }

std::optional<std::uint64_t> last_count(const Word& w) {
  if (w.stores || w.unmodelled || w.copied || !w.known) return {};
  Wide all = static_cast<Wide>(w.init);
  for (const auto& c : w.chains) all += c.sums.back();
  return truncate(w.bytes, static_cast<std::uint64_t>(all));
}

std::optional<std::string> wait_for(const Model& m, const Reporter& r, const Word& w) {
  if (const auto all = last_count(w)) return "wait " + r.word(w) + " == " + std::to_string(*all);
  if (w.adds || w.unmodelled || w.copied || w.chains.size() != 1 || !w.chains[0].rising) return {};
  const auto& c = w.chains[0];
  const auto last = truncate(w.bytes, m.post(c, c.steps.size() - 1).value);
  return "wait " + r.word(w) + (c.steps.size() == 1 ? " == " : " >= ") + std::to_string(last);
}

}}}  // namespace sdma::v0_3::check_detail
