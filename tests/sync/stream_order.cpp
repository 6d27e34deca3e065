// SPDX-License-Identifier: MIT
// Rounds in the order of streams, eager and in graphs that are replayed, on the software engine in every order.
#include "sdma/sync/stream_order.hpp"

#include "sdma/device/soft.hpp"
#include "sdma/stream/reader.hpp"
#include "support.hpp"
#include "support/catch.hpp"
#include "support/stream.hpp"

#include <array>
#include <vector>

using namespace sdma;
using test::RingBytes;

namespace {

constexpr std::size_t kBytes = 4096, kDwords = 64;

/// A stream whose kernels fill `in` and read `out`, and a queue that copies the one to the other.
struct Lane {
  explicit Lane(Device& device, std::uint32_t gpu = 0)
      : memory(*device.allocate({.where = GpuId{gpu}, .bytes = 2 * kBytes})),
        words{*device.create_signal(), *device.create_signal()},
        queue(*device.create_queue({.gpu = GpuId{gpu}, .engine = EngineId{2}})),
        ring(queue.memory()) {
    for (const auto& w : words) stream.knows(*w);
    REQUIRE(order.prepare(stream.calls()));
  }

  /// Before the round.
  void produce() {
    stream.kernel([this] { std::fill_n(memory.host().begin(), kBytes, static_cast<std::byte>(++produced)); });
  }
  /// After the round.
  void consume() {
    stream.kernel([this] {
      for (const auto b : memory.host().subspan(kBytes)) wrong += b != static_cast<std::byte>(produced);
      ++consumed;
    });
  }
  void copy(auto& packets) const {
    (void)packets.copy({.src = memory.va(), .dst = memory.va() + kBytes, .bytes = kBytes, .chunk = 1024});
  }
  void eager() {
    produce();
    REQUIRE(order.enqueue(stream.calls(), ring, kDwords, test::far(), [this](auto& p, std::uint32_t) { copy(p); }));
    consume();
  }
  struct Captured {
    StreamGraph rounds;
    test::Stream::Graph graph;
  };
  Captured capture(std::uint32_t iterations) {
    const auto g = order.graph(iterations);
    REQUIRE(g);
    stream.begin_capture();
    for (std::uint32_t i = 0; i < iterations; ++i) {
      produce();
      REQUIRE(order.pass(stream.calls(), g->value(i)));
      consume();
    }
    REQUIRE(order.close(stream.calls(), *g));
    return {*g, stream.end_capture()};
  }
  void publish(const Captured& c) {
    REQUIRE(order.publish(ring, 0, kDwords, test::far(), c.rounds, [this](auto& p, std::uint32_t) { copy(p); }) ==
            Errc::ok);
  }
  void replay(const Captured& c) {
    publish(c);
    stream.launch(c.graph);
  }

  Memory memory;
  std::array<SignalMemory, 2> words;
  GpuVa done = words[1]->va;
  Queue queue;
  Ring<> ring;
  StreamOrder order{words[0]->va, {&done, 1}};
  std::uint32_t produced = 0, consumed = 0;
  std::uint64_t wrong = 0;
  test::Stream stream;
};

std::unique_ptr<SoftDevice> device(unsigned seed, std::uint32_t gpus = 1) {
  auto d =
      SoftDevice::open({.gpus = gpus, .ordering = seed == 0 ? Ordering::strict : Ordering::adversarial, .seed = seed});
  REQUIRE(d);
  return std::move(*d);
}

/// Takes commands, and executes nothing.
struct Recorded {
  struct Call {
    char what;
    GpuVa word;
    std::uint32_t value;
    bool operator==(const Call&) const = default;
  };
  std::vector<Call> calls{};
  int write_status = 0, hold_status = 0;
  StreamCalls stream() {
    return {this,
            [](void* s, GpuVa w, std::uint32_t v) noexcept {
              static_cast<Recorded*>(s)->calls.push_back({'w', w, v});
              return static_cast<Recorded*>(s)->write_status;
            },
            [](void* s, GpuVa w, std::uint32_t v) noexcept {
              static_cast<Recorded*>(s)->calls.push_back({'h', w, v});
              return static_cast<Recorded*>(s)->hold_status;
            }};
  }
};

constexpr GpuVa kGo{0x1000}, kDone{0x2000}, kOther{0x3000};

}  // namespace

TEST_CASE("packets begin when the stream gets there, and the stream continues when they are complete") {
  const auto seed = GENERATE(0u, 1u, 2u);
  const auto d = device(seed);
  Lane lane(*d);
  for (int i = 0; i < 100; ++i) lane.eager();
  CHECK(lane.stream.finish());
  CHECK(lane.consumed == 100);
  CHECK(lane.wrong == 0);
  CHECK_FALSE(d->fault(lane.queue));
}

