// SPDX-License-Identifier: MIT
// The search itself: what it finds, what it refuses, and what it says about how much it has seen.
#include "sdma/search/search.hpp"

#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <set>

using namespace sdma;

namespace {

const MachineDescription& machine() {
  static const auto m = *mi300x_machine();
  return m;
}

SearchResult found(const std::string& text, const SearchOptions& o = {}) {
  auto r = search(text, "t.sdma", machine(), o);
  if (!r) {
    for (const auto& d : r.error()) UNSCOPED_INFO(to_string(d));
    FAIL(text);
  }
  return *std::move(r);
}

std::string choices(const SearchResult& r, std::size_t i = 0) { return decisions_text(r.best.at(i).decisions); }

/// `copies` copies of 64K from gpu0, shared by the queues that each names, and `more` lines before them.
std::string text(const std::string& more, const std::string& queue_of, const std::string& copies = "6") {
  return "sdma 1\nparam copies = " + copies + "\n" + more +
         "gpus 8\nbuffer gpu*.b bytes=64K init=random\nsignal host.done value=0\n"
         "for q in 0..3\nqueue gpu0.q{q} engine=q+2\nfor k in 1..copies+1\n" +
         queue_of +
         "copy_linear bytes=64K src=gpu0.b dst=gpu{k}.b\nend\nend\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
         "end\nhost main\nsubmit *\nwait host.done == 3\nend\n";
}
const std::string kPerPeer = "choose e in [0, 1, 2] per k\nif e == q\n";

/// A copy that is polled for too early if `early`, which is fast and wrong.
const std::string kRacy =
    "sdma 1\nchoose early in [0, 1]\nchoose extra in 0..3\ngpus 3\nbuffer gpu0.a bytes=64K init=random\n"
    "buffer gpu1.b bytes=64K\nbuffer gpu2.c bytes=64K\nsignal gpu1.ready value=0 bits=32\nsignal host.done value=0\n"
    "queue gpu0.first peer=gpu1\ncopy_linear bytes=64K src=gpu0.a dst=gpu1.b\nfence addr=gpu1.ready value=1\nend\n"
    "queue gpu1.second peer=gpu2\nif early == 0\npoll_mem addr=gpu1.ready func=ge reference=1\nend\n"
    "nop times=extra+1\ncopy_linear bytes=64K src=gpu1.b dst=gpu2.c\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
    "host main\nsubmit *\nwait host.done == 1\nend\n";

double brute_force(const std::string& text, const std::vector<std::vector<std::string>>& settings) {
  double least = INFINITY;
  for (const auto& s : settings) {
    ParseOptions o;
    for (std::size_t i = 0; i + 1 < s.size(); i += 2) o.set.push_back({s[i], s[i + 1]});
    const auto schedule = parse_schedule(text, "t", o);
    REQUIRE(schedule);
    const auto t = simulate(*schedule, machine());
    REQUIRE(t);
    least = std::min(least, t->ns);
  }
  return least;
}

}  // namespace

TEST_CASE("a small space is searched completely, and the best is the best of all") {
  const auto t = text("choose a in 0..4\nchoose b in 1..3+a\n", "if (k*b+a)%3 == q\n");
  std::vector<std::vector<std::string>> all;
  for (int a = 0; a < 4; ++a)
    for (int b = 1; b < 3 + a; ++b) all.push_back({"a", std::to_string(a), "b", std::to_string(b)});
  const auto r = found(t);
  CHECK(r.complete);
  CHECK(r.simulated == all.size());
  CHECK(r.candidates == static_cast<double>(all.size()));
  CHECK(r.refused == 0);
  CHECK_FALSE(r.first_refused);
  CHECK(r.best.front().ns == brute_force(t, all));
  REQUIRE(r.initial);
  CHECK(decisions_text(r.initial->decisions) == "a=0 b=1");
  CHECK(r.initial->ns == brute_force(t, {{}}));
  std::uint64_t same = 0;
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    same += 1 + r.best[i].same;
    CHECK((i == 0 || r.best[i - 1].ns < r.best[i].ns));
    // What is kept is what its choices say, and it is proved.
    CHECK(simulate(r.best[i].schedule, machine())->ns == r.best[i].ns);
    CHECK(check(r.best[i].schedule).proved());
  }
  CHECK(same <= all.size());
  CHECK(found(text("", kPerPeer, "4"), {.best = 2}).best.size() == 2);
}

