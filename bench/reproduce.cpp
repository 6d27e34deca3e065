// SPDX-License-Identifier: MIT
// The tables of docs/reproduction.md and their pictures: figures of share/published beside those of the model.
//
//   build/bench/bench-reproduce              the tables, as Markdown
//   build/bench/bench-reproduce FOLDER       the same, with all_gather.svg and all_to_all.svg in FOLDER
#include "collectives/plan.hpp"
#include "draw/curves.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/held_out.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
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
constexpr std::uint32_t kGpus = 8;
const std::string kPublished = SDMA_SOURCE_ROOT "/share/published/";

/// The sizes of all-gathers that the table has.
std::vector<std::uint64_t> sizes_of(const Measurements& m) {
  std::set<std::uint64_t> out;
  for (const auto& r : m.rows)
    if (const auto at = r.settings.find("chunk="); at != r.settings.npos)
      if (const auto chunk = parse_size(r.settings.substr(at + 6, r.settings.find(' ', at) - at - 6)))
        out.insert(*chunk * kGpus);
  return {out.begin(), out.end()};
}

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
Curves table(col::Collective c, const std::vector<Column>& columns, const std::vector<std::uint64_t>& sizes,
             const Measurements* all, const MachineDescription& m) {
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
  for (const auto bytes : sizes) {
    const auto pcpy = schedule(c, {"pcpy", col::Variant::pcpy, false}, bytes);
    const auto h = sensitivity(pcpy, m);
    std::printf("| %s | %.1f +- %.1f |", size(bytes).c_str(), h ? h->ns / 1e3 : 0.0, h ? h->uncertainty_ns / 1e3 : 0.0);
    std::size_t best = 0;
    double most = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto faster = speed_up(pcpy, schedule(c, columns[i], bytes), m);
      const auto x = faster ? faster->value : 0, spread = faster ? faster->uncertainty : 0;
      if (x > most) most = x, best = i;
      curves.series[i].points.emplace_back(static_cast<double>(bytes), x);
      curves.series[i].band.emplace_back(x - spread, x + spread);
      if (const auto* o = all ? published(*all, columns[i], bytes) : nullptr) {
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

/// The all-gather by rings of kernels with that protocol, with what a launch takes beyond that of a graph.
Schedule by_kernels(std::uint64_t bytes, const char* protocol) {
  const auto text = read_file(SDMA_SOURCE_ROOT "/share/sdma/collectives/kernels.sdma");
  const auto s = parse_schedule(text ? *text : "", "kernels.sdma",
                                {.set = {{"collective", "all_gather"},
                                         {"bytes", std::to_string(bytes)},
                                         {"protocol", protocol},
                                         {"start_ns", "5500"}}});
  return s ? *s : Schedule{};
}

/// All-gathers by engines as a part of the time by kernels: above 1, kernels are faster. Estimates, which no public
/// table judges.
void against_kernels(const std::vector<Column>& columns, const std::vector<std::uint64_t>& sizes,
                     const MachineDescription& m) {
  std::printf("| size | kernels, us | protocol | pcpy | best of engines | |\n|---|---|---|---|---|---|\n");
  for (const auto bytes : sizes) {
    const auto ll = by_kernels(bytes, "ll"), simple = by_kernels(bytes, "simple");
    const auto a = sensitivity(ll, m), b = sensitivity(simple, m);
    if (!a || !b) continue;
    const bool flags = a->ns < b->ns;
    const auto& kernels = flags ? ll : simple;
    const auto ratio = [&](const Schedule& s) { return speed_up(s, kernels, m); };
    auto best = ratio(schedule(col::Collective::all_gather, {"pcpy", col::Variant::pcpy, false}, bytes));
    const auto pcpy = best;
    const char* name = "pcpy";
    for (const auto& k : columns)
      if (const auto r = ratio(schedule(col::Collective::all_gather, k, bytes)); r && best && r->value < best->value)
        best = r, name = k.name;
    if (!pcpy || !best) continue;
    const auto& t = flags ? *a : *b;
    std::printf("| %s | %.1f +- %.1f | %s | %.2f +- %.2f | %.2f +- %.2f | %s |\n", size(bytes).c_str(), t.ns / 1e3,
                t.uncertainty_ns / 1e3, flags ? "ll" : "simple", pcpy->value, pcpy->uncertainty, best->value,
                best->uncertainty, name);
  }
}

std::string cells_text(const Judged::Cells& c) {
  return c.cells == 0 ? "" : fmt::format("{} cells, {:.1f} %, worst {:.0f} %", c.cells, 100 * c.mean, 100 * c.worst);
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

/// Every cell of the other tables, each on its machine, and how far machines are off by what copies have in common.
bool cells() {
  const auto failed = [](const Diagnostic& d) { return std::fprintf(stderr, "%s\n", to_string(d).c_str()), false; };
  std::string judged;
  for (const auto& [layout, how, tables] :
       std::initializer_list<std::tuple<const char*, Through, std::vector<std::string>>>{
           {"mi300x:8", Through::rings, {"dma-latte", "mi300x", "rccl-mi300x"}},
           {"mi355x:8", Through::rings, {"mi355x"}},
           {"mi300x:8", Through::hip, {"mi300x-hip"}},
           {"mi355x:8", Through::hip, {"mi355x-hip"}}}) {
    auto m = layout_machine(layout);
    if (!m) return failed(m.error());
    through(*m, how);
    std::vector<Measurements> read;
    for (const auto& name : tables) {
      auto t = read_measurements(kPublished + name + ".csv");
      if (!t) return failed(t.error()[0]);
      const auto all = *std::move(t);
      if (name != "rccl-mi300x") read.push_back(all);  // kernels have no pattern of copies
      if (name == "dma-latte") continue;
      const auto predictions = predict(all.observations, *m);
      if (!predictions) return failed(predictions.error()[0]);
      std::printf(
          "\n### Cells of %s.csv\n\n| cell | published | model | error | | source |\n|---|---|---|---|---|---|\n",
          name.c_str());
      for (std::size_t i = 0; i < all.rows.size(); ++i) {
        const auto& r = all.rows[i];
        const auto& o = all.observations[i];
        const auto ratio = o.kind == Observation::Kind::ratio;
        const auto text = [&](double v) { return ratio ? fmt::format("{:.2f}", v) : time_text(v); };
        std::printf("| %s %s | %s | %s +- %s | %+.1f %% | %s | %s |\n", r.schedule.c_str(), r.settings.c_str(),
                    text(o.value).c_str(), text((*predictions)[i].value).c_str(), text(half_interval(o, *m)).c_str(),
                    100 * (*predictions)[i].error, m->fitted_to(r.source) ? "fitted" : "predicted", r.source.c_str());
      }
    }
    const auto known = judge(read, *m);
    if (!known) return failed(known.error()[0]);
    for (const auto& j : *known)
      judged += fmt::format("| {} | {} | {} | {} | {} |\n", m->name, name(j.pattern), cells_text(j.fitted),
                            cells_text(j.predicted), j.model_error > 0 ? fmt::format("{:.2g}", j.model_error) : "");
  }
  std::printf(
      "\n### How far off, by what copies have in common\n\n| machine | pattern | fitted | predicted | "
      "`model_error` |\n|---|---|---|---|---|\n%s",
      judged.c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto m = mi300x_machine();
  const auto all = read_measurements(kPublished + "dma-latte.csv");
  if (!m || !all) return std::fprintf(stderr, "%s\n", to_string(m ? all.error()[0] : m.error()).c_str()), 1;
  using col::Variant;
  const auto sizes = sizes_of(*all);
  std::printf("### All-gather, fitted: model (published, error)\n\n");
  const std::vector<Column> gathers{{"pcpy+PL", Variant::pcpy, true},
                                    {"bcst", Variant::bcst, false},
                                    {"bcst+PL", Variant::bcst, true},
                                    {"b2b", Variant::b2b, false},
                                    {"b2b+PL", Variant::b2b, true}};
  const auto ag = table(col::Collective::all_gather, gathers, sizes, &*all, *m);
  std::printf("\n### All-gather by engines against kernels: estimates\n\n");
  against_kernels(gathers, sizes, *m);
  std::printf("\n### One copy, fitted: percent of its time, model (published)\n\n");
  shares(*all, *m);
  std::printf("\n### All-to-all: the model alone\n\n");
  const auto aa = table(col::Collective::all_to_all,
                        {{"pcpy+PL", Variant::pcpy, true},
                         {"swap", Variant::swap, false},
                         {"swap+PL", Variant::swap, true},
                         {"b2b", Variant::b2b, false},
                         {"b2b+PL", Variant::b2b, true}},
                        sizes, nullptr, *m);
  if (!cells()) return 1;
  if (argc < 2) return 0;
  const std::string folder = argv[1];
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [name, curves] : {std::pair{"/all_gather.svg", &ag}, {"/all_to_all.svg", &aa}})
    if (const auto saved = save_file(folder + name, curves_svg(*curves)); !saved)
      return std::fprintf(stderr, "%s\n", to_string(saved.error()).c_str()), 1;
  return 0;
}
