// SPDX-License-Identifier: MIT
// What only a software device promises: counters, traces, its options, and that fork does not hang.
#include "sdma/device/soft.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

struct Lane {
  SignalMemory done;
  Queue queue;
  Ring<> ring;
  explicit Lane(Device& d, QueueRequest r = {})
      : done(*d.create_signal()), queue(*d.create_queue(r)), ring(queue.memory()) {}
};

}  // namespace

TEST_CASE("counters tell what went through each engine, queues that are gone included") {
  auto d = *SoftDevice::open({.gpus = 2});
  CHECK(d->counters().empty());
  auto memory = *d->allocate({.bytes = 8192});
  for (int i = 0; i < 2; ++i) {
    Lane lane(*d, {.gpu = GpuId{1}, .engine = EngineId{3}});
    REQUIRE(lane.ring.submit(CopyLinear{.src = memory.va(), .dst = memory.va() + 4096, .bytes = 1000},
                             Fence{.addr = lane.done->va, .value = 1}) == Errc::ok);
    REQUIRE(wait(*lane.done, Compare::eq, 1, soon()));
  }
  const auto c = d->counters();
  REQUIRE(c.size() == 1);
  CHECK(c[0].gpu == GpuId{1});
  CHECK(c[0].engine == EngineId{3});
  CHECK(c[0].packets == 4);
  CHECK(c[0].bytes == 2000);
  CHECK(c[0].doorbells == 2);
}

TEST_CASE("a queue on a dead engine is refused, and a pick avoids it") {
  auto node = *mi300x(2);
  node.gpus[0].dead_engines = 0b101;
  auto d = *SoftDevice::open({.topology = node});
  const auto dead = d->create_queue({.engine = EngineId{2}});
  REQUIRE_FALSE(dead);
  CHECK(dead.error().message == "engine 2 of gpu0 is dead: nothing would execute the queue");
  CHECK(d->create_queue({.gpu = GpuId{1}, .engine = EngineId{2}}));
  CHECK(d->create_queue({.pick = EnginePick::any_host})->engine() == EngineId{1});
  std::vector<Queue> queues;
  for (int i = 0; i < 13; ++i) queues.push_back(*d->create_queue({.pick = EnginePick::any_xgmi}));
  for (const auto& q : queues) CHECK(q.engine().value >= 3);
  CHECK(queues.front().engine() == EngineId{3});
  CHECK(queues.back().engine() == EngineId{15});
  node.gpus[0].dead_engines = 0b11;
  d = *SoftDevice::open({.topology = node});
  CHECK(d->create_queue({.pick = EnginePick::any_host}).error().message == "gpu0 has no live engine of that kind");
}

TEST_CASE("what a node does not say about its GPU has no default") {
  auto node = *mi300x(2);
  node.gpus[0].memory_bytes = 0;
  node.gpus[1].queues_per_engine = 0;
  auto d = *SoftDevice::open({.topology = node});
  CHECK(d->allocate({.where = GpuId{0}, .bytes = 4096}).error().message == "it is unknown how much memory gpu0 has");
  CHECK(d->allocate({.where = GpuId{1}, .bytes = 4096}));
  CHECK(d->create_queue({.gpu = GpuId{1}}).error().message == "it is unknown how many queues an engine of gpu1 serves");
  CHECK(d->create_queue({.gpu = GpuId{0}}));
}

TEST_CASE("a trace has the queue's lane, its doorbell, each packet and the signal") {
  trace::Recorder recorder(1024);
  auto d = *SoftDevice::open({.gpus = 1, .trace = &recorder});
  {
    Lane lane(*d, {.engine = EngineId{7}});
    REQUIRE(lane.ring.submit(Nop{}, Fence{.addr = lane.done->va, .value = 5}) == Errc::ok);
    REQUIRE(wait(*lane.done, Compare::eq, 5, soon()));
  }
  const auto t = recorder.snapshot();
  REQUIRE(t.lanes.size() == 1);
  CHECK(t.lanes[0] == trace::Lane{"gpu0", "engine 7 queue 0"});
  const auto count = [&](trace::Kind k) {
    return std::count_if(t.events.begin(), t.events.end(), [k](const auto& e) { return e.kind == k; });
  };
  CHECK(t.lost == 0);
  CHECK(count(trace::Kind::queue_created) == 1);
  CHECK(count(trace::Kind::doorbell) == 1);
  CHECK(count(trace::Kind::packet_begin) == 2);
  CHECK(count(trace::Kind::packet_end) == 2);
  CHECK(count(trace::Kind::queue_destroyed) == 1);
  REQUIRE(count(trace::Kind::signal) == 1);
  for (const auto& e : t.events)
    if (e.kind == trace::Kind::signal) CHECK(e.value == 5);
}

