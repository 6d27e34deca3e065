// What any Device must do. Deadlines here are long: they end a test that would hang, and decide nothing.
#include "conformance.hpp"

#include "sdma/device/queues.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/wait.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace sdma;

namespace {

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }
/// For what must not happen: long enough to be seen if it does, and no failure if the machine is slow.
Deadline briefly() { return Deadline::in(std::chrono::milliseconds(20)); }

/// A value that must be there; what is missing ends the test with its reason.
template <class T> T must(Result<T, Diagnostic> r) {
  if (!r) FAIL(to_string(r.error()));
  return std::move(*r);
}

/// Runs `test(device, traits)` on each device.
template <class F> void on_each(F test) {
  for (const auto& under : devices_under_test()) {
    INFO("device: " << under.name);
    const auto device = under.open();
    REQUIRE(device);
    test(*device, under);
  }
}

/// A queue, its ring and a signal that counts what is done.
struct Lane {
  SignalMemory done;
  Queue queue;
  Ring<> ring;
  std::uint32_t epoch = 0;

  explicit Lane(Device& d, QueueRequest r = {})
      : done(must(d.create_signal())), queue(must(d.create_queue(r))), ring(queue.memory()) {}

  /// Packets, and a fence behind them; waits for room.
  template <class... P> void submit(const P&... p) {
    ++epoch;
    const auto end = soon();
    for (Backoff b;;) {
      const auto e = ring.submit(p..., Fence{.addr = done->va, .value = epoch});
      if (e == Errc::ok) return;
      REQUIRE(e == Errc::no_space);
      REQUIRE(b.step(end));
    }
  }
  bool finish(Deadline d = soon()) { return wait(*done, Compare::ge, epoch, d, ring).has_value(); }
};

Memory host_memory(Device& d, std::uint64_t bytes) { return must(d.allocate({.bytes = bytes})); }
Memory gpu_memory(Device& d, std::uint32_t gpu, std::uint64_t bytes) {
  return must(d.allocate({.where = GpuId{gpu}, .bytes = bytes}));
}

void pattern(std::span<std::byte> s, unsigned seed) {
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = static_cast<std::byte>((i * 131 + i / 251 + seed * 17) & 0xff);
}
bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
bool all_are(std::span<const std::byte> s, unsigned value) {
  for (const auto b : s)
    if (b != static_cast<std::byte>(value)) return false;
  return true;
}

}  // namespace

TEST_CASE("every engine of every GPU copies") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const std::size_t n = 5000;
    for (std::uint32_t g = 0; g < d.topology().gpus.size(); ++g) {
      auto src = host_memory(d, n), dst = gpu_memory(d, g, n);
      for (std::uint32_t e = 0; e < d.topology().gpus[g].engines(); ++e) {
        CAPTURE(g, e);
        pattern(src.host(), g * 16 + e);
        Lane lane(d, {.gpu = GpuId{g}, .engine = EngineId{e}});
        CHECK(lane.queue.gpu() == GpuId{g});
        CHECK(lane.queue.engine() == EngineId{e});
        lane.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = n});
        REQUIRE(lane.finish());
        CHECK(equal(src.host(), dst.host()));
      }
    }
  });
}

TEST_CASE("an engine has as many queues as the topology says, and slots come back") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto slots = d.topology().gpus[0].queues_per_engine;
    auto words = host_memory(d, 4096);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < slots; ++i)
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.engine = EngineId{3}}));
    const auto more = d.create_queue({.engine = EngineId{3}});
    REQUIRE_FALSE(more);
    CHECK(more.error().message.find("in use") != std::string::npos);
    CHECK_FALSE(more.error().hint.empty());
    CHECK(d.create_queue({.engine = EngineId{4}}));
    for (std::uint32_t i = 0; i < slots; ++i)
      lanes[i]->submit(Write{.dst = words.va() + i * 4, .data = std::span<const std::uint32_t>(&slots, 1)});
    for (auto& l : lanes) REQUIRE(l->finish());
    for (std::uint32_t i = 0; i < slots; ++i) CHECK(words.as<std::uint32_t>()[i] == slots);
    lanes[slots / 2].reset();
    Lane again(d, {.engine = EngineId{3}});
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
    CHECK_FALSE(d.create_queue({.engine = EngineId{0}}));
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
  on_each([](Device& d, const DeviceUnderTest&) {
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
    REQUIRE(complete(w, d.topology(), GpuId{0}, std::nullopt, *done, 1) == Errc::ok);
    there->ring.publish(*slot, w.written().size());
    REQUIRE(drain(there->ring, *end, 1, soon()));
    CHECK(done->load() == 1);
    std::array<std::byte, 4096> seen{};
    CHECK(d.peek(dst.va(), seen) == Errc::ok);
    CHECK(equal(seen, src.host()));
    REQUIRE(there->ring.submit(PollMem{.addr = done->va, .func = Compare::eq, .reference = 7}) == Errc::ok);
    const auto stuck = drain(there->ring, *end, 2, briefly());
    REQUIRE_FALSE(stuck);
    CHECK(stuck.error().committed > stuck.error().read);
  });
}

