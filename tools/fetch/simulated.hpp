// SPDX-License-Identifier: MIT
#pragma once
// Requests in simulated time: no engine runs, and a machine description gives the time of each group of packets.
//
//   auto t = simulated({.way = Way::b2b, .engines = 2, .blocks = 256, .bytes = 16 << 10}, GpuId{0}, *mi300x_machine());
//
// Where a lane has many groups (looped, batched), each submit copies the lane's first block again: the simulated time
// of a copy does not depend on which block it is. As on a device, the trigger of a prelaunched request follows its last
// doorbell at once.
//
// Deterministic; any thread. Absolute times are only as certain as the machine's parameters. Errors: there is no such
// GPU, and those of simulate. The GPU must have `engines` live engines.
#include "collectives/engines.hpp"
#include "fetch_lanes.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

namespace collectives::kv {

inline sdma::Schedule schedule_of(const Request& r, sdma::GpuId gpu, sdma::HostDirection direction,
                                  const sdma::Topology& t, std::span<const sdma::EngineId> engines) {
  using namespace sdma;
  Schedule s{.gpus = gpu.value + 1};
  const auto place = Place::gpu(gpu.value);
  const auto pool = s.add_buffer({.name = "pool", .bytes = r.blocks * r.bytes}),
             kv = s.add_buffer({.place = place, .name = "kv", .bytes = r.blocks * r.bytes});
  const auto go = s.add_signal({.name = "go"});
  const bool atomics = t.completion(gpu, {}) == sdma::Completion::atomic;
  struct Work {
    GpuVa done{};
    Schedule::Queue* queue{};
    std::int64_t submits{};
  };
  std::vector<Work> lanes(r.lanes());
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

inline sdma::Result<double, std::vector<sdma::Diagnostic>> seconds(const Request& r, sdma::GpuId gpu,
                                                                   sdma::HostDirection direction,
                                                                   const sdma::MachineDescription& m) {
  using namespace sdma;
  const auto engines = engines_of(m.topology, gpu, direction);
  if (!engines)
    return std::vector{Diagnostic{.where = "machine", .message = std::string(message(engines.error())), .hint = ""}};
  const auto t = simulate(schedule_of(r, gpu, direction, m.topology, *engines), m);
  if (!t) return t.error();
  return (t->rounds.back().end_ns - t->rounds.front().begin_ns) / 1e9;
}

inline sdma::Result<Times, std::vector<sdma::Diagnostic>> simulated(const Request& r, sdma::GpuId gpu,
                                                                    const sdma::MachineDescription& m) {
  using sdma::HostDirection;
  const auto there = seconds(r, gpu, HostDirection::from_host, m);
  if (!there) return there.error();
  const auto back = seconds(r, gpu, HostDirection::to_host, m);
  if (!back) return back.error();
  return Times{*there, *back};
}

}  // namespace collectives::kv
