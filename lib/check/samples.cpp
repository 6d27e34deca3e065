// SPDX-License-Identifier: MIT
// Finds samples whose value depends on timing.
//
// Everything else is examined for the values that the followed execution has sampled. That holds for every execution if
// each of these values is forced: whatever may have changed the word before the sample certainly has. (By induction
// over time: before the first sample that reads another value, everything obeys the order that these values give, and
// in that order nothing else can have changed the word.)
#include "alternatives.hpp"
#include "reporter.hpp"

#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class TimedSamples {
 public:
  TimedSamples(const Model& m, Reporter& r) : m_(m), r_(r), clock_(m.width()) {}

  void run() {
    for (auto a = m_.queue_count(); a < m_.agents.size(); ++a)
      for (std::uint32_t i = 0; i < m_.agents[a].steps.size(); ++i) {
        const auto& s = m_.agents[a].steps[i];
        if (s.kind == Step::Kind::sample && s.uses != 0 && s.time != kNone) examine(a, i, s);
      }
  }

 private:
  void examine(std::uint32_t a, std::uint32_t i, const Step& s) {
    const auto& w = m_.words[s.sync->word];
    if (w.unmodelled || w.copied) return report(a, s, w, "what is stored to it is not known");
    if (!m_.action(a, s).system_scope && !m_.profile.l2_probed)
      return report(a, s, w, "without an acquire at system scope, an L2 may hold an old value");
    m_.arrive(a, i, clock_);
    const Alternatives alt{m_, w, a, s, clock_.data()};
    for (std::size_t c = 0; c < w.chains.size(); ++c)
      if (alt.known(c) != alt.possible(c)) return report(a, s, w, "", alt.place(c, alt.known(c)));
    const auto base = alt.base(alt.known(), alt.known());
    if (!base) return report(a, s, w, "what it holds at first is not known, or two stores to it are not ordered");
    if (part(s, w, truncate(w.bytes, static_cast<std::uint64_t>(alt.known_value(*base)))) != s.value)
      report(a, s, w, "its changes do not add up");
  }

  /// `by`: a post that may come before the sample or after it.
  void report(std::uint32_t a, const Step& s, const Word& w, std::string_view why, std::optional<Position> by = {}) {
    if (!reported_.insert({a, s.source}).second) return;
    Finding f{.rule = "unknown-sample",
              .places = {{a, s.position}},
              .message = r_.agent(a) + " samples " + r_.word(w) +
                         (by ? " while it may change" : " and its value is not certain") +
                         ", so what uses the sample is checked only for " + std::to_string(s.value),
              .hint = "sample the word where every change to it has been waited for"};
    if (by) {
      f.places.insert(f.places.begin(), *by);
    } else {
      f.message += ": " + std::string(why);
      f.hint = "declare the word as a signal, and change it only with stores and adds that are ordered";
    }
    r_.add(std::move(f));
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::uint32_t> clock_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported_;  ///< agent, action
};

}  // namespace

void find_unknown_samples(const Model& m, Reporter& r) {
  if (m.samples != 0) TimedSamples{m, r}.run();
}

}}}  // namespace sdma::v0_3::check_detail
