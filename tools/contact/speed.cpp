// SPDX-License-Identifier: MIT
// How fast: each engine alone, single mechanisms and the machine that they fit, and collectives that this machine
// predicts before they are measured.
#include "contact/steps.hpp"
#include "contact/texts.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/simulate/held_out.hpp"
#include "sdma/simulate/mechanisms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

struct Collective {
  const char* name;
  std::string_view text;
  const char* variant;
};
constexpr std::array kCollectives{
    Collective{"all_gather", kAllGatherText, "pcpy"}, Collective{"all_gather", kAllGatherText, "bcst"},
    Collective{"all_gather", kAllGatherText, "b2b"}, Collective{"all_to_all", kAllToAllText, "pcpy"},
    Collective{"all_to_all", kAllToAllText, "b2b"}};
/// Bytes of each collective: sixty of them with all.
constexpr std::array kSizes{"1K", "4K", "16K", "64K", "128K", "256K", "512K", "1M", "2M", "4M", "16M", "64M"};
constexpr std::size_t kGentleSizes = 4;

MeasureOptions measuring(const Settings& s) {
  return {.source = "sdma contact", .passes = s.gentle ? 1u : 3u, .round_limit = s.patience};
}
Json not_measured(const std::vector<Diagnostic>& all) {
  return with_state("hung", all.empty() ? "the measurement ended early" : to_string(all.front()));
}

/// The time of one schedule that a trigger releases.
Json time_of(Device& d, const Settings& s, const Mechanism& m) {
  const auto table = measure(d, {&m, 1}, measuring(s));
  if (!table) return not_measured(table.error());
  Json j = with_state("passed");
  j["measured_ns"] = std::llround(table->observations[0].value);
  j["spread_ns"] = std::llround(table->observations[0].spread);
  return j;
}

Json fit_machine(Device& d, const Settings& s, Deadline end) {
  const auto all = mechanisms(d.topology(), {.most_bytes = s.gentle ? 1u << 20 : 64u << 20});
  const auto table = measure(d, all, measuring(s));
  if (!table) return not_measured(table.error());
  Json j = with_state("passed");
  for (const auto& o : table->observations)
    j["mechanisms"].push_back(
        {{"id", o.id}, {"measured_ns", std::llround(o.value)}, {"spread_ns", std::llround(o.spread)}});
  auto options = table->options;
  options.deadline = end;
  const auto start = table->from(unfitted(d.topology(), *table));
  const auto fitted = fit(table->observations, start, options);
  if (!fitted) {
    j["state"] = "failed";
    j["why"] = to_string(fitted.error().front());
    return j;
  }
  j["fit"] = name(fitted->end);
  j["mean_error"] = fitted->mean_error;
  j["machine"] = json::of(rounded(*fitted, options));
  return j;
}

/// Runs a schedule once more, and compares its bytes: the time of wrong bytes would mislead.
std::optional<Json> wrong_bytes(Device& d, const Settings& s, const Mechanism& m) {
  const auto bound = sdma::bind(*m.schedule, d);
  if (!bound) return with_state("failed", to_string(bound.error().front()));
  const auto report = run(*bound, {.time_limit = s.patience});
  if (report) return {};
  auto j = with_state("failed");
  j["findings"] = json::of(report.findings);
  return j;
}

/// First the prediction, then the measurement, and then the bytes.
Json predict_and_measure(Device& d, const Settings& s, const Mechanism& m, const std::optional<std::string>& machine) {
  if (!machine) return with_state("left out", "no machine was fitted");
  const auto fitted = machine_from_json(*machine);
  if (!fitted) return with_state("left out", to_string(fitted.error()));
  auto o = Observation::time(m.id(), m.schedule, 1);
  const auto predicted = predict({&o, 1}, *fitted);
  if (!predicted) return with_state("left out", to_string(predicted.error().front()));
  auto j = time_of(d, s, m);
  if (j["state"] != "passed") return j;
  if (auto wrong = wrong_bytes(d, s, m)) return *wrong;
  o.value = j["measured_ns"].get<double>();
  const auto half = half_interval(o, *fitted), off = std::abs(predicted->front().value - o.value);
  j["predicted_ns"] = std::llround(predicted->front().value);
  j["interval_ns"] = std::llround(half);
  j["inside"] = off <= half ? 1 : off <= 2 * half ? 2 : 0;
  return j;
}

}  // namespace

Json how_fast(const Settings& s, const Topology& node, Deadline end) {
  std::vector<Item> items;
  // What the fit has found, for the processes that are started later.
  auto machine = std::make_shared<std::optional<std::string>>();
  const auto learn = [machine](const Json& j) {
    if (j.contains("machine")) *machine = j["machine"].dump();
  };
  const auto left = end.left();
  items.push_back({.id = "single mechanisms, and a machine",
                   .group = "mechanisms",
                   .work =
                       [&s, learn, left](Device* d) {
                         const auto j = fit_machine(*d, s, Deadline::in(left / 3));
                         learn(j);
                         return j;
                       },
                   .limit = left});
  const auto add = [&](std::string id, std::string group, auto work) {
    items.push_back(
        {.id = std::move(id), .group = std::move(group), .work = std::move(work), .limit = 20 * s.patience});
  };
  const auto& gpu = node.gpus.front();
  for (std::uint32_t e = 0; e < gpu.engines(); ++e)
    for (std::uint32_t peer = 0; peer < node.gpus.size() && (gpu.live_engines() >> e & 1) != 0; ++peer) {
      const auto far = peer == 0 ? std::nullopt : std::optional(GpuId{peer});
      const auto settings = fmt::format("engine={} bytes={}", e, s.gentle ? "1M" : "16M");
      auto m = mechanism("engine.sdma", facing(kEngineText, far), settings);
      if (m)
        add(fmt::format("engine {} to {}", e, far ? fmt::format("gpu{}", peer) : "the host"),
            fmt::format("engine {}", e), [&s, m = *std::move(m)](Device* d) { return time_of(*d, s, m); });
    }
  const auto n = node.gpus.size();
  for (const auto& c : kCollectives)
    for (std::size_t i = 0; n > 1 && i < (s.gentle ? kGentleSizes : kSizes.size()); ++i) {
      const auto settings =
          fmt::format("N={} bytes={} variant={} prelaunch=shared completion=fence", n, kSizes[i], c.variant);
      auto m = mechanism(std::string(c.name) + ".sdma", std::string(c.text), settings);
      if (m)
        add(fmt::format("{} {} {}", c.name, c.variant, kSizes[i]), "collectives",
            [&s, machine, m = *std::move(m)](Device* d) { return predict_and_measure(*d, s, m, *machine); });
    }
  return perform(s, "speed", items, end, learn);
}

}  // namespace sdma::tool::contact
