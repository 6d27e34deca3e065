// SPDX-License-Identifier: MIT
#include "sdma/search/search.hpp"

#include "../simulate/world.hpp"
#include "sdma/simulate/sweep.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <unordered_map>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr double kRefused = std::numeric_limits<double>::infinity();
/// After so many random candidates in a row that were all known, there is little left to find.
constexpr std::uint64_t kFruitless = 10'000;
/// Pairs that are tried for each open choice, and readings after which a random candidate is taken as it is.
constexpr std::size_t kPairs = 4;
constexpr int kReadings = 3;
/// About how many simulations a spread takes, where few values of parameters have one of their own.
constexpr std::size_t kOfSpread = 12;
/// Joules that differ by less, relatively, differ by rounding.
constexpr double kSame = 1e-9;

using Take = std::map<std::string, std::size_t, std::less<>>;

/// The choices that differ from the default. Two candidates with the same key are the same.
Take key_of(const std::vector<Decision>& met) {
  Take out;
  for (const auto& c : met)
    if (c.taken > 0) out.emplace(c.id, c.taken);
  return out;
}
std::string text_of(const Take& take) {
  std::string out;
  for (const auto& [id, taken] : take) out += id + '=' + std::to_string(taken) + ';';
  return out;
}

class Search {
 public:
  Search(std::string_view text, std::string_view file, const MachineDescription& m, const SearchOptions& o)
      : text_(text), file_(file), machine_(m), options_(o), random_(o.seed) {}

  Result<SearchResult, std::vector<Diagnostic>> run() {
    begin_ = since_ = now();
    if ((options_.goal != Goal::time || options_.front) && !knows_energy(machine_))
      return std::vector{
          Diagnostic{.where = machine_.origin.file.empty() ? "the machine" : machine_.origin.file,
                     .message = "it does not say how many joules anything takes",
                     .hint = "write \"energy\" into its file (docs/simulate.md), or search for the time"}};
    Take defaults;
    auto initial = read(defaults);
    if (!initial) return std::move(initial.error());
    result_.candidates = 1;
    for (const auto& c : decisions_.met) result_.candidates *= static_cast<double>(c.alternatives);
    score(defaults);
    if (!result_.best.empty()) result_.initial = result_.best.front();
    from({});
    if (options_.spreads) spreads();
    while (goes_on()) from(key_of(result_.best.front().decisions)), spreads();
    if (result_.complete) result_.candidates = static_cast<double>(result_.simulated);
    if (!unrated_.empty()) return std::move(unrated_);
    return std::move(result_);
  }

 private:
  Result<Schedule, std::vector<Diagnostic>> read(const Take& take, SourceMap* map = nullptr) {
    auto parse = options_.parse;
    decisions_.take = take;
    parse.decisions = &decisions_;
    parse.map = map;
    return parse_schedule(text_, file_, parse);
  }

  /// The search, from this candidate on.
  void from(Take here) {
    descend(std::move(here));
    if (!stopped_) exhaustible() ? exhaust() : wander();
  }
  /// Has the search left time for spreads, and did they not need all of it?
  bool goes_on() {
    const auto known = std::exchange(simulated_before_, result_.simulated);
    if (!late_ || !options_.spreads || result_.best.empty() || result_.simulated == known) return false;
    since_ = now();
    if (late(reading_)) return false;
    stopped_ = late_ = result_.stopped = false;
    return true;
  }

