// SPDX-License-Identifier: MIT
// A backend for a HAL (hardware abstraction layer): its queues take copies with semaphores, as in Vulkan or IREE.
//
//   HAL                                   here
//   semaphore: a counter that grows       a word that packets poll and store; the host waits for it with a deadline
//   submit(waits, copies, signals)        polls, a time stamp, copies, a time stamp, fences: one slot of a ring
//   wait before signal                    a poll may come long before the fence that ends it: engines only stall
//   times of a submission                 two words that TIMESTAMP stores, in the host's clock
//   loss of the device                    a fault of the queue: each wait looks for one, so that none is for ever
//
// `hal` is what a HAL would declare; it does not know sdma. `backend` implements it in one translation unit. The main
// function uses it from two threads, waits before it signals, reads times, and loses a queue. On a real device, a queue
// that an engine's reset has cost is built again with queue/reset.hpp.
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/submission.hpp"
#include "support.hpp"

#include <atomic>
#include <cstring>
#include <thread>

namespace hal {

enum class Status { ok, timed_out, lost, invalid };
using Nanoseconds = std::chrono::nanoseconds;

class Semaphore {
 public:
  virtual ~Semaphore() = default;
  virtual std::uint64_t value() const noexcept = 0;
  virtual Status signal(std::uint64_t value) noexcept = 0;
};
/// A semaphore at a value.
struct Point {
  Semaphore* semaphore{};
  std::uint64_t value{};
};
struct Copy {
  std::uint64_t src{}, dst{}, bytes{};
};
struct Work {
  std::vector<Point> waits{};
  std::vector<Copy> copies{};
  std::vector<Point> signals{};
};
/// When the copies of a submission began and ended, since the host's clock began.
struct Times {
  Nanoseconds begin{}, end{};
};

class Queue {
 public:
  virtual ~Queue() = default;
  /// Any thread. Waits at most `patience` for room. `id` names the submission.
  virtual Status submit(const Work&, Nanoseconds patience, std::uint64_t* id) noexcept = 0;
  /// Any thread. Until the semaphore has the value.
  virtual Status wait(const Point&, Nanoseconds patience) noexcept = 0;
  /// Of a submission that has signalled, for as long as fewer than kKept others have followed it.
  virtual Status times(std::uint64_t id, Times&) const noexcept = 0;
  static constexpr std::size_t kKept = 256;
};

}  // namespace hal

namespace backend {

using namespace sdma;
using hal::Status;

constexpr Status status_of(Errc e) noexcept {
  return e == Errc::ok          ? Status::ok
         : e == Errc::timed_out ? Status::timed_out
         : e == Errc::stopped   ? Status::lost
                                : Status::invalid;
}

/// Engines compare 32 bits, so a semaphore ends at 2^32 - 1.
constexpr std::uint64_t kMost = 0xffffffff;

class Semaphore final : public hal::Semaphore {
 public:
  explicit Semaphore(Device& d) : memory_(example::must(d.create_signal())) {}
  std::uint64_t value() const noexcept override { return memory_->load(); }
  Status signal(std::uint64_t value) noexcept override {
    if (value > kMost || value <= memory_->load()) return Status::invalid;
    memory_->set(value);
    return Status::ok;
  }
  const Signal& word() const noexcept { return *memory_; }

 private:
  SignalMemory memory_;
};

/// The HAL hands back what this backend has made.
const Signal& word_of(const hal::Point& p) noexcept { return static_cast<const Semaphore*>(p.semaphore)->word(); }

class Queue final : public hal::Queue {
 public:
  Queue(Device& d, GpuId from, GpuId to)
      : device_(d),
        stamps_(example::must(d.allocate({.bytes = 2 * kKept * 8, .purpose = Purpose::words}))),
        queue_(example::must(d.create_queue({.gpu = from, .engine = *d.topology().engine_for(from, to)}))),
        ring_(queue_.memory()) {}

  Status submit(const hal::Work& work, hal::Nanoseconds patience, std::uint64_t* id) noexcept override {
    if (device_.fault(queue_)) return Status::lost;
    for (const auto* points : {&work.waits, &work.signals})
      for (const auto& p : *points)
        if (!p.semaphore || p.value > kMost) return Status::invalid;
    const auto n = next_.fetch_add(1, std::memory_order_relaxed);
    const auto write = [&](auto& w) { return packets(w, work, n); };
    // The same function says how long the slot is, and fills it.
    const auto slot = reserve(ring_, dwords_of(ring_.generation(), write), Deadline::in(patience));
    if (!slot) return device_.fault(queue_) ? Status::lost : status_of(slot.error());
    AnyWriter w{slot->dwords, {ring_.generation()}};
    const auto e = write(w);
    ring_.publish(*slot, e == Errc::ok ? w.position_dwords() : 0);  // 0 gives the slot back
    *id = n;
    return status_of(e);
  }

  Status wait(const hal::Point& p, hal::Nanoseconds patience) noexcept override {
    const auto deadline = Deadline::in(patience);
    for (;;) {
      // In slices: a queue that a fault has stopped never signals.
      const auto reached = sdma::wait(word_of(p), Compare::ge, p.value, deadline.within(std::chrono::milliseconds(10)));
      if (device_.fault(queue_)) return Status::lost;  // even if it signalled: see Device::fault
      if (reached) return Status::ok;
      if (deadline.passed()) return Status::timed_out;
    }
  }