TEST_CASE("with tries, the same seed gives the same result; a partial search says that it is one", "[long]") {
  const auto t = text("", kPerPeer, "7");  // 3^7
  const auto r = found(t, {.tries = 200, .seed = 3});
  CHECK_FALSE(r.complete);
  CHECK(r.simulated == 200);
  CHECK(r.candidates == 2187);
  const auto again = found(t, {.tries = 200, .seed = 3});
  REQUIRE(again.best.size() == r.best.size());
  for (std::size_t i = 0; i < r.best.size(); ++i) CHECK(again.best[i].decisions == r.best[i].decisions);
  // It finds the best without seeing all: which of the seven peers share an engine.
  const auto all = found(t, {.tries = 2187});
  CHECK(all.complete);
  CHECK(all.simulated == 2187);
  CHECK(r.best.front().ns == all.best.front().ns);
  CHECK(r.best.front().ns < 0.9 * r.initial->ns);
  // Its value for each peer, with the peer's name.
  CHECK(choices(r).find("e [k=7]=") != std::string::npos);
}

TEST_CASE("choices that depend on each other: none is simulated twice, and none is missed") {
  // The search takes kind = 1, then x = 2, and then tries the other kinds, which have no x.
  const auto t =
      text("choose kind in [0, 1, 2]\n",
           "if k%3 == q\nif kind == 0\nnop times=20\nelse if kind == 1\nchoose x in 0..3 once\nnop times=10-x\n"
           "else\nchoose y in 1..3 once\nchoose z in 1..3 once\nnop times=30+y*z\nend\n");
  const auto r = found(t);
  CHECK(r.complete);
  CHECK(r.simulated == 1 + 3 + 4);
  CHECK(r.candidates == 8);
  CHECK(choices(r) == "kind=1 x=2");
}

TEST_CASE("a candidate that is not proved is refused, with the first reason") {
  const auto r = found(kRacy);
  CHECK(r.complete);
  CHECK(r.simulated == 6);
  for (const auto& c : r.best) CHECK(decisions_text(c.decisions).find("early=0") == 0);
  CHECK(r.best.size() == 3);
  CHECK(r.refused == 3);
  REQUIRE(r.first_refused);
  CHECK(decisions_text(r.first_refused->decisions) == "early=1 extra=0");
  CHECK(r.first_refused->reason.rule == "race");
  CHECK(r.first_refused->reason.where == "t.sdma:19:1");
  // The racy ones are faster, so it is the checker that keeps them out.
  CHECK(brute_force(kRacy, {{"early", "1"}}) < r.best.front().ns);
}

TEST_CASE("the default may be refused, and a candidate may be wrong or hang") {
  auto racy = kRacy;
  racy.replace(racy.find("[0, 1]"), 6, "[1, 0]");
  const auto r = found(racy);
  CHECK_FALSE(r.initial);
  CHECK(r.best.size() == 3);
  CHECK(decisions_text(r.first_refused->decisions) == "early=1 extra=0");

  const auto wrong = found(text("choose n in [6, 9]\n", "if k%3 == q\n", "6") + "expect gpu{n}.b == gpu0.b\n");
  CHECK(wrong.refused == 1);
  CHECK(wrong.complete);
  CHECK(wrong.first_refused->reason.message.find("gpu9") != std::string::npos);

  const auto hangs = found(text("choose n in [3, 4]\n", "if k%3 == q\n") + "host second\nwait host.done == n\nend\n");
  CHECK(hangs.refused == 1);
  CHECK(hangs.best.size() == 1);
  CHECK(decisions_text(hangs.first_refused->decisions) == "n=4");

  const auto none = found(text("choose n in [4, 5]\n", "if k%3 == q\n") + "host second\nwait host.done == n\nend\n");
  CHECK(none.best.empty());
  CHECK_FALSE(none.initial);
}

