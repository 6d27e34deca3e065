// SPDX-License-Identifier: MIT
// Does it work: each packet of a user queue, each engine, and what rings must survive. Bytes are compared.
#include "contact/fields.hpp"
#include "contact/steps.hpp"
#include "contact/texts.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/schedule/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

/// Words of packets.sdma. The risky ones are those whose effect is only inferred.
constexpr std::array kPackets{"copy_linear", "copy_broadcast", "copy_subwindow", "copy_swap", "write",     "fill",
                              "fill_bytes",  "fence",          "atomic",         "poll_mem",  "cond_exec", "indirect",
                              "timestamp",   "trap",           "hdp_flush",      "nop"};
constexpr std::array kRisky{"copy_struct", "copy_dirty_page", "fill_multi", "semaphore", "pre_exec", "dummy_trap"};
using Set = std::vector<std::pair<std::string, std::string>>;

/// 30 queues with prelaunched rounds; what a shared machine can spare is less.
constexpr std::uint32_t kQueues = 30, kGentleQueues = 4;
constexpr const char *kRounds = "1000", *kGentleRounds = "100";

std::string side_of(std::optional<GpuId> far) { return fmt::format("an engine facing {}", far ? "gpu1" : "the host"); }

/// The packets of an indirect buffer, whose addresses are known only now.
void fill_indirect(const Bound& bound, RunOptions& to) {
  const auto& s = bound.schedule();
  const auto find = [](const auto& all, std::string_view name) {
    return static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.name == name; }) - all.begin());
  };
  const auto ib = find(s.buffers, "ib"), seen = find(s.signals, "seen");
  if (ib == s.buffers.size() || seen == s.signals.size()) return;
  const auto dwords = encode(Fence{.addr = bound.signal(seen).va, .value = 7});
  RunOptions::Input in{.name = "host.ib"};
  in.bytes.resize(32);  // what follows the packet are NOPs, which are zeros
  std::memcpy(in.bytes.data(), dwords.data(), dwords.size() * 4);
  to.inputs.push_back(std::move(in));
}

}  // namespace

