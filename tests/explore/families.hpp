// SPDX-License-Identifier: MIT
#pragma once
// The kinds of schedules that generate() makes. Internal.
#include "edit.hpp"

#include <string>

namespace sdma::explore::family {

Schedule ring(Random&);       ///< relay: each queue waits for the one before it
Schedule counter(Random&);    ///< queues add to one word, the host waits for the sum; epochs
Schedule barrier(Random&);    ///< queues meet at a counter between phases
Schedule prelaunch(Random&);  ///< published before they are released
Schedule pingpong(Random&);   ///< host and queues in turns
Schedule hosts(Random&);      ///< two or three host threads, each with its queues
Schedule shared(Random&);     ///< two hosts that submit one queue
Schedule engine(Random&);     ///< queues that share engines
Schedule alias(Random&);      ///< words and bytes with several names
Schedule unknown(Random&);    ///< flags in buffers with random or poisoned bytes
Schedule condition(Random&);  ///< conditional packets
Schedule flag(Random&);       ///< flags that a WRITE or a copy stores
Schedule box(Random&);        ///< boxes of a volume
Schedule capacity(Random&);   ///< rings that are nearly full
Schedule words(Random&);      ///< masks, every comparison, counters that shrink
Schedule credit(Random&);     ///< a producer that waits for credit of its consumer
Schedule pipeline(Random&);   ///< slots in turn, filled and emptied by two queues
Schedule tree(Random&);       ///< partial results go up, the whole comes down
Schedule ahead(Random&);      ///< rounds published before the earlier ones are complete
Schedule wide(Random&);       ///< words of 64 bits, in halves
Schedule atomics(Random&);    ///< posts of every operation, in turns or at once
Schedule halves(Random&);     ///< words of 64 bits that are stored in halves
Schedule mixed(Random&);      ///< words that are stored to and added to
Schedule compare(Random&);    ///< a wait with each comparison
Schedule packets(Random&);    ///< packets that other families leave out
Schedule reads(Random&);      ///< waits for rptr, which is no completion
Schedule bytes(Random&);      ///< threads that access bytes
Schedule samples(Random&);    ///< waits for a value that a thread has sampled
Schedule kernel(Random&);     ///< a kernel between two queues
Schedule sums(Random&);       ///< sums of sums, of integers and of rounded numbers, in several orders
Schedule scopes(Random&);     ///< kernels that hand over at the scope of their GPU
Schedule vram(Random&);       ///< words in the memory of GPUs
Schedule lifetimes(Random&);  ///< buffers that are allocated, mapped, exported, and freed
Schedule pool(Random&);       ///< parts of a buffer with lives of their own
Schedule lent(Random&);       ///< kernels that use memory which comes and goes
Schedule gates(Random&);      ///< conditions and polls with one outcome, on words that come and go
Schedule network(Random&);    ///< two nodes, with words of both
Schedule places(Random&);     ///< what an engine or a kernel reaches: mappings and links of a ring
Schedule values(Random&);     ///< values of threads near the end of 32 bits
Schedule results(Random&);    ///< what is expected of bytes, sums and signals
Schedule noise(Random&);      ///< anything

/// Shorter names for what most families need.
class Builder {
 public:
  explicit Builder(Random& r, std::uint32_t gpus) : r_(r) { s.gpus = gpus; }
  Schedule s{};

  GpuVa buffer(std::uint64_t bytes = 8, Init init = Init::random, std::optional<Place> place = {}) {
    return s.add_buffer({.place = place ? *place : Place::gpu(below(r_, s.gpus)),
                         .name = "b" + std::to_string(s.buffers.size()),
                         .bytes = bytes,
                         .init = init});
  }
  GpuVa signal(std::uint64_t value = 0, std::uint32_t bits = 0, Place place = Place::host()) {
    if (bits == 0) bits = below(r_, 3) == 0 ? 32 : 64;
    return s.add_signal({.place = place, .name = "s" + std::to_string(s.signals.size()), .value = value, .bits = bits});
  }
  /// A queue with an engine of its own, unless `engine` says otherwise.
  Schedule::Queue& queue(std::uint32_t gpu, int engine = -1) {
    const auto n = static_cast<std::uint32_t>(s.queues.size());
    return s.add_queue({.place = Place::gpu(gpu % s.gpus),
                        .name = "q" + std::to_string(n),
                        .engine = engine < 0 ? 2 + n : static_cast<std::uint32_t>(engine)});
  }
  Schedule::Script kernel(std::uint32_t gpu) {
    return s.add_kernel(Place::gpu(gpu), "k" + std::to_string(s.kernels.size()));
  }
  Schedule::Script host() { return s.add_host("h" + std::to_string(s.hosts.size())); }

  static void copy(Schedule::Queue& q, GpuVa from, GpuVa to, std::uint32_t bytes = 4) {
    q.put(CopyLinear{.src = from, .dst = to, .bytes = bytes});
  }
  static void fence(Schedule::Queue& q, GpuVa to, EpochValue v) { q.put<&Fence::value>(Fence{.addr = to}, v); }
  static void poll(Schedule::Queue& q, GpuVa at, Compare f, EpochValue v) {
    q.put<&PollMem::reference>(PollMem{.addr = at, .func = f}, v);
  }
  void add(Schedule::Queue& q, GpuVa to, std::int64_t v = 1) const {
    const bool narrow = s.signals[find_symbol(s, to)->index].bits == 32;
    q.put(Atomic{.addr = to,
                 .op = narrow ? AtomicOp::add_rtn_32 : AtomicOp::add_rtn_64,
                 .value = narrow ? static_cast<std::uint32_t>(v) : static_cast<std::uint64_t>(v)});
  }
  /// A full barrier of one queue: a fence, and a poll of its word.
  static void drain(Schedule::Queue& q, GpuVa word, EpochValue v) {
    fence(q, word, v);
    poll(q, word, Compare::ge, v);
  }
  bool maybe(std::uint32_t of = 2) { return below(r_, of) == 0; }
  std::uint32_t any(std::uint32_t n) { return below(r_, n); }
  Compare at_least() { return maybe(3) ? Compare::eq : Compare::ge; }

 private:
  Random& r_;
};

}  // namespace sdma::explore::family