  using Clock = Deadline::Clock;
  Clock::time_point now() const { return options_.clock ? options_.clock() : Clock::now(); }
  Clock::duration left() const { return options_.deadline ? options_.deadline->at - now() : Clock::duration::max(); }
  /// Is there not that much time before what is kept for the spreads? Never for the default.
  bool late(Clock::duration more = {}) const {
    return options_.deadline && result_.simulated > 0 && left() - kept() <= more;
  }
  /// For the spreads of the candidates that there are now.
  Clock::duration kept() const {
    if (!options_.spreads) return {};
    std::size_t count = result_.initial && !result_.initial->spread && !among_best(*result_.initial) ? 1 : 0;
    for (const auto& c : result_.best) count += c.spread ? 0 : 1;
    const auto each = spreading_ > Clock::duration{} ? spreading_ : simulating_ * static_cast<Clock::rep>(kOfSpread);
    return std::min(each * static_cast<Clock::rep>(count), (options_.deadline->at - since_) / 2);
  }
  /// The one of the best that is this candidate.
  const Candidate* among_best(const Candidate& c) const {
    const auto same = [&](const Candidate& b) { return b.decisions == c.decisions; };
    const auto at = std::find_if(result_.best.begin(), result_.best.end(), same);
    return at == result_.best.end() ? nullptr : &*at;
  }

  /// The default is simulated in any case.
  bool stop() {
    if (stopped_ || result_.simulated == 0) return stopped_;
    late_ = late(reading_);
    stopped_ = late_ || result_.simulated >= options_.tries;
    return stopped_;
  }

  /// What the goal asks to be least.
  double score(const Candidate& c) const noexcept {
    switch (options_.goal) {
      case Goal::energy: return c.energy.joules.value;
      case Goal::edp: return c.energy.joules.value * c.ns;
      case Goal::time: break;
    }
    return c.ns;
  }

  /// The candidate's score, from memory or by simulation; nothing if it is not known and the search has been stopped.
  std::optional<double> score(const Take& take) {
    const auto name = text_of(take);
    if (const auto known = known_.find(name); known != known_.end()) return ++fruitless_, known->second;
    if (stop()) return {};
    const auto from = now();
    auto schedule = read(take);
    reading_ = std::max(reading_, now() - from);
    const auto open = decisions_.met;
    // A choice that this candidate does not meet changes nothing.
    const auto own = text_of(key_of(open));
    if (const auto known = known_.find(own); known != known_.end())
      return ++fruitless_, known_.emplace(name, known->second).first->second;
    fruitless_ = 0;
    const auto score = schedule ? simulated(open, *schedule) : refuse(open, schedule.error().front());
    if (!score) {
      stopped_ = late_ = result_.stopped = true;
      return {};
    }
    ++result_.simulated;
    known_.emplace(own, *score);
    known_.emplace(name, *score);
    if (options_.proceed && !options_.proceed({.simulated = result_.simulated,
                                               .candidates = result_.candidates,
                                               .best_ns = result_.best.empty() ? 0 : result_.best.front().ns}))
      stopped_ = true;
    return score;
  }

  /// The choices of a candidate.
  std::vector<Decision> met(const Take& take) {
    if (decisions_.take != take) (void)read(take);
    return decisions_.met;
  }

  double refuse(const std::vector<Decision>& open, Diagnostic why) {
    ++result_.refused;
    if (!result_.first_refused) result_.first_refused = {.decisions = open, .reason = std::move(why)};
    return kRefused;
  }

