// SPDX-License-Identifier: MIT
// A Run in the order of streams.
#include "run.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>

namespace collectives {

using namespace sdma;

namespace {

/// Does the queue wait for this word? It waits for those of all GPUs that it touches.
bool polls(const Schedule::Queue& q, GpuVa word) {
  for (Reader r{q.dwords}; r;) {
    const auto v = r.next();
    if (v.is<PollMem>() && decode<PollMem>(v.dwords).addr == word) return true;
  }
  return false;
}

Diagnostic only_carried() {
  return {.where = "enqueue",
          .message = "a plan with two turns is for streams that copy",
          .hint = "give StreamCalls::copy, or plan with turns=1"};
}

}  // namespace

void Run::make_streams() {
  const auto& queues = plan_.schedule.queues;
  streams_.resize(plan_.options.gpus);
  for (std::uint32_t g = 0; g < plan_.options.gpus; ++g) {
    auto& lane = streams_[g];
    for (std::size_t q = 0; q < queues.size(); ++q) {
      if (queues[q].place == Place::gpu(g)) lane.queues.push_back(q);
      if (plan_.options.completion == Completion::fence && polls(queues[q], plan_.triggers[g]))
        lane.done.push_back(bound_.address(plan_.completions[q]));
    }
    lane.order = StreamOrder{bound_.address(plan_.triggers[g]), lane.done};
  }
}

Result<void, Diagnostic> Run::publish_value(std::uint32_t gpu, std::uint32_t value, Deadline d) {
  for (const auto q : streams_[gpu].queues) {
    bound_.set_epoch(q, value - 1);
    const auto epoch = bound_.submit(q, d);
    if (auto r = published(q, epoch ? Errc::ok : epoch.error()); !r) return r;
  }
  return {};
}

Diagnostic Run::refused(std::uint32_t gpu, const StreamRefusal& r) const {
  return {.where = "the stream of " + to_string(Place::gpu(gpu)),
          .message = "its runtime refused to write or to wait for " + bound_.name(r.word) + ", with status " +
                     std::to_string(r.status),
          .hint = "HIP takes signal memory only: pass the words to prepare (docs/stream_order.md)"};
}

/// The plan has this GPU's stream.
Result<void, Diagnostic> Run::streamed(std::uint32_t gpu, const char* what) const {
  if (plan_.options.prelaunch == Prelaunch::stream && plan_.options.completion == Completion::fence &&
      gpu < streams_.size())
    return {};
  return Diagnostic{.where = what,
                    .message = "the plan is not one for streams, or has no gpu" + std::to_string(gpu),
                    .hint = "plan with prelaunch=stream and completion=fence"};
}

Result<void, Diagnostic> Run::enqueue(std::uint32_t gpu, const StreamCalls& s, Deadline d) {
  if (auto r = streamed(gpu, "enqueue"); !r) return r;
  auto& lane = streams_[gpu];
  const auto value = lane.order.next();
  if (s.copy) return carry(gpu, s, value, lane.rounds++, true);
  if (plan_.options.turns != 1) return only_carried();
  if (lane.done.empty()) return {};
  if (!lane.tried)
    if (const auto r = lane.order.prepare(s); !r) return refused(gpu, r.error());
  lane.tried = true;
  // Before the packets: what is longer than a ring needs an engine that reads.
  if (const auto r = lane.order.begin(s, value); !r) return refused(gpu, r.error());
  if (auto r = publish_value(gpu, value, d); !r) return r;
  if (const auto r = lane.order.end(s, value); !r) return refused(gpu, r.error());
  return {};
}

Result<StreamGraph, Diagnostic> Run::graph(std::uint32_t gpu, std::uint32_t rounds) {
  if (auto r = streamed(gpu, "graph"); !r) return std::move(r.error());
  const auto turns = plan_.options.turns;
  if (rounds == 0 || rounds % turns != 0)
    return Diagnostic{.where = "graph",
                      .message = "a graph of " + std::to_string(rounds) + " rounds",
                      .hint = turns == 1 ? "capture at least one" : "with two turns, capture an even number of rounds"};
  // With two turns, a word sees every other value: two rounds more keep it from seeing one alone.
  auto g = streams_[gpu].order.graph(rounds_of({.iterations = rounds}));
  if (!g) return Diagnostic{.where = "graph", .message = std::string(message(g.error())), .hint = "restart"};
  g->iterations = rounds;
  return *g;
}

Result<void, Diagnostic> Run::pass(std::uint32_t gpu, const StreamCalls& s, const StreamGraph& g, std::uint32_t i) {
  if (auto r = streamed(gpu, "pass"); !r) return r;
  if (s.copy) return carry(gpu, s, g.value(i), i, true);
  if (plan_.options.turns != 1) return only_carried();
  if (const auto r = streams_[gpu].order.pass(s, g.value(i)); !r) return refused(gpu, r.error());
  return {};
}

Result<void, Diagnostic> Run::close(std::uint32_t gpu, const StreamCalls& s, const StreamGraph& g) {
  if (auto r = streamed(gpu, "close"); !r) return r;
  for (auto i = g.iterations; i < rounds_of(g) && s.copy; ++i)
    if (auto r = carry(gpu, s, g.value(i), i, false); !r) return r;
  if (s.copy) return {};
  if (const auto r = streams_[gpu].order.close(s, g); !r) return refused(gpu, r.error());
  return {};
}

/// A round of a queue without its copies.
Result<void, Diagnostic> Run::publish_empty(std::size_t q, std::uint32_t value, Deadline d) {
  const auto& queue = plan_.schedule.queues[q];
  auto& ring = bound_.ring(q);
  const auto dwords = plan_.triggers.size() * dwords_of<PollMem>() + dwords_of<Fence>();
  Submission packets{ring, dwords, d, AnyGeneration{ring.generation()}};
  for (const auto t : plan_.triggers)
    if (polls(queue, t)) packets.with([&](auto& w) { return acquire_equal(w, bound_.address(t), value); });
  packets.with([&](auto& w) { return complete_with_fence(w, bound_.address(plan_.completions[q]), value); });
  return published(q, packets.publish());
}

Result<void, Diagnostic> Run::publish(std::uint32_t gpu, const StreamGraph& g, Deadline d) {
  if (auto r = streamed(gpu, "publish"); !r) return r;
  if (const auto& lane = streams_[gpu]; lane.carries) {
    if (turn_of(lane.rounds) == 0) return {};
    return Diagnostic{.where = "publish",
                      .message = "an odd number of eager rounds precedes a graph, whose first round has turn 0",
                      .hint = "enqueue another round before the launch"};
  }
  for (std::uint32_t i = 0; i < g.iterations; ++i)
    if (auto r = publish_value(gpu, g.value(i), d); !r) return r;
  for (auto i = g.iterations; i < g.rounds(); ++i)
    for (const auto q : streams_[gpu].queues)
      if (auto r = publish_empty(q, g.value(i), d); !r) return r;
  return {};
}

}  // namespace collectives
