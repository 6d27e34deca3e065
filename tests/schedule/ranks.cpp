// SPDX-License-Identifier: MIT
// Schedules that several processes run together, each as a rank of its own.
#include <sys/stat.h>

#include <cstring>
#include <random>
#include <thread>

#include "device/process.hpp"
#include "sdma/schedule/exchange.hpp"
#include "support.hpp"
#include "support/folder.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

/// A stream socket between each two ranks; [r][other] is rank r's end.
std::vector<std::vector<int>> mesh(std::uint32_t ranks) {
  std::vector<std::vector<int>> all(ranks, std::vector<int>(ranks, -1));
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (std::uint32_t b = a + 1; b < ranks; ++b) {
      int ends[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      all[a][b] = ends[0];
      all[b][a] = ends[1];
    }
  return all;
}
/// Closes the ends of all ranks but this one.
void keep(const std::vector<std::vector<int>>& all, std::uint32_t rank) {
  for (std::uint32_t r = 0; r < all.size(); ++r)
    for (const auto fd : all[r])
      if (r != rank && fd >= 0) close(fd);
}

struct How {
  Ordering order = Ordering::strict;
  std::uint32_t rounds = 1;  ///< how often the bound schedule runs
  std::chrono::nanoseconds timeout = 60s;
  std::uint32_t odd_one = ~0u;  ///< this rank binds `odd`
  std::string odd{};
};

/// Binds and runs the schedule in one rank. What it finds, or ""; 'b' goes to the socket when it is bound.
std::string rank_of(const Schedule& s, std::uint32_t rank, const std::vector<std::vector<int>>& all, const How& how,
                    Socket say) {
  const auto d = node(std::max(s.gpus, 1u), how.order, rank + 1);
  SocketExchange exchange(all[rank]);
  const auto b = bind(s, *d,
                      {.rank = rank,
                       .ranks = static_cast<std::uint32_t>(all.size()),
                       .exchange = &exchange,
                       .exchange_limit = how.timeout});
  if (!b) return lines(b.error());
  say.send('b');
  for (std::uint32_t i = 0; i < how.rounds; ++i)
    if (const auto r = run(*b, {.time_limit = how.timeout, .seed = i}); !r) return lines(r.findings);
  return "";
}

class Team {
 public:
  Team(const std::string& text, std::uint32_t ranks, const How& how = {}, const ParseOptions& o = {}) {
    const auto s = parse(text, o);
    const auto odd = how.odd.empty() ? s : parse(how.odd);
    const auto all = mesh(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r)
      ranks_.emplace_back([&, r](Socket say) {
        keep(all, r);
        auto found = rank_of(r == how.odd_one ? odd : s, r, all, how, say);
        found.resize(4000);
        say.send('e');
        for (const char c : found) say.send(c);
        return 0;
      });
    keep(all, ~0u);
  }
  Process& operator[](std::size_t r) { return ranks_[r]; }
  /// What this rank found.
  std::string found(std::size_t r) {
    const auto s = ranks_[r].socket();
    auto c = s.receive<char>();
    if (c == 'b') c = s.receive<char>();
    std::string out;
    if (c != 'e') return "the process has ended";
    for (int i = 0; i < 4000; ++i) out += *s.receive<char>();
    return out.c_str();
  }
  /// What all found, "" if all is right.
  std::string all() {
    std::string out;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (const auto f = found(r); !f.empty()) out += "[" + std::to_string(r) + "] " + f + "\n";
    return out;
  }

 private:
  std::vector<Process> ranks_;
};

std::string collective(const std::string& name) { return read("share/sdma/collectives/" + name + ".sdma"); }

/// Each thread of this text has to wait for what other ranks have done.
const std::string kTurns =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=4K init=zero\nbuffer gpu1.out bytes=4K init=zero\nsignal gpu1.done value=0\n"
    "queue gpu1.q peer=gpu0\n  copy_linear bytes=4K src=gpu0.in dst=gpu1.out\n"
    "  atomic op=add_rtn_64 addr=gpu1.done value=1\nend\n"
    "host main\n  repeat 20\n    store gpu0.in = random\n    submit *\n    wait gpu1.done >= epoch\n"
    "    expect gpu1.out == gpu0.in\n  end\nend\nexpect gpu1.done == 20\n";

/// Waits for ever, in each rank.
const std::string kForever =
    "sdma 1\ngpus 2\nsignal host.never value=0\nhost a rank=0\n  wait host.never == 1\nend\n"
    "host b rank=1\n  wait host.never == 2\nend\n";

}  // namespace