TEST_CASE("graphs are replayed back to back, between each other and eager rounds") {
  const auto seed = GENERATE(0u, 1u, 2u, 3u);
  const auto iterations = GENERATE(1u, 2u, 3u);
  const auto d = device(seed);
  Lane lane(*d);
  const auto one = lane.capture(iterations), other = lane.capture(1);
  lane.eager();
  // Published ahead, so that the queue is at the next replay's polls before the stream is.
  for (int i = 0; i < 4; ++i) lane.publish(one);
  for (int i = 0; i < 4; ++i) lane.stream.launch(one.graph);
  for (int i = 0; i < 20; ++i) {
    lane.replay(one);
    if (i % 3 == 0) lane.eager();
    if (i % 5 == 0) lane.replay(other);
  }
  CHECK(lane.stream.finish());
  CHECK(lane.consumed == 1 + 24 * iterations + 7 + 4);
  CHECK(lane.wrong == 0);
}

TEST_CASE("two streams exchange: a queue waits for both, and both wait for it") {
  const auto seed = GENERATE(0u, 1u, 2u);
  const auto d = device(seed, 2);
  std::array<Memory, 2> buffers;
  std::array<SignalMemory, 4> words;  // go of each stream, done of each queue
  for (auto& b : buffers) b = *d->allocate({.where = GpuId{0}, .bytes = 2 * kBytes});
  for (auto& w : words) w = *d->create_signal();
  const GpuVa done[] = {words[2]->va, words[3]->va};
  std::array<StreamOrder, 2> orders{StreamOrder{words[0]->va, done}, StreamOrder{words[1]->va, done}};
  std::array<Queue, 2> queues{*d->create_queue({.gpu = GpuId{0}}), *d->create_queue({.gpu = GpuId{1}})};
  std::array<Ring<>, 2> rings{Ring<>{queues[0].memory()}, Ring<>{queues[1].memory()}};
  std::array<std::uint64_t, 2> wrong{};
  std::array<test::Stream, 2> streams;
  for (auto& s : streams)
    for (const auto& w : words) s.knows(*w);
  for (std::uint32_t round = 1; round <= 40; ++round)
    for (std::size_t i = 0; i < 2; ++i) {
      const auto peer = 1 - i;
      streams[i].kernel([&, i, round] { std::fill_n(buffers[i].host().begin(), kBytes, std::byte(round + i)); });
      const auto value = orders[i].next();
      REQUIRE(orders[i].begin(streams[i].calls(), value));
      REQUIRE(orders[i].publish(rings[i], i, kDwords, test::far(), value, [&](auto& p, std::uint32_t v) {
        (void)p.with([&](auto& w) { return acquire_equal(w, orders[peer].go(), v); });
        (void)p.copy({.src = buffers[i].va(), .dst = buffers[peer].va() + kBytes, .bytes = kBytes});
      }) == Errc::ok);
      REQUIRE(orders[i].end(streams[i].calls(), value));
      streams[i].kernel([&, i, peer, round] {
        for (const auto b : buffers[i].host().subspan(kBytes)) wrong[i] += b != std::byte(round + peer);
      });
    }
  for (auto& s : streams) CHECK(s.finish());
  CHECK(wrong == std::array<std::uint64_t, 2>{});
}

TEST_CASE("a round is a poll for equality, the packets, and a fence of the same value") {
  RingBytes r;
  Ring<> ring{r.memory()};
  StreamOrder order{kGo, {&kDone, 1}};
  Recorded s;
  REQUIRE(order.enqueue(s.stream(), ring, 4, test::past(),
                        [](auto& p, std::uint32_t v) { p.put(Fence{.addr = kOther, .value = v + 100}); }));
  std::array<std::uint32_t, 14> expected{};
  Writer w{expected};
  w.put_all(PollMem{.addr = kGo, .func = Compare::eq, .reference = 1}, Fence{.addr = kOther, .value = 101},
            Fence{.addr = kDone, .value = 1});
  CHECK(std::equal(expected.begin(), expected.end(), std::begin(r.dwords)));
  CHECK(r.published() == sizeof expected);
  CHECK(s.calls == std::vector<Recorded::Call>{{'w', kGo, 1}, {'h', kDone, 1}});
  CHECK(order.publish(ring, 1, 5, test::past(), 2u, [](auto&, std::uint32_t) {}) == Errc::bad_argument);
}

TEST_CASE("a longer submission than the ring needs the stream first") {
  const auto d = device(1);
  Lane lane(*d);
  auto q = *d->create_queue({.gpu = GpuId{0}, .engine = EngineId{3}, .ring_bytes = 1024});
  Ring<> small{q.memory()};
  lane.produce();
  REQUIRE(lane.order.enqueue(lane.stream.calls(), small, 8000, test::far(), [&](auto& p, std::uint32_t) {
    (void)p.copy({.src = lane.memory.va(), .dst = lane.memory.va() + kBytes, .bytes = kBytes, .chunk = 64});
  }));
  lane.consume();
  CHECK(lane.stream.finish());
  CHECK(lane.wrong == 0);
}

