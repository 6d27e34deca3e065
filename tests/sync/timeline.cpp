// SPDX-License-Identifier: MIT
#include "sdma/sync/timeline.hpp"

#include "sdma/packets/encode.hpp"
#include "sdma/sync/recipes.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <vector>

using namespace sdma;

TEST_CASE("epochs grow from the word's value on") {
  std::uint64_t word = 7;
  Timeline t{Signal{.word = &word}};
  CHECK(t.last() == 7);
  CHECK(*t.next() == 8);
  CHECK(*t.next() == 9);
  CHECK(t.last() == 9);
}

TEST_CASE("an epoch of several completions is over with the last of them") {
  std::uint64_t word = 0;
  const Signal s{.word = &word};
  Timeline t{s, 8};
  const auto first = *t.next(), second = *t.next();
  CHECK(first == 8);
  CHECK(second == 16);
  s.add(7);
  CHECK_FALSE(t.reached(first));
  CHECK_FALSE(t.wait(first, test::past()));
  s.add(1);
  CHECK(t.reached(first));
  CHECK(t.wait(first, test::past()));
  CHECK_FALSE(t.reached(second));
}

TEST_CASE("an engine's poll holds when the epoch is over and afterwards") {
  std::uint64_t word = 0;
  Timeline t{Signal{.word = &word, .va = GpuVa{0x7f0000001000}}};
  const auto p = t.poll_for(5);
  REQUIRE(p);
  CHECK(p->addr == GpuVa{0x7f0000001000});
  CHECK(p->func == Compare::ge);
  CHECK(p->reference == 5);
  CHECK(p->mask == 0xffffffff);
  CHECK(p->retry == 0xfff);
  CHECK(fits(*p));
}

TEST_CASE("a timeline ends before the 32 bits of a poll do") {
  std::uint64_t word = 0xfffffffd;
  Timeline t{Signal{.word = &word}};
  CHECK(t.remaining() == 2);
  CHECK(*t.next() == 0xfffffffe);
  CHECK(*t.next() == 0xffffffff);
  CHECK(t.remaining() == 0);
  const auto over = t.next();
  REQUIRE_FALSE(over);
  CHECK(over.error() == Errc::epoch_overflow);
  CHECK(t.last() == 0xffffffff);
  CHECK(t.poll_for(0xffffffff)->reference == 0xffffffff);
  CHECK(t.poll_for(0x1'0000'0000).error() == Errc::epoch_overflow);

  std::uint64_t wide = 0x1'0000'0000;
  Timeline none{Signal{.word = &wide}};
  CHECK(none.remaining() == 0);
  CHECK(none.next().error() == Errc::epoch_overflow);

  std::uint64_t almost = 0xffffffff - 7;
  Timeline eight{Signal{.word = &almost}, 8};
  CHECK(eight.remaining() == 0);
  CHECK(eight.next().error() == Errc::epoch_overflow);
}

TEST_CASE("a timeline begins again when its last epoch is over, and not before") {
  std::uint64_t word = 0xfffffffe;
  const Signal s{.word = &word};
  Timeline t{s};
  REQUIRE(t.next());
  CHECK(t.restart() == Errc::bad_argument);
  CHECK(word == 0xfffffffe);
  s.add(1);
  CHECK(t.restart() == Errc::ok);
  CHECK(word == 0);
  CHECK(*t.next() == 1);
}

TEST_CASE("a wait for an epoch reports the ring that it was given") {
  std::uint64_t word = 0;
  test::RingBytes bytes;
  Ring<> ring{bytes.memory()};
  Timeline t{Signal{.word = &word}};
  const auto epoch = *t.next();
  REQUIRE(ring.submit(Nop{}) == Errc::ok);
  const auto v = t.wait(epoch, test::past(), ring);
  REQUIRE_FALSE(v);
  CHECK(v.error().reference == epoch);
  CHECK(v.error().committed == 4);
}

TEST_CASE("threads that take epochs at once get different ones") {
  constexpr int kThreads = 4, kEach = 500;
  std::uint64_t word = 0;
  Timeline t{Signal{.word = &word}, 3};
  std::vector<std::vector<std::uint64_t>> got(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : got)
    threads.emplace_back([&t, &mine] {
      for (int i = 0; i < kEach; ++i) mine.push_back(*t.next());
    });
  for (auto& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (auto& mine : got) {
    CHECK(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == 3 * (i + 1));
}
