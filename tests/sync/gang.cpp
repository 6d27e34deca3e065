// SPDX-License-Identifier: MIT
// hsa.hpp on the software engine: a gang of queues, dependencies
// and stamps take effect, in every order that it may choose.
#include "sdma/device/soft.hpp"
#include "sdma/sync/hsa.hpp"
#include "sdma/sync/submission.hpp"
#include "support.hpp"
#include "support/catch.hpp"

#include <deque>
#include <vector>

using namespace sdma;

namespace {

/// The members of ROCr's signal that hsa.hpp uses.
struct alignas(64) Signal64 {
  std::int64_t value = 0;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0;
  std::uint64_t start_ts = 0, end_ts = 0;
};

/// A queue on an engine of its own.
struct Lane {
  Queue queue;
  Ring<> ring;
  Lane(Device& d, std::uint32_t engine) : queue(*d.create_queue({.engine = EngineId{engine}})), ring(queue.memory()) {}
};

}  // namespace

TEST_CASE("one copy over several engines has one completion, and it is the last thing that happens") {
  constexpr std::size_t kBytes = 30000, kQueues = 3;
  const auto seed = GENERATE(range(0u, 12u));
  const auto atomics = GENERATE(true, false);
  const auto d =
      *SoftDevice::open({.gpus = 1, .ordering = seed == 0 ? Ordering::strict : Ordering::adversarial, .seed = seed});
  const auto memory = *d->allocate({.bytes = 2 * kBytes}), words = *d->allocate({.bytes = 4096});
  for (std::size_t i = 0; i < kBytes; ++i) memory.host()[i] = static_cast<std::byte>(i * 7 + seed);
  auto* signals = reinterpret_cast<Signal64*>(words.host().data());
  auto &out = signals[0], &dependency = signals[kQueues];
  for (std::size_t i = 0; i <= kQueues; ++i) signals[i] = {.value = i == 0 || i == kQueues ? 1 : 2};
  auto* stamp_at = &signals[10].start_ts;
  *stamp_at = 0;

  std::deque<Lane> lanes;
  for (std::uint32_t i = 0; i < kQueues; ++i) lanes.emplace_back(*d, i + 2);
  const Writer::Copy all{.src = memory.va(), .dst = memory.va() + kBytes, .bytes = kBytes, .chunk = 1024};
  for (std::size_t n = 0; n < kQueues; ++n) {
    const auto i = seed % 2 ? n : kQueues - 1 - n;  // the leader first, or last
    auto& ring = lanes[i].ring;
    const auto part = hsa::share(all, i, kQueues);
    Submission s{ring, 300, test::far()};
    const auto options = hsa::DependOptions{.halves = hsa::Halves::by_value, .twice = seed % 3 == 0};
    CHECK(s.with([&](auto& w) { return hsa::depend(w, dependency, options); }) == Errc::ok);
    CHECK(s.copy(part) == Errc::ok);
    CHECK(s.with(200, [&](Writer& w) {
      if (i != 0) return hsa::complete_signal(w, signals[i], {.atomics = atomics, .fences = hsa::Halves::by_value});
      for (std::size_t k = 1; k < kQueues; ++k) static_cast<void>(hsa::join(w, signals[k], atomics));
      static_cast<void>(hsa::complete_signal(w, out, {.atomics = atomics, .stamp_end_at = test::va(*stamp_at)}));
      return w.error();
    }) == Errc::ok);
    CHECK(s.publish() == Errc::ok);
  }
  CHECK(memory.host()[kBytes] == std::byte{});  // everything waits for the dependency
  const auto word = [](Signal64& s) {
    return Signal{.word = reinterpret_cast<std::uint64_t*>(&s.value), .va = hsa::value_va(s)};
  };
  word(dependency).set(0);
  REQUIRE(wait(word(out), Compare::eq, 0, test::far()));
  CHECK(std::equal(memory.host().begin(), memory.host().begin() + kBytes, memory.host().begin() + kBytes));
  for (std::size_t k = 1; k < kQueues; ++k) CHECK(word(signals[k]).load() == 0);
  CHECK(std::atomic_ref(*stamp_at).load() != 0);
}
