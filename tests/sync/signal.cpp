// SPDX-License-Identifier: MIT
#include "sdma/sync/signal.hpp"

#include "support.hpp"
#include "support/catch.hpp"

#include <type_traits>
#include <vector>

using namespace sdma;

TEST_CASE("a signal is a plain value that owns nothing") {
  static_assert(std::is_trivially_copyable_v<Signal>);
  std::uint64_t word = 3;
  const Signal s{.word = &word, .va = GpuVa{0x7f0000001000}};
  const Signal copy = s;
  copy.set(4);
  CHECK(s.load() == 4);
}

TEST_CASE("add returns the new value and takes away in two's complement") {
  std::uint64_t word = 0xffffffff;
  const Signal s{.word = &word};
  CHECK(s.add(1) == 0x1'0000'0000);
  CHECK(s.add(~std::uint64_t{0}) == 0xffffffff);
  CHECK(word == 0xffffffff);
}

TEST_CASE("behind the store, set and add wake who waits for the word") {
  struct Woken {
    std::vector<std::uint64_t> values{};
    const std::uint64_t* word{};
  };
  std::uint64_t word = 0;
  Woken woken{.word = &word};
  const auto wake = [](void* context, GpuVa va) noexcept {
    auto& w = *static_cast<Woken*>(context);
    if (va == GpuVa{0x1000}) w.values.push_back(*w.word);
  };
  const Signal s{.word = &word, .va = GpuVa{0x1000}, .context = &woken, .wake = wake};
  s.set(5);
  CHECK(s.add(2) == 7);
  CHECK(woken.values == std::vector<std::uint64_t>{5, 7});
}

TEST_CASE("polls see the low dword at va and the high one behind it") {
  std::uint64_t word = 0x1122334455667788;
  const Signal s{.word = &word, .va = test::va(word)};
  CHECK(*reinterpret_cast<const std::uint32_t*>(s.low_va().value) == low_half(word));
  CHECK(*reinterpret_cast<const std::uint32_t*>(s.high_va().value) == high_half(word));
  CHECK(low_half(word) == 0x55667788);
  CHECK(high_half(word) == 0x11223344);
}

// Under ThreadSanitizer a weaker order than release and acquire is a race on `data`.
TEST_CASE("what was written before set is seen behind load") {
  std::uint64_t word = 0;
  const Signal s{.word = &word};
  std::vector<int> data(64);
  std::thread writer([&] {
    for (auto& d : data) d = 7;
    s.set(1, Caching::write_back);
  });
  while (s.load() != 1) std::this_thread::yield();
  int sum = 0;
  for (auto d : data) sum += d;
  CHECK(sum == 64 * 7);
  writer.join();
}

TEST_CASE("adds of several threads are all counted, and the last sees what all wrote") {
  constexpr int kThreads = 4, kAdds = 1000;
  std::uint64_t word = 0;
  const Signal s{.word = &word};
  int written[kThreads]{};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kAdds; ++i) {
        written[t] = i + 1;
        // Once all is added, whoever added last reads what the others wrote.
        if (s.add(1, Caching::write_back) == kThreads * kAdds)
          for (int other = 0; other < kThreads; ++other) written[t] += other == t ? 0 : written[other];
      }
    });
  for (auto& t : threads) t.join();
  CHECK(word == kThreads * kAdds);
  CHECK((written[0] == kThreads * kAdds || written[1] == kThreads * kAdds || written[2] == kThreads * kAdds ||
         written[3] == kThreads * kAdds));
}
