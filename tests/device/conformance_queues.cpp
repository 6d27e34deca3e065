// SPDX-License-Identifier: MIT
// What any device's queues must do: one by one, all at once, coming and going, and however their doorbells are stored.
#include "conformance_support.hpp"
#include "sdma/device/queues.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/recipes.hpp"
#include "support/sanitizer.hpp"

#include <array>
#include <atomic>
#include <thread>

namespace conformance {

TEST_CASE("an engine has as many queues as the topology says, and slots come back") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto slots = d.topology().gpus[0].queues_per_engine;
    auto words = host_memory(d, 4096);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < slots; ++i)
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.engine = engine(d, 3)}));
    const auto more = d.create_queue({.engine = engine(d, 3)});
    REQUIRE_FALSE(more);
    CHECK(more.error().message.find("in use") != std::string::npos);
    CHECK_FALSE(more.error().hint.empty());
    CHECK(d.create_queue({.engine = engine(d, 4)}));
    for (std::uint32_t i = 0; i < slots; ++i)
      lanes[i]->submit(Write{.dst = words.va() + i * 4, .data = std::span<const std::uint32_t>(&slots, 1)});
    for (auto& l : lanes) REQUIRE(l->finish());
    for (std::uint32_t i = 0; i < slots; ++i) CHECK(words.as<std::uint32_t>()[i] == slots);
    lanes[slots / 2].reset();
    Lane again(d, {.engine = engine(d, 3)});
    again.submit(Nop{});
    REQUIRE(again.finish());
  });
}

TEST_CASE("all queues of all engines of a GPU at once") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto& gpu = d.topology().gpus[0];
    const auto n = gpu.engines() * gpu.queues_per_engine;
    auto words = host_memory(d, n * 4);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < n; ++i)
      lanes.push_back(
          std::make_unique<Lane>(d, QueueRequest{.engine = EngineId{i % gpu.engines()}, .ring_bytes = 4096}));
    for (std::uint32_t round = 1; round <= 3; ++round) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t value = round * 1000 + i;
        lanes[i]->submit(Write{.dst = words.va() + i * 4, .data = std::span<const std::uint32_t>(&value, 1)});
      }
      for (auto& l : lanes) REQUIRE(l->finish());
      for (std::uint32_t i = 0; i < n; ++i) CHECK(words.as<std::uint32_t>()[i] == round * 1000 + i);
    }
    CHECK_FALSE(d.create_queue({.engine = engine(d, 0)}));
  });
}

TEST_CASE("a driver may choose the engine") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto& gpu = d.topology().gpus[0];
    for (const auto pick : {EnginePick::any_host, EnginePick::any_xgmi}) {
      Lane a(d, {.pick = pick}), b(d, {.pick = pick});
      for (auto* l : {&a, &b}) {
        const auto e = l->queue.engine();
        if (e != kUnknownEngine) CHECK((e.value < gpu.host_engines) == (pick == EnginePick::any_host));
        l->submit(Nop{});
        REQUIRE(l->finish());
      }
      if (a.queue.engine() != kUnknownEngine) CHECK(a.queue.engine() != b.queue.engine());
    }
  });
}

TEST_CASE("one queue for each engine, when it is first asked for, and a drain") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    auto done = must(d.create_signal()), end = must(d.create_signal());
    auto src = gpu_memory(d, 0, 4096), dst = gpu_memory(d, 2, 4096);
    EngineQueues queues{d, 4096};
    auto* there = must(queues.between(GpuId{0}, GpuId{2}));
    CHECK(there == must(queues.on(GpuId{0}, *d.topology().engine_for(GpuId{0}, GpuId{2}))));
    CHECK(there != must(queues.host(GpuId{0}, HostDirection::to_host)));
    CHECK_FALSE(queues.between(GpuId{0}, GpuId{99}));
    pattern(src.host(), 4);
    CHECK(d.flush_host_writes(GpuId{0}) == Errc::ok);
    CHECK(d.flush_host_writes(GpuId{99}) == Errc::bad_argument);
    auto slot = there->ring.reserve(64);
    REQUIRE(slot);
    Writer w{slot->dwords};
    REQUIRE(w.copy({.src = src.va(), .dst = dst.va(), .bytes = 4096}) == Errc::ok);
    REQUIRE(complete_by_link(w, d.topology(), GpuId{0}, std::nullopt, *done, 1) == Errc::ok);
    there->ring.publish(*slot, w.written().size());
    REQUIRE(drain(there->ring, *end, 1, soon()));
    CHECK(done->load() == 1);
    std::array<std::byte, 4096> seen{};
    CHECK(d.peek(dst.va(), seen) == Errc::ok);
    CHECK(equal(seen, src.host()));
    REQUIRE(there->ring.submit(PollMem{.addr = done->va, .func = Compare::eq, .reference = 7}) == Errc::ok);
    const auto stuck = drain(there->ring, *end, 2, briefly());
    REQUIRE_FALSE(stuck);
    if (under.shows_waiting) CHECK(stuck.error().committed > stuck.error().read);
  });
}

TEST_CASE("queues come and go while others work") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto src = host_memory(d, 4096), dst = gpu_memory(d, 0, 4096);
    pattern(src.host(), 2);
    Lane lane(d, {.engine = engine(d, 2), .ring_bytes = 4096});
    for (int i = 0; i < 30; ++i) {
      for (int k = 0; k < 5; ++k) lane.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 4096});
      Lane brief(d, {.engine = engine(d, static_cast<std::uint32_t>(2 + i % 3))});
      brief.submit(Nop{});
      if (i % 2 == 0) REQUIRE(brief.finish());
    }
    REQUIRE(lane.finish());
    CHECK(equal(src.host(), dst.host()));
  });
}

