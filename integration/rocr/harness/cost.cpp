// SPDX-License-Identifier: MIT
// What one submission costs: a copy with one dependency and an interrupt, on a ring whose engine consumes at once.
//
//   cost [ROUNDS]          prints ns per submission, original and patched,
//                          with one thread and with four; the best of ROUNDS
//
// One thread: its own processor time, so that other programs do not count; it moves rptr to wptr itself, every 1000
// submissions. Four: the wall's time, divided by the submissions of all, because waiting for each other is the
// cost; a fifth thread moves rptr every 100 us. The status is 1 if the patched blit costs more than the original,
// beyond 5 % of noise.
#include "rig.hpp"

#include <sys/mman.h>
#include <time.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double processor_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double ns(std::unique_ptr<rig::Blit> (*make)(rig::State&), int threads, int submissions) {
  static char* const ring = static_cast<char*>(
      ::mmap(nullptr, rig::kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  rig::State state{.ring = ring};
  rig::SignalMemory internals[2], dependency, out[4];
  dependency.value = 1;
  for (auto& o : out) o.value = 1, o.mailbox = 4096;
  state.internals = internals;
  auto blit = make(state);
  std::atomic<bool> over{false};
  const auto consume = [&] {
    __atomic_store_n(&state.rptr, __atomic_load_n(&state.wptr, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
  };
  if (threads == 1) {
    const rig::Blit::Signals deps{&dependency}, gang;
    char data[64];
    const auto begin = processor_ns();
    for (int i = 0; i != submissions; ++i) {
      blit->copy(data, data + 32, 32, deps, out[0], gang);
      if (i % 1000 == 0) consume();
    }
    return (processor_ns() - begin) / submissions;
  }
  std::thread engine([&] {
    while (!over.load()) {
      consume();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> all;
  for (int t = 0; t != threads; ++t)
    all.emplace_back([&, t] {
      const rig::Blit::Signals deps{&dependency}, gang;
      char data[64];
      ++ready;
      while (!go.load()) std::this_thread::yield();
      for (int i = 0; i != submissions / threads; ++i) blit->copy(data, data + 32, 32, deps, out[t], gang);
    });
  while (ready != threads) std::this_thread::yield();
  const auto begin = Clock::now();
  go = true;
  for (auto& t : all) t.join();
  const auto took = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  over = true;
  engine.join();
  blit.reset();
  return took / submissions;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  bool worse = false;
  for (const int threads : {1, 4}) {
    double theirs = 1e18, ours = 1e18;
    for (int i = 0; i != rounds; ++i) {
      theirs = std::min(theirs, ns(&rig::theirs, threads, threads == 1 ? 200'000 : 40'000));
      ours = std::min(ours, ns(&rig::ours, threads, threads == 1 ? 200'000 : 40'000));
    }
    std::printf("%d thread%s  original %8.0f ns  patched %8.0f ns per submission\n", threads, threads == 1 ? " " : "s",
                theirs, ours);
    worse = worse || ours > theirs * 1.05;
  }
  return worse;
}
