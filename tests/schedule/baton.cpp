// SPDX-License-Identifier: MIT
// Runs in which one agent acts at a time: the same seed gives the same run, and the delays of threads show races.
#include "../../lib/engine/baton.hpp"

#include "schedule/support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using detail::Baton;

namespace {

/// Does so many actions, and falls asleep before one of them.
class Counting final : public Baton::Agent {
 public:
  Counting(std::string& log, char name, int actions, int sleeps_at)
      : log_(log), name_(name), left_(actions), sleeps_at_(sleeps_at) {}
  bool step() noexcept override {
    if (left_ == sleeps_at_) asleep_ = true, sleeps_at_ = -1;
    if (left_ == 0 || asleep_) return false;
    --left_;
    log_ += name_;
    return true;
  }
  bool asleep() noexcept override { return asleep_; }
  void awaken() noexcept override { asleep_ = false; }

 private:
  std::string& log_;
  char name_;
  int left_, sleeps_at_;
  bool asleep_ = false;
};

/// The order in which two queues and two threads act. Thread d waits for thread c.
std::string acts(std::uint64_t seed, std::chrono::microseconds pause = 0us) {
  std::string log;
  std::vector<std::unique_ptr<Baton::Agent>> queues;
  queues.push_back(std::make_unique<Counting>(log, 'a', 4, 2));
  queues.push_back(std::make_unique<Counting>(log, 'b', 4, -1));
  Baton baton{seed, std::move(queues), 2};
  bool ended = false;
  std::thread c([&] {
    std::this_thread::sleep_for(pause);
    Baton::Hand hand{baton, 0};
    for (int i = 0; i < 3; ++i) hand.pass(), log += 'c', std::this_thread::sleep_for(pause);
    ended = true;
  });
  std::thread d([&] {
    Baton::Hand hand{baton, 1};
    CHECK(Baton::held() == &hand);
    hand.until([&] { return ended; });
    log += 'd';
  });
  baton.run([] { return false; });
  c.join();
  d.join();
  return log;
}

/// Does the run fail? One that is stuck waits for its time.
bool fails(const std::string& text, std::uint64_t seed, std::chrono::milliseconds limit) {
  const auto d = node(2, Ordering::adversarial, seed);
  return !run(link(parse(text), *d), {.time_limit = limit, .seed = seed});
}

// clang-format off
/// A thread, a kernel or a queue is late: nothing waits for it.
const std::string kRaces[] = {
R"(sdma 1
gpus 2
buffer gpu*.buf bytes=8K init=random
for i in 0..2
  signal gpu{i}.flag value=0 bits=32
  signal host.done{i} value=0
end
for i in 0..2
  queue gpu{i}.ce peer=gpu{1-i}
    fence addr=gpu{1-i}.flag value=1
    poll_mem addr=gpu{i}.flag func=eq reference=1
    copy_linear bytes=4K src=gpu{i}.buf[i*4K] dst=gpu{1-i}.buf[i*4K]
    atomic op=add_rtn_64 addr=host.done{i} value=1
  end
end
for i in 0..2
  host rank{i}
    set gpu{i}.flag = 0
    submit gpu{i}.ce
    wait host.done0 == 1
    wait host.done1 == 1
  end
end)",
R"(sdma 1
gpus 1
buffer host.in bytes=8K init=random
buffer gpu0.dev bytes=8K
buffer host.out bytes=8K
signal host.sem value=0 bits=32
signal host.done value=0
queue gpu0.h2d from=host
  fence addr=host.sem value=1
  copy_linear bytes=8K src=host.in dst=gpu0.dev
end
queue gpu0.d2h peer=host
  poll_mem addr=host.sem func=ge reference=1
  copy_linear bytes=8K src=gpu0.dev dst=host.out
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end
expect host.out == host.in)",
R"(sdma 1
gpus 1
buffer host.ring bytes=64 init=random
buffer gpu0.ranks bytes=64
signal gpu0.zeroed value=0 bits=32
signal host.done value=0
kernel gpu0.calloc
  store gpu0.ranks = zero
  set gpu0.zeroed = 1
end
queue gpu0.h2d from=host
  copy_linear bytes=64 src=host.ring dst=gpu0.ranks
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
  wait gpu0.zeroed == 1
end
expect gpu0.ranks == host.ring)",
R"(sdma 1
gpus 2
buffer gpu0.src bytes=8K
buffer gpu1.dst bytes=8K
signal host.idle value=0 bits=32
signal host.done value=0
kernel gpu0.fill
  store gpu0.src = 0x41
end
kernel gpu1.other
  compute ns=1000000
  set host.idle = 1
end
queue gpu1.pull peer=gpu0
  poll_mem addr=host.idle func=eq reference=1
  copy_linear bytes=8K src=gpu0.src dst=gpu1.dst
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end
expect gpu1.dst == gpu0.src)",
};
/// A ring without room for a submit, two threads that submit it, and rounds.
const std::string kRight = R"(sdma 1
gpus 1
buffer gpu0.in bytes=4K init=random
buffer gpu0.out bytes=4K
signal host.n value=0
queue gpu0.q engine=2 ring=1K doorbell=each
  copy_linear bytes=4K src=gpu0.in dst=gpu0.out
  atomic op=add_rtn_64 addr=host.n value=1
  nop dwords=60
  atomic op=add_rtn_64 addr=host.n value=1