TEST_CASE("a small ring wraps many times and loses nothing") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const std::size_t n = 4096;
    auto src = host_memory(d, n), dst = gpu_memory(d, 1, n);
    pattern(src.host(), 1);
    Lane lane(d, {.gpu = GpuId{1}, .engine = EngineId{2}, .ring_bytes = 1024});
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

TEST_CASE("odd sizes at odd addresses, and nothing beside them") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto src = host_memory(d, 65536), dst = gpu_memory(d, 0, 65536);
    pattern(src.host(), 3);
    Lane lane(d);
    for (const std::uint32_t size : {1u, 2u, 3u, 5u, 31u, 63u, 65u, 127u, 1000u, 4095u, 4097u, 30011u})
      for (const std::uint32_t at : {0u, 1u, 7u, 33u}) {
        CAPTURE(size, at);
        std::memset(dst.host().data(), 0xee, dst.bytes());
        const auto to = 64 + at * 3;
        lane.submit(CopyLinear{.src = src.va() + at, .dst = dst.va() + to, .bytes = size});
        REQUIRE(lane.finish());
        CHECK(equal(dst.host().subspan(to, size), src.host().subspan(at, size)));
        CHECK(all_are(dst.host().first(to), 0xee));
        CHECK(all_are(dst.host().subspan(to + size), 0xee));
      }
  });
}

TEST_CASE("GPUs copy to each other, each pair on its recommended engine") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto n = static_cast<std::uint32_t>(d.topology().gpus.size());
    const std::uint32_t bytes = 3001;
    std::vector<Memory> in, out;
    for (std::uint32_t g = 0; g < n; ++g) {
      in.push_back(gpu_memory(d, g, bytes));
      out.push_back(gpu_memory(d, g, std::uint64_t{bytes} * n));
      pattern(in.back().host(), g);
    }
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t s = 0; s < n; ++s)
      for (std::uint32_t t = 0; t < n; ++t) {
        lanes.push_back(std::make_unique<Lane>(
            d, QueueRequest{.gpu = GpuId{s}, .engine = *d.topology().engine_for(GpuId{s}, GpuId{t})}));
        lanes.back()->submit(
            CopyLinear{.src = in[s].va(), .dst = out[t].va() + std::uint64_t{s} * bytes, .bytes = bytes});
      }
    for (auto& l : lanes) REQUIRE(l->finish());
    for (std::uint32_t t = 0; t < n; ++t)
      for (std::uint32_t s = 0; s < n; ++s)
        CHECK(equal(out[t].host().subspan(std::size_t{s} * bytes, bytes), in[s].host()));
  });
}

TEST_CASE("engines hand a buffer to each other by fences and polls") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const std::uint32_t bytes = 2000, rounds = 20;
    auto a = gpu_memory(d, 0, bytes), b = gpu_memory(d, 1, bytes);
    auto turn = must(d.create_signal());
    Lane there(d, {.gpu = GpuId{0}, .engine = EngineId{14}}), back(d, {.gpu = GpuId{1}, .engine = EngineId{14}});
    pattern(a.host(), 9);
    const std::vector<std::byte> before(a.host().begin(), a.host().end());
    for (std::uint32_t i = 0; i < rounds; ++i) {
      there.submit(PollMem{.addr = turn->va, .func = Compare::ge, .reference = 2 * i},
                   CopyLinear{.src = a.va(), .dst = b.va(), .bytes = bytes},
                   Fence{.addr = turn->va, .value = 2 * i + 1});
      back.submit(PollMem{.addr = turn->va, .func = Compare::ge, .reference = 2 * i + 1},
                  CopyLinear{.src = b.va(), .dst = a.va(), .bytes = bytes - i},
                  Fence{.addr = turn->va, .value = 2 * i + 2});
    }
    REQUIRE(there.finish());
    REQUIRE(back.finish());
    CHECK(turn->load() == 2 * rounds);
    CHECK(equal(a.host(), before));
    CHECK(equal(b.host(), before));
  });
}

