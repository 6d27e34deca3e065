// SPDX-License-Identifier: MIT
#include "modelled.hpp"

#include "collectives/plan.hpp"
#include "report.hpp"
#include "schedule_file.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr auto kMax = ~std::uint64_t{0};

bool same_but_gpus(const TableRow& a, const TableRow& b) {
  return a.collective == b.collective && a.in_place == b.in_place && a.prelaunch == b.prelaunch && a.up_to == b.up_to &&
         a.variant == b.variant;
}

/// Lines of one collective, number of GPUs and prelaunch are adjacent.
bool same_block(const TableRow& a, const TableRow& b) {
  return a.collective == b.collective && a.in_place == b.in_place && a.prelaunch == b.prelaunch &&
         a.least_gpus == b.least_gpus;
}

/// The keys of tables: swap is the only variant in place, so it has no line to compare with.
std::vector<Way> ways_to_compare(Collective c, bool prelaunch) {
  std::vector<Way> all;
  for (const auto v : kVariants)
    if (has_variant(c, v) && v != Variant::swap) all.push_back({v, prelaunch});
  return all;
}

struct Built {
  Options options{};
  Schedule schedule{};
  std::vector<std::string> notes{};
};
Result<Built, std::vector<Diagnostic>> build(const Settings& s, const Table& table, const Way& way,
                                             std::uint64_t bytes) {
  Built b{.options = options_of(s, way, bytes)};
  auto& o = b.options;
  if (o.variant == Variant::automatic) o.variant = choose(table, o);
  o.in_place = o.in_place && o.variant == Variant::swap;
  if (way.file) {
    auto schedule = schedule_of(*way.file, o);
    if (!schedule) return failed(std::move(schedule.error()), way, bytes);
    b.schedule = *std::move(schedule);
    return b;
  }
  auto p = plan(o);
  if (!p) return failed({std::move(p.error())}, way, bytes);
  b.schedule = std::move(p->schedule);
  b.notes = std::move(p->notes);
  return b;
}

}  // namespace

Result<Schedule, std::vector<Diagnostic>> schedule_of_way(const Settings& s, const Table& table, const Way& way,
                                                          std::uint64_t bytes) {
  auto b = build(s, table, way, bytes);
  if (!b) return std::move(b.error());
  return std::move(b->schedule);
}

Result<Point, std::vector<Diagnostic>> modelled(const Settings& s, const Table& table, const MachineDescription& m,
                                                const Way& way, std::uint64_t bytes, bool intervals) {
  auto built = build(s, table, way, bytes);
  if (!built) return std::move(built.error());
  const auto& o = built->options;
  std::optional<Spread> known;
  double ns = 0;
  if (intervals) {
    auto t = spread(built->schedule, m);
    if (!t) return failed(std::move(t.error()), way, bytes);
    ns = t->ns;
    for (const auto c : t->at_bound) built->notes.push_back(bound_text(c));
    known = *std::move(t);
  } else {
    auto t = simulate(built->schedule, m);
    if (!t) return failed(std::move(t.error()), way, bytes);
    ns = t->ns;
  }
  Point point{.bytes = bytes,
              .count = count_of(o) / s.type.bytes,
              .type = s.type.name,
              .way = way,
              .ran = o.variant,
              .us = times_of({ns / 1e3}),
              .in_place = is_in_place(o),
              .notes = std::move(built->notes),
              .spread = std::move(known)};
  if (point.spread) {
    const auto off = point.spread->uncertainty_ns / 1e3;
    point.us.lower -= off;
    point.us.upper += off;
  }
  set_bandwidths(point, bus_factor(o));
  if (s.energy) {
    if (!knows_energy(m))
      return failed({{.where = "--energy",
                      .message = "the machine's file does not say how many joules anything takes",
                      .hint = "docs/simulate.md describes its \"energy\""}},
                    way, bytes);
    auto t = simulate(built->schedule, m);
    if (!t) return failed(std::move(t.error()), way, bytes);
    // Above idle, as it is measured.
    for (const auto p : {Power::gpu_idle, Power::xcd_idle, Power::iod_idle, Power::hbm_idle, Power::host_idle})
      t->activity[static_cast<std::size_t>(p)] = 0;
    const auto e = sdma::energy(*t, m);
    const auto joules = e.joules.value;
    point.energy = Energy{.joules = joules,
                          .nanojoules_per_byte = joules * 1e9 / static_cast<double>(moved_bytes(o)),
                          .watts = e.watts(e.joules).value,
                          .bounds = e.joules};
    std::string missing;
    for (const auto p : e.missing) missing += (missing.empty() ? "" : ", ") + std::string(sdma::name(p));
    if (!missing.empty())
      point.notes.push_back("the energy leaves out what the machine's file does not have: " + missing);
  }
  return point;
}

