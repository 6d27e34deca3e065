// SPDX-License-Identifier: MIT
// A ring and indirect buffers that change while the engine reads them, between any two of its looks: no crash, no read
// past a copy, no step without end, and not a byte written that is not mapped for writing. Producers must not do this;
// engines meet it.
//
//   input   [ how ][ seed ][ doorbell step ][ number of changes ] changes: [ where: 2 ][ value: 4 ] ..., then dwords of
//           the ring
//   how     % 3: ordering;  4: all doorbells ring before the first step;  8: a second thread makes the changes;
//           16: it sleeps
//
// The changes are made in a circle. Without the thread, one is made at each hook that the engine calls and after each
// step, so that a run can be repeated. With it, they hit the places between the hooks, too: a find may need several
// runs to show again.
#include "../support/sanitizer.hpp"
#include "engine/pipeline.hpp"
#include "space.hpp"

#include <atomic>
#include <cstring>
#include <thread>

using namespace sdma;
using fuzz::require;

namespace {

constexpr std::size_t kRing = 1024, kHead = 4, kChange = 6;
constexpr std::uint32_t kSteps = 2000;

/// Changes words of the ring and of the memory that indirect buffers are in.
class Rewriter {
 public:
  Rewriter(const std::uint8_t* changes, std::size_t n, std::span<std::uint32_t> ring, fuzz::Space& s)
      : changes_(changes), n_(n), ring_(ring), low_(reinterpret_cast<std::uint32_t*>(s.low.begin())) {}

  void next() noexcept {
    if (n_ == 0) return;
    const auto* c = changes_ + kChange * (at_++ % n_);
    const auto where = (std::size_t{c[0]} | std::size_t{c[1]} << 8) % (2 * kRing);
    std::uint32_t value = 0;
    std::memcpy(&value, c + 2, sizeof value);
    auto& word = where < kRing ? ring_[where] : low_[where - kRing];
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
  }

 private:
  const std::uint8_t* changes_;
  std::size_t n_, at_ = 0;
  std::span<std::uint32_t> ring_;
  std::uint32_t* low_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHead + 4) return 0;
  const auto how = data[0];
  const auto changes = std::min<std::size_t>(data[3], (size - kHead) / kChange);
  const auto* dwords = data + kHead + changes * kChange;
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(data + size - dwords) / 4, kRing - 1);

  fuzz::Space space;
  std::vector<std::uint32_t> ring(kRing);
  std::memcpy(ring.data(), dwords, n * 4);
  std::memcpy(space.low.begin(), dwords, n * 4);
  Rewriter rewriter{data + kHead, changes, ring, space};
  // The thread sanitizer reports the race that this target is about, so there the changes are made by hooks alone.
  const bool threaded = !sdma::test::thread_sanitizer() && (how & 8) != 0;

  PipelineHooks hooks;
  TickSource ticks;
  if (!threaded) {
    hooks.context = &rewriter;
    hooks.begin = [](void* r, const PacketEvent&) noexcept { static_cast<Rewriter*>(r)->next(); };
    hooks.end = hooks.begin;
    hooks.trap = [](void* r, std::uint64_t, std::uint32_t) noexcept { static_cast<Rewriter*>(r)->next(); };
    ticks.context = &rewriter;
    ticks.now = [](void* r) noexcept -> std::uint64_t {
      static_cast<Rewriter*>(r)->next();
      return 0;
    };
  }
  std::uint64_t rptr = 0;
  Pipeline pipeline{{.ring = ring,
                     .rptr = &rptr,
                     .reader = &space.reader,
                     .ordering = static_cast<Ordering>(how % 3),
                     .seed = data[1],
                     .sleeps = (how & 16) != 0,
                     .poll_timeout = PollTimeout::either,
                     .ticks = ticks,
                     .hooks = hooks}};

  std::atomic<bool> ends{false};
  std::thread other;
  if (threaded)
    other = std::thread([&] {
      while (!ends.load(std::memory_order_relaxed)) rewriter.next();
    });

  const std::size_t stride = std::size_t{4} * (1 + data[2] % 32);
  std::uint32_t steps = 0;
  for (std::size_t bell = 0; bell < n * 4 && !pipeline.fault();) {
    do {
      bell = std::min(bell + stride, n * 4);
      pipeline.doorbell(bell);
    } while ((how & 4) != 0 && bell < n * 4);
    for (auto last = Progress::progressed; steps < kSteps && last == Progress::progressed; ++steps) {
      last = pipeline.step(1 + how % 5);
      require(pipeline.position() <= bell);
      require((last == Progress::stopped) == (pipeline.fault() != nullptr));
      if (pipeline.asleep()) {
        pipeline.awaken();
        last = Progress::progressed;
      }
      if (!threaded) rewriter.next();
    }
  }
  if (pipeline.fault()) require(!describe(*pipeline.fault()).empty());
  ends = true;
  if (other.joinable()) other.join();
  space.require_intact();
  return 0;
}
