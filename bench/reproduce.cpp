// The tables of docs/reproduction.md and their pictures: published figures beside those of the model.
//
//   build/bench/bench-reproduce              the tables, as Markdown
//   build/bench/bench-reproduce FOLDER       the same, with all_gather.svg and all_to_all.svg in FOLDER
#include "collectives/plan.hpp"
#include "sdma/core/file.hpp"
#include "sdma/draw/curves.hpp"
#include "sdma/simulate/simulate.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace sdma;
namespace col = collectives;

namespace {

struct Column {
  const char* name;
  col::Variant variant;
  bool prelaunch;
};
constexpr std::uint64_t K = 1024, M = K * K;
constexpr std::uint64_t kSizes[] = {K, 4 * K, 16 * K, 64 * K, 128 * K, 256 * K, 512 * K,
                                    M, 2 * M, 4 * M,  16 * M, 64 * M,  256 * M, K* M};
constexpr double kAllGather[][5] = {
    {2.87, 1.59, 3.67, 2.58, 4.10}, {2.90, 1.64, 3.78, 2.59, 4.13}, {3.17, 1.79, 4.10, 2.81, 4.47},
    {3.21, 1.76, 4.01, 2.84, 4.46}, {3.48, 2.05, 4.52, 3.07, 4.58}, {3.59, 2.00, 4.33, 2.64, 3.58},
    {3.31, 1.96, 3.73, 2.05, 1.58}, {3.22, 1.75, 2.93, 1.56, 1.84}, {2.71, 1.44, 2.16, 1.00, 1.13},
    {2.29, 1.10, 1.23, 0.61, 0.65}, {1.54, 0.67, 0.75, 0.27, 0.27}, {1.11, 0.46, 0.48, 0.17, 0.17},
    {1.03, 0.43, 0.44, 0.15, 0.15}, {1.02, 0.43, 0.43, 0.15, 0.15}};
constexpr double kShares[][5] = {
    {1, 5, 31, 29, 35},   {4, 5, 30, 30, 36},   {16, 4, 30, 33, 33},  {32, 4, 28, 36, 32},   {64, 4, 23, 46, 27},
    {128, 7, 20, 51, 22}, {256, 3, 17, 62, 18}, {512, 2, 13, 72, 13}, {1024, 1, 10, 79, 10}, {2048, 1, 5, 89, 5},
    {4096, 1, 3, 93, 3},  {8192, 0, 1, 97, 1},  {65536, 0, 0, 100, 0}};

std::string size(std::uint64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB"};
  std::size_t unit = 0;
  while (unit < 3 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return std::to_string(bytes) + " " + units[unit];
}

Schedule schedule(col::Collective c, const Column& k, std::uint64_t bytes) {
  auto p = col::plan({.collective = c,
                      .variant = k.variant,
                      .prelaunch = k.prelaunch ? col::Prelaunch::shared : col::Prelaunch::off,
                      .gpus = 8,
                      .bytes = bytes,
                      .in_place = k.variant == col::Variant::swap});
  return p ? std::move(p->schedule) : Schedule{};
}
double ns(const Schedule& s, const MachineDescription& m) {
  const auto t = simulate(s, m);
  return t ? t->ns : 0;
}

/// Figures of the model, with those of `published`, if given, in parentheses.
Curves table(col::Collective c, const std::vector<Column>& columns, const double (*published)[5],
             const MachineDescription& m) {
  Curves curves{.title = std::string(col::name(c)) + ", 8 MI300X: speed-up over pcpy, simulated",
                .x_label = "size in bytes",
                .y_label = "speed-up"};
  std::printf("| size | pcpy, us |");
  for (const auto& k : columns)
    std::printf(" %s |", k.name), curves.series.push_back({.name = k.name, .dashed = !k.prelaunch});
  std::printf(" best |\n|---|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  std::printf("---|\n");
  double sum = 0, worst = 0;
  for (std::size_t r = 0; r < std::size(kSizes); ++r) {
    const auto pcpy = schedule(c, {"pcpy", col::Variant::pcpy, false}, kSizes[r]);
    const auto base = ns(pcpy, m);
    const auto h = sensitivity(pcpy, m);
    std::printf("| %s | %.1f +- %.1f |", size(kSizes[r]).c_str(), base / 1e3, h ? h->uncertainty_ns / 1e3 : 0.0);
    std::size_t best = 0;
    double most = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto x = base / ns(schedule(c, columns[i], kSizes[r]), m);
      if (x > most) most = x, best = i;
      curves.series[i].points.emplace_back(static_cast<double>(kSizes[r]), x);
      if (published) {
        const auto e = x / published[r][i] - 1;
        sum += std::abs(e);
        worst = std::max(worst, std::abs(e));
        std::printf(" %.2f (%.2f, %+.0f %%) |", x, published[r][i], 100 * e);
      } else {
        std::printf(" %.2f |", x);
      }
    }
    std::printf(" %s |\n", columns[best].name);
  }
  if (published)
    std::printf("\nThe mean of the cells' errors is %.1f %%; the worst is %.1f %%.\n",
                100 * sum / (5.0 * std::size(kSizes)), 100 * worst);
  return curves;
}

void shares(const MachineDescription& m) {
  std::printf("| size | time, us | control | schedule | copy | sync |\n|---|---|---|---|---|---|\n");
  double worst = 0;
  for (const auto& row : kShares) {
    const auto bytes = static_cast<std::uint64_t>(row[0]) * K;
    Schedule s{.gpus = 2};
    const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = bytes});
    const auto out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = bytes});
    const auto done = s.add_signal({.name = "done"});
    auto& q = s.add_queue({.place = Place::gpu(0), .name = "push", .peer = Place::gpu(1)});
    q.copy({.src = in, .dst = out, .bytes = bytes}).put(Atomic{.addr = done, .value = 1});
    s.add_host("main").submit(q).wait(done, Compare::eq, 1);
    const auto t = simulate(s, m);
    if (!t) return;
    std::printf("| %s | %.2f |", size(bytes).c_str(), t->ns / 1e3);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto share = 100 * t->phase_ns[i] / t->ns;
      worst = std::max(worst, std::abs(share - row[i + 1]));
      std::printf(" %.1f (%.0f) |", share, row[i + 1]);
    }
    std::printf("\n");
  }
  std::printf("\nThe worst share is off by %.1f points.\n", worst);
}

}  // namespace

