// SPDX-License-Identifier: MIT
// The checker on schedules of 8 GPUs and about 100,000 packets: `all_gather` in 1400 prelaunched rounds, and `barrier`,
// in which each of eight queues increments one word and polls it 4200 times. Prints the cost of one check; `--once
// NAME` runs one check, for callgrind.
#include "sdma/check/check.hpp"

#include <chrono>
#include <cstdio>
#include <string_view>

using namespace sdma;

namespace {

constexpr std::uint32_t kGpus = 8;

Schedule all_gather(std::uint64_t rounds) {
  constexpr std::uint64_t kChunk = 64 << 10;
  Schedule s{.gpus = kGpus};
  std::vector<GpuVa> buffers;
  for (std::uint32_t i = 0; i < kGpus; ++i)
    buffers.push_back(s.add_buffer({.place = Place::gpu(i), .name = "buf", .bytes = kGpus * kChunk}));
  const auto go = s.add_signal({.name = "go"}), done = s.add_signal({.name = "done"});
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    auto& q = s.add_queue({.place = Place::gpu(i), .name = "ag", .peer = Place::gpu((i + 1) % kGpus)});
    q.put<&PollMem::reference>({.addr = go, .func = Compare::ge}, kEpoch);
    for (std::uint32_t k = 1; k < kGpus; ++k)
      q.copy({.src = buffers[i] + i * kChunk, .dst = buffers[(i + k) % kGpus] + i * kChunk, .bytes = kChunk});
    q.put(Atomic{.addr = done, .value = 1});
  }
  s.add_host("main")
      .submit_all()
      .repeat(rounds,
              [&](Schedule::Script& r) { r.set(go, kEpoch).wait(done, Compare::ge, kEpoch * kGpus).submit_all(); })
      .set(go, rounds + 1)
      .wait(done, Compare::eq, kGpus * (rounds + 1));
  return s;
}

Schedule barrier(std::uint32_t rounds) {
  Schedule s{.gpus = kGpus};
  std::vector<GpuVa> in, out;
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    in.push_back(s.add_buffer({.place = Place::gpu(i), .name = "in", .bytes = 4096}));
    out.push_back(s.add_buffer({.place = Place::gpu(i), .name = "out", .bytes = 4096}));
  }
  const auto count = s.add_signal({.name = "count"});
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    auto& q = s.add_queue({.place = Place::gpu(i), .name = "step", .peer = Place::gpu((i + 1) % kGpus)});
    for (std::uint32_t r = 1; r <= rounds; ++r) {
      const auto& from = r % 2 ? in : out;
      const auto& to = r % 2 ? out : in;
      q.copy({.src = from[i], .dst = to[(i + 1) % kGpus], .bytes = 4096}).put(Atomic{.addr = count, .value = 1});
      if (r < rounds) q.put(PollMem{.addr = count, .func = Compare::ge, .reference = kGpus * r});
    }
  }
  s.add_host("main").submit_all().wait(count, Compare::ge, kGpus * rounds);
  return s;
}

void measure(const char* name, const Schedule& s) {
  constexpr int kTimes = 7;
  auto best = std::chrono::nanoseconds::max();
  CheckReport r;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    r = check(s);
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
  }
  std::printf("%-12s %7zu packets %6zu waits %2zu findings  %8.1f ms  %6.0f ns per packet\n", name, r.packets, r.waits,
              r.findings.size(), std::chrono::duration<double, std::milli>(best).count(),
              static_cast<double>(best.count()) / static_cast<double>(r.packets));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--once")
    return check(std::string_view(argv[2]) == "barrier" ? barrier(4200) : all_gather(1400)).findings.empty() ? 0 : 1;
  for (const std::uint64_t rounds : {140u, 1400u, 14000u}) measure("all_gather", all_gather(rounds));
  for (const std::uint32_t rounds : {420u, 4200u}) measure("barrier", barrier(rounds));
}