TEST_CASE("options that make no node are refused") {
  const auto refused = [](const SoftOptions& o) {
    const auto d = SoftDevice::open(o);
    REQUIRE_FALSE(d);
    CHECK_FALSE(d.error().message.empty());
    CHECK_FALSE(d.error().hint.empty());
  };
  refused({.gpus = 0});
  refused({.gpus = 9});
  refused({.topology = Topology{}});
  refused({.va_base = GpuVa{100}});
  refused({.scan_interval = std::chrono::milliseconds(-1)});
  auto odd = *mi300x(1);
  odd.gpus[0].queues_per_engine = 1;
  odd.gpus[0].xgmi_engines = 0;
  auto d = *SoftDevice::open({.topology = odd});
  auto one = d->create_queue({.engine = EngineId{1}});
  CHECK(one);
  CHECK_FALSE(d->create_queue({.engine = EngineId{1}}));
  CHECK_FALSE(d->create_queue({.engine = EngineId{2}}));
}

TEST_CASE("a queue's fault goes with its queue") {
  auto d = *SoftDevice::open({.gpus = 1});
  auto queue = *d->create_queue({}), other = *d->create_queue({});
  Ring<> ring{queue.memory()};
  REQUIRE(ring.submit(Fence{.addr = GpuVa{64}, .value = 1}) == Errc::ok);
  const auto f = d->wait_fault(soon());
  REQUIRE(f);
  REQUIRE(d->fault(queue));
  CHECK(describe(*d->fault(queue)) == describe(*f));
  CHECK_FALSE(d->fault(other));
  CHECK(d->lost_faults() == 0);
  queue = *d->create_queue({});
  CHECK_FALSE(d->fault(queue));
}

TEST_CASE("engines execute the packets of their GPU's generation") {
  auto node = *mi300x(1);
  node.gpus[0].gfx = 90010;  // gfx90a: SDMA 4.4, which does not exchange buffers
  auto d = *SoftDevice::open({.topology = node});
  auto memory = *d->allocate({.bytes = 8192});
  auto queue = *d->create_queue({});
  Ring<> ring{queue.memory()};
  const CopySwap swap{.a = memory.va(), .b = memory.va() + 4096, .bytes = 64};
  REQUIRE(ring.submit(swap) == Errc::bad_packet);
  const auto slot = ring.reserve(length(swap));
  REQUIRE(slot);
  encode_to(swap, slot->dwords.data());
  ring.publish(*slot);
  const auto f = d->wait_fault(soon());
  REQUIRE(f);
  CHECK(f->kind == FaultKind::unknown_packet);
  CHECK(describe(*f).find("copy_swap of 4.4.2 to 4.4.5, 7.1, not of 4.4") != std::string::npos);
}

TEST_CASE("VAs differ from host addresses where they are asked to") {
  auto d = *SoftDevice::open({.gpus = 1, .va_base = GpuVa{1ull << 40}});
  auto a = *d->allocate({.bytes = 4096}), b = *d->allocate({.bytes = 4096});
  CHECK(a.va() >= GpuVa{1ull << 40});
  CHECK(b.va() - a.va() > 4096);  // a hole between them
  CHECK(a.va().value != reinterpret_cast<std::uintptr_t>(a.host().data()));
}

TEST_CASE("without the scan a queue is served by its wake-ups alone") {
  auto d = *SoftDevice::open({.gpus = 1, .scan_interval = std::chrono::milliseconds(0)});
  Lane lane(*d);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the engine parks
    REQUIRE(lane.ring.submit(Fence{.addr = lane.done->va, .value = i}) == Errc::ok);
    REQUIRE(wait(*lane.done, Compare::eq, i, soon()));
  }
}

TEST_CASE("the child of a fork ends, and says what it cannot do") {
  auto d = *SoftDevice::open({.gpus = 1});
  auto memory = *d->allocate({.bytes = 4096});
  auto event = *d->create_event();
  auto lane = std::make_unique<Lane>(*d);
  REQUIRE(lane->ring.submit(Fence{.addr = lane->done->va, .value = 1}) == Errc::ok);
  REQUIRE(wait(*lane->done, Compare::eq, 1, soon()));
  const auto child = fork();
  if (child == 0) {
    int bad = 0;
    const auto in = [](int ms) { return Deadline::in(std::chrono::milliseconds(ms)); };
    bad += d->create_queue({}).has_value();
    bad += d->allocate({.bytes = 1}).has_value();
    bad += d->create_signal().has_value();
    bad += d->create_event().has_value();
    bad += lane->ring.submit(Fence{.addr = lane->done->va, .value = 2}) != Errc::ok;
    bad += wait(*lane->done, Compare::eq, 2, in(20)).has_value();
    bad += d->wait_event(event, in(1)) == Errc::ok;
    bad += d->wait_fault(in(1)).has_value();
    lane.reset();
    memory.reset();
    event.reset();
    d.reset();
    _exit(bad);
  }
  REQUIRE(child > 0);
  int status = -1;
  const auto end = soon();
  pid_t done = 0;
  for (Backoff b; done == 0 && b.step(end);) done = waitpid(child, &status, WNOHANG);
  REQUIRE(done == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  REQUIRE(lane->ring.submit(Fence{.addr = lane->done->va, .value = 3}) == Errc::ok);
  CHECK(wait(*lane->done, Compare::eq, 3, soon()));
}