end
queue gpu0.r engine=3 ring=2K
  nop dwords=200
  nop dwords=100
end
host one
  repeat 8
    submit gpu0.q gpu0.r
  end
  wait host.n == 32
end
host two
  repeat 8
    submit gpu0.q
  end
  wait gpu0.r.rptr == all
  wait host.n == 32
end
kernel gpu0.k
  compute ns=1000000000
  wait host.n >= 2
end
expect gpu0.out == old gpu0.in)";
// clang-format on

}  // namespace

TEST_CASE("the seed alone says who acts, however long a thread takes") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto first = acts(seed);
    // The run ends with its threads, and a queue that then sleeps has not done all.
    CHECK(std::count(first.begin(), first.end(), 'c') == 3);
    CHECK(std::count(first.begin(), first.end(), 'd') == 1);
    CHECK(first.find('d') > first.rfind('c'));
    CHECK(acts(seed, 50us) == first);
    orders.insert(first);
  }
  CHECK(orders.size() > 20);
}

TEST_CASE("a run that is stuck ends when its owner says so, and every wait with it") {
  Baton baton{1, {}, 1};
  std::atomic<int> asked{0};
  std::thread t([&] {
    Baton::Hand hand{baton, 0};
    hand.until([] { return false; });
    CHECK(hand.ending());
  });
  baton.run([&] { return ++asked == 3; });
  t.join();
  CHECK(asked == 3);
}

TEST_CASE("an adversarial run shows within 20 seeds that a thread, a kernel or a queue may be late, and always alike") {
  for (const auto& text : kRaces) {
    INFO(text);
    int shown = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      shown += fails(text, seed, 100ms);
      if (seed % 4 == 0)
        CHECK(with_patience(100ms, [&](auto limit) { return fails(text, seed, limit) == fails(text, seed, limit); }));
    }
    CHECK(shown >= 2);
  }
}

TEST_CASE("a right schedule ends, with a full ring and with two threads that submit it") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    const auto d = node(1, Ordering::adversarial, seed);
    const auto s = parse(kRight);
    const auto bound = link(s, *d);
    for (int again = 0; again < 2; ++again) CHECK(lines(run(bound, {.time_limit = 60s, .seed = seed}).findings) == "");
  }
}

TEST_CASE("batons of several processes act in turn, as the seed says") {
  const auto log_of = [](std::uint64_t seed, std::chrono::microseconds pause) {
    constexpr std::uint32_t kProcesses = 3;
    const auto conductor = detail::Conductor::shared(kProcesses);
    REQUIRE(conductor);
    std::string log;  // only one of them has the turn
    std::vector<std::thread> all;
    for (std::uint32_t p = 0; p < kProcesses; ++p)
      all.emplace_back([&, p] {
        std::this_thread::sleep_for(pause * p);
        std::vector<std::unique_ptr<Baton::Agent>> queues;
        queues.push_back(std::make_unique<Counting>(log, static_cast<char>('a' + p), 4, p == 1 ? 2 : -1));
        Baton baton{seed + p, std::move(queues), 1, detail::Conductor::Seat{*conductor, p, [] { return false; }}};
        std::thread host([&] {
          Baton::Hand hand{baton, 0};
          for (int i = 0; i < 3; ++i) hand.pass(), log += static_cast<char>('A' + p);
          if (p == 0) hand.until([&] { return std::count(log.begin(), log.end(), 'C') == 3; });
          log += static_cast<char>('0' + p);
        });
        baton.run([] { return false; });
        host.join();
      });
    for (auto& t : all) t.join();
    return log;
  };
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto log = log_of(seed, 0us);
    CAPTURE(seed, log);
    CHECK(log_of(seed, 300us) == log);
    for (const char c : std::string("ABC")) CHECK(std::count(log.begin(), log.end(), c) == 3);
    CHECK(log.find('0') > log.rfind('C'));
    seen.insert(log);
  }
  CHECK(seen.size() > 15);
}

TEST_CASE("a process whose time is up, or that has ended, keeps no other one waiting") {
  const auto conductor = detail::Conductor::shared(2);
  REQUIRE(conductor);
  detail::Conductor::Seat seat{*conductor, 0, [n = 0]() mutable { return ++n == 2; }};
  seat.join(1);  // the other never does
  CHECK(seat.comes() == detail::Conductor::Turn::alone);
  CHECK(seat.comes() == detail::Conductor::Turn::alone);

  const auto again = detail::Conductor::shared(2);
  REQUIRE(again);
  const auto child = ::fork();
  if (child == 0) {
    detail::Conductor::Seat other{*again, 1, [] { return false; }};
    other.join(1);
    ::_exit(0);
  }
  detail::Conductor::Seat mine{*again, 0, [] { return false; }};
  mine.join(1);
  auto turn = mine.comes();
  while (turn != detail::Conductor::Turn::alone) {
    mine.pass({.acted = true});
    turn = mine.comes();
  }
  CHECK(::waitpid(child, nullptr, 0) == child);
}
