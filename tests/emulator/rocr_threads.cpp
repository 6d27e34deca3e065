// SPDX-License-Identifier: MIT
// ROCr under threads and signals of Unix: waits of many threads for one signal, copies by 16 threads, and a runtime
// that starts again and again. Catch's assertions are for one thread, so threads count what fails. Part of the
// program of rocr.cpp.
#include "rocr_runtime.hpp"

#include <sys/time.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

using namespace rocr;
using namespace std::chrono_literals;

namespace {

/// SIGALRM every 200 us of time, and a handler that does nothing but interrupt.
class Alarms {
 public:
  Alarms() {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) { ++count; };
    ::sigaction(SIGALRM, &quiet, &before_);
    const itimerval often{{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Alarms() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  static inline std::atomic<int> count{0};

 private:
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("six threads wait for one signal in every way, while SIGALRM interrupts them") {
  const Runtime r;
  const auto& g = r.gpus[0];
  constexpr std::size_t kBytes = 1 << 20;
  auto *host = r.allocate(r.cpu, kBytes), *back = r.allocate(r.cpu, kBytes), *vram = r.allocate(g, kBytes);
  const Alarms alarms;
  for (std::uint32_t round = 0; round < 10; ++round) {
    const auto data = pattern(kBytes, round);
    std::memcpy(host, data.data(), kBytes);
    const Signal last(3), there, home;
    std::atomic<int> woken{0}, handled{0};
    GOOD(hsa_amd_signal_async_handler(
        last.s, HSA_SIGNAL_CONDITION_LT, 1,
        [](hsa_signal_value_t, void* n) {
          ++*static_cast<std::atomic<int>*>(n);
          return false;
        },
        &handled));
    std::vector<std::thread> waiters;
    for (int i = 0; i < 6; ++i)
      waiters.emplace_back([&, i] {
        auto condition = i % 2 == 0 ? HSA_SIGNAL_CONDITION_LT : HSA_SIGNAL_CONDITION_EQ;
        hsa_signal_value_t value = i % 2 == 0 ? 1 : 0;
        auto s = last.s;
        if (i < 4) {
          const auto how = i < 2 ? HSA_WAIT_STATE_BLOCKED : HSA_WAIT_STATE_ACTIVE;
          while (hsa_signal_wait_scacquire(s, condition, value, UINT64_MAX, how) != 0) continue;
          ++woken;
        } else if (hsa_amd_signal_wait_any(1, &s, &condition, &value, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, nullptr) ==
                   0) {
          ++woken;
        }
      });
    bool started = hsa_amd_memory_async_copy(vram, g.agent, host, r.cpu.agent, kBytes, 0, nullptr, there.s) == 0;
    started = started && hsa_amd_memory_async_copy(back, r.cpu.agent, vram, g.agent, kBytes, 1, &there.s, home.s) == 0;
    // The engine counts the signal down once, and the host twice.
    started = started && hsa_amd_memory_async_copy(vram, g.agent, host, r.cpu.agent, kBytes, 1, &home.s, last.s) == 0;
    const bool arrived = started && home.done();
    hsa_signal_subtract_relaxed(last.s, started ? 1 : 2);
    hsa_signal_subtract_screlease(last.s, 1);
    for (auto& t : waiters) t.join();
    REQUIRE(arrived);
    REQUIRE(woken == 6);
    REQUIRE(std::memcmp(back, data.data(), kBytes) == 0);
    for (int i = 0; i < 10'000 && handled == 0; ++i) std::this_thread::sleep_for(1ms);
    REQUIRE(handled == 1);
  }
  CHECK(Alarms::count > 0);
  for (auto* p : {host, back, vram}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("memory comes and goes between two GPUs while SIGALRM interrupts every call") {
  const Runtime r;
  const Alarms alarms;
  for (std::uint32_t round = 0; round < 50; ++round) {
    constexpr std::size_t kBytes = 70'000;
    auto *host = r.allocate(r.cpu, kBytes), *vram = r.allocate(r.gpus[round % r.gpus.size()], kBytes);
    const auto data = pattern(kBytes, round);
    std::memcpy(host, data.data(), kBytes);
    copy(vram, r.gpus[round % r.gpus.size()], host, r.cpu, kBytes);
    std::memset(host, 0, kBytes);
    copy(host, r.cpu, vram, r.gpus[round % r.gpus.size()], kBytes);
    REQUIRE(std::memcmp(host, data.data(), kBytes) == 0);
    REQUIRE(hsa_amd_memory_pool_free(vram) == HSA_STATUS_SUCCESS);
    REQUIRE(hsa_amd_memory_pool_free(host) == HSA_STATUS_SUCCESS);
  }
}

TEST_CASE("16 threads allocate, copy and free on all GPUs at once") {
  const Runtime r;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      const auto &near = r.gpus[t % r.gpus.size()], &far = r.gpus[(t + 1) % r.gpus.size()];
      for (std::uint32_t round = 0; round < 8; ++round) {
        const std::size_t bytes = 1 + (t * 7919 + round * 104'729) % 200'000;
        const auto data = pattern(bytes, t * 31 + round);
        auto *a = r.try_allocate(near.pool, bytes), *b = r.try_allocate(far.pool, bytes);
        auto *host = r.try_allocate(r.cpu.pool, bytes), *back = r.try_allocate(r.cpu.pool, bytes);
        if (!a || !b || !host || !back) {
          ++failed;
          return;
        }
        std::memcpy(host, data.data(), bytes);
        const Signal first, second;
        failed += hsa_amd_memory_async_copy(b, far.agent, a, near.agent, bytes, 1, &first.s, second.s) != 0;
        failed += hsa_amd_memory_async_copy(a, near.agent, host, r.cpu.agent, bytes, 0, nullptr, first.s) != 0;
        failed += !second.done() || !copied(back, r.cpu, b, far, bytes);
        failed += std::memcmp(back, data.data(), bytes) != 0;
        for (auto* p : {a, b, host, back}) failed += hsa_amd_memory_pool_free(p) != HSA_STATUS_SUCCESS;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(failed == 0);
}

TEST_CASE("a runtime that is shut down starts again") {
  for (std::uint32_t round = 0; round < 5; ++round) {
    const Runtime r;
    constexpr std::size_t kBytes = 4096;
    auto *host = r.allocate(r.cpu, kBytes), *vram = r.allocate(r.gpus.back(), kBytes);
    const auto data = pattern(kBytes, round);
    std::memcpy(host, data.data(), kBytes);
    copy(vram, r.gpus.back(), host, r.cpu, kBytes);
    std::memset(host, 0, kBytes);
    copy(host, r.cpu, vram, r.gpus.back(), kBytes);
    REQUIRE(std::memcmp(host, data.data(), kBytes) == 0);
  }
}