  /// The score; nothing if there was not enough time.
  std::optional<double> simulated(const std::vector<Decision>& open, Schedule& s) {
    auto& best = result_.best;
    for (auto& b : best)
      if (takes_as_long(s, b.schedule)) return ++b.same, score(b);
    auto r = simulation(s);
    if (!r) return {};
    if (!*r) return refuse(open, r->error().front());
    Candidate c{.decisions = open, .schedule = s, .ns = (*r)->ns, .simulation = **std::move(r)};
    if (knows_energy(machine_)) c.energy = energy(c.simulation, machine_);
    const auto own = score(c);
    auto place = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
      return score(other) > own || same_time(score(other), own);
    });
    const bool as_good = place != best.end() && same_time(score(*place), own);
    const bool enters = !as_good && (best.size() < options_.best || place != best.end());
    const bool extends = options_.front && !beaten(c);
    const bool stays = enters || extends;
    if (stays && late(proving_)) return {};
    if (as_good) ++place->same;
    if (!stays) return own;
    const auto from = now();
    const auto why = unproved(c);
    proving_ = std::max(proving_, now() - from);
    if (why) return refuse(open, *why);
    if (extends) extend(c);
    if (enters) best.insert(place, std::move(c));
    if (best.size() > options_.best) best.pop_back();
    return own;
  }
  using Simulated = Result<Simulation, std::vector<Diagnostic>>;
  /// Nothing if it was stopped.
  std::optional<Simulated> simulation(const Schedule& s) {
    const auto from = now();
    detail::World<double> world{s, machine_, {.stop = [this] { return late(); }}};
    world.times_alone();
    auto r = world.run();
    if (world.stopped()) return {};
    simulating_ = std::max(simulating_, now() - from);
    if (!r && world.lacks_rate()) {
      // It may be the fastest: without its time, there is no order.
      unrated_ = r.error();
      for (auto& d : unrated_) d.where = std::string(file_) + ": " + d.where;
      stopped_ = true;
    }
    return r;
  }
  /// Are they the same but for alignments? Only bind looks at these.
  static bool takes_as_long(Schedule& a, const Schedule& b) {
    if (a.buffers.size() != b.buffers.size()) return false;
    std::vector<std::uint64_t> own;
    for (std::size_t i = 0; i < a.buffers.size(); ++i)
      own.push_back(std::exchange(a.buffers[i].alignment, b.buffers[i].alignment));
    const bool same = a == b;
    for (std::size_t i = 0; i < own.size(); ++i) a.buffers[i].alignment = own[i];
    return same;
  }

  /// Those that there is no time for are left out, the best last.
  void spreads() {
    const auto passed = [this] { return left() <= Clock::duration{}; };
    const auto find = [&](Candidate& c) {
      const auto from = now();
      if (c.spread || passed()) return;
      if (auto s = spread(c.schedule, machine_, {.stop = passed})) c.spread = *std::move(s);
      spreading_ = std::max(spreading_, now() - from);
    };
    for (auto& c : result_.best) find(c);
    if (!result_.initial) return;
    if (const auto* same = among_best(*result_.initial)) result_.initial->spread = same->spread;
    else find(*result_.initial);
  }

  /// Why the checker does not prove the candidate, if it does not.
  std::optional<Diagnostic> unproved(const Candidate& c) {
    // Read again, for the lines of what the checker finds.
    SourceMap map;
    const auto again = read(key_of(c.decisions), &map);
    map.choices = 0;  // this candidate is one of the alternatives
    const auto report = check(*again, {.profile = options_.profile, .map = &map, .topology = &machine_.topology});
    if (!report.proved()) {
      result_.unproved += report.verdict() == Verdict::unproved;
      return reason(report);
    }
    for (const auto& option : report.assumes)
      if (auto& all = result_.assumes; std::find(all.begin(), all.end(), option) == all.end()) all.push_back(option);
    return {};
  }

  /// Is a candidate of the front at least as good in both?
  bool beaten(const Candidate& c) const {
    return std::any_of(result_.front.begin(), result_.front.end(), [&](const Candidate& f) {
      return (f.ns < c.ns || same_time(f.ns, c.ns)) && f.energy.joules.value <= c.energy.joules.value * (1 + kSame);
    });
  }
  void extend(const Candidate& c) {
    auto& front = result_.front;
    std::erase_if(front,
                  [&](const Candidate& f) { return f.ns >= c.ns && f.energy.joules.value >= c.energy.joules.value; });
    front.insert(std::find_if(front.begin(), front.end(), [&](const Candidate& f) { return f.ns > c.ns; }), c);
  }

  static Diagnostic reason(const CheckReport& report) {
    // Errors come first, and advice last.
    return report.findings.empty() ? Diagnostic{.message = "the checker does not prove it"}
                                   : report.findings.front().diagnostic;
  }

  /// Changes one choice at a time for the better, then pairs of choices.
  void descend(Take here = {}) {
    auto least = score(here);
    auto choices = met(here);
    for (bool better = true; least && better && !stopped_;) {
      better = false;
      // After a change, other choices may be open.
      for (std::size_t i = 0; i < choices.size(); ++i) {
        auto best = here;
        for (std::size_t a = 0; a < choices[i].alternatives; ++a) {
          if (a == choices[i].taken) continue;
          auto there = here;
          there[choices[i].id] = a;
          there = normal(std::move(there));
          if (const auto s = score(there); s && *s < *least) least = s, best = std::move(there);
        }
        if (best == here) continue;
        better = true;
        choices = met(here = std::move(best));
      }
    }
    if (least) pairs(here, choices, *least);
  }

  static Take normal(Take take) {
    std::erase_if(take, [](const auto& c) { return c.second == 0; });
    return take;
  }

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  /// Changes two choices at once, at random; a success begins anew with single changes.
  void pairs(const Take& here, const std::vector<Decision>& choices, double least) {
    std::vector<const Decision*> open;
    for (const auto& c : choices)
      if (c.alternatives > 1) open.push_back(&c);
    if (open.size() < 2) return;
    for (std::size_t n = 0; n < kPairs * open.size() && !stopped_; ++n) {
      auto there = here;
      for (int k = 0; k < 2; ++k) {
        const auto& c = *open[pick(open.size())];
        there[c.id] = pick(c.alternatives);
      }
      there = normal(std::move(there));
      if (const auto s = score(there); s && *s < least) return descend(std::move(there));
    }
  }

  /// Do all candidates fit into what is left? From the mean time of those so far.
  bool exhaustible() const {
    if (result_.candidates > static_cast<double>(options_.tries)) return false;
    if (!options_.deadline) return true;
    const auto spent = std::chrono::duration<double>(now() - begin_).count();
    const auto rest = std::chrono::duration<double>(left() - kept()).count();
    const auto more = result_.candidates - static_cast<double>(result_.simulated);
    return more * spent / static_cast<double>(result_.simulated) <= rest;
  }

  /// Every candidate, in the order of the choices' alternatives: the last choice that has another alternative takes it,
  /// and those after it begin anew. A choice depends only on those before it.
  void exhaust() {
    for (Take take; score(take);) {
      const auto choices = met(take);
      auto last = choices.size();
      while (last > 0 && choices[last - 1].taken + 1 >= choices[last - 1].alternatives) --last;
      if (last == 0) return void(result_.complete = true);
      take = key_of({choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(last) - 1});
      take.emplace(choices[last - 1].id, choices[last - 1].taken + 1);
    }
  }

  void wander() {
    while (!stop() && fruitless_ < kFruitless) {
      // What a candidate leaves open is known when it has been read, so it takes a few readings to draw one.
      Take drawn;
      for (int n = 0; n < kReadings; ++n)
        for (const auto& c : met(drawn))
          if (!drawn.contains(c.id)) drawn.emplace(c.id, pick(c.alternatives));
      descend(normal(std::move(drawn)));
    }
  }

  const std::string_view text_, file_;
  const MachineDescription& machine_;
  const SearchOptions& options_;
  std::mt19937_64 random_;
  Decisions decisions_{};
  SearchResult result_{};
  std::unordered_map<std::string, double> known_{};  ///< scores, by text_of
  std::vector<Diagnostic> unrated_{};                ///< a candidate's bytes cross a link whose rate is unknown
  std::uint64_t fruitless_ = 0;
  Clock::time_point begin_{}, since_{};                                 ///< since_: it has begun, or gone on
  Clock::duration reading_{}, simulating_{}, proving_{}, spreading_{};  ///< the longest so far
  std::uint64_t simulated_before_ = 0;                                  ///< when it last went on
  bool late_ = false;                                                   ///< that is why it is stopped
  bool stopped_ = false;
};

}  // namespace

Result<SearchResult, std::vector<Diagnostic>> search(std::string_view text, std::string_view file,
                                                     const MachineDescription& m, const SearchOptions& o) {
  return Search{text, file, m, o}.run();
}

}}  // namespace sdma::v0_3
