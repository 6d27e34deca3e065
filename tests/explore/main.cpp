// SPDX-License-Identifier: MIT
// explore-check: compares sdma check with all executions of small schedules. kUsage is its manual.
#include "expect.hpp"
#include "generate.hpp"
#include "judge.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

using namespace sdma;
using namespace sdma::explore;

namespace {

constexpr std::string_view kUsage = R"(compare sdma check with all executions of small random schedules
Usage: explore-check [OPTIONS] [FILE...]

  --profile=conservative|rocr|strict|cuda   what executions may rely on (default: conservative)
  --assume=OPTION=VALUE                as sdma check; may be repeated
  --family=NAME,NAME                   only schedules of these kinds (default: all); `list` lists them
  --schedules=N                        how many random schedules (default: 1000)
  --seed=S                             the first seed (default: 1)
  --mutations=N                        most mutations of a schedule (default: 2)
  --states=N                           most states of a schedule (default: 20000)
  --max-packets=N                      the checker's own limit (default: the checker's)
  --first=ENTRY                        end at the first false proof of a schedule with this entry, and print only its seed
  --alarms                             also print false alarms
  --entries                            for each entry of the contract (sdma check --covered): how many schedules had it
  --least=N                            continue until N schedules have had each entry, with families that have the rarest
  --most=N                             with --least: all schedules together (default: 10 million)
  --print                              print every schedule, and what its executions do
  --full                               compare the reduced search with the whole one
  --out=DIR                            also write each schedule that is printed to a file

A schedule that no execution breaks gets expectations from one of its executions, some of them wrong, and is examined again.
A false proof is a schedule that the checker proves and that an execution breaks (explore.hpp says what breaks one). It is
printed with the fewest packets and actions that still show it, at most twice for each kind. A false alarm is an error about a
schedule that the complete search finds clean. If all errors are stale-wait, it is false only if no execution satisfies the wait
before the post that the finding names; otherwise it is right, although the early wait breaks nothing.
A FILE is a schedule: it is explored, and the result and an execution that breaks it are printed.
Exit codes: 0 no false proof; 1 a false proof, or a reduced search that differs from the whole one; 2 usage error; 3 an entry
of the contract has had fewer schedules than --least says.
)";

struct Options {
  Profile profile{};
  std::string profile_text = "conservative", family{}, out{}, first{};
  std::vector<std::string> files{};
  std::uint64_t schedules = 1000, seed = 1, mutations = 2, states = 20000, max_packets = 0, least = 0,
                most = 10'000'000;
  bool alarms{}, print{}, full{}, entries{};
};

bool number(std::string_view text, std::uint64_t& out) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), out);
  return r.ec == std::errc{} && r.ptr == text.data() + text.size();
}

bool parse(int argc, char** argv, Options& o) {
  std::vector<std::string_view> assumed;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    const auto value = [&](std::string_view key) {
      return a.starts_with(key) ? a.substr(key.size()) : std::string_view{};
    };
    if (!a.starts_with("--")) o.files.emplace_back(a);
    else if (const auto p = value("--profile="); !p.empty()) {
      o.profile_text = p;
      if (p == "rocr") o.profile = Profile::rocr();
      else if (p == "strict") o.profile = Profile::strict();
      else if (p == "cuda") o.profile = Profile::cuda();
      else if (p != "conservative") return false;
    } else if (const auto x = value("--assume="); !x.empty()) assumed.push_back(x);
    else if (const auto f = value("--family="); !f.empty()) o.family = f;
    else if (const auto d = value("--out="); !d.empty()) o.out = d;
    else if (const auto e = value("--first="); !e.empty()) o.first = e;
    else if (a == "--alarms") o.alarms = true;
    else if (a == "--print") o.print = true;
    else if (a == "--entries") o.entries = true;
    else if (a == "--full") o.full = true;
    else if (!number(value("--schedules="), o.schedules) && !number(value("--seed="), o.seed) &&
             !number(value("--mutations="), o.mutations) && !number(value("--states="), o.states) &&
             !number(value("--max-packets="), o.max_packets) && !number(value("--least="), o.least) &&
             !number(value("--most="), o.most))
      return false;
  }
  for (const auto x : assumed) {
    if (!o.profile.set(x)) return false;
    o.profile_text += " --assume " + std::string(x);
  }
  return true;
}

