// SPDX-License-Identifier: MIT
#include "simulated.hpp"

#include "collectives/engines.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

namespace collectives::kv {

using namespace sdma;

namespace {

Schedule schedule_of(const Request& r, GpuId gpu, HostDirection direction, const Topology& t,
                     std::span<const EngineId> engines) {
  Schedule s{.gpus = gpu.value + 1};
  const auto place = Place::gpu(gpu.value);
  const auto pool = s.add_buffer({.name = "pool", .bytes = r.blocks * r.bytes}),
             kv = s.add_buffer({.place = place, .name = "kv", .bytes = r.blocks * r.bytes});
  const auto go = s.add_signal({.name = "go"});
  const bool atomics = t.completion(gpu, {}) == Completion::atomic;
  struct Lane {
    GpuVa done{};
    Schedule::Queue* queue{};
    std::int64_t submits{};
  };
  std::vector<Lane> lanes(r.lanes());
  auto main = s.add_host("main");
  const auto groups = groups_of(r);
  for (const auto& g : groups) {
    auto& lane = lanes[g.lane];
    if (lane.queue != nullptr) continue;
    lane.done = s.add_signal({.name = fmt::format("done{}", g.lane)});
    auto& q = s.add_queue(
        {.place = place, .name = fmt::format("lane{}", g.lane), .engine = engines[g.lane / r.queues].value});
    if (r.way == Way::prelaunched) q.put(PollMem{.addr = go, .func = Compare::ge, .reference = 1});
    for (const auto i : g.blocks) {
      const auto in_pool = pool + (r.blocks - 1 - i) * r.bytes, in_kv = kv + i * r.bytes;
      if (direction == HostDirection::from_host) q.copy({.src = in_pool, .dst = in_kv, .bytes = r.bytes});
      else q.copy({.src = in_kv, .dst = in_pool, .bytes = r.bytes});
    }
    if (atomics) q.put(Atomic{.addr = lane.done, .op = AtomicOp::add_rtn_64, .value = 1});
    else q.put<&Fence::value>({.addr = lane.done}, kEpoch);
    lane.queue = &q;
  }
  for (const auto& g : groups) {
    main.submit(*lanes[g.lane].queue);
    ++lanes[g.lane].submits;
    if (!g.wait) continue;
    if (r.way == Way::prelaunched) main.set(go, 1);
    for (const auto& lane : lanes)
      if (lane.submits != 0) main.wait(lane.done, Compare::ge, lane.submits);
  }
  return s;
}

Result<double, std::vector<Diagnostic>> seconds(const Request& r, GpuId gpu, HostDirection direction,
                                                const MachineDescription& m) {
  const auto engines = engines_of(m.topology, gpu, direction);
  if (!engines)
    return std::vector{Diagnostic{.where = "machine", .message = std::string(message(engines.error())), .hint = ""}};
  const auto t = simulate(schedule_of(r, gpu, direction, m.topology, *engines), m);
  if (!t) return t.error();
  return (t->rounds.back().end_ns - t->rounds.front().begin_ns) / 1e9;
}

}  // namespace

Result<Times, std::vector<Diagnostic>> simulated(const Request& r, GpuId gpu, const MachineDescription& m) {
  const auto there = seconds(r, gpu, HostDirection::from_host, m);
  if (!there) return there.error();
  const auto back = seconds(r, gpu, HostDirection::to_host, m);
  if (!back) return back.error();
  return Times{*there, *back};
}

}  // namespace collectives::kv
