// SPDX-License-Identifier: MIT
// Copies in pieces that overlap with compute: when do finer pieces win, and when not? Simulated, on eight MI300X.
//
//   FiCCO   an all-gather whose pieces unlock pieces of a GEMM:
//             gpu i   queue to gpu d    copy piece 0, fence | copy piece 1, fence | ...
//             gpu d   kernel            own shard | wait for piece 0 of a peer, its tiles | wait for piece 1, ...
//   T3      a GEMM whose tiles release copies (the first half of a reduce-scatter, without the reduction):
//             gpu i   kernel            tiles of piece 0, counter = 1 | tiles of piece 1, counter = 2 | ...
//             gpu i   queue to gpu d    poll counter >= 1, copy piece 0 | poll counter >= 2, copy piece 1 | ... fence
//
// Kernels are part of the schedule: they wait with acquire and set with release, at system scope. Each piece adds
// kPieceNs to its kernel, because a smaller GEMM uses the GPU less well.
#include "sdma/simulate/simulate.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

using namespace sdma;

namespace {

constexpr std::uint32_t kGpus = 8;
constexpr double kPieceNs = 1500;  // assumed: the tail of one wave of work-groups

std::uint64_t rounded(double ns) { return static_cast<std::uint64_t>(ns + 0.5); }
std::string numbered(const char* what, std::uint32_t i) { return what + std::to_string(i); }

/// `shard`: bytes that each GPU holds first. `shard_ns`: the time of the GEMM over one shard.
Schedule ficco(std::uint64_t shard, double shard_ns, std::uint32_t pieces) {
  Schedule s{.gpus = kGpus};
  const auto piece = shard / pieces;
  std::vector<GpuVa> buffers;
  for (std::uint32_t i = 0; i < kGpus; ++i)
    buffers.push_back(
        s.add_buffer({.place = Place::gpu(i), .name = "buf", .bytes = kGpus * shard, .init = Init::random}));
  std::vector<std::vector<GpuVa>> arrived(kGpus);  // [at][from]
  for (std::uint32_t d = 0; d < kGpus; ++d)
    for (std::uint32_t i = 0; i < kGpus; ++i)
      arrived[d].push_back(s.add_signal({.place = Place::gpu(d), .name = numbered("from", i)}));
  for (std::uint32_t i = 0; i < kGpus; ++i)
    for (std::uint32_t k = 1; k < kGpus; ++k) {
      const auto d = (i + k) % kGpus;
      auto& q = s.add_queue({.place = Place::gpu(i), .name = numbered("to", d), .peer = Place::gpu(d)});
      for (std::uint32_t p = 0; p < pieces; ++p) {
        const auto at = i * shard + p * piece;
        q.copy({.src = buffers[i] + at, .dst = buffers[d] + at, .bytes = piece});
        q.put(Fence{.addr = arrived[d][i], .value = p + 1});
      }
    }
  s.add_host("main").submit_all();
  for (std::uint32_t d = 0; d < kGpus; ++d) {
    auto gemm = s.add_kernel(Place::gpu(d), "gemm").compute(rounded(shard_ns));
    for (std::uint32_t p = 0; p < pieces; ++p)
      for (std::uint32_t k = 1; k < kGpus; ++k)
        gemm.wait(arrived[d][(d + kGpus - k) % kGpus], Compare::ge, p + 1)
            .compute(rounded(shard_ns / pieces + kPieceNs));
  }
  return s;
}

/// `shard`: bytes for each peer. `gemm_ns`: the time of the whole kernel that computes them.
Schedule t3(std::uint64_t shard, double gemm_ns, std::uint32_t pieces) {
  Schedule s{.gpus = kGpus};
  const auto piece = shard / pieces;
  std::vector<GpuVa> in, out, made, done;
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    in.push_back(s.add_buffer({.place = Place::gpu(i), .name = "in", .bytes = kGpus * shard, .init = Init::random}));
    out.push_back(s.add_buffer({.place = Place::gpu(i), .name = "out", .bytes = kGpus * shard}));
    made.push_back(s.add_signal({.place = Place::gpu(i), .name = "tiles"}));
  }
  const auto all = s.add_signal({.name = "done"});
  for (std::uint32_t i = 0; i < kGpus; ++i)
    for (std::uint32_t k = 1; k < kGpus; ++k) {
      const auto d = (i + k) % kGpus;
      auto& q = s.add_queue({.place = Place::gpu(i), .name = numbered("to", d), .peer = Place::gpu(d)});
      for (std::uint32_t p = 0; p < pieces; ++p) {
        q.put(PollMem{.addr = made[i], .func = Compare::ge, .reference = p + 1});
        q.copy({.src = in[i] + d * shard + p * piece, .dst = out[d] + i * shard + p * piece, .bytes = piece});
      }
      q.put(Atomic{.addr = all, .value = 1});
    }
  s.add_host("main").submit_all().wait(all, Compare::eq, kGpus * (kGpus - 1));
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    auto gemm = s.add_kernel(Place::gpu(i), "gemm");
    for (std::uint32_t p = 0; p < pieces; ++p)
      gemm.compute(rounded(gemm_ns / pieces + (pieces > 1 ? kPieceNs : 0))).set(made[i], p + 1);
  }
  return s;
}

/// Returns the best number of pieces; 0, with a message, if it cannot be simulated.
template <class Make> std::uint32_t sweep(const char* what, std::uint64_t shard, double ns, Make make) {
  const auto machine = mi300x_machine();
  if (!machine) return 0;
  std::printf("%-6s %6lluK %10s", what, static_cast<unsigned long long>(shard >> 10), time_text(ns).c_str());
  double first = 0, least = 0;
  std::uint32_t best = 0;
  for (std::uint32_t pieces = 1; pieces <= 64; pieces *= 2) {
    const auto t = simulate(make(shard, ns, pieces), *machine);
    if (!t) {
      std::printf("\n%s\n", to_string(t.error()[0]).c_str());
      return 0;
    }
    if (pieces == 1) first = t->ns;
    if (pieces == 1 || t->ns < least) least = t->ns, best = pieces;
    if (pieces == 1) std::printf(" %10s", time_text(t->ns).c_str());
    else std::printf(" %6.2f", first / t->ns);
  }
  std::printf("   best: %u\n", best);
  return best;
}

}  // namespace

int main() {
  std::printf("%-6s %7s %10s %10s %6s %6s %6s %6s %6s %6s\n", "", "shard", "compute", "1 piece", "2", "4", "8", "16",
              "32", "64");
  bool as_expected = true;
  for (const std::uint64_t shard : {std::uint64_t{256} << 10, std::uint64_t{4} << 20, std::uint64_t{64} << 20}) {
    // Compute that takes half of a link's time, the same time, and twice the time.
    const double link = static_cast<double>(shard) / 48;
    for (const double ratio : {0.5, 1.0, 2.0}) {
      const auto a = sweep("FiCCO", shard, ratio * link / (kGpus - 1), ficco), b = sweep("T3", shard, ratio * link, t3);
      as_expected = as_expected && a != 0 && b != 0 && (shard > 1 << 20 || a <= 4) && (shard < 16 << 20 || a >= 4);
    }
  }
  std::puts(
      "\nThe first column is a time; the others are speed-ups over one piece. Small shards lose, because each piece "
      "adds\n"
      "the fixed cost of a copy, a completion or a poll, and a check. Large shards win until that cost reaches the\n"
      "transfer time of a piece.");
  return as_expected ? 0 : 1;
}