TEST_CASE("a queue that goes with work in flight touches nothing afterwards") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    auto never = must(d.create_signal()), done = must(d.create_signal());
    const std::uint32_t bytes = sdma::test::thread_sanitizer() ? 64 << 10 : 1 << 20;
    auto src = host_memory(d, bytes), dst = gpu_memory(d, 0, bytes);
    std::memset(src.host().data(), 1, bytes);
    {
      Lane stuck(d);
      stuck.submit(PollMem{.addr = never->va, .func = Compare::ge, .reference = 1},
                   CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes}, Fence{.addr = done->va, .value = 1});
      CHECK_FALSE(stuck.finish(briefly()));
    }
    never->set(1);
    for (int i = 0; i < 20; ++i) {
      Lane busy(d, {.engine = engine(d, 1)});
      for (int k = 0; k < 8; ++k) busy.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes});
      busy.queue.reset();
      std::memset(dst.host().data(), 0, bytes);  // a race, if the engine still wrote
      if (under.takes_back) CHECK(all_are(dst.host(), 0));
    }
    if (under.takes_back) CHECK(done->load() == 0);
    Lane next(d);
    next.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes});
    REQUIRE(next.finish());
    CHECK(all_are(dst.host(), 1));
  });
}

TEST_CASE("a small ring wraps many times and loses nothing") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const std::size_t n = 4096;
    auto src = host_memory(d, n), dst = gpu_memory(d, 1, n);
    pattern(src.host(), 1);
    Lane lane(d, {.gpu = GpuId{1}, .engine = engine(d, 2), .ring_bytes = 1024});
    std::uint64_t last_read = 0, sum = 0;
    for (std::uint32_t i = 0; i < 1500; ++i) {
      const std::uint32_t size = 1 + i * 7 % 61, at = i * 61 % (n - 64);
      if (i % 3 == 0) lane.submit(Nop{1 + i % 23});
      else lane.submit(CopyLinear{.src = src.va() + at, .dst = dst.va() + at, .bytes = size});
      const auto p = lane.ring.positions();
      sum += p.read < last_read ? 1 : 0;
      last_read = p.read;
    }
    REQUIRE(lane.finish());
    CHECK(sum == 0);  // rptr never goes back
    CHECK(lane.ring.positions().committed > 40 * 1024);
    for (std::uint32_t i = 0; i < 1500; ++i) {
      const std::uint32_t size = 1 + i * 7 % 61, at = i * 61 % (n - 64);
      if (i % 3 != 0) REQUIRE(equal(src.host().subspan(at, size), dst.host().subspan(at, size)));
    }
  });
}

TEST_CASE("many producers share a queue") {
  on_each([](Device& d, const DeviceUnderTest&) {
    constexpr std::uint32_t kThreads = 3, kEach = 300;
    auto count = must(d.create_signal());
    auto queue = must(d.create_queue({.ring_bytes = 4096}));
    Ring<Producers::many> ring{queue.memory()};
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> failed{0};
    for (std::uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          Backoff b;
          const auto d60 = soon();
          while (ring.submit(Nop{1 + i % 5}, Atomic{.addr = count->va, .value = 1}) != Errc::ok)
            if (!b.step(d60)) return void(++failed);
        }
      });
    for (auto& t : threads) t.join();
    REQUIRE(failed == 0);
    const auto r = wait(*count, Compare::eq, kThreads * kEach, soon(), ring);
    CHECK(r);
  });
}

TEST_CASE("a queue without a doorbell is watched by its wptr") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (!under.watches_wptr) return;
    Lane lane(d, {.watch_wptr = true});
    CHECK(lane.ring.memory().doorbell == nullptr);
    for (int i = 0; i < 100; ++i) {
      lane.submit(Nop{});
      if (i % 10 == 0) REQUIRE(lane.finish());
    }
    REQUIRE(lane.finish());
  });
}

TEST_CASE("a doorbell that is stored by hand is served") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    for (const bool watch : {false, true}) {
      if (watch && !under.watches_wptr) continue;
      auto done = must(d.create_signal());
      auto queue = must(d.create_queue({.watch_wptr = watch}));
      const auto& m = queue.memory();
      std::uint64_t at = 0;
      for (std::uint32_t i = 1; i <= 5; ++i) {
        Writer w(m.dwords.subspan(at / 4));
        REQUIRE(w.put(Fence{.addr = done->va, .value = i}) == Errc::ok);
        at += w.written().size_bytes();
        std::atomic_ref(*m.wptr).store(at, std::memory_order_release);
        if (m.doorbell) std::atomic_ref(*m.doorbell).store(at, std::memory_order_release);
        REQUIRE(wait(*done, Compare::eq, i, soon()));
      }
    }
  });
}

TEST_CASE("when queues are mapped anew the position comes from wptr") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto done = must(d.create_signal());
    auto queue = must(d.create_queue({}));
    const auto& m = queue.memory();
    Writer w(m.dwords);
    REQUIRE(w.put(Fence{.addr = done->va, .value = 1}) == Errc::ok);
    // A doorbell that came while the queue was unmapped: it is lost, wptr has been stored before.
    std::atomic_ref(*m.wptr).store(w.written().size_bytes(), std::memory_order_release);
    CHECK_FALSE(wait(*done, Compare::eq, 1, briefly()));
    auto other = must(d.create_queue({.engine = engine(d, 5)}));
    CHECK(wait(*done, Compare::eq, 1, soon()));
    other.reset();
    Ring<> ring{m};  // goes on where wptr stands
    REQUIRE(ring.submit(Fence{.addr = done->va, .value = 2}) == Errc::ok);
    CHECK(wait(*done, Compare::eq, 2, soon(), ring));
  });
}

}  // namespace conformance
