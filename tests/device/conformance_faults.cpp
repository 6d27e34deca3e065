// SPDX-License-Identifier: MIT
// What any device must do with packets that cannot be executed, and what it tells of them.
#include "conformance_support.hpp"
#include "sdma/stream/writer.hpp"

#include <atomic>
#include <thread>

namespace conformance {

TEST_CASE("a fault stops its queue, is told, and disturbs no other", "[fault]") {
  on_each([](Device& d, const DeviceUnderTest& under) {
    if (!under.names_the_packet) return;
    auto src = host_memory(d, 4096), dst = gpu_memory(d, 0, 4096);
    auto for_one = must(d.allocate({.where = GpuId{0}, .bytes = 4096, .gpus = 1}));
    const std::uint32_t junk = 3;  // no packet has this opcode
    const auto check = [&](FaultKind kind, GpuId gpu, auto put) {
      CAPTURE(name(kind));
      Lane bad(d, {.gpu = gpu, .engine = engine(d, 6)}), good(d, {.gpu = gpu, .engine = engine(d, 6)});
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
      CHECK(f->engine == engine(d, 6));
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
    Lane bad(d, {.gpu = GpuId{1}, .engine = engine(d, 6)}), near(d, {.gpu = GpuId{1}, .engine = engine(d, 7)}),
        far(d, {.gpu = GpuId{2}, .engine = engine(d, 6)});
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
    Lane junk(d, {.engine = engine(d, 3)}), good(d, {.engine = engine(d, 4)});
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

}  // namespace conformance
