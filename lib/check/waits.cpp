// SPDX-License-Identifier: MIT
// Finds waits that may be satisfied too early, or that may miss their value.
#include "alternatives.hpp"
#include "counts.hpp"
#include "edits.hpp"

#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Waits {
 public:
  Waits(const Model& m, Reporter& r) : m_(m), r_(r), clock_(m.width()) {}

  void run() {
    for (const auto& [a, i] : m_.acquires) {
      const auto& s = m_.agents[a].steps[i];
      if (s.kind != Step::Kind::poll) continue;
      const auto& w = m_.words[s.sync->word];
      if (w.copied) stored_as_data(a, s, w);
      else if (w.unmodelled || (s.assumed_satisfied && !s.sync->finite && !m_.open)) unknown(a, s, w);
      if (s.assumed_satisfied) continue;
      if (w.unmodelled || w.copied) continue;
      // A counter that only rises stays above the value; in later rounds, an old count may be enough.
      if (s.epoch < 2 && s.sync->func != Compare::eq && least_of(s, w)) continue;
      m_.arrive(a, i, clock_);
      const Alternatives alt{m_, w, a, s, clock_.data()};
      if (w.adds ? stale_count(a, s, w, alt) : stale_flag(a, s, w, alt)) continue;
      if (w.adds) check_count_stays(a, s, w, alt);
      else if (!w.monotone) check_store_stays(a, s, w, alt);
    }
    wide();
  }

 private:
  /// True once for each wait in the source, whatever the round.
  bool first(std::string_view rule, std::uint32_t a, const Step& s) {
    return reported_.insert({rule, a, s.source}).second;
  }

  /// The value that a copy stores to a word is not tracked, so nothing can be proved about waits for it.
  void stored_as_data(std::uint32_t a, const Step& s, const Word& w) {
    if (r_.has_error(a) || !first("data-as-flag", a, s)) return;
    r_.add({.rule = "data-as-flag",
            .places = {{a, s.position}},
            .message = r_.agent(a) + " waits for " + r_.word(w) + ", to which a copy, a fill or a write stores",
            .hint = "only fences, atomics and the host should store to a word that is waited for",
            .rests_on = {"Q16"}});
  }
  void unknown(std::uint32_t a, const Step& s, const Word& w) {
    if (!first("unknown-value", a, s)) return;
    r_.add({.rule = "unknown-value",
            .places = {{a, s.position}},
            .message = "the value of " + r_.word(w) + " when " + r_.agent(a) +
                       " waits for it is not known, so nothing can be proved",
            .hint = "declare it as a signal or with init=zero, and change it only with stores and adds"});
  }

  bool stale_flag(std::uint32_t a, const Step& s, const Word& w, const Alternatives& alt) {
    std::optional<Position> old;
    bool any = false;
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      const auto k = alt.known(c);
      any = any || k > 0;
      if (k > 0 && alt.satisfies(c, k - 1) && !alt.hidden(c, k - 1, alt.known())) old = alt.place(c, k - 1);
    }
    if (!any && !w.known && !m_.open) return unknown(a, s, w), true;
    const bool first_value = !any && w.known && satisfied(s, w, w.init);
    // A wait with ne is for any other value, so none is meant more than the others.
    if ((!old && !first_value) || s.sync->func == Compare::ne) return false;
    for (std::size_t c = 0; c < w.chains.size(); ++c)
      for (auto i = alt.known(c); i < alt.possible(c); ++i) {
        const auto& post = alt.post(c, i);
        const auto v = static_cast<std::uint32_t>(post.value), want = static_cast<std::uint32_t>(s.value);
        const auto f = s.sync->func;
        const bool meant = f == Compare::gt ? v == want + 1 : f == Compare::lt ? v + 1 == want : v == want;
        if (!meant || post.op != Op::store) continue;
        if (!first("stale-wait", a, s)) return true;
        Finding f2{
            .rule = "stale-wait",
            .places = {alt.place(c, i), {a, s.position}},
            .message = r_.agent(a) + " may continue before " + r_.place(alt.place(c, i)) + ": " + r_.word(w) +
                       (old ? " still holds the old value" : " already holds that value initially"),
            .hint =
                "wait for a value that is new each time: value=epoch, and func=ge reference=epoch (with N values per "
                "round: N*epoch-N+1 to N*epoch)",
            .rests_on = {old ? "E8" : "E7"}};
        if (old) f2.places.insert(f2.places.begin(), *old);
        r_.add(std::move(f2));
        return true;
      }
    return false;
  }

  bool stale_count(std::uint32_t a, const Step& s, const Word& w, const Alternatives& alt) {
    if (s.epoch < 2 || s.sync->value.factor != 0 || s.sync->high) return false;
    const auto base = alt.base(alt.known(), alt.known());
    if (!base) return false;
    std::optional<Position> next;
    for (std::size_t c = 0; c < w.chains.size() && !next; ++c)
      if (const auto k = alt.known(c); k < alt.possible(c)) next = alt.place(c, k);
    if (!next || !satisfied(s, w, static_cast<std::uint64_t>(alt.known_value(*base)))) return false;
    if (first("stale-wait", a, s))
      r_.add({.rule = "stale-wait",
              .places = {*next, {a, s.position}},
              .message = r_.agent(a) + " may continue before " + r_.place(*next) + ": " + r_.word(w) +
                         " still holds the count of the previous round",
              .hint = "keep counting: wait for a number that grows with each round, as N*epoch does",
              .rests_on = {"E8"}});
    return true;
  }

  /// Once the condition is true, does it stay true until the wait has seen it, whatever else is stored?
  void check_store_stays(std::uint32_t a, const Step& s, const Word& w, const Alternatives& alt) {
    std::vector<std::uint32_t> done;
    bool any = false;
    for (const auto& c : w.chains) {
      done.push_back(alt.happened(c));
      any = any || done.back() > 0;
    }
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      if (done[c] > 0 && !alt.satisfies(c, done[c] - 1) && !alt.hidden(c, done[c] - 1, done))
        return report_missed(a, s, w, alt.place(c, done[c] - 1));
      const bool low = s.sync->bytes == 4 && !s.sync->high;
      const bool rises = (low ? w.chains[c].low_rising : w.chains[c].rising) &&
                         (s.sync->func == Compare::ge || s.sync->func == Compare::gt) && s.sync->mask == ~0u;
      if (done[c] >= alt.possible(c)) continue;
      if (const auto i = rises && alt.satisfies(c, done[c]) ? alt.possible(c) : first_unmet(alt, w, c, done[c]);
          i < alt.possible(c))
        return report_missed(a, s, w, alt.place(c, i));
    }
  }

  /// The first post of a chain, from `i` on, that does not satisfy the wait. Remembered for waits that are alike.
  std::uint32_t first_unmet(const Alternatives& alt, const Word& w, std::size_t c, std::uint32_t i) {
    const auto& s = alt.wait();
    const auto& y = *s.sync;
    const Alike key{y.word, static_cast<std::uint32_t>(c), y.bytes, y.mask, s.value, y.func, y.high};
    if (!(key == alike_)) {
      alike_ = key;
      unmet_.clear();
      for (std::uint32_t k = 0; k < w.chains[c].steps.size(); ++k)
        if (!alt.satisfies(c, k)) unmet_.push_back(k);
    }
    const auto next = std::lower_bound(unmet_.begin(), unmet_.end(), i);
    return next == unmet_.end() ? kNone : *next;
  }

  void check_count_stays(std::uint32_t a, const Step& s, const Word& w, const Alternatives& alt) {
    std::vector<std::uint32_t> done;
    auto all = alt.possible();
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      done.push_back(alt.happened(w.chains[c]));
      all[c] = std::max(all[c], done[c]);
      for (auto i = done[c]; w.chains[c].stores && i < all[c]; ++i)
        if (alt.post(c, i).op != Op::add && !alt.satisfies(c, i)) return report_missed(a, s, w, alt.place(c, i));
    }
    const auto base = alt.base(done, all);
    if (!base) return m_.open ? void() : unknown(a, s, w);
    Wide low = base->value, high = low;
    Position next{};
    for (std::size_t c = 0; c < w.chains.size(); ++c) {
      if (const auto i = std::max(done[c], base->from[c]); next.position == 0 && i < all[c]) next = alt.place(c, i);
      low -= extreme(w.chains[c], base->from[c], done[c], all[c], -1);
      high += extreme(w.chains[c], base->from[c], done[c], all[c], +1);
    }
    if (!holds_between(s, w, low, high)) report_missed(a, s, w, next);
  }
  static bool holds_between(const Step& s, const Word& w, Wide low, Wide high) {
    constexpr Wide kFew = 256;
    if (w.halves && low >> 32 != high >> 32) return false;
    if (high - low > kFew) {
      const auto all = s.sync->bytes == 4 && s.sync->mask != ~0u ? std::nullopt : satisfying(s, w, low, high);
      return all && all->from == low && all->to == high;
    }
    while (low <= high && satisfied(s, w, static_cast<std::uint64_t>(low))) ++low;
    return low > high;
  }

  void report_missed(std::uint32_t a, const Step& s, const Word& w, Position by) {
    const bool reset = by.position != 0 && m_.agents[by.agent].kind == Agent::Kind::host && !w.adds;
    const std::string_view rule = reset ? "reset-while-polled" : "missed-value";
    if (!first(rule, a, s)) return;
    Finding f{.rule = rule, .places = {{a, s.position}}, .rests_on = {"E8"}};
    if (by.position != 0) f.places.insert(f.places.begin(), by);
    if (reset) {
      f.message = r_.agent(by.agent) + " may reset " + r_.word(w) + " while " + r_.agent(a) + " still polls it";
      f.hint = "reset it after all completions have been seen, or never: values that only grow need no reset";
    } else if (w.adds) {
      f.message =
          r_.agent(a) + " may miss the value of " + r_.word(w) + ": the count may change again before the wait sees it";
      const bool queue = m_.agents[a].kind == Agent::Kind::queue;
      const auto all = last_count(w);
      f.hint = s.sync->func != Compare::eq ? "nothing that adds to it may run before the wait is satisfied"
               : queue                     ? "compare with func=ge (or le, if it counts down)"
                                           : "compare with >= (or <=, if it counts down)";
      if (!queue && s.sync->func == Compare::eq && all)
        f.hint = "it ends at " + std::to_string(*all) + ": wait for that value, or " + f.hint;
    } else {
      f.message = r_.agent(a) + " may miss the value of " + r_.word(w) +
                  ": another value may be stored before the wait sees it";
      f.hint = "let values only grow, and wait with func=ge; or store the next value after the wait is satisfied";
    }
    r_.add(std::move(f));
  }

  /// Q8: a 64-bit word that is polled in halves and is not monotone.
  void wide() {
    for (const auto& [a, i] : m_.acquires) {
      const auto& s = m_.agents[a].steps[i];
      if (s.kind != Step::Kind::poll || !s.sync->high) continue;
      const auto& w = m_.words[s.sync->word];
      Wide low = static_cast<Wide>(w.init), high = low;
      bool up = true, down = true;
      for (const auto& c : w.chains) {
        for (std::size_t k = 0; k < c.steps.size(); ++k) {
          const auto& post = m_.post(c, k);
          if (post.op != Op::add) {
            low = std::min(low, Wide{post.value}), high = std::max(high, Wide{post.value});
            down = false;
          } else {
            (addend(post) > 0 ? high : low) += addend(post);
          }
        }
        up = up && c.up && (!c.stores || c.rising);
        down = down && c.down;
      }
      const auto window = Wide{1} << 32;
      if (up || down || (low >= 0 && low / window == high / window) || !first("wide-poll", a, s)) continue;
      r_.add({.rule = "wide-poll",
              .places = {{a, s.position}},
              .message = r_.agent(a) + " polls the halves of " + r_.word(w) + ", which is not monotone",
              .hint = "let the word only grow (or only shrink), or keep it in 32 bits",
              .rests_on = {"Q8"}});
    }
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::uint32_t> clock_;
  std::set<std::tuple<std::string_view, std::uint32_t, std::uint32_t>> reported_;
  /// What makes two waits for a chain the same condition.
  struct Alike {
    std::uint32_t word = kNone, chain{}, bytes{}, mask{};
    std::uint64_t value{};
    Compare func{};
    bool high{};
    friend bool operator==(const Alike&, const Alike&) = default;
  } alike_{};
  std::vector<std::uint32_t> unmet_;  ///< its posts that do not satisfy it
};

}  // namespace

void find_bad_waits(const Model& m, Reporter& r) { Waits{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