void compare(const MachineDescription& m, std::span<Point> points) {
  constexpr double kFar = 1.5;
  if (const auto* const base = points.empty() ? nullptr : find(points, points.front().bytes, kBase);
      base && base->spread)
    for (auto& p : points)
      if (&p != base && p.spread) p.speed_up_uncertainty = sdma::speed_up(*base->spread, *p.spread, m).uncertainty;
  const Point* done = nullptr;
  for (const bool prelaunch : {true, false}) {
    const auto* const found = points.empty() ? nullptr : fastest(points, points.front().bytes, prelaunch);
    if (!found || found == done || !found->spread) continue;
    done = found;
    auto& point = points[static_cast<std::size_t>(found - points.data())];
    for (const auto& p : points)
      if (&p != found && p.spread && (prelaunch || !prelaunched(p.way)) && p.way.variant != Variant::automatic &&
          p.us.median < kFar * found->us.median && sdma::speed_up(*found->spread, *p.spread, m).tie())
        point.ties.push_back(p.way);
  }
}

Table rows_of(const Options& o, std::span<const Point> points, double tie) {
  Table rows;
  for (const auto& r : best(points, true, tie))
    rows.push_back({.collective = o.collective,
                    .least_gpus = o.gpus,
                    .most_gpus = o.gpus,
                    .prelaunch = r.way.prelaunch,
                    .up_to = r.most,
                    .variant = r.way.variant});
  if (!rows.empty()) rows.back().up_to = kMax;
  return rows;
}

Table rows_of_sweep(const Options& o, std::span<const Point> points) {
  Table rows;
  for (const bool prelaunch : {true, false}) {
    const auto ways = ways_to_compare(o.collective, prelaunch);
    std::vector<Point> compared;
    for (const auto& p : points)
      if (std::find(ways.begin(), ways.end(), p.way) != ways.end()) compared.push_back(p);
    const auto more = rows_of(o, compared, kTie);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

Table merged(const Table& table) {
  Table out;
  for (auto at = table.begin(); at != table.end();) {
    const auto end = std::find_if(at, table.end(), [&](const TableRow& r) { return !same_block(r, *at); });
    const auto n = end - at;
    // Find the previous block: the same lines, for one GPU less.
    const auto before = out.end() - std::min(n, out.end() - out.begin());
    const bool follows = out.end() - before == n && (before == out.begin() || !same_block(before[-1], *before)) &&
                         std::equal(before, out.end(), at, end, [](const TableRow& a, const TableRow& b) {
                           return same_but_gpus(a, b) && a.most_gpus + 1 == b.least_gpus;
                         });
    if (follows)
      for (auto row = before; row != out.end(); ++row) row->most_gpus = at->most_gpus;
    else out.insert(out.end(), at, end);
    at = end;
  }
  return out;
}

std::string to_text(const Table& table, std::string_view source) {
  auto text = fmt::format(
      "# Which variant is best, by collective, number of GPUs, prelaunch (yes, no, any) and size: the first line that "
      "fits wins.\n#\n# {}\n#\n# {:<21}{:<6}{:<11}{:<7}{}\n",
      source, "collective", "gpus", "prelaunch", "up_to", "variant");
  for (const auto& r : table)
    text += fmt::format(
        "{:<23}{:<6}{:<11}{:<7}{}\n", std::string(name(r.collective)) + (r.in_place ? "_in_place" : ""),
        r.least_gpus == r.most_gpus ? std::to_string(r.least_gpus) : fmt::format("{}-{}", r.least_gpus, r.most_gpus),
        !r.prelaunch   ? "any"
        : *r.prelaunch ? "yes"
                       : "no",
        r.up_to == kMax ? "max" : size_text(r.up_to), name(r.variant));
  return text;
}

Result<Table, std::vector<Diagnostic>> tuned(const MachineDescription& m, const Settings& asked,
                                             const std::function<bool(std::size_t, std::size_t)>& go_on) {
  const auto& tune = *asked.tune;
  const auto most = static_cast<std::uint32_t>(m.topology.gpus.size());
  const auto from = tune.gpus == 0 ? 2 : tune.gpus, to = tune.gpus == 0 ? most : tune.gpus;
  const auto all_sizes = sizes(asked);
  const auto of = tune.collectives.size() * 2 * (to - from + 1) * all_sizes.size();
  std::size_t done = 0;
  Table table;
  auto s = asked;
  for (const auto c : tune.collectives) {
    for (const bool prelaunch : {true, false})
      for (auto gpus = from; gpus <= to; ++gpus) {
        s.options.collective = c;
        s.options.gpus = gpus;
        std::vector<Point> points;
        for (const auto bytes : all_sizes) {
          if (!go_on(done++, of)) return Table{};
          for (const auto& way : ways_to_compare(c, prelaunch)) {
            auto p = modelled(s, {}, m, way, bytes);
            if (!p) return std::move(p.error());
            points.push_back(*std::move(p));
          }
        }
        const auto rows = rows_of(s.options, points);
        table.insert(table.end(), rows.begin(), rows.end());
      }
    if (c == Collective::all_to_all)
      table.push_back({.collective = c,
                       .in_place = true,
                       .least_gpus = from,
                       .most_gpus = to,
                       .up_to = kMax,
                       .variant = Variant::swap});
  }
  return merged(table);
}

}  // namespace collectives::perf
