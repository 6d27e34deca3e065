// SPDX-License-Identifier: MIT
// Prints figures of the node: the cost while idle, the latency while busy and while sleeping, and packets per second.
//
//   build/tools/sdma emulate --doorbells=protect|park|spin -- build/bench/bench-node
#include "../lib/device/kfd/raw_client.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace sdma::raw;
using namespace sdma;

namespace {

double seconds(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void wait(const std::uint32_t* word, std::uint32_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) __builtin_ia32_pause();
}

void print_latency(const char* what, std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  std::printf("%-42s best 10 %% %8.2f us, median %8.2f us\n", what, us[us.size() / 10], us[us.size() / 2]);
}

bool bind(pid_t thread, std::initializer_list<unsigned> processors) {
  cpu_set_t set{};
  for (const auto p : processors) CPU_SET(p, &set);
  return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}

/// Binds the node's threads, and this one, to these processors. Threads that they start later inherit it.
void bind_threads(std::initializer_list<unsigned> node, std::initializer_list<unsigned> client) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with("sdma gpu") && !bind(std::stoi(task.path().filename()), node))
      std::puts("one processor: the node and its client share it");
  }
  (void)bind(0, client);
}

using Rings = std::vector<std::unique_ptr<Ring<>>>;

/// Copies and memcpys of the same pages in turn, the best of each; then several engines at once.
void print_copies(const raw::Memory& data, const raw::Memory& words, Rings& rings) {
  constexpr std::uint64_t kHalf = 64 << 20;
  constexpr int kRounds = 30;
  std::uint32_t n = 0;
  // Waiting for several engines, this thread leaves its processor to them.
  const auto copy = [&](std::uint32_t engines, std::uint32_t bytes, bool rests = false, std::uint32_t times = 1) {
    ++n;
    const auto begin = seconds(CLOCK_MONOTONIC);
    for (std::uint32_t e = 0; e < engines; ++e) {
      const auto at = std::uint64_t{e} * bytes;
      for (std::uint32_t i = 0; i < times; ++i)
        (void)rings[e]->submit(CopyLinear{.src = data.gpu(at), .dst = data.gpu(kHalf + at), .bytes = bytes});
      (void)rings[e]->submit(Fence{.addr = words.gpu(1024 + 64 * e), .value = n});
    }
    for (std::uint32_t e = 0; e < engines; ++e) {
      const auto* done = words.as<std::uint32_t>(1024 + 64 * e);
      while (rests && __atomic_load_n(done, __ATOMIC_ACQUIRE) != n) ::usleep(50);
      wait(done, n);
    }
    return seconds(CLOCK_MONOTONIC) - begin;
  };
  for (const std::uint32_t bytes : {64u << 10, 1u << 20, 16u << 20, 64u << 20}) {
    double copied = 1e9, plain = 1e9;
    for (int i = 0; i < kRounds; ++i) {
      copied = std::min(copied, copy(1, bytes));
      const auto begin = seconds(CLOCK_MONOTONIC);
      std::memcpy(data.host() + kHalf, data.host(), bytes);
      plain = std::min(plain, seconds(CLOCK_MONOTONIC) - begin);
    }
    std::printf("copy of %5u KiB  %10.2f GB/s; memcpy %6.2f GB/s; %.2f\n", bytes >> 10, bytes * 1e-9 / copied,
                bytes * 1e-9 / plain, plain / copied);
  }
  bind_threads({0, 1}, {0, 1});
  const auto copied_by_threads = [&](std::uint32_t threads, std::uint64_t bytes, std::uint32_t times) {
    std::vector<std::thread> running;
    std::atomic<std::uint32_t> there{0};
    double begin = 0;
    for (std::uint32_t t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        if (there.fetch_add(1) + 1 == threads) begin = seconds(CLOCK_MONOTONIC);
        while (there.load() < threads) {}
        for (std::uint32_t i = 0; i < times; ++i)
          std::memcpy(data.host() + kHalf + t * bytes, data.host() + t * bytes, bytes);
      });
    for (auto& thread : running) thread.join();
    return seconds(CLOCK_MONOTONIC) - begin;
  };
  for (const std::uint32_t bytes : {256u << 10, 1u << 20, 4u << 20, 16u << 20}) {
    double engine[2] = {1e9, 1e9}, thread[2] = {1e9, 1e9};
    const auto times = (128u << 20) / bytes;  // long enough that the client's naps between its looks do not count
    for (int i = 0; i < kRounds; ++i)
      for (std::uint32_t n_of : {1u, 2u}) {
        engine[n_of - 1] = std::min(engine[n_of - 1], copy(n_of, bytes, true, times));
        thread[n_of - 1] = std::min(thread[n_of - 1], copied_by_threads(n_of, bytes, times));
      }
    std::printf("%5u KiB each: two engines %.2f times one (%.2f GB/s); two threads' memcpy %.2f times one\n",
                bytes >> 10, 2 * engine[0] / engine[1], times * bytes * 1e-9 / engine[0], 2 * thread[0] / thread[1]);
  }
}

}  // namespace

