// SPDX-License-Identifier: MIT
// What any device must do with requests for memory and queues, and with handles whose device has gone.
#include "conformance_support.hpp"

#include <array>

namespace conformance {

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
    refused(d.allocate({.bytes = 0}), "allocate", "0 bytes");
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
    // Not on GPU 0: where a stream that waits cannot be taken back, it costs its GPU a queue in later tests.
    Lane stuck(*device, {.gpu = GpuId{1}, .engine = engine(*device, 1, 1)});
    stuck.submit(PollMem{.addr = stuck.done->va, .func = Compare::eq, .reference = 77});
    for (int i = 0; i < 20; ++i) lane->submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 1 << 20});
    device.reset();
    std::memset(dst.host().data(), 0, dst.bytes());  // nothing executes any more
    CHECK(all_are(dst.host(), 0));
    CHECK(lane->ring.submit(Nop{}) == Errc::ok);  // nobody reads it, nothing crashes
    CHECK_FALSE(wait(*stuck.done, Compare::ge, 1, Deadline::in(std::chrono::milliseconds(2)), stuck.ring));
    event.reset();
    src.reset();
  }
}

}  // namespace conformance