TEST_CASE("a queue that was submitted ahead starts when the host says so, and no earlier") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto src = host_memory(d, 64), dst = gpu_memory(d, 0, 64);
    std::memset(dst.host().data(), 0, dst.bytes());
    auto go = must(d.create_signal()), left = must(d.create_signal({.value = 6}));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < 6; ++i) {
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.gpu = GpuId{i % 2}, .engine = EngineId{2 + i}}));
      lanes.back()->submit(PollMem{.addr = go->low(), .func = Compare::ge, .reference = 1},
                           CopyLinear{.src = src.va() + i * 8, .dst = dst.va() + i * 8, .bytes = 8},
                           Atomic{.addr = left->va, .value = ~std::uint64_t{0}});
    }
    CHECK_FALSE(wait(*left, Compare::ne, 6, briefly()));
    CHECK(all_are(dst.host(), 0));
    pattern(src.host(), 5);  // the copies read what is there when they are released
    go->set(1);
    REQUIRE(wait(*left, Compare::eq, 0, soon()));
    CHECK(equal(dst.host().first(48), src.host().first(48)));
    for (auto& l : lanes) REQUIRE(l->finish());
  });
}

TEST_CASE("many engines count down one word") {
  on_each([](Device& d, const DeviceUnderTest&) {
    constexpr std::uint32_t kLanes = 8, kEach = 50;
    auto left = must(d.create_signal({.value = kLanes * kEach}));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < kLanes; ++i)
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.gpu = GpuId{i % 2}, .engine = EngineId{i}}));
    for (std::uint32_t k = 0; k < kEach; ++k)
      for (auto& l : lanes) l->submit(Atomic{.addr = left->va, .value = ~std::uint64_t{0}});
    CHECK(wait(*left, Compare::eq, 0, soon()));
    for (auto& l : lanes) REQUIRE(l->finish());
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
    auto other = must(d.create_queue({.engine = EngineId{5}}));
    CHECK(wait(*done, Compare::eq, 1, soon()));
    other.reset();
    Ring<> ring{m};  // goes on where wptr stands
    REQUIRE(ring.submit(Fence{.addr = done->va, .value = 2}) == Errc::ok);
    CHECK(wait(*done, Compare::eq, 2, soon(), ring));
  });
}

TEST_CASE("queues come and go while others work") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto src = host_memory(d, 4096), dst = gpu_memory(d, 0, 4096);
    pattern(src.host(), 2);
    Lane lane(d, {.engine = EngineId{2}, .ring_bytes = 4096});
    for (int i = 0; i < 30; ++i) {
      for (int k = 0; k < 5; ++k) lane.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 4096});
      Lane brief(d, {.engine = EngineId{static_cast<std::uint32_t>(2 + i % 3)}});
      brief.submit(Nop{});
      if (i % 2 == 0) REQUIRE(brief.finish());
    }
    REQUIRE(lane.finish());
    CHECK(equal(src.host(), dst.host()));
  });
}

TEST_CASE("a queue that goes with work in flight touches nothing afterwards") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto never = must(d.create_signal()), done = must(d.create_signal());
    const std::uint32_t bytes = 1 << 20;
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
      Lane busy(d, {.engine = EngineId{1}});
      for (int k = 0; k < 8; ++k) busy.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes});
      busy.queue.reset();
      std::memset(dst.host().data(), 0, bytes);  // a race, if the engine still wrote
      CHECK(all_are(dst.host(), 0));
    }
    CHECK(done->load() == 0);
    Lane next(d);
    next.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes});
    REQUIRE(next.finish());
    CHECK(all_are(dst.host(), 1));
  });
}