int main() {
  Client c;
  auto words = c.allocate(4096);
  auto data = c.allocate(128 << 20, 0, kfd::kVram);
  std::memset(data.host(), 1, data.bytes);
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Ring<>>> rings;
  for (std::uint32_t i = 0; i < 64; ++i) {
    queues.push_back(std::make_unique<Queue>(c, 0, kfd::kQueueSdmaByEngine, i % 16, 16384));
    rings.push_back(std::make_unique<Ring<>>(queues.back()->memory()));
  }
  bind_threads({1}, {0});  // apart, so that the figures do not include the scheduler
  const auto* word = words.as<std::uint32_t>();
  std::uint32_t n = 0;
  std::vector<double> us;
  const auto ping = [&] {
    const auto begin = seconds(CLOCK_MONOTONIC);
    (void)rings[0]->submit(Fence{.addr = words.gpu(), .value = ++n});
    wait(word, n);
    us.push_back((seconds(CLOCK_MONOTONIC) - begin) * 1e6);
  };
  for (int i = 0; i < 2'000; ++i) ping();
  print_latency("doorbell to fence, one after another", us);
  us.clear();
  for (int i = 0; i < 50; ++i) {
    ::usleep(100'000);
    ping();
  }
  print_latency("doorbell to fence, after 100 ms of rest", us);

  std::fflush(stdout);
  ::usleep(500'000);
  const auto cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), begin = seconds(CLOCK_MONOTONIC);
  ::usleep(3'000'000);
  std::printf("%-42s %.3f %% of a processor\n", "idle, 64 queues",
              (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (seconds(CLOCK_MONOTONIC) - begin) * 100);

  for (std::uint32_t used : {1u, 8u, 64u}) {
    const auto from = seconds(CLOCK_MONOTONIC);
    std::uint64_t packets = 0;
    std::uint32_t last = 0;
    while (seconds(CLOCK_MONOTONIC) - from < 1) {
      ++last;
      for (std::uint32_t q = 0; q < used; ++q)
        for (int burst = 0; burst < 16; ++burst)
          packets += rings[q]->submit(Fence{.addr = words.gpu(64 + q * 4), .value = last}) == Errc::ok;
    }
    for (std::uint32_t q = 0; q < used; ++q) {
      const auto value = ++last;
      while (rings[q]->submit(Fence{.addr = words.gpu(64 + q * 4), .value = value}) != Errc::ok) {}
      wait(words.as<std::uint32_t>(64 + q * 4), value);
    }
    std::printf("packets per second, %2u queues              %.2f million\n", used,
                static_cast<double>(packets) / (seconds(CLOCK_MONOTONIC) - from) * 1e-6);
  }
  print_copies(data, words, rings);
}
