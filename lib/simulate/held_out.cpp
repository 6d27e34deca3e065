// SPDX-License-Identifier: MIT
#include "sdma/simulate/held_out.hpp"

#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

using HeldKind = HeldOut::Kind;
using Lines = std::vector<std::size_t>;

bool is_share(const Observation& o) { return o.kind == Observation::Kind::share; }

/// The column of a line; empty for a time, which has none.
std::string column_of(const Measurements& m, std::size_t i) {
  const auto& o = m.observations[i];
  const auto& r = m.rows[i];
  if (is_share(o)) return "column " + r.what;
  if (o.kind != Observation::Kind::ratio) return {};
  auto out = "column " + r.schedule.substr(r.schedule.rfind('/') + 1);
  const auto shared = detail::words_of(o.group);
  for (const auto& word : detail::words_of(r.settings))
    if (std::find(shared.begin(), shared.end(), word) == shared.end()) out += " " + word;
  return out;
}

/// What the cells of a row have in common.
std::string row_of(const Measurements& m, std::size_t i) {
  return m.observations[i].kind == Observation::Kind::ratio ? m.observations[i].group
                                                            : m.rows[i].schedule + " " + m.rows[i].settings;
}

/// The lines that each block of rows has: ratios, shares and times are cut apart.
std::vector<Lines> row_blocks(const Measurements& m, std::size_t count) {
  std::vector<Lines> out(count);
  for (const auto kind : {Observation::Kind::ratio, Observation::Kind::share, Observation::Kind::time}) {
    std::vector<std::string> rows;
    for (const bool count_rows : {true, false})
      for (std::size_t i = 0; i < m.observations.size(); ++i) {
        if (m.observations[i].kind != kind || m.observations[i].weight == 0) continue;
        const auto row = row_of(m, i);
        const auto at = std::find(rows.begin(), rows.end(), row);
        if (count_rows && at == rows.end()) rows.push_back(row);
        if (!count_rows) out[static_cast<std::size_t>(at - rows.begin()) * count / rows.size()].push_back(i);
      }
  }
  return out;
}

struct LeftOut {
  HeldKind kind{};
  std::string name{};
  Lines members{};
};

std::vector<LeftOut> parts_of(const Measurements& m) {
  std::vector<LeftOut> out;
  std::vector<std::pair<std::string, Lines>> columns;
  std::map<std::string, Lines> sources;
  std::map<Observation::Kind, std::set<std::string>> of_kind;
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    if (m.observations[i].weight == 0) continue;
    sources[m.rows[i].source].push_back(i);
    of_kind[m.observations[i].kind].insert(m.rows[i].source);
    const auto column = column_of(m, i);
    if (column.empty()) continue;
    auto at = std::find_if(columns.begin(), columns.end(), [&](auto& c) { return c.first == column; });
    if (at == columns.end()) at = columns.insert(columns.end(), {column, {}});
    at->second.push_back(i);
  }
  for (auto& [name, members] : columns) out.push_back({HeldKind::column, name, std::move(members)});
  for (const auto& [kind, word, count] : {std::tuple{HeldKind::half, "half", 2u}, {HeldKind::quarter, "quarter", 4u}}) {
    auto all = row_blocks(m, count);
    for (std::size_t b = 0; b < count; ++b)
      out.push_back({kind, fmt::format("{} {} of {} of the rows", word, b + 1, count), std::move(all[b])});
  }
  for (auto& [name, members] : sources)
    if (std::all_of(members.begin(), members.end(), [&](auto i) { return of_kind[m.observations[i].kind].size() > 1; }))
      out.push_back({HeldKind::source, "source " + name, std::move(members)});
  std::erase_if(out, [&](const LeftOut& p) {
    std::size_t fitted = 0;
    for (const auto& o : m.observations) fitted += o.weight > 0;
    return p.members.empty() || p.members.size() == fitted;  // nothing would be left to fit to
  });
  return out;
}

/// How many cells of a row lie inside one interval, and inside two.
struct Inside {
  double one{}, two{}, all{};
  void add(double off, double spread) {
    one += off <= spread;
    two += off <= 2 * spread;
    ++all;
  }
  void add(const Inside& o) { one += o.one, two += o.two, all += o.all; }
};

/// The coverage, and how certain it is: the cells of a row are not independent, so rows are drawn, and not cells.
void cover(HeldOutErrors& out, const std::vector<Inside>& rows) {
  constexpr int kDraws = 1000;
  Inside sum;
  for (const auto& r : rows) sum.add(r);
  if (sum.all == 0) return;
  out.inside_one = sum.one / sum.all;
  out.inside_two = sum.two / sum.all;
  std::mt19937 random(1);
  double squares = 0;
  for (int d = 0; d < kDraws; ++d) {
    Inside drawn;
    for (std::size_t r = 0; r < rows.size(); ++r) drawn.add(rows[random() % rows.size()]);
    squares += std::pow(drawn.one / drawn.all - out.inside_one, 2);
  }
  out.inside_one_deviation = std::sqrt(squares / kDraws);
}

}  // namespace