std::string facing(std::string_view text, std::optional<GpuId> far) {
  std::string out(text);
  if (!far) return out;
  const auto gpu = fmt::format("gpu{}", far->value);
  const std::array<std::pair<std::string_view, std::string>, 3> words{
      {{"host.far", gpu + ".far"},
       {"peer=host", "peer=" + gpu},
       {"\ngpus 1\n", fmt::format("\ngpus {}\n", far->value + 1)}}};
  for (const auto& [from, to] : words)
    for (auto at = out.find(from); at != out.npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  return out;
}

Result<EngineId> engine_facing(const Topology& node, std::optional<GpuId> far) {
  return far ? node.engine_for(GpuId{0}, *far) : node.engine_for(GpuId{0}, HostDirection::to_host);
}

Json run_text(Device& d, const Settings& s, std::string_view text, std::string_view name,
              const std::vector<std::pair<std::string, std::string>>& set, std::optional<GpuId> far) {
  ParseOptions parse;
  for (const auto& [param, value] : set) parse.set.push_back({param, value});
  const auto schedule = parse_schedule(facing(text, far), name, parse);
  if (!schedule) return with_state("left out", to_string(schedule.error().front()));
  const auto bound = bind(*schedule, d);
  if (!bound) return with_state("left out", to_string(bound.error().front()));
  RunOptions options{.time_limit = s.patience};
  fill_indirect(*bound, options);
  const auto report = run(*bound, options);
  if (report) return with_state("passed");
  for (std::size_t q = 0; q < schedule->queues.size(); ++q)
    if (const auto fault = d.fault(bound->queue(q)); fault && fault->kind == FaultKind::unsupported)
      return with_state("left out", describe(*fault));
  Json j = with_state(report.elapsed >= s.patience ? "hung" : "failed");
  j["findings"] = json::of(report.findings);
  if (j["state"] == "hung") j["doctor"] = to_text(doctor::diagnose(doctor::snapshot_of(*bound)));
  return j;
}

Json what_works(const Settings& s, const Topology& node, Deadline end) {
  std::vector<Item> items;
  const auto add = [&](std::string id, std::string group, std::string_view text, Set set, std::optional<GpuId> far) {
    items.push_back({.id = std::move(id),
                     .group = std::move(group),
                     .work = [&s, text, set = std::move(set),
                              far](Device* d) { return run_text(*d, s, text, "contact", set, far); },
                     .limit = 2 * s.patience});
  };
  const auto& gpu = node.gpus.front();
  std::vector<std::uint32_t> live;
  for (std::uint32_t e = 0; e < gpu.engines(); ++e)
    if ((gpu.live_engines() >> e & 1) != 0) live.push_back(e);
  for (const auto e : live)
    add(fmt::format("engine {}", e), fmt::format("engine {}", e), kRingsText,
        {{"rounds", "1"}, {"engines", fmt::format("[{}]", e)}}, {});
  std::vector<std::optional<GpuId>> sides{std::nullopt};
  if (node.gpus.size() > 1) sides.emplace_back(GpuId{1});
  for (const auto far : sides) {
    const auto side = side_of(far);
    const auto packet = [&](const char* word) {
      if (word == std::string_view("atomic") && node.completion(GpuId{0}, far) != Completion::atomic)
        return items.push_back({.id = "atomic, " + side,
                                .group = side,
                                .work = [](Device*) { return with_state("left out", "the link completes no atomics"); },
                                .bare = true});
      add(fmt::format("{}, {}", word, side), side, kPacketsText, {{"packet", word}}, far);
    };
    for (const auto* word : kPackets) packet(word);
    add("a large copy, " + side, side, kPacketsText,
        s.gentle ? Set{{"room", "2M"}, {"bytes", "2M-64"}} : Set{{"room", "64M"}, {"bytes", "64M-64"}}, far);
    const auto engine = engine_facing(node, far);
    if (engine) {
      const auto one = fmt::format("[{}]", engine->value);
      for (const auto* test : {"wrap", "full"})
        add(fmt::format("a ring: {}, {}", test, side), side, kRingsText, {{"test", test}, {"engines", one}}, far);
      add(fmt::format("prelaunched rounds, {}", side), side, kRingsText,
          {{"test", "prelaunch"}, {"engines", one}, {"rounds", s.gentle ? kGentleRounds : kRounds}}, far);
    }
    if (!s.risky) continue;
    for (const auto* word : kRisky) packet(word);
    for (const auto word : with_policies())
      if (word != "atomic" || node.completion(GpuId{0}, far) == Completion::atomic)
        add(fmt::format("{}, {}", with_policy(word), side), side, kPacketsText,
            {{"packet", std::string(word)}, {"policy", "1"}}, far);
  }
  if (!live.empty()) {
    const auto room = static_cast<std::uint32_t>(live.size()) * std::max(1u, gpu.queues_per_engine);
    std::vector<std::uint32_t> engines(std::min(s.gentle ? kGentleQueues : kQueues, room));
    for (std::size_t i = 0; i < engines.size(); ++i) engines[i] = live[i % live.size()];
    add(fmt::format("{} queues", engines.size()), "queues", kRingsText,
        {{"test", "queues"}, {"rounds", "20"}, {"engines", fmt::format("[{}]", fmt::join(engines, ", "))}}, {});
  }
  const auto waves = [&](const char* id, const std::string& module) {
    items.push_back({.id = id,
                     .group = id,
                     .work = [&s, &module](Device* d) { return put_by_waves(*d, s, module); },
                     .limit = 6 * s.patience});
  };
  const std::string none;
  waves("a ring that threads write together", none);
  if (auto why = no_kernels(s); why.empty()) waves("a ring that kernels write", s.module);
  else
    items.push_back({.id = "a ring that kernels write",
                     .group = "kernels",
                     .work = [why](Device*) { return with_state("left out", why); },
                     .bare = true});
  // The last of all: an engine may hang.
  for (const auto far : sides)
    if (s.risky)
      for (auto& item : undefined_things(s, kPacketsText, side_of(far), far)) items.push_back(std::move(item));
  return perform(s, "works", items, end);
}

}  // namespace sdma::tool::contact
