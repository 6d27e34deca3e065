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
  const auto from = seconds(CLOCK_MONOTONIC);
  for (int i = 0; i < 8; ++i)
    (void)rings[1]->submit(CopyLinear{.src = data.gpu(), .dst = data.gpu(64 << 20), .bytes = 64 << 20});
  (void)rings[1]->submit(Fence{.addr = words.gpu(4), .value = 1});
  wait(words.as<std::uint32_t>(4), 1);
  const auto copied = seconds(CLOCK_MONOTONIC) - from;
  const auto plain = seconds(CLOCK_MONOTONIC);
  for (int i = 0; i < 8; ++i) std::memcpy(data.host() + (64 << 20), data.host(), 64 << 20);
  std::printf("%-42s %.2f GB/s; memcpy %.2f GB/s\n", "copy of 64 MiB", 8 * 67.108864e-3 / copied,
              8 * 67.108864e-3 / (seconds(CLOCK_MONOTONIC) - plain));
}
