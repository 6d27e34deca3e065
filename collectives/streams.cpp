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

Result<void, Diagnostic> Run::enqueue(std::uint32_t gpu, const StreamCalls& s, Deadline d) {
  const auto refused = [&](const Result<void, StreamRefusal>& r) {
    const auto word = bound_.name(r.error().word);
    return Diagnostic{.where = "the stream of " + to_string(Place::gpu(gpu)),
                      .message = "its runtime refused to write or to wait for " + word + ", with status " +
                                 std::to_string(r.error().status),
                      .hint = "HIP takes signal memory only: pass the words to prepare (docs/stream_order.md)"};
  };
  if (plan_.options.prelaunch != Prelaunch::stream || plan_.options.completion != Completion::fence ||
      gpu >= streams_.size())
    return Diagnostic{.where = "enqueue",
                      .message = "the plan is not one for streams, or has no gpu" + std::to_string(gpu),
                      .hint = "plan with prelaunch=stream and completion=fence"};
  auto& [done, order, queues, tried] = streams_[gpu];
  const auto value = order.next();
  if (done.empty()) return {};
  if (!tried)
    if (const auto r = order.prepare(s); !r) return refused(r);
  tried = true;
  // Before the packets: what is longer than a ring needs an engine that reads.
  if (const auto r = order.begin(s, value); !r) return refused(r);
  if (auto r = publish_value(gpu, value, d); !r) return r;
  if (const auto r = order.end(s, value); !r) return refused(r);
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
  for (std::uint32_t i = 0; i < g.iterations; ++i)
    if (auto r = publish_value(gpu, g.value(i), d); !r) return r;
  for (auto i = g.iterations; i < g.rounds(); ++i)
    for (const auto q : streams_[gpu].queues)
      if (auto r = publish_empty(q, g.value(i), d); !r) return r;
  return {};
}

}  // namespace collectives
