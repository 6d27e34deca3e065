#pragma once
// The linker: a schedule on a device, ready to be submitted, again and again.
//
//   auto bound = bind(schedule, device, {.gpus = {GpuId{2}, GpuId{3}}});         // gpu0 is GPU 2, gpu1 is GPU 3
//   if (!bound) for (const auto& e : bound.error()) puts(to_string(e).c_str());
//   bound->submit(0, deadline);                                                  // epoch 1 of queue 0: a doorbell
//   bound->set(go, 1);                                                           // trigger
//   wait(bound->signal(done), Compare::ge, 8, deadline, bound->ring(0));
//   bound->submit(0, deadline);                                                  // epoch 2, off the critical path
//
//   link space                                   device
//   buffer k  (k + 1) << 40         ------->     allocated, aligned as declared, for the GPUs of `map`
//   signal k                        ------->     a word of its own, in the memory of its place
//   at=0x...  a fixed address       ------->     memory that the caller has there, and gives: BindOptions::given
//   queue     peer=gpu3 | engine=2  ------->     the engine that the topology recommends | that one; a ring
//   packets   address fields        ------->     moved, once
//             values with an epoch  ------->     stored at each submit; a queue without them is copied as it is
//
// Epochs. `submit` counts: the n-th of a queue is its epoch n. Whatever does not fit its field any more (a poll compares 32
// bits and knows no wrap) is Errc::epoch_overflow, and nothing is published. `restart` begins again at epoch 0 with the
// signals' first values: when everything is over, which the caller has seen.
//
// Threads: any thread may submit, set and read; submissions of one queue take turns. bind and restart are control.
// Errors: bind gives Diagnostics, the schedule's own problems first; submit an Errc. Ends: queues first, then signals and
// memory; it does not drain (queue/queue.hpp). The device outlives the Bound.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/device.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sdma {
inline namespace v0 {

struct BindOptions {
  /// Memory that the caller keeps until the Bound has ended.
  struct Given {
    GpuVa va{};
    std::span<std::byte> host{};  ///< the same bytes, as the host sees them
  };
  std::vector<GpuId> gpus{};  ///< the device's GPU for each of the schedule's; empty: the same numbers
  /// Where buffers and signals with a fixed `at` lie. A run fills such a buffer only if its `init` says so.
  std::vector<Given> given{};
};

class Bound {
 public:
  struct Impl;
  explicit Bound(std::unique_ptr<Impl>) noexcept;
  Bound(Bound&&) noexcept;
  Bound& operator=(Bound&&) noexcept;
  ~Bound();

  const Schedule& schedule() const noexcept;
  Device& device() const noexcept;

  /// Where a link address is now; any other address is itself.
  GpuVa address(GpuVa link) const noexcept;
  /// "gpu1.buf[64K]" of an address on the device, "" if it is none of this schedule's.
  std::string name(GpuVa) const;
  /// A buffer's bytes, or some of them, as the host sees them. Requires a range of the schedule.
  std::span<std::byte> bytes(const Schedule::Range&) const noexcept;

  /// A signal's word for sync/wait.hpp. Requires one of 64 bits, or one without `at`.
  const Signal& signal(std::size_t) const noexcept;
  /// Its value, acquired: 32 or 64 bits.
  std::uint64_t value(std::size_t) const noexcept;
  /// Releases what this thread wrote before.
  void set(std::size_t, std::uint64_t) const noexcept;

  Ring<Producers::many>& ring(std::size_t queue) const noexcept;
  const Queue& queue(std::size_t) const noexcept;
  /// The packets of a queue, moved; epochs as of the last submit.
  std::span<const std::uint32_t> packets(std::size_t queue) const noexcept;

  /// Publishes the queue's packets with one doorbell (as many as it takes, where they are more than half the ring) and
  /// returns its new epoch. timed_out: the ring had no room until then; nothing, or a part, is published. epoch_overflow:
  /// a value of this epoch does not fit.
  Result<std::uint64_t> submit(std::size_t queue, Deadline) const noexcept;
  /// How often it was submitted since bind or restart.
  std::uint64_t epoch(std::size_t queue) const noexcept;
  /// Goes on counting from here: the next submit is epoch `n` + 1. Requires that nobody submits.
  void set_epoch(std::size_t queue, std::uint64_t n) const noexcept;
  /// Epochs to 0, signals to their first values, when every engine has read all that was published. timed_out.
  Errc restart(Deadline) const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Allocates, creates and moves everything, or says what cannot be.
Result<Bound, std::vector<Diagnostic>> bind(const Schedule&, Device&, const BindOptions& = {});

}  // namespace v0
}  // namespace sdma