int main(int argc, char** argv) {
  const auto m = mi300x_machine();
  if (!m) return 1;
  using col::Variant;
  std::printf("### All-gather: model (published, error)\n\n");
  const auto ag = table(col::Collective::all_gather,
                        {{"pcpy+PL", Variant::pcpy, true},
                         {"bcst", Variant::bcst, false},
                         {"bcst+PL", Variant::bcst, true},
                         {"b2b", Variant::b2b, false},
                         {"b2b+PL", Variant::b2b, true}},
                        kAllGather, *m);
  std::printf("\n### One copy: percent of its time, model (published)\n\n");
  shares(*m);
  std::printf("\n### All-to-all: prediction\n\n");
  const auto aa = table(col::Collective::all_to_all,
                        {{"pcpy+PL", Variant::pcpy, true},
                         {"swap", Variant::swap, false},
                         {"swap+PL", Variant::swap, true},
                         {"b2b", Variant::b2b, false},
                         {"b2b+PL", Variant::b2b, true}},
                        nullptr, *m);
  if (argc < 2) return 0;
  const std::string folder = argv[1];
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [name, curves] : {std::pair{"/all_gather.svg", &ag}, {"/all_to_all.svg", &aa}})
    if (const auto saved = save_file(folder + name, curves_svg(*curves)); !saved)
      return std::fprintf(stderr, "%s\n", to_string(saved.error()).c_str()), 1;
  return 0;
}