double half_interval(const Observation& o, const MachineDescription& m) {
  if (o.kind == Observation::Kind::ratio) {
    const auto r = speed_up(*o.baseline, *o.schedule, m);
    return r ? r->uncertainty : 0;
  }
  const auto t =
      is_share(o) ? Result<Sensitivity, std::vector<Diagnostic>>{Sensitivity{}} : sensitivity(*o.schedule, m);
  return t ? t->uncertainty_ns : 0;
}

double HeldOut::mean_error() const noexcept {
  double sum = 0;
  for (const auto& c : cells) sum += std::abs(c.prediction.error);
  return cells.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(cells.size());
}

std::string_view name(HeldOut::Kind k) noexcept {
  constexpr std::string_view kNames[] = {"lines that are never fitted to", "columns", "halves", "quarters", "sources"};
  return kNames[static_cast<std::size_t>(k)];
}

Result<std::vector<HeldOut>, std::vector<Diagnostic>> held_out(const Measurements& m, const MachineDescription& initial,
                                                               const FitOptions& options) {
  auto parts = parts_of(m);
  std::size_t part = 0;
  auto counted = options;
  if (options.progress)
    counted.progress = [&](FitProgress p) { return p.part = part, p.parts = parts.size(), options.progress(p); };
  const auto fitted = [&](std::span<const Observation> to,
                          const MachineDescription& from) -> Result<Fit, std::vector<Diagnostic>> {
    auto f = fit(to, from, counted);
    if (f && f->end != Fit::End::converged)
      return std::vector<Diagnostic>{{.where = "fit",
                                      .message = fmt::format("a fit to a part did not end: {}", name(f->end)),
                                      .hint = "allow it more time"}};
    return f;
  };
  const auto all = fitted(m.observations, m.from(initial));
  if (!all) return all.error();
  std::vector<HeldOut> out;
  HeldOut unseen{.kind = HeldKind::unseen, .name = std::string(name(HeldKind::unseen)), .machine = all->machine};
  for (std::size_t i = 0; i < m.observations.size(); ++i)
    if (m.observations[i].weight == 0)
      unseen.cells.push_back({i, all->predictions[i], half_interval(m.observations[i], all->machine)});
  if (!unseen.cells.empty()) out.push_back(std::move(unseen));
  for (auto& p : parts) {
    auto rest = m.observations;
    for (const auto i : p.members) rest[i].weight = 0;
    // From the values of the fit to all: their sources do not matter here.
    auto f = fitted(rest, all->machine);
    if (!f) return f.error();
    HeldOut one{.kind = p.kind, .name = std::move(p.name), .machine = std::move(f->machine)};
    for (const auto i : p.members)
      one.cells.push_back({i, f->predictions[i], half_interval(m.observations[i], one.machine)});
    out.push_back(std::move(one));
    ++part;
  }
  return out;
}

HeldOutErrors errors_of(const Measurements& m, std::span<const HeldOut* const> parts, bool shares) {
  HeldOutErrors out;
  std::map<std::string, std::vector<const HeldOut::Cell*>> rows;
  std::map<std::string, std::size_t> whole;
  for (const auto& o : m.observations)
    if (o.kind == Observation::Kind::ratio) ++whole[o.group];
  for (const auto* p : parts)
    for (const auto& c : p->cells)
      if (is_share(m.observations[c.observation]) == shares) rows[row_of(m, c.observation)].push_back(&c);
  double factored = 0, of_rows = 0;
  std::vector<Inside> inside;
  for (const auto& [name, cells] : rows) {
    double logs = 0;
    for (const auto* c : cells) {
      const auto e = std::abs(c->prediction.error);
      ++out.cells;
      out.mean += e;
      out.worst = std::max(out.worst, e);
      logs += std::log1p(c->prediction.error);
    }
    auto& in = inside.emplace_back();
    for (const auto* c : cells) in.add(std::abs(c->prediction.value - m.observations[c->observation].value), c->spread);
    const auto& first = m.observations[cells.front()->observation];
    if (first.kind != Observation::Kind::ratio || cells.size() < 2) continue;
    const auto factor = std::exp(logs / static_cast<double>(cells.size()));
    for (const auto* c : cells) factored += std::abs((1 + c->prediction.error) / factor - 1), ++of_rows;
    const auto at = whole.find(first.group);
    if (at == whole.end() || at->second != cells.size()) continue;
    ++out.compared;
    const auto best = [&cells = cells](auto value) {
      return *std::max_element(cells.begin(), cells.end(), [&](auto* a, auto* b) { return value(*a) < value(*b); });
    };
    out.best += best([](const HeldOut::Cell& c) { return c.prediction.value; }) ==
                best([&](const HeldOut::Cell& c) { return m.observations[c.observation].value; });
  }
  out.rows = rows.size();
  cover(out, inside);
  if (out.cells > 0) out.mean /= static_cast<double>(out.cells);
  if (of_rows > 0) out.after_factor = factored / of_rows;
  return out;
}

}}  // namespace sdma::v0_3
