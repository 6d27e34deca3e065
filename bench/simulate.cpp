// SPDX-License-Identifier: MIT
// The speed of the simulator: an 8-GPU sweep of every variant of all-gather and all-to-all, from 1 KB to 1 GB, and one
// schedule of 100,000 packets. Schedules are planned first; only simulate() is measured.
#include "sdma/simulate/simulate.hpp"
#include "collectives/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace sdma;
namespace col = collectives;

namespace {

double seconds(const std::vector<Schedule>& all, const MachineDescription& m, std::uint64_t& packets) {
  const auto begin = std::chrono::steady_clock::now();
  packets = 0;
  for (const auto& s : all) {
    const auto t = simulate(s, m);
    if (!t) std::printf("%s\n", to_string(t.error()[0]).c_str());
    else packets += t->packets;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void best_of(const char* what, const std::vector<Schedule>& all, const MachineDescription& m) {
  std::uint64_t packets = 0;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) best = std::min(best, seconds(all, m, packets));
  std::printf("%-34s %4zu schedules %8llu packets %8.1f ms %7.0f ns per packet\n", what, all.size(),
              static_cast<unsigned long long>(packets), best * 1e3, best * 1e9 / static_cast<double>(packets));
}

}  // namespace

int main() {
  const auto m = mi300x_machine();
  if (!m) return 1;
  std::vector<Schedule> sweep;
  for (auto bytes = std::uint64_t{1} << 10; bytes <= std::uint64_t{1} << 30; bytes *= 2)
    for (const auto c : {col::Collective::all_gather, col::Collective::all_to_all})
      for (const auto v : col::kVariants)
        for (const auto p : {col::Prelaunch::off, col::Prelaunch::shared}) {
          if (!col::has_variant(c, v)) continue;
          auto plan = col::plan({.collective = c,
                                 .variant = v,
                                 .prelaunch = p,
                                 .gpus = 8,
                                 .bytes = bytes,
                                 .in_place = v == col::Variant::swap});
          if (plan) sweep.push_back(std::move(plan->schedule));
        }
  best_of("every variant, 1 KB to 1 GB", sweep, *m);
  auto big = col::plan({.variant = col::Variant::b2b, .gpus = 8, .bytes = 8ull * 1785 * 4096, .packet_bytes = 4096});
  if (!big) return 1;
  std::vector<Schedule> one;
  one.push_back(std::move(big->schedule));
  best_of("b2b in packets of 4 KB", one, *m);
}