/// A collective in one of its variants.
struct Way {
  const char *file, *collective, *variant;  ///< `collective`: "" if the file has one
};
constexpr Way kWays[] = {
    {"all_gather", "", "pcpy"},
    {"all_gather", "", "bcst"},
    {"all_gather", "", "b2b"},
    {"all_to_all", "", "pcpy"},
    {"all_to_all", "", "b2b"},
    {"all_to_all_in_place", "", "swap"},
    {"alltoallv", "", "pcpy"},
    {"alltoallv", "", "b2b"},
    {"rooted", "broadcast", "pcpy"},
    {"rooted", "broadcast", "bcst"},
    {"rooted", "broadcast", "b2b"},
    {"rooted", "scatter", "pcpy"},
    {"rooted", "scatter", "b2b"},
    {"rooted", "gather", "pcpy"},
    {"rooted", "gather", "b2b"},
    {"reductions", "reduce_scatter", "ring"},
    {"reductions", "reduce_scatter", "halving"},
    {"reductions", "reduce_scatter", "swing"},
    {"reductions", "all_reduce", "ring"},
    {"reductions", "all_reduce", "halving"},
    {"reductions", "all_reduce", "swing"},
};
/// One way with one number of ranks; `turn` selects the rest. All findings, "" if all is right.
std::string of_ranks(const Way& w, std::uint32_t ranks, std::size_t turn) {
  const auto text = collective(w.file);
  ParseOptions o{.set = {{"N", "8"}, {"bytes", "24K"}, {"variant", w.variant}}};
  if (*w.collective != 0) o.set.push_back({"collective", w.collective});
  if (text.find("param prelaunch") != text.npos) {
    const char* const prelaunches[] = {"off", "shared", "per_group", "stream"};
    const char* const completions[] = {"atomic", "fence", "two_fences"};
    o.set.push_back({"prelaunch", prelaunches[turn % 4]});
    o.set.push_back({"completion", completions[turn / 12 % 3]});
    o.set.push_back({"epochs", turn % 3 == 0 ? "1" : "3"});
  }
  return Team(text, ranks, {.order = Ordering::adversarial}, o).all();
}

TEST_CASE("collectives of several processes leave no wrong byte, with adversarial engines") {
  // Each number of ranks once, and every third way; the test of all is long.
  const auto i = GENERATE(range(std::size_t{0}, std::size(kWays) / 3));
  const auto& w = kWays[3 * i];
  const auto ranks = static_cast<std::uint32_t>(2 + i % 7);
  CAPTURE(w.file, w.collective, w.variant, ranks);
  CHECK(of_ranks(w, ranks, i) == "");
}

TEST_CASE("every collective and variant of 2 to 8 processes", "[.all-ranks]") {
  std::size_t turn = 0;
  for (const auto& w : kWays)
    for (std::uint32_t ranks = 2; ranks <= 8; ++ranks) {
      CAPTURE(w.file, w.collective, w.variant, ranks, turn);
      CHECK(of_ranks(w, ranks, turn++) == "");
    }
}

TEST_CASE("a bound schedule of several processes runs again") {
  ParseOptions o{.set = {{"bytes", "24K"}, {"prelaunch", "shared"}}};
  CHECK(Team(collective("all_to_all"), 2, {.order = Ordering::rocr, .rounds = 2}, o).all() == "");
}

TEST_CASE("a rank that is killed at any time is named by all others") {
  auto text = kTurns;
  const std::string few = "repeat 20", many = "repeat 1000000000";
  text.replace(text.find(few), few.size(), many);
  text.replace(text.find("gpus 2"), 6, "gpus 4");
  const auto seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  std::mt19937 random(seed);
  Team team(text, 4);
  for (std::size_t r = 0; r < 4; ++r) REQUIRE(team[r].socket().receive<char>() == 'b');
  const auto victim = random() % 4;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  const auto pid = std::to_string(team[victim].pid());
  CHECK(team[victim].killed() == 128 + SIGKILL);
  for (std::size_t r = 0; r < 4; ++r)
    if (r != victim)
      CHECK(team.found(r) ==
            "run: rank " + std::to_string(victim) + " does not answer: its process " + pid + " has ended");
}

