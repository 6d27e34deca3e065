// SPDX-License-Identifier: MIT
// What any device's engines must do with packets: copies, words that order queues, events and timestamps.
#include "conformance_support.hpp"

namespace conformance {

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
    Lane there(d, {.gpu = GpuId{0}, .engine = engine(d, 14)}), back(d, {.gpu = GpuId{1}, .engine = engine(d, 14)});
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
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.gpu = GpuId{i % 2}, .engine = engine(d, 2 + i)}));
      lanes.back()->submit(PollMem{.addr = go->low_va(), .func = Compare::ge, .reference = 1},
                           CopyLinear{.src = src.va() + i * 8, .dst = dst.va() + i * 8, .bytes = 8},
                           Atomic{.addr = left->va, .value = ~std::uint64_t{0}});
    }
    CHECK_FALSE(wait(*left, Compare::ne, 6, briefly()));
    CHECK(all_are(dst.host(), 0));
    pattern(src.host(), 5);  // the copies read what is there when they are released
    go->set(1);
    REQUIRE(wait(*left, Compare::eq, 0, soon()));
    flush(d);
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
      lanes.push_back(std::make_unique<Lane>(d, QueueRequest{.gpu = GpuId{i % 2}, .engine = engine(d, i)}));
    for (std::uint32_t k = 0; k < kEach; ++k)
      for (auto& l : lanes) l->submit(Atomic{.addr = left->va, .value = ~std::uint64_t{0}});
    CHECK(wait(*left, Compare::eq, 0, soon()));
    for (auto& l : lanes) REQUIRE(l->finish());
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
    lane.submit(Timestamp{.addr = words.va() + 8});
    REQUIRE(lane.finish());
    const auto after = *d.clock(GpuId{1});
    const auto first = words.as<std::uint64_t>()[0], second = words.as<std::uint64_t>()[1];
    CHECK(before.hz == 100'000'000);
    CHECK(before.ticks <= first);
    CHECK(first <= second);
    CHECK(second <= after.ticks);
    CHECK(before.host <= after.host);
    CHECK(before.at(before.ticks + 100) - before.host == std::chrono::microseconds(1));
    CHECK(d.clock(GpuId{99}).error() == Errc::bad_argument);
  });
}

}  // namespace conformance