TEST_CASE("candidates with the same time are counted, and kept once") {
  const auto r = found(text("choose unused in 0..10\nchoose extra in [1, 2]\n", "if k%3 == q\nnop times=extra\n"));
  CHECK(r.complete);
  REQUIRE(r.best.size() == 2);
  CHECK(r.best[0].same == 9);
  CHECK(r.best[1].same == 9);
  CHECK(choices(r) == "unused=0 extra=1");
}

TEST_CASE("the schedule that docs/explore.md shows is one, and leaves open what the page says") {
  const auto page = *read_file(SDMA_SOURCE_ROOT "/docs/explore.md");
  const auto begin = page.find("```\n") + 4;
  const auto shown = page.substr(begin, page.find("```", begin) - begin);
  CHECK(format_source(shown) == shown);
  const auto r = found(shown, {.tries = 60});
  CHECK(r.candidates == 7.0 * 5040);
  CHECK(r.refused == 0);
  CHECK(r.best.front().ns < 0.7 * r.initial->ns);
}

TEST_CASE("a search ends when it is asked to, at its deadline, and where nothing is open") {
  const auto t = text("", kPerPeer, "7");
  std::uint64_t last = 0;
  SearchOptions o{.tries = 1000};
  o.proceed = [&](const SearchProgress& p) {
    CHECK(p.simulated == ++last);
    CHECK(p.candidates == 2187);
    CHECK(p.best_ns > 0);
    return last < 17;
  };
  const auto r = found(t, o);
  CHECK(r.simulated == 17);
  CHECK_FALSE(r.complete);
  CHECK_FALSE(r.best.empty());

  const auto late = found(t, {.deadline = Deadline::in(std::chrono::seconds(0))});
  CHECK(late.simulated == 1);
  CHECK_FALSE(late.complete);
  CHECK(late.best.size() == 1);

  const auto closed = found(text("", "if k%3 == q\n"));
  CHECK(closed.candidates == 1);
  CHECK(closed.complete);
  CHECK(closed.best.size() == 1);

  const auto bad = search("sdma 1\nchoose a in 0..2\nlet b = c\n", "t.sdma", machine());
  REQUIRE_FALSE(bad);
  CHECK(bad.error().front().where == "t.sdma:3:9");
}

