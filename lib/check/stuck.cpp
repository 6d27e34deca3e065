// SPDX-License-Identifier: MIT
// Finds agents that are stuck forever, and why: cycles of waits, waits for values that nothing writes, counts that are
// never reached.
#include "../core/listed.hpp"
#include "../stream/print.hpp"
#include "counts.hpp"
#include "reporter.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/stream/rules.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class StuckFinder {
 public:
  StuckFinder(const Model& m, Reporter& r)
      : m_(m), r_(r), at_(m.agents.size(), kNone), reported_(m.agents.size(), false) {
    for (const auto& s : m.stuck) at_[s.agent] = s.step;
  }

  void run() {
    // A wait that nothing can satisfy is a root cause; agents that wait for a stuck agent follow from it.
    for (const auto& s : m_.stuck) {
      const auto& step = m_.agents[s.agent].steps[s.step];
      if (step.kind == Step::Kind::poll && helpers(s.agent).empty()) report_root(s.agent);
    }
    for (const auto& s : m_.stuck)
      if (!reported_[s.agent]) cycle(s.agent);
    // Whatever the reason is, nothing that is stuck goes unsaid.
    for (const auto& s : m_.stuck)
      if (!reported_[s.agent]) report_rest(s.agent);
  }

 private:
  const Step& step(std::uint32_t a) const { return m_.agents[a].steps[at_[a]]; }
  template <class Fn> void each_post(const Word& w, Fn fn) const {
    for (const auto& c : w.chains)
      for (std::size_t i = 0; i < c.steps.size(); ++i) fn(c.agent, m_.post(c, i));
  }

  /// The posts that have not happened and would help to satisfy the wait of `a`.
  std::vector<Position> helpers(std::uint32_t a) const {
    std::vector<Position> out;
    const auto& s = step(a);
    if (s.kind == Step::Kind::begin) return submits(a, s);
    const auto& w = m_.words[s.sync->word];
    for (const auto& c : w.chains)
      for (const auto i : c.steps) {
        const auto& post = m_.agents[c.agent].steps[i];
        if (post.time != kNone) continue;
        if (contributes(s, w, post)) {
          out.push_back({c.agent, post.position});
          break;
        }
      }
    if (w.known && w.adds && !out.empty() && !reachable(s, w)) out.clear();
    return out;
  }
  /// The submits of queue `a` that have not happened: the next one of each agent.
  std::vector<Position> submits(std::uint32_t a, const Step& begin) const {
    if (!m_.agents[a].shared) return {{begin.target, begin.target_position}};
    std::vector<Position> out;
    for (std::uint32_t h = m_.queue_count(); h < m_.agents.size(); ++h)
      for (const auto& s : m_.agents[h].steps)
        if (s.kind == Step::Kind::submit && s.target == a && s.time == kNone) {
          out.push_back({h, s.position});
          break;
        }
    return out;
  }
  /// Can the counter reach the value if any number of the outstanding additions happen?
  bool reachable(const Step& s, const Word& w) const {
    Wide low = now(w), high = low;
    bool stores = false;
    each_post(w, [&](std::uint32_t, const Step& post) {
      if (post.time != kNone) return;
      if (post.op != Op::add) stores = true;
      else (addend(post) > 0 ? high : low) += addend(post);
    });
    const auto values = stores || s.sync->high || low < 0 ? std::nullopt : satisfying(s, w, low, high);
    return !values || values->from <= values->to;
  }
  /// The last post to the word in the followed execution, or null, and its agent.
  std::pair<const Step*, std::uint32_t> last_post(const Word& w) const {
    std::pair<const Step*, std::uint32_t> last{};
    each_post(w, [&](std::uint32_t agent, const Step& post) {
      if (post.time != kNone && (!last.first || post.time > last.first->time)) last = {&post, agent};
    });
    return last;
  }
  /// Calls fn(value) with each value that the word has had in the followed execution.
  template <class Fn> void replay(const Word& w, Fn fn) const {
    std::vector<const Step*> done;
    each_post(w, [&](std::uint32_t, const Step& post) {
      if (post.time != kNone) done.push_back(&post);
    });
    std::sort(done.begin(), done.end(), [](auto* a, auto* b) { return a->time < b->time; });
    auto v = w.init;
    fn(v);
    for (const auto* s : done) fn(v = value_after(*s, w, v));
  }
  /// The value of the word when no agent can proceed.
  Wide now(const Word& w) const {
    Wide last{};
    replay(w, [&](std::uint64_t v) { last = Wide{v}; });
    return last;
  }
  bool has_held(const Word& w, const Step& s) const {
    bool held = false;
    replay(w, [&](std::uint64_t v) { held = held || satisfied(s, w, v); });
    return held;
  }
  std::string holds_now(const Word& w, const Step& s) const {
    auto v = static_cast<std::uint64_t>(now(w));
    if (s.sync->high) v >>= 32;
    v = truncate(s.sync->bytes, v);
    const auto sign = static_cast<std::int64_t>(v);
    return std::to_string(v) + (sign < 0 ? " (" + std::to_string(sign) + ")" : "");
  }

  /// Adds the agents that wait for something that the agents of this finding would do later.
  void add_dependents(Finding& f) {
    for (bool more = true; more;) {
      more = false;
      for (const auto& s : m_.stuck) {
        if (reported_[s.agent]) continue;
        const auto from = helpers(s.agent);
        if (from.empty() || !std::all_of(from.begin(), from.end(), [&](Position p) { return reported_[p.agent]; }))
          continue;
        reported_[s.agent] = more = true;
        f.more.push_back(step(s.agent).kind == Step::Kind::begin
                             ? r_.agent(s.agent) + " is therefore never submitted"
                             : r_.place(here(s.agent)) + ": " + r_.agent(s.agent) + " therefore waits forever");
      }
    }
  }
  Position here(std::uint32_t a) const {
    const auto& s = step(a);
    return {a, s.kind == Step::Kind::begin ? s.position + 1 : s.position};
  }

  void report_root(std::uint32_t a) {
    reported_[a] = true;
    const auto& s = step(a);
    const auto& w = m_.words[s.sync->word];
    const auto name = r_.word(w);
    bool passed = w.known && satisfied(s, w, w.init), counts = w.adds;
    const auto [last, last_agent] = last_post(w);
    std::optional<Position> by;
    std::size_t posts = 0;
    each_post(w, [&](std::uint32_t agent, const Step& post) {
      ++posts;
      if (post.op == Op::store && satisfies(s, w, post)) by = Position{agent, post.position}, passed = true;
    });
    if (!passed && w.known) passed = has_held(w, s);
    Finding f{.rule = "never-met", .places = {here(a)}};
    const auto value = holds_now(w, s);
    if (passed) {
      f.rule = "missed-value";
      f.message = r_.agent(a) + " may be too late: " + name + " had the value that it waits for, but now holds " +
                  value + " forever";
      if (last && m_.agents[last_agent].kind == Agent::Kind::host && last->op == Op::store) {
        f.rule = "reset-while-polled";
        f.message = r_.agent(last_agent) + " may reset " + name + " before " + r_.agent(a) + " has seen its value";
        f.places.insert(f.places.begin(), Position{last_agent, last->position});
      } else if (by) {
        f.places.insert(f.places.begin(), *by);
      }
      f.hint = "let values only grow, and wait with func=ge";
      f.rests_on = {"E8"};
    } else if (impossible(s)) {
      f.message = r_.agent(a) + " waits for (" + name + " & " + detail::hex_text(s.sync->mask) + ") " +
                  std::string(detail::name_of(grammar::names<Compare>, static_cast<std::uint64_t>(s.sync->func))) +
                  " " + detail::hex_text(truncate(4, s.value)) + ", which no value satisfies";
      // As the rule about one stream says it.
      const auto rules = stream_rules();
      f.hint = std::find_if(rules.begin(), rules.end(), [](const StreamRule& r) { return r.id == "poll-never"; })->hint;
    } else if (counts) {
      f.rule = "unreachable-count";
      f.message = r_.agent(a) + " waits for a count that is never reached: " + name + " ends at " + value;
      f.hint = "count the posts (fences, atomics and sets) that reach this signal: " + std::to_string(posts) +
               " in total, from the initial value " + std::to_string(w.init);
    } else {
      f.message = r_.agent(a) + " waits for a value that nothing writes: " + name + " holds " + value +
                  (posts == 0 ? ", and nothing stores to it" : ", and nothing stores that value");
      f.hint =
          posts == 0 ? "a fence, an atomic or a set of " + name + " is missing" : "compare with a value that is stored";
    }
    add_dependents(f);
    r_.add(std::move(f));
  }

  /// Is there no value that satisfies this poll, whatever is stored?
  static bool impossible(const Step& s) noexcept {
    const auto& y = *s.sync;
    return y.bytes == 4 && !can_hold({y.func, static_cast<std::uint32_t>(s.value), y.mask});
  }

  /// Follows the waits from agent to agent until one repeats.
  void cycle(std::uint32_t a) {
    std::vector<std::uint32_t> path;
    while (std::find(path.begin(), path.end(), a) == path.end()) {
      path.push_back(a);
      const auto from = helpers(a);
      // If all that this agent waits for has been reported, it follows from that report.
      const auto next = std::find_if(from.begin(), from.end(),
                                     [&](Position p) { return at_[p.agent] != kNone && !reported_[p.agent]; });
      if (next == from.end()) return;
      a = next->agent;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), a));
    for (const auto p : path) reported_[p] = true;
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    const bool alone = path.size() == 1;
    Finding f{.rule = alone ? "self-wait" : "deadlock"};
    std::vector<std::string> agents;
    for (const auto p : path) agents.push_back(r_.agent(p));
    f.message =
        listed(agents) + (alone ? " waits for a post that it makes only later" : " wait for each other forever");
    for (const auto p : path) {
      f.places.push_back(here(p));
      const auto& s = step(p);
      const auto from = helpers(p);
      const auto place = from.empty() ? std::string() : r_.place(from.front());
      if (s.kind == Step::Kind::begin) {
        f.notes.push_back("not submitted before " + place);
        continue;
      }
      const auto& w = m_.words[s.sync->word];
      f.notes.push_back(
          (w.known ? r_.word(w) + " holds " + holds_now(w, s) : "the value of " + r_.word(w) + " is not known") + "; " +
          (from.size() == 1 ? "only " : "") + place + ", in " + r_.agent(from.front().agent) +
          ", can satisfy this wait");
    }
    const auto& first = step(path.front());
    f.hint = alone ? "move the fence or atomic before the poll, or to another queue"
                   : "let one of them go first: change the initial value of a signal, or move a wait after its post";
    if (first.kind == Step::Kind::poll && !alone && m_.words[first.sync->word].known)
      f.hint = "let one of them go first: signal " + r_.word(m_.words[first.sync->word]) +
               " value=" + std::to_string(static_cast<std::uint32_t>(first.value)) +
               ", or move its poll after its fence";
    for (const auto p : path)
      if (auto reset = reset_before(step(p)); !reset.empty()) f.hint = std::move(reset);
    f.rests_on = {"Q6"};
    add_dependents(f);
    r_.add(std::move(f));
  }

  /// What to do if the word of this wait had the value, and was set back before the wait has seen it; else "".
  std::string reset_before(const Step& s) const {
    if (s.kind != Step::Kind::poll) return {};
    const auto& w = m_.words[s.sync->word];
    if (!w.known || satisfied(s, w, w.init) || !has_held(w, s)) return {};
    const auto [last, agent] = last_post(w);
    if (!last || last->op != Op::store) return {};
    return r_.place({agent, last->position}) + " sets " + r_.word(w) + " back before the wait has to have seen " +
           std::to_string(truncate(4, s.value)) +
           ": remove that line, store value=epoch instead, and wait with func=ge reference=epoch";
  }

  void report_rest(std::uint32_t a) {
    reported_[a] = true;
    Finding f{.rule = "deadlock",
              .places = {here(a)},
              .message = r_.agent(a) + " waits forever",
              .hint = "fix the other findings first",
              .rests_on = {"Q6"}};
    for (const auto p : helpers(a))
      f.more.push_back(r_.place(p) + ", in " + r_.agent(p.agent) + ", comes too late or never");
    add_dependents(f);
    r_.add(std::move(f));
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::uint32_t> at_;
  std::vector<bool> reported_;
};

}  // namespace

void find_stuck(const Model& m, Reporter& r) {
  if (!m.truncated) StuckFinder{m, r}.run();
}

}}}  // namespace sdma::v0_3::check_detail