TEST_CASE("a fault stops its queue, is told, and disturbs no other", "[fault]") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (!under.names_the_packet) return;
    auto src = host_memory(d, 4096), dst = gpu_memory(d, 0, 4096);
    auto for_one = must(d.allocate({.where = GpuId{0}, .bytes = 4096, .gpus = 1}));
    const std::uint32_t junk = 3;  // no packet has this opcode
    const auto check = [&](FaultKind kind, GpuId gpu, auto put) {
      CAPTURE(name(kind));
      Lane bad(d, {.gpu = gpu, .engine = EngineId{6}}), good(d, {.gpu = gpu, .engine = EngineId{6}});
      bad.submit(Nop{4});
      REQUIRE(bad.finish());
      const auto at = bad.ring.positions().committed;
      auto slot = bad.ring.reserve(32);
      REQUIRE(slot);
      Writer w(slot->dwords);
      put(w, slot->dwords);
      bad.ring.publish(*slot);
      const auto f = d.wait_fault(soon());
      REQUIRE(f);
      CHECK(f->kind == kind);
      CHECK(f->queue == bad.queue.id());
      CHECK(f->gpu == gpu);
      CHECK(f->engine == EngineId{6});
      CHECK(f->position == at);
      CHECK(f->dword_count > 0);
      CHECK(f->dwords[0] == slot->dwords[0]);
      CHECK_FALSE(describe(*f).empty());
      REQUIRE(d.fault(bad.queue));
      CHECK(d.fault(bad.queue)->kind == kind);
      CHECK_FALSE(d.fault(good.queue));
      bad.submit(Nop{});
      CHECK_FALSE(bad.finish(Deadline::in(std::chrono::milliseconds(2))));
      good.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 64});
      CHECK(good.finish());
    };
    check(FaultKind::unknown_packet, GpuId{0}, [&](Writer&, auto dwords) { dwords[0] = junk; });
    check(FaultKind::unmapped, GpuId{0},
          [&](Writer& w, auto) { (void)w.put(CopyLinear{.src = src.va(), .dst = GpuVa{0x1000}, .bytes = 64}); });
    check(FaultKind::unmapped, GpuId{1},
          [&](Writer& w, auto) { (void)w.put(CopyLinear{.src = src.va(), .dst = for_one.va(), .bytes = 64}); });
    check(FaultKind::unmapped, GpuId{0}, [&](Writer& w, auto) {  // the last byte lies behind the allocation
      (void)w.put(CopyLinear{.src = src.va(), .dst = dst.va() + 4033, .bytes = 64});
    });
    check(FaultKind::unmapped, GpuId{0}, [&](Writer& w, auto) { (void)w.put(Fence{.addr = GpuVa{64}, .value = 1}); });
    check(FaultKind::privileged, GpuId{0}, [&](Writer& w, auto) { (void)w.put(SrbmWrite{.reg = 1, .value = 2}); });
    CHECK(d.wait_fault(Deadline::in(std::chrono::seconds(0))).error() == Errc::timed_out);
    CHECK(all_are(for_one.host(), 0));
  });
}

TEST_CASE("a fault that a kernel driver tells takes all queues of its GPU", "[fault]") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (under.names_the_packet) return;
    auto src = host_memory(d, 4096), dst = gpu_memory(d, 1, 4096);
    Lane bad(d, {.gpu = GpuId{1}, .engine = EngineId{6}}), near(d, {.gpu = GpuId{1}, .engine = EngineId{7}}),
        far(d, {.gpu = GpuId{2}, .engine = EngineId{6}});
    for (auto* l : {&bad, &near, &far}) {
      l->submit(Nop{});
      REQUIRE(l->finish());
      CHECK_FALSE(d.fault(l->queue));
    }
    CHECK(d.wait_fault(Deadline{}).error() == Errc::timed_out);
    std::vector<std::thread> waiters;  // each fault goes to one of them
    std::atomic<int> told{0};
    for (int i = 0; i < 2; ++i) waiters.emplace_back([&] { told += d.wait_fault(soon()).has_value(); });
    bad.submit(CopyLinear{.src = src.va(), .dst = GpuVa{0x1000}, .bytes = 64});
    const auto end = soon();
    for (Backoff b; !d.fault(bad.queue);) REQUIRE(b.step(end));
    const auto f = d.fault(bad.queue);
    CHECK(f->kind == FaultKind::unmapped);
    CHECK(f->gpu == GpuId{1});
    CHECK(f->va == GpuVa{0x1000});
    CHECK(describe(*f).find("0x1000") != std::string::npos);
    near.submit(Nop{});
    CHECK_FALSE(near.finish(briefly()));
    // Another GPU goes on, but what the process is told is not to be trusted any more.
    far.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 64});
    CHECK(far.finish());
    CHECK(d.fault(far.queue));
    const auto refused = d.create_queue({.gpu = GpuId{1}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("stopped") != std::string::npos);
    CHECK(d.create_queue({.gpu = GpuId{2}}));
    far.submit(CopyLinear{.src = GpuVa{0x2000}, .dst = dst.va(), .bytes = 64});
    for (auto& w : waiters) w.join();
    CHECK(told == 2);
    CHECK(d.fault(far.queue)->va == GpuVa{0x2000});
    CHECK(d.fault(bad.queue)->va == GpuVa{0x1000});
  });
}