TEST_CASE("the budget holds for what is under way, and for the intervals: a clock that counts how often it is read") {
  using Clock = Deadline::Clock;
  // Each candidate has thousands of steps, so that it reads the clock often.
  const auto t = text("choose a in 0..4\nchoose b in 0..4\n", "if (k*(a+1)+b)%3 == q\nnop times=600\n");
  std::uint64_t reads = 0;
  const auto within = [&](std::optional<std::uint64_t> budget, bool spreads) {
    reads = 0;
    SearchOptions o{.spreads = spreads};
    if (budget) o.deadline = Deadline{Clock::time_point(std::chrono::milliseconds(*budget))};
    o.clock = [&] { return Clock::time_point(std::chrono::milliseconds(++reads)); };
    return found(t, o);
  };
  const auto whole = within({}, false);
  REQUIRE(whole.complete);
  // Without a deadline no step reads it.
  const auto without = reads;
  CHECK(without <= 10 * whole.simulated);

  const auto plenty = within(1'000'000, false);
  CHECK(plenty.complete);
  CHECK_FALSE(plenty.stopped);
  const auto enough = reads;
  REQUIRE(enough > 40 * whole.simulated);

  const auto half = within(enough / 2, false);
  CHECK(reads <= enough / 2 + enough / 100);
  CHECK(half.stopped);
  CHECK_FALSE(half.complete);
  CHECK(half.simulated < whole.simulated);
  CHECK(half.simulated > whole.simulated / 4);
  CHECK_FALSE(half.best.empty());
  CHECK(half.initial->ns == whole.initial->ns);

  // The default, whatever it takes.
  const auto none = within(0, true);
  CHECK(none.simulated == 1);
  CHECK_FALSE(none.stopped);
  REQUIRE(none.best.size() == 1);
  CHECK_FALSE(none.best.front().spread);

  const auto spread = within({}, true);
  for (std::size_t i = 0; i < spread.best.size(); ++i) {
    REQUIRE(spread.best[i].spread);
    CHECK(spread.best[i].spread->ns == spread.best[i].ns);
    CHECK(spread.best[i].ns == whole.best[i].ns);
    CHECK(spread.best[i].spread->uncertainty_ns > 0);
  }
  REQUIRE(spread.initial->spread);
  CHECK(spread.initial->spread->ns == spread.initial->ns);

  // They get half of the time, the best first.
  const auto some = within(3 * enough, true);
  CHECK(reads <= 3 * enough + 3 * enough / 50);
  CHECK(some.complete);
  REQUIRE(some.best.size() > 1);
  CHECK(some.best.front().spread);
  CHECK_FALSE(some.best.back().spread);
  const auto few = within(enough, true);
  CHECK(reads <= enough + enough / 50);
  CHECK(few.simulated < whole.simulated);
  CHECK(few.simulated > whole.simulated / 4);
  // What they did not need is spent on other candidates: one that takes long makes the search keep too much.
  const auto wide = [&] {
    reads = 0;
    SearchOptions o{.best = 1, .deadline = Deadline{Clock::time_point(std::chrono::milliseconds(20 * enough))}};
    o.spreads = true;
    o.clock = [&] { return Clock::time_point(std::chrono::milliseconds(++reads)); };
    const auto open = text("choose slow in [0, 1]\nchoose a in 0..40\nchoose b in 0..40\n",
                           "if (k*(a+1)+b)%3 == q\nnop times=100+10000*slow\n");
    return found(open, o);
  }();
  CHECK_FALSE(wide.complete);
  CHECK(wide.best.front().spread);
  CHECK(reads >= 19 * enough);
  CHECK(reads <= 20 * enough + 20 * enough / 50);
}

TEST_CASE("candidates that differ in the alignment of buffers alone are simulated once") {
  using Clock = Deadline::Clock;
  std::uint64_t reads = 0;
  const auto of = [&](const std::string& alignments) {
    SearchOptions o{.deadline = Deadline{Clock::time_point::max()}};
    o.clock = [&] { return Clock::time_point(std::chrono::milliseconds(++reads)); };
    auto t = text("choose a in [" + alignments + "]\n", "if k%3 == q\nnop times=2000\n");
    t.replace(t.find("bytes=64K init"), 14, "bytes=64K align=a init");
    reads = 0;
    return found(t, o);
  };
  const auto one = of("4K");
  const auto alone = reads;
  CHECK(one.simulated == 1);
  const auto three = of("4K, 8K, 16K");
  CHECK(three.complete);
  CHECK(three.simulated == 3);
  REQUIRE(three.best.size() == 1);
  CHECK(three.best.front().same == 2);
  CHECK(three.best.front().schedule.buffers.front().alignment == 4096);
  CHECK(three.best.front().ns == one.best.front().ns);
  CHECK(reads < alone + 20);
}