TEST_CASE("a host thread keeps its order when its queues are of another rank") {
  CHECK(Team(kTurns, 2, {.order = Ordering::adversarial, .rounds = 3}).all().empty());
}

TEST_CASE("differences are found by the rank that has the bytes") {
  auto text = kTurns;
  text += "expect gpu0.in == old gpu0.in\nexpect gpu1.done == 21\n";
  Team team(text, 2);
  CHECK(team.found(0).starts_with("expect gpu0.in == old gpu0.in: "));
  CHECK(team.found(1) == "expect gpu1.done == 21: gpu1.done is 20");
}

TEST_CASE("a rank that is killed is named by the others, which do not hang") {
  Team team(kForever, 2);
  REQUIRE(team[0].socket().receive<char>() == 'b');
  REQUIRE(team[1].socket().receive<char>() == 'b');
  const auto pid = std::to_string(team[1].pid());
  CHECK(team[1].killed() == 128 + SIGKILL);
  CHECK(team.found(0) == "run: rank 1 does not answer: its process " + pid + " has ended");
}

TEST_CASE("a rank that fails stops the others") {
  auto text = kForever;
  text +=
      "buffer gpu1.a bytes=8 init=zero\nbuffer gpu1.b bytes=8 init=random\n"
      "host c rank=1\n  expect gpu1.a == gpu1.b\nend\n";
  Team team(text, 2);
  CHECK(team.found(1).starts_with("host c"));
  CHECK(team.found(0) == "run: rank 1 has stopped the run: its report says why");
}

TEST_CASE("a rank that never binds is named") {
  const auto s = parse(kForever);
  const auto all = mesh(2);
  Process one([&](Socket say) {
    keep(all, 0);
    const auto found = rank_of(s, 0, all, {}, say);
    return found.starts_with("rank 1: its handles have not come: it has ended") ? 0 : 1;
  });
  keep(all, ~0u);
  CHECK(one.ended() == 0);
}

TEST_CASE("ranks that bind different schedules, or say another number, are refused") {
  Team team(kForever, 2, {.odd_one = 1, .odd = kTurns});
  CHECK(team.found(0) == "rank 1: it binds another schedule");
  CHECK(team.found(1) == "rank 0: it binds another schedule");
  const auto s = parse(kForever);
  const auto d = node(2);
  const auto refused = [&](const BindOptions& o) { return lines(bind(s, *d, o).error()); };
  SocketExchange none({-1, -1});
  CHECK(refused({.rank = 0, .ranks = 2}) == "bind: the ranks have no way to exchange handles");
  CHECK(refused({.rank = 2, .ranks = 2, .exchange = &none}) == "bind: rank 2 of 2");
  CHECK(refused({.rank = 0, .ranks = 3, .exchange = &none}) == "bind: 3 ranks share 2 GPUs");
}

TEST_CASE("a folder passes the handles, too") {
  const ::test::Folder folder;
  const auto s = parse(kTurns);
  const auto rank = [&](std::uint32_t r) {
    return Process([&, r](Socket) {
      const auto d = node(2);
      FolderExchange exchange(folder.path, r);
      const auto b = bind(s, *d, {.rank = r, .ranks = 2, .exchange = &exchange});
      return b && b->owns(0) == (r == 1) && run(*b) ? 0 : 1;
    });
  };
  auto a = rank(0), b = rank(1);
  CHECK(a.ended() == 0);
  CHECK(b.ended() == 0);
}

TEST_CASE("a host thread names its rank in the text") {
  const auto s = parse(kForever);
  CHECK(s.hosts[0].rank == 0u);
  CHECK(s.hosts[1].rank == 1u);
  CHECK(parse(to_text(s)) == s);
  CHECK(to_text(s).find("host b rank=1\n") != std::string::npos);
  CHECK_FALSE(parse(kTurns).hosts[0].rank);
  CHECK_FALSE(parse_schedule("sdma 1\ngpus 1\nhost main rank=64\nend\n"));
  CHECK_FALSE(parse_schedule("sdma 1\ngpus 1\nhost main ranks=1\nend\n"));
  auto wrong = s;
  wrong.hosts[1].rank = 64;
  CHECK(lines(problems(wrong)) == "host b: its rank must be from 0 to 63");
}