TEST_CASE("what an engine never reports is found by the deadline") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (under.names_the_packet) return;
    Lane junk(d, {.engine = EngineId{3}}), good(d, {.engine = EngineId{4}});
    auto slot = junk.ring.reserve(4);
    REQUIRE(slot);
    slot->dwords[0] = 3;  // no packet has this opcode
    junk.ring.publish(*slot, 1);
    const auto r = wait(*junk.done, Compare::eq, 1, briefly(), junk.ring);
    REQUIRE_FALSE(r);
    CHECK(r.error().read < r.error().committed);
    CHECK_FALSE(d.fault(junk.queue));
    good.submit(Nop{});
    CHECK(good.finish());
  });
}

TEST_CASE("memory that is freed faults, and its neighbours do not", "[fault]") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (!under.names_the_packet) return;
    auto a = host_memory(d, 4096), b = host_memory(d, 4096);
    const auto old = b.va();
    Lane lane(d);
    lane.submit(CopyLinear{.src = a.va(), .dst = old, .bytes = 64});
    REQUIRE(lane.finish());
    b.reset();
    lane.submit(CopyLinear{.src = a.va(), .dst = old, .bytes = 64});
    const auto f = d.wait_fault(soon());
    REQUIRE(f);
    CHECK(f->kind == FaultKind::unmapped);
    CHECK(f->va == old);
    CHECK(d.fault(lane.queue));
  });
}

TEST_CASE("an event wakes when its mailbox was filled before the interrupt, and only then") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto a = must(d.create_event()), b = must(d.create_event());
    CHECK(a.id() != b.id());
    Lane lane(d);
    for (int i = 0; i < 3; ++i) {
      lane.submit(Fence{.addr = a.mailbox(), .value = a.id()}, Trap{.context = a.id()});
      CHECK(d.wait_event(a, soon()) == Errc::ok);
    }
    // A trap without its fence is lost. Traps keep their order, so when b has come, a's has been looked at.
    lane.submit(Trap{.context = a.id()}, Fence{.addr = b.mailbox(), .value = b.id()}, Trap{.context = b.id()});
    CHECK(d.wait_event(b, soon()) == Errc::ok);
    CHECK(d.wait_event(a, Deadline::in(std::chrono::seconds(0))) == Errc::timed_out);
    REQUIRE(lane.finish());
  });
}

TEST_CASE("timestamps tick with the device's clock") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto words = host_memory(d, 64);
    Lane lane(d, {.gpu = GpuId{1}});
    const auto before = *d.clock(GpuId{1});
    lane.submit(Timestamp{.addr = words.va()});
    REQUIRE(lane.finish());
    lane.submit(Timestamp{.addr = words.va() + 32});
    REQUIRE(lane.finish());
    const auto after = *d.clock(GpuId{1});
    const auto first = words.as<std::uint64_t>()[0], second = words.as<std::uint64_t>()[4];
    CHECK(before.hz == 100'000'000);
    CHECK(before.ticks <= first);
    CHECK(first <= second);
    CHECK(second <= after.ticks);
    CHECK(before.host <= after.host);
    CHECK(before.at(before.ticks + 100) - before.host == std::chrono::microseconds(1));
    CHECK(d.clock(GpuId{99}).error() == Errc::bad_argument);
  });
}

