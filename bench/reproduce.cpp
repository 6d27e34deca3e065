// SPDX-License-Identifier: MIT
// The tables of docs/reproduction.md and their pictures: figures of share/published beside those of the model.
//
//   build/bench/bench-reproduce              the tables, as Markdown
//   build/bench/bench-reproduce FOLDER       the same, with all_gather.svg and all_to_all.svg in FOLDER
#include "collectives/plan.hpp"
#include "draw/curves.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/measurements.hpp"

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
constexpr std::uint32_t kGpus = 8;
constexpr std::uint64_t kSizes[] = {K, 4 * K, 16 * K, 64 * K, 128 * K, 256 * K, 512 * K,
                                    M, 2 * M, 4 * M,  16 * M, 64 * M,  256 * M, K* M};
constexpr const char* kPublished = SDMA_SOURCE_ROOT "/share/published/dma-latte.csv";

/// The published speed-up; null if there is none.
const Observation* published(const Measurements& m, const Column& k, std::uint64_t bytes) {
  return m.find("dma-latte/all_gather_" + std::string(col::name(k.variant)) + ".sdma",
                "chunk=" + size_text(bytes / kGpus) + (k.prelaunch ? " prelaunch=1" : ""), "speed_up");
}

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
                      .gpus = kGpus,
                      .bytes = bytes,
                      .in_place = k.variant == col::Variant::swap});
  return p ? std::move(p->schedule) : Schedule{};
}

/// Figures of the model, with those of `all`, if given, in parentheses.
Curves table(col::Collective c, const std::vector<Column>& columns, const Measurements* all,
             const MachineDescription& m) {
  Curves curves{.title = std::string(col::name(c)) + ", 8 MI300X: speed-up over pcpy, simulated, with 68 % intervals",
                .x_label = "size in bytes",
                .y_label = "speed-up",
                .ratios = true};
  std::printf("| size | pcpy, us |");
  for (const auto& k : columns)
    std::printf(" %s |", k.name), curves.series.push_back({.name = k.name, .dashed = k.prelaunch});
  std::printf(" best |\n|---|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  std::printf("---|\n");
  double sum = 0, worst = 0;
  int cells = 0, inside = 0;
  for (std::size_t r = 0; r < std::size(kSizes); ++r) {
    const auto pcpy = schedule(c, {"pcpy", col::Variant::pcpy, false}, kSizes[r]);
    const auto h = sensitivity(pcpy, m);
    std::printf("| %s | %.1f +- %.1f |", size(kSizes[r]).c_str(), h ? h->ns / 1e3 : 0.0,
                h ? h->uncertainty_ns / 1e3 : 0.0);
    std::size_t best = 0;
    double most = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto faster = speed_up(pcpy, schedule(c, columns[i], kSizes[r]), m);
      const auto x = faster ? faster->value : 0, spread = faster ? faster->uncertainty : 0;
      if (x > most) most = x, best = i;
      curves.series[i].points.emplace_back(static_cast<double>(kSizes[r]), x);
      curves.series[i].band.emplace_back(x - spread, x + spread);
      if (const auto* o = all ? published(*all, columns[i], kSizes[r]) : nullptr) {
        const auto e = x / o->value - 1;
        sum += std::abs(e);
        ++cells;
        worst = std::max(worst, std::abs(e));
        inside += std::abs(x - o->value) <= spread;
        std::printf(" %.2f +- %.2f (%.2f, %+.0f %%) |", x, spread, o->value, 100 * e);
      } else {
        std::printf(" %.2f +- %.2f |", x, spread);
      }
    }
    std::printf(" %s |\n", columns[best].name);
  }
  if (cells > 0)
    std::printf(
        "\nThe mean of the cells' errors is %.1f %%; the worst is %.1f %%. Of %d cells, %d lie inside their "
        "interval.\n",
        100 * sum / cells, 100 * worst, cells, inside);
  return curves;
}

void shares(const Measurements& all, const MachineDescription& m) {
  std::printf("| size | time, us | control | schedule | copy | sync |\n|---|---|---|---|---|---|\n");
  double worst = 0;
  const Schedule* before = nullptr;
  for (const auto& o : all.observations) {
    if (o.kind != Observation::Kind::share) continue;
    const auto t = simulate(*o.schedule, m);
    if (!t) return;
    // The cells of a row have the same schedule.
    if (o.schedule.get() != before)
      std::printf("%s| %s | %.2f |", before ? "\n" : "", size(o.schedule->buffers[0].bytes).c_str(), t->ns / 1e3);
    before = o.schedule.get();
    const auto share = 100 * t->phase_ns[static_cast<std::size_t>(o.phase)] / t->ns;
    worst = std::max(worst, std::abs(share - o.value));
    std::printf(" %.1f (%.0f) |", share, o.value);
  }
  std::printf("\n\nThe worst share is off by %.1f points.\n", worst);
}

}  // namespace

int main(int argc, char** argv) {
  const auto m = mi300x_machine();
  const auto all = read_measurements(kPublished);
  if (!m || !all) return std::fprintf(stderr, "%s\n", to_string(m ? all.error()[0] : m.error()).c_str()), 1;
  using col::Variant;
  std::printf("### All-gather: model (published, error)\n\n");
  const auto ag = table(col::Collective::all_gather,
                        {{"pcpy+PL", Variant::pcpy, true},
                         {"bcst", Variant::bcst, false},
                         {"bcst+PL", Variant::bcst, true},
                         {"b2b", Variant::b2b, false},
                         {"b2b+PL", Variant::b2b, true}},
                        &*all, *m);
  std::printf("\n### One copy: percent of its time, model (published)\n\n");
  shares(*all, *m);
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
