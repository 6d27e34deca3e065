// SPDX-License-Identifier: MIT
#include "verbs/explore_advised.hpp"

#include "core/aligned.hpp"
#include "input.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/sweep.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma::tool {
namespace {

struct Advised {
  GemmShape shape{};
  OverlapAdvice advice{};
};

std::string choice(const OverlapEstimate& e) {
  if (e.way == OverlapWay::none) return "none";
  return fmt::format("{}, {} piece{}", name(e.way), e.pieces, e.pieces == 1 ? "" : "s");
}

/// The times of products: of the file, or those that are known of this machine's GPUs.
Result<GemmTimes, std::vector<Diagnostic>> times_for(const AdviseArguments& o, const MachineDescription& m) {
  if (!o.times.empty()) {
    auto text = read_text(o.times);
    if (!text) return std::vector{text.error()};
    return gemm_times(*text, shown(o.times));
  }
  const auto& gpus = m.topology.gpus;
  if (std::all_of(gpus.begin(), gpus.end(), [](const Gpu& g) { return g.name == "MI300X"; }))
    return mi300x_gemm_times();
  return std::vector{
      Diagnostic{.where = m.name,
                 .message = "no times of products are known for these GPUs, only for MI300X",
                 .hint = "--gemm-times takes a table that share/measured/h200/gemm.py makes on such a GPU"}};
}

std::string judged_text(const GemmTimes& t) {
  if (t.judged.rows == 0) return "no row of the table judges it";
  return fmt::format("off by {:.1f} % in the mean, {:.0f} % at worst, for {} rows that it does not use",
                     100 * t.judged.mean, 100 * t.judged.worst, t.judged.rows);
}

/// The command that simulates the pick.
std::string simulating(const AdviseArguments& o, const OverlapAdvice& a) {
  std::string out = "sdma simulate";
  if (!o.given.path.empty()) out += " --machine=" + o.given.path;
  for (const auto& [name, value] : o.given.changes) out += fmt::format(" --parameter {}={}", name, value);
  for (const auto& [name, value] : a.settings) out += fmt::format(" --set {}={}", name, value);
  out += fmt::format(" --set way={} --set pieces={}", static_cast<unsigned>(a.pick().way), a.pick().pieces);
  return out + " share/sdma/overlap/all_gather_gemm.sdma";
}

std::string table(const AdviseArguments& o, const std::vector<Advised>& all, const GemmTimes& times) {
  std::vector<std::vector<std::string>> rows{
      {"m", "n", "k", "pick", "expected", "no overlap", "gain", "product", "all-gather"}};
  bool beyond = false;
  for (const auto& [shape, a] : all) {
    beyond = beyond || a.beyond;
    const auto none = a.variants.front().ns;
    rows.push_back({fmt::format("{}", shape.m), fmt::format("{}", shape.n), fmt::format("{}", shape.k),
                    choice(a.pick()), time_text(a.pick().ns), time_text(none),
                    fmt::format("{:.2f}", none / a.pick().ns), time_text(a.product_ns) + (a.beyond ? " *" : ""),
                    time_text(a.gather_ns)});
  }
  auto out = detail::aligned(rows) + "\n";
  if (beyond) out += "*: a product is beyond the table, so it has the rate of the table's end\n";
  out += fmt::format("times of products: {}\nlookup of products: {}\n", times.source, judged_text(times));
  out += "times of schedules: estimates by formulas (docs/overlap.md); nothing was simulated\n";
  if (all.size() == 1) out += "to simulate the pick: " + simulating(o, all.front().advice) + "\n";
  return out;
}

json::Json json_of(const OverlapEstimate& e) {
  return {{"way", name(e.way)}, {"pieces", e.pieces}, {"ns", std::llround(e.ns)}};
}

json::Json json_of(const AdviseArguments& o, const std::vector<Advised>& all, const GemmTimes& times,
                   const MachineDescription& m) {
  json::Json out{{"machine", m.name},
                 {"defaults", defaults_of(m)},
                 {"products",
                  {{"source", times.source},
                   {"scale", times.scale},
                   {"judged_rows", times.judged.rows},
                   {"mean_error", times.judged.rows > 0 ? json::Json(times.judged.mean) : json::Json()},
                   {"worst_error", times.judged.rows > 0 ? json::Json(times.judged.worst) : json::Json()}}},
                 {"advice", json::Json::array()}};
  for (const auto& [shape, a] : all) {
    json::Json j{{"m", shape.m},
                 {"n", shape.n},
                 {"k", shape.k},
                 {"pick", json_of(a.pick())},
                 {"beyond", a.beyond},
                 {"product_ns", std::llround(a.product_ns)},
                 {"gather_ns", std::llround(a.gather_ns)}};
    for (const auto& v : a.variants) j["variants"].push_back(json_of(v));
    j["set"] = json::Json::object();
    for (const auto& [name, value] : a.settings) j["set"][name] = value;
    j["command"] = simulating(o, a);
    out["advice"].push_back(std::move(j));
  }
  return out;
}

}  // namespace

std::optional<std::vector<GemmShape>> parse_shapes(std::string_view text) {
  std::vector<GemmShape> out;
  for (std::size_t at = 0; at <= text.size();) {
    const auto one = text.substr(at, std::min(text.find(',', at), text.size()) - at);
    at += one.size() + 1;
    const auto first = one.find('x'), second = one.find('x', first + 1);
    if (first == one.npos || second == one.npos) return {};
    const auto n = parse_size(one.substr(first + 1, second - first - 1)), k = parse_size(one.substr(second + 1));
    const auto rows = sweep_axis("m=" + std::string(one.substr(0, first)));
    const auto* axis = std::get_if<SweepAxis>(&rows);
    constexpr std::uint64_t kMostSide = 16'777'216;
    if (axis == nullptr || !n || !k || *n == 0 || *k == 0 || *n > kMostSide || *k > kMostSide) return {};
    for (const auto m : axis->values) {
      if (m < 1 || m > static_cast<double>(kMostSide)) return {};
      out.push_back({.m = static_cast<std::uint64_t>(m), .n = *n, .k = *k});
    }
  }
  return out;
}

int explore_advised(const AdviseArguments& o, const MachineDescription& m) {
  const auto times = times_for(o, m);
  if (!times) return report(times.error()), kInput;
  std::vector<Advised> all;
  for (const auto& shape : o.shapes) {
    auto a = advise(shape, *times, m);
    if (!a) return report(a.error()), kInput;
    all.push_back({shape, *std::move(a)});
  }
  return write_text("-", o.json ? json::document(json_of(o, all, *times, m)) : table(o, all, *times));
}

}  // namespace sdma::tool