TEST_CASE("memory is where and how it was asked for") {
  on_each([](Device& d, const DeviceUnderTest&) {
    auto a = must(d.allocate({.where = GpuId{1}, .bytes = 100}));
    CHECK(a.host().size() == 100);
    CHECK(a.bytes() == 100);
    CHECK(a.va().value % 4096 == 0);
    CHECK(a.as<std::uint32_t>().size() == 25);
    CHECK(all_are(host_memory(d, 5000).host(), 0));
    auto big = must(d.allocate({.bytes = 1, .alignment = 1 << 21}));
    CHECK(big.va().value % (1 << 21) == 0);
    auto hidden = must(d.allocate({.where = GpuId{0}, .bytes = 64, .host_access = false}));
    CHECK(hidden.host().empty());
    pattern(a.host(), 7);
    Lane lane(d);
    lane.submit(CopyLinear{.src = a.va(), .dst = hidden.va(), .bytes = 64});
    REQUIRE(lane.finish());
    std::array<std::byte, 64> seen{};
    CHECK(d.peek(hidden.va(), seen) == Errc::ok);
    CHECK(equal(seen, a.host().first(64)));
    CHECK(d.peek(hidden.va() + 1, std::span(seen).first(5)) == Errc::ok);
    CHECK(equal(std::span(seen).first(5), a.host().subspan(1, 5)));
    CHECK(d.peek(hidden.va() + 63, seen) == Errc::unmapped);
    CHECK(d.peek(GpuVa{8}, seen) == Errc::unmapped);
    Memory moved = std::move(a);
    CHECK_FALSE(a);  // NOLINT: what a moved-from handle is, is the test
    CHECK(moved);
    moved = Memory{};
    CHECK_FALSE(moved);
    auto signal = must(d.create_signal({.where = GpuId{1}, .value = 42}));
    CHECK(signal->load() == 42);
    CHECK(reinterpret_cast<std::uintptr_t>(signal->word) % 64 == 0);
  });
}

TEST_CASE("requests that cannot be met say what, where and what to do") {
  on_each([](Device& d, const DeviceUnderTest&) {
    const auto n = static_cast<std::uint32_t>(d.topology().gpus.size());
    const auto refused = [](const auto& result, const std::string& where, const std::string& message) {
      CAPTURE(where, message);
      REQUIRE_FALSE(result);
      CHECK(result.error().where.find(where) != std::string::npos);
      CHECK(result.error().message.find(message) != std::string::npos);
      CHECK_FALSE(result.error().hint.empty());
    };
    refused(d.create_queue({.gpu = GpuId{n}}), "create_queue", "no gpu");
    refused(d.create_queue({.engine = EngineId{d.topology().gpus[0].engines()}}), "create_queue", "no engine");
    refused(d.create_queue({.ring_bytes = 3000}), "create_queue", "3000");
    refused(d.create_queue({.ring_bytes = 512}), "create_queue", "512");
    refused(d.create_queue({.ring_bytes = 0}), "create_queue", "0 bytes");
    refused(d.create_queue({.ring_bytes = 1ull << 40}), "create_queue", "ring");
    refused(d.create_queue({.priority = 4}), "create_queue", "priority 4");
    refused(d.allocate({.where = GpuId{n}, .bytes = 1}), "allocate", "no gpu");
    refused(d.allocate({.bytes = 0}), "allocate", "no bytes");
    refused(d.allocate({.bytes = 1, .alignment = 3}), "allocate", "power of two");
    refused(d.allocate({.bytes = 1, .alignment = 0}), "allocate", "power of two");
    refused(d.allocate({.where = GpuId{0}, .bytes = d.topology().gpus[0].memory_bytes + 1}), "allocate",
            "out of memory");
    refused(d.allocate({.bytes = ~0ull}), "allocate", "out of memory");
    refused(d.allocate({.bytes = 1ull << 46}), "allocate", "out of memory");
    refused(d.create_queue({.gpu = GpuId{n}, .pick = EnginePick::any_xgmi}), "create_queue", "no gpu");
    refused(d.create_signal({.where = GpuId{n}}), "gpu", "no gpu");
  });
}

TEST_CASE("handles may outlive their device") {
  for (const auto& under : devices_under_test()) {
    INFO("device: " << under.name);
    auto device = under.open();
    auto src = host_memory(*device, 1 << 20), dst = gpu_memory(*device, 0, 1 << 20);
    auto event = must(device->create_event());
    auto lane = std::make_unique<Lane>(*device);
    Lane stuck(*device, {.engine = EngineId{1}});
    stuck.submit(PollMem{.addr = stuck.done->va, .func = Compare::eq, .reference = 77});
    for (int i = 0; i < 20; ++i) lane->submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 1 << 20});
    device.reset();
    std::memset(dst.host().data(), 0, dst.bytes());  // nothing executes any more
    CHECK(all_are(dst.host(), 0));
    CHECK(lane->ring.submit(Nop{}) == Errc::ok);  // nobody reads it, nothing crashes
    CHECK_FALSE(stuck.finish(Deadline::in(std::chrono::milliseconds(2))));
    event.reset();
    src.reset();
  }
}