  Status times(std::uint64_t id, hal::Times& t) const noexcept override {
    if (next_.load(std::memory_order_relaxed) - id > kKept) return Status::invalid;
    const auto clock = device_.clock(queue_.gpu());
    if (!clock) return Status::invalid;  // the driver does not say how fast the GPU's clock is
    const auto words = stamps_.as<std::uint64_t>();
    const auto at = [&](std::size_t i) { return clock->at(words[id % kKept * 2 + i]).time_since_epoch(); };
    t = {at(0), at(1)};
    return Status::ok;
  }

 private:
  template <class Writer> Errc packets(Writer& w, const hal::Work& work, std::uint64_t n) const noexcept {
    const auto stamp = stamps_.va() + n % kKept * 16;
    w.clear_error();
    for (const auto& p : work.waits)
      (void)w.put(PollMem{.addr = word_of(p).low_va(), .func = Compare::ge, .reference = low_half(p.value)});
    (void)w.put(Timestamp{.addr = stamp});
    for (const auto& c : work.copies) (void)w.copy({.src = GpuVa{c.src}, .dst = GpuVa{c.dst}, .bytes = c.bytes});
    (void)w.put(Timestamp{.addr = stamp + 8});
    for (const auto& p : work.signals) (void)complete_with_fence(w, word_of(p).low_va(), low_half(p.value));
    return w.error();  // the first error of them all
  }

  Device& device_;
  Memory stamps_;  // declared before the queue, so that it outlives the engine's stores
  sdma::Queue queue_;
  Ring<Producers::many> ring_;
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace backend

namespace {

using namespace std::chrono_literals;

void expect(hal::Status s, hal::Status wanted, const char* what) {
  if (s != wanted) example::fail(std::string(what) + ": status " + std::to_string(static_cast<int>(s)));
}
void expect(bool ok, const char* what) {
  if (!ok) example::fail(what);
}

}  // namespace

int main(int argc, char** argv) {
  const auto device = example::open_device(argc, argv, 2);
  constexpr std::uint64_t kBytes = 1 << 16;
  const auto memory = [&](std::optional<sdma::GpuId> where) {
    return example::must(device->allocate({.where = where, .bytes = kBytes}));
  };
  const auto source = memory({}), middle = memory(sdma::GpuId{1}), target = memory({});
  for (std::uint32_t i = 0; auto& word : source.as<std::uint32_t>()) word = i++ * 2654435761u;
  const hal::Copy there{source.va().value, middle.va().value, kBytes},
      back{middle.va().value, target.va().value, kBytes};
  backend::Semaphore middle_full(*device), target_full(*device);
  backend::Queue first(*device, sdma::GpuId{0}, sdma::GpuId{1}), second(*device, sdma::GpuId{1}, sdma::GpuId{0});
  std::uint64_t id = 0, earlier = 0;

  // Wait before signal: the second queue waits for what is not submitted yet.
  expect(second.submit({{{&middle_full, 1}}, {back}, {{&target_full, 1}}}, 1s, &id), hal::Status::ok, "submit");
  expect(second.wait({&target_full, 1}, 20ms), hal::Status::timed_out, "nothing has signalled");
  expect(first.submit({{}, {there}, {{&middle_full, 1}}}, 1s, &earlier), hal::Status::ok, "submit");
  expect(second.wait({&target_full, 1}, 10s), hal::Status::ok, "the copy arrives");
  example::flush_host_path(*device);
  expect(std::memcmp(source.host().data(), target.host().data(), kBytes) == 0, "the bytes differ");
  hal::Times a, b;
  if (first.times(earlier, a) == hal::Status::ok && second.times(id, b) == hal::Status::ok)
    expect(a.begin <= a.end && b.begin <= b.end, "a copy ends before it begins");

  // Two threads submit to one queue, each with a semaphore of its own; the host signals, too.
  backend::Semaphore go(*device), mine[] = {backend::Semaphore(*device), backend::Semaphore(*device)};
  constexpr std::uint32_t kRounds = 200;
  const auto produce = [&](hal::Semaphore& s) {
    std::uint64_t last = 0;
    for (std::uint32_t r = 1; r <= kRounds; ++r)
      expect(first.submit({{{&go, 1}}, {there}, {{&s, r}}}, 10s, &last), hal::Status::ok, "submit");
  };
  std::thread threads[] = {std::thread(produce, std::ref(mine[0])), std::thread(produce, std::ref(mine[1]))};
  expect(go.signal(1), hal::Status::ok, "signal");
  for (auto& t : threads) t.join();
  for (auto& s : mine) expect(first.wait({&s, kRounds}, 10s), hal::Status::ok, "all rounds arrive");

  // Loss: a copy from where nothing is mapped. Its wait ends, and so does every later submission.
  expect(first.submit({{}, {{0x1000, target.va().value, 64}}, {{&middle_full, 2}}}, 1s, &id), hal::Status::ok,
         "submit");
  expect(first.wait({&middle_full, 2}, 10s), hal::Status::lost, "the queue is lost");
  expect(first.submit({{}, {there}, {{&middle_full, 3}}}, 1s, &id), hal::Status::lost, "it stays lost");
  std::printf("%u submissions of two threads, a wait before its signal, times, and a loss that was noticed\n",
              2 * kRounds);
  return example::printed();
}
