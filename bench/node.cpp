// SPDX-License-Identifier: MIT
// Prints figures of the node: the cost while idle, the latency while busy and while sleeping, and packets per second.
//
//   build/tools/sdma emulate --doorbells=protect|park|spin -- build/bench/bench-node
#include "../lib/device/kfd/raw_client.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"

#include <sched.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
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

/// Binds the node's thread and this thread to different processors, so that the figures do not include the scheduler.
void part_threads() {
  const auto pin = [](pid_t thread, int processor) {
    cpu_set_t set{};
    CPU_SET(processor, &set);
    return ::sched_setaffinity(thread, sizeof set, &set) == 0;
  };
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with("sdma gpu") && !pin(std::stoi(task.path().filename()), 1))
      std::puts("one processor: the node and its client share it");
  }
  (void)pin(0, 0);
}

using Rings = std::vector<std::unique_ptr<Ring<>>>;

/// Copies and memcpys of the same pages in turn, the best of each; then several engines at once.
void print_copies(const raw::Memory& data, const raw::Memory& words, Rings& rings) {
  constexpr std::uint64_t kHalf = 64 << 20;
  constexpr int kRounds = 30;
  std::uint32_t n = 0;
  // Waiting for several engines, this thread leaves its processor to them.
  const auto copy = [&](std::uint32_t engines, std::uint32_t bytes, bool rests = false) {
    ++n;
    const auto begin = seconds(CLOCK_MONOTONIC);
    for (std::uint32_t e = 0; e < engines; ++e) {
      const auto at = std::uint64_t{e} * bytes;
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
  for (std::uint32_t engines = 1; engines <= std::min(4u, std::thread::hardware_concurrency()); engines *= 2) {
    double best = 1e9;
    for (int i = 0; i < kRounds; ++i) best = std::min(best, copy(engines, 16 << 20, true));
    std::printf("%u engines, 16 MiB each %7.2f GB/s\n", engines, engines * (16 << 20) * 1e-9 / best);
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
  part_threads();
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
