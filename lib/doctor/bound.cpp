// SPDX-License-Identifier: MIT
// A snapshot of the queues of a schedule that this process has bound.
#include "sdma/doctor/snapshot.hpp"

#include "sdma/doctor/read.hpp"
#include "sdma/schedule/bind.hpp"

#include <fmt/format.h>

#include <map>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace doctor {

Snapshot snapshot_of(const Bound& b, std::chrono::nanoseconds watch) {
  const auto& schedule = b.schedule();
  std::vector<std::size_t> own;
  for (std::size_t q = 0; q < schedule.queues.size(); ++q)
    if (b.owns(q)) own.push_back(q);
  std::map<std::size_t, std::uint64_t> first;
  for (const auto q : own) first[q] = b.ring(q).positions().read;
  std::this_thread::sleep_for(watch);
  Snapshot s;
  s.from = "schedule";
  s.all_queues = s.all_threads = own.size() == schedule.queues.size();
  s.watched_ns = static_cast<std::uint64_t>(watch.count());
  s.peek = [&device = b.device()](GpuVa va, std::span<std::byte> out) { return device.peek(va, out); };
  for (const auto q : own) {
    const auto& queue = b.queue(q);
    const auto& place = schedule.queues[q];
    add(s, dump(b.ring(q), queue.gpu(), queue.engine()), fmt::format("{}.{}", to_string(place.place), place.name));
    auto& out = s.queues.back();
    out.id = queue.id();
    out.gpu = {queue.gpu(), Source::node};
    out.engine = {};  // of the network between nodes
    if (queue.engine() != kUnknownEngine) out.engine = {queue.engine(), Source::node};
    out.rptr_first = {first[q], Source::memory};
    // A doorbell of hardware cannot be read: its bits are all ones.
    if (!b.ring(q).memory().doorbell || out.doorbell.value == ~std::uint64_t{}) out.doorbell = {};
    if (const auto fault = b.device().fault(queue)) out.fault = {*fault, Source::node};
  }
  for (const auto& r : b.names().ranges()) s.ranges.push_back({.va = r.va, .bytes = r.bytes, .name = r.name});
  return s;
}

}}}  // namespace sdma::v0_3::doctor
