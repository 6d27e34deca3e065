// SPDX-License-Identifier: MIT
// A snapshot of one queue, made from the report of a stalled wait.
#include "sdma/doctor/snapshot.hpp"

#include "sdma/stream/reader.hpp"

#include <algorithm>
#include <span>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

QueueSnapshot queue_of(const StallReport& r) {
  QueueSnapshot q{.name = "the queue", .generation = r.generation};
  q.ring_bytes = {r.ring_bytes, Source::memory};
  q.rptr = {r.read, Source::memory};
  q.rptr_first = {r.read_first, Source::memory};
  q.wptr = {r.wptr, Source::memory};
  q.committed = {r.committed, Source::memory};
  q.reserved = {r.reserved, Source::memory};
  q.first = r.read;
  const auto before = r.before_span(), head = r.head_span();
  // A packet that is longer than what was kept of it does not end at rptr.
  if (r.before_known && !before.empty()) {
    const auto v = Reader{before, catalogue(r.generation)}.next();
    if (v.whole() && v.dwords.size() == before.size()) {
      q.ring.assign(before.begin(), before.end());
      q.first -= before.size() * 4;
    }
  }
  q.ring.insert(q.ring.end(), head.begin(), head.end());
  return q;
}

}  // namespace

Snapshot snapshot_of(const StallReport& r, const Peek& peek, std::chrono::nanoseconds waited) {
  Snapshot s{.from = "a wait that gave up", .peek = peek};
  s.watched_ns = static_cast<std::uint64_t>(std::max(waited, std::chrono::nanoseconds{}).count());
  if (r.ring_bytes != 0) s.queues.push_back(queue_of(r));
  if (r.signal.value != 0) {
    std::uint64_t now = 0;
    if (!peek || peek(r.signal, std::as_writable_bytes(std::span(&now, 1))) != Errc::ok)
      s.words.add(r.signal, r.seen, 8);
    s.waits.push_back({.name = "The host", .signal = r.signal, .func = r.func, .reference = r.reference});
  }
  return s;
}

}}}  // namespace sdma::v0_3::doctor