TEST_CASE("neighbouring rounds never have the same value") {
  StreamOrder order{kGo, {&kDone, 1}};
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < 2 * StreamOrder::kLastEager + 10; ++i) {
    const auto v = order.next();
    if (v == last || v == 0 || v > StreamOrder::kLastEager) FAIL("value " << v << " after " << last);
    last = v;
  }
  const auto one = *order.graph(1), many = *order.graph(20), next = *order.graph(3);
  CHECK(one.first == StreamOrder::kLastEager + 1);
  CHECK(one.rounds() == 2);
  CHECK(many.first == one.value(2));
  CHECK(many.rounds() == 20);
  CHECK(next.first == many.value(20));
  CHECK(order.graph(0).error() == Errc::bad_argument);
  CHECK(order.graph(~0u - next.value(3) - 1));
  CHECK(order.graph(1).error() == Errc::epoch_overflow);
}

TEST_CASE("the end of a capture adds a round to a single iteration, and nothing to others") {
  const StreamOrder order{kGo, {&kDone, 1}};
  Recorded s;
  REQUIRE(order.close(s.stream(), {.first = 9, .iterations = 2}));
  CHECK(s.calls.empty());
  REQUIRE(order.close(s.stream(), {.first = 9, .iterations = 1}));
  CHECK(s.calls == std::vector<Recorded::Call>{{'w', kGo, 10}, {'h', kDone, 10}});
}

TEST_CASE("words that a stream cannot use are refused") {
  Recorded s;
  const auto refused = [&](GpuVa go, std::vector<GpuVa> done) {
    s.calls.clear();
    const auto r = StreamOrder{go, done}.prepare(s.stream());
    REQUIRE_FALSE(r);
    CHECK(r.error().error == Errc::bad_argument);
    return r.error();
  };
  CHECK(refused(GpuVa{0}, {kDone}).word == GpuVa{0});
  CHECK(refused(kGo + 2, {kDone}).word == kGo + 2);
  CHECK(refused(kGo, {kDone, kDone + 1}).word == kDone + 1);
  CHECK(refused(kGo, {kDone, GpuVa{0}}).word == GpuVa{0});
  CHECK(refused(kGo, {kDone, kGo}).word == kGo);
  CHECK(refused(kGo, {kDone, kOther, kDone}).word == kDone);
  CHECK(refused(kGo, {}).word == GpuVa{0});
  CHECK(s.calls.empty());
  s.write_status = 7;
  CHECK(refused(kGo, {kDone}).status == 7);
  s.write_status = 0;
  s.hold_status = 9;
  const auto hold = refused(kGo, {kDone});
  CHECK(hold.status == 9);
  CHECK(hold.word == kDone);
  s.hold_status = 0;
  s.calls.clear();
  auto choosy = s.stream();
  choosy.takes = [](void*, GpuVa w) noexcept { return w == kDone; };
  const GpuVa other[] = {kDone, kOther};
  CHECK(StreamOrder{kGo, other}.prepare(choosy).error().word == kOther);
  CHECK(s.calls.empty());
  CHECK(StreamOrder{kGo, {other, 1}}.prepare(choosy));
  s.calls.clear();
  const GpuVa two[] = {kDone, kOther};
  CHECK(StreamOrder{kGo, two}.prepare(s.stream()));
  CHECK(s.calls == std::vector<Recorded::Call>{{'w', kGo, 0}, {'h', kDone, 0}, {'h', kOther, 0}});
}

TEST_CASE("a refusal publishes nothing, or holds nothing") {
  RingBytes r;
  Ring<> ring{r.memory()};
  StreamOrder order{kGo, {&kDone, 1}};
  Recorded s{.write_status = 3};
  const auto nothing = [](auto&, std::uint32_t) {};
  const auto enqueue = [&](std::size_t dwords, auto write) {
    s.calls.clear();
    return order.enqueue(s.stream(), ring, dwords, test::past(), write);
  };
  auto e = enqueue(0, nothing);
  REQUIRE_FALSE(e);
  CHECK(e.error().status == 3);
  CHECK(r.published() == 0);
  s.write_status = 0;
  // A packet that cannot be: the stream is not held.
  e = enqueue(4, [](auto& p, std::uint32_t) { p.put(Fence{.addr = kOther + 1}); });
  REQUIRE_FALSE(e);
  CHECK(e.error().error == Errc::bad_packet);
  CHECK(s.calls.size() == 1);
  // A ring without room.
  ring.publish(*ring.reserve(200), 200);
  const auto before = r.published();
  e = enqueue(100, nothing);
  REQUIRE_FALSE(e);
  CHECK(e.error().error == Errc::timed_out);
  CHECK(e.error().status == 0);
  CHECK(s.calls.size() == 1);
  CHECK(r.published() == before);
  s.hold_status = 5;
  e = enqueue(0, nothing);
  REQUIRE_FALSE(e);
  CHECK(e.error().status == 5);
  CHECK(e.error().word == kDone);
  CHECK(r.published() > before);
  const GpuVa two[] = {kDone, kOther};
  CHECK(StreamOrder{kGo, two}.enqueue(s.stream(), ring, 0, test::past(), nothing).error().error == Errc::bad_argument);
}