TEST_CASE("a search does not go on without the rate of a link that a candidate's bytes cross") {
  auto m = machine();
  for (auto& l : m.topology.links)
    if (l.from == LinkEnd::gpu(0) && l.to == LinkEnd::gpu(2)) l.rate = {};
  const auto choice =
      "sdma 1\nchoose to in [1, 2]\ngpus 8\nbuffer gpu*.b bytes=64K init=random\n"
      "signal host.done value=0\nqueue gpu0.q peer=gpu{to}\ncopy_linear bytes=64K src=gpu0.b dst=gpu{to}.b\n"
      "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n";
  const auto r = search(choice, "t.sdma", m, {});
  REQUIRE_FALSE(r);
  CHECK(to_string(r.error().front())
            .starts_with("t.sdma: gpu0.q: error: bytes cross the link gpu0->gpu2, whose rate is unknown"));
  m = machine();
  for (auto& l : m.topology.links)
    if (l.from == LinkEnd::gpu(5)) l.rate = {};
  CHECK(search(choice, "t.sdma", m, {}));
}

namespace {

/// Copies of 1M to seven peers by `e` engines; with `early`, the host stores first what the queues wait for.
const std::string kEngines = text("choose e in [1, 2, 3]\n", "if k%e == q\n");

/// Engines that are so expensive that one is better than three, although it takes longer.
MachineDescription dear() {
  auto m = machine();
  m.energy = {};
  m.energy[static_cast<std::size_t>(Power::engine_byte)] = EnergyTerm{.value = {1, 1, 1}, .source = "made up"};
  m.energy[static_cast<std::size_t>(Power::engine_active)] = EnergyTerm{.value = {400, 400, 400}, .source = "made up"};
  return m;
}

}  // namespace

TEST_CASE("a goal with energy: another candidate than the fastest, and its joules") {
  const auto m = dear();
  const auto best = [&](Goal goal) {
    auto r = search(kEngines, "t.sdma", m, {.goal = goal, .front = true});
    REQUIRE(r);
    REQUIRE(r->complete);
    return *std::move(r);
  };
  const auto fast = best(Goal::time), frugal = best(Goal::energy), both = best(Goal::edp);
  CHECK(choices(fast) != choices(frugal));
  CHECK(fast.best.front().ns < frugal.best.front().ns);
  CHECK(fast.best.front().energy.joules.value > frugal.best.front().energy.joules.value);
  const auto product = [](const Candidate& c) { return c.ns * c.energy.joules.value; };
  for (const auto& r : {fast, frugal})
    for (const auto& c : r.best) CHECK(product(both.best.front()) <= product(c) * (1 + 1e-9));
  // Each front has both ends, and no candidate that another one beats in both.
  for (const auto& r : {fast, frugal, both}) {
    REQUIRE(r.front.size() >= 2);
    CHECK(r.front.front().ns == fast.best.front().ns);
    CHECK(r.front.back().energy.joules.value == frugal.best.front().energy.joules.value);
    for (std::size_t i = 1; i < r.front.size(); ++i) {
      CHECK(r.front[i - 1].ns < r.front[i].ns);
      CHECK(r.front[i - 1].energy.joules.value > r.front[i].energy.joules.value);
    }
  }
}

TEST_CASE("no front has what the checker refuses") {
  const auto r = search(kRacy, "t.sdma", machine(), {.goal = Goal::energy, .front = true});
  REQUIRE(r);
  REQUIRE(r->refused > 0);
  REQUIRE_FALSE(r->front.empty());
  for (const auto& c : r->front) CHECK(decisions_text(c.decisions).find("early=1") == std::string::npos);
}

TEST_CASE("a machine without joules has no candidate that takes least, and says so") {
  auto m = machine();
  m.energy = {};
  for (const auto& o :
       {SearchOptions{.goal = Goal::energy}, SearchOptions{.goal = Goal::edp}, SearchOptions{.front = true}}) {
    const auto r = search(kEngines, "t.sdma", m, o);
    REQUIRE_FALSE(r);
    CHECK(r.error().front().message.find("how many joules") != std::string::npos);
  }
  CHECK(search(kEngines, "t.sdma", m));
}