int explore_files(const Options& o) {
  int rc = 0;
  for (const auto& file : o.files) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const auto s = parse_schedule(text.str(), file);
    if (!s) {
      for (const auto& e : s.error()) std::cout << to_string(e) << '\n';
      return 2;
    }
    const auto j = judge(*s, o.profile, {.max_states = o.states, .trace = true}, o.max_packets);
    std::string rules;
    for (const auto& r : j.rules) rules += " " + r;
    std::cout << fmt::format("{}: {}{} ({} states); check: {}{}{}\n", file, name(j.outcome.verdict),
                             j.outcome.complete ? "" : ", not complete", j.outcome.states,
                             j.proved   ? "proved"
                             : j.errors ? "errors:"
                                        : "not proved",
                             rules, j.false_proof ? ": FALSE PROOF" : "");
    if (!j.outcome.text.empty()) std::cout << j.outcome.text << '\n';
    if (j.false_proof) rc = 1;
  }
  return rc;
}

/// Letters and digits, for the name of a file.
std::string file_name(std::string text) {
  for (auto& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  return text;
}

/// By entry of the contract: schedules that have it, and those of them that are proved.
using Entries = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>, std::less<>>;

struct Counts {
  std::uint64_t schedules{}, unsupported{}, cut{}, proved{}, broken{}, spotless{}, proofs{}, alarms{}, wrong{}, right{},
      not_judged{}, states{}, differences{}, expectations{}, unmet{}, unknown_results{};
  Entries entries{};
};

class Run {
 public:
  explicit Run(const Options& o) : o_(o) {}

  int run() {
    const auto begin = std::chrono::steady_clock::now();
    play(o_.family, o_.schedules);
    if (!o_.first.empty()) return found_;
    constexpr std::uint64_t kBatch = 1000;
    for (const auto* e = rarest(); e && played_ < o_.most; e = rarest()) play(family_of(e->id), kBatch);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    report(took.count());
    if (total_.proofs != 0 || total_.differences != 0) return 1;
    const auto* few = rarest();
    if (few) std::cout << fmt::format("'{}' has had fewer than {} schedules\n", few->id, o_.least);
    return few ? 3 : 0;
  }

 private:
  void play(std::string_view family, std::uint64_t schedules) {
    for (const auto end = played_ + schedules; played_ < end; ++played_) {
      const auto seed = o_.seed + played_;
      Random r{seed};
      auto g = generate(r, family, static_cast<std::uint32_t>(o_.mutations));
      if (!problems(g.schedule).empty()) continue;
      if (const auto o = explore::explore(g.schedule, {.profile = o_.profile, .max_states = o_.states});
          !o.broken() && !o.last.empty())
        expect(g.schedule, o_.profile, o.last, r);
      one(g, seed);
      if (found_) return;
    }
  }

  /// The entry with the fewest schedules, if they are too few; null if none is.
  const CoveredThing* rarest() const {
    const CoveredThing* found = nullptr;
    auto least = o_.least;
    for (const auto& c : covered())
      if (const auto n = had(entries_, c.id); n < least) least = n, found = &c;
    return found;
  }
  /// The family most of whose schedules have this entry.
  std::string_view family_of(std::string_view entry) const {
    std::string_view best = families().front();
    double most = 0;
    for (const auto& [name, c] : families_) {
      const auto rate = static_cast<double>(had(c.entries, entry)) / static_cast<double>(c.schedules);
      if (rate > most) most = rate, best = name;
    }
    return best;
  }
  static std::uint64_t had(const Entries& all, std::string_view entry) {
    const auto at = all.find(entry);
    return at == all.end() ? 0 : at->second.first;
  }

  void one(const Generated& g, std::uint64_t seed) {
    const auto j = judge(g.schedule, o_.profile, {.max_states = o_.states}, o_.max_packets);
    auto& family = families_[std::string(g.family)];
    for (auto* c : {&total_, &family}) {
      ++c->schedules;
      c->unsupported += j.outcome.verdict == Ending::unsupported;
      c->cut += !j.outcome.complete;
      c->proved += j.proved;
      c->broken += j.outcome.broken();
      c->spotless += j.outcome.spotless();
      c->proofs += j.false_proof;
      c->alarms += j.false_alarm;
      c->wrong += j.wrong_stale_wait;
      c->right += j.right_stale_wait;
      c->not_judged += j.not_judged;
      c->states += j.outcome.states;
      c->expectations += j.expectations;
      c->unmet += j.outcome.verdict == Ending::unmet;
      c->unknown_results += j.unknown_result;
    }
    if (j.outcome.verdict == Ending::unsupported) ++why_[j.outcome.text];
    for (const auto& e : j.relies_on)
      for (auto* all : {&entries_, &family.entries}) {
        auto& [schedules, proved] = (*all)[e];
        ++schedules;
        proved += j.proved;
      }
    if (o_.print)
      std::cout << fmt::format("# {} seed {}: {}{}, check: {}\n{}", g.family, seed, name(j.outcome.verdict),
                               j.outcome.complete ? "" : ", not complete", j.proved ? "proved" : "not proved",
                               to_text(g.schedule));
    if (o_.full) compare(g.schedule, seed);
    if (j.false_proof && !o_.first.empty()) {
      found_ = std::find(j.relies_on.begin(), j.relies_on.end(), o_.first) != j.relies_on.end();
      if (found_)
        std::cout << fmt::format("false proof after {} schedules: family {}, seed {}\n", total_.schedules, g.family,
                                 seed);
    } else if (j.false_proof) {
      const auto wanted = j.outcome.verdict;
      show("FALSE PROOF", g, seed, fmt::format("{}{}-{}", name(wanted), j.outcome.held ? "-holding" : "", g.family),
           [&](const Schedule& s) {
             const auto k = judge(s, o_.profile, {.max_states = o_.states}, o_.max_packets);
             return k.false_proof && k.outcome.verdict == wanted && k.outcome.held == j.outcome.held;
           });
    }
    if (j.false_alarm) {
      const auto rule = *j.rules.begin();
      ++rules_[rule];
      if (o_.alarms)
        show("FALSE ALARM", g, seed, fmt::format("alarm-{}-{}", rule, g.family), [&](const Schedule& s) {
          const auto k = judge(s, o_.profile, {.max_states = o_.states}, o_.max_packets);
          return k.false_alarm && k.rules.count(rule) != 0;
        });
    }
  }

  /// Without expectations: one may be about a post that is pending at some ends, and the reduction leaves out many.
  void compare(Schedule s, std::uint64_t seed) {
    s.expectations.clear();
    const auto reduced = explore::explore(s, {.profile = o_.profile, .max_states = o_.states});
    if (!reduced.complete || reduced.verdict == Ending::unsupported) return;
    const auto whole = explore::explore(s, {.profile = o_.profile, .max_states = 20 * o_.states, .reduce = false});
    if (!whole.complete || whole.broken() == reduced.broken()) return;
    ++total_.differences;
    const auto differs = [&](const Schedule& x) {
      const auto a = explore::explore(x, {.profile = o_.profile, .max_states = o_.states});
      const auto b = explore::explore(x, {.profile = o_.profile, .max_states = 20 * o_.states, .reduce = false});
      return a.complete && b.complete && a.broken() != b.broken();
    };
    const auto least = shrink(s, differs);
    const auto b =
        explore::explore(least, {.profile = o_.profile, .max_states = 20 * o_.states, .reduce = false, .trace = true});
    std::cout << fmt::format("THE REDUCED SEARCH DIFFERS (seed {}): it says {}, the whole one says {}\n{}\n{}\n", seed,
                             name(reduced.verdict), name(whole.verdict), to_text(least), b.text);
  }

  void show(const char* what, const Generated& g, std::uint64_t seed, const std::string& kind,
            const std::function<bool(const Schedule&)>& holds) {
    if (shown_[kind]++ >= 2) return;
    const auto least = shrink(g.schedule, holds);
    const auto j = judge(least, o_.profile, {.max_states = o_.states, .trace = true}, o_.max_packets);
    std::string rules;
    for (const auto& r : j.rules) rules += " " + r;
    const auto text =
        fmt::format("# {}: {}; {} (profile {}, family {}, seed {})\n", what, name(j.outcome.verdict),
                    rules.empty() ? "check proves it" : "check reports" + rules, o_.profile_text, g.family, seed);
    std::string execution;
    std::istringstream lines(j.outcome.text);
    for (std::string line; std::getline(lines, line);) execution += "# " + line + "\n";
    std::cout << text << to_text(least) << execution << std::endl;
    if (!o_.out.empty())
      std::ofstream(fmt::format("{}/{}-{}-{}.sdma", o_.out, kind, file_name(o_.profile_text), seed))
          << to_text(least) << text << execution;
  }

  void report(double us) {
    const auto line = [](const std::string& name, const Counts& c) {
      std::cout << fmt::format(
          "{:<12} {:>8} schedules, {:>7} proved, {:>7} broken, {:>7} clean, {} false proofs, {} false alarms "
          "({:.2f} % of the clean ones; {} are stale-wait), {} right stale-wait ({} not judged), {} cut off, {} not "
          "supported, {:.0f} states each; {} expectations proved, {} schedules with a wrong one, {} with an unknown one\n",
          name, c.schedules, c.proved, c.broken, c.spotless, c.proofs, c.alarms,
          c.spotless ? 100.0 * static_cast<double>(c.alarms) / static_cast<double>(c.spotless) : 0.0, c.wrong, c.right,
          c.not_judged, c.cut, c.unsupported,
          static_cast<double>(c.states) / static_cast<double>(std::max<std::uint64_t>(1, c.schedules)), c.expectations,
          c.unmet, c.unknown_results);
    };
    for (const auto& [name, c] : families_) line(name, c);
    for (const auto& [rule, n] : rules_) std::cout << fmt::format("false alarms of {}: {}\n", rule, n);
    for (const auto& c : o_.entries ? covered() : std::span<const CoveredThing>()) {
      const auto& [schedules, proved] = entries_[std::string(c.id)];
      std::cout << fmt::format("{:<24} {:>8} schedules, {:>8} proved\n", c.id, schedules, proved);
    }
    for (const auto& [what, n] : why_) std::cout << fmt::format("not supported: {}: {}\n", what, n);
    line("total", total_);
    std::cout << fmt::format("profile {}, {:.0f} us per schedule\n", o_.profile_text,
                             us / static_cast<double>(std::max<std::uint64_t>(1, total_.schedules)));
  }

  Options o_;
  Counts total_;
  std::map<std::string, Counts> families_;
  std::map<std::string, std::uint64_t> rules_, shown_, why_;
  Entries entries_;
  std::uint64_t played_ = 0;
  bool found_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  Options o;
  if (!parse(argc, argv, o)) {
    std::cerr << kUsage;
    return 2;
  }
  if (o.family == "list") {
    for (const auto f : families()) std::cout << f << '\n';
    return 0;
  }
  return o.files.empty() ? Run{o}.run() : explore_files(o);
}
