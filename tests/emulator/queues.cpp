// SPDX-License-Identifier: MIT
// Queues of the node through bare ioctls: all engines, all slots, and everything that the kernel takes away from a
// program. Run under `sdma emulate --gpus=2`.
#include "../../lib/device/kfd/raw_client.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

using namespace sdma::raw;
using namespace sdma;
using namespace std::chrono_literals;

namespace {

/// True when the word has the value, false after ten seconds.
bool reaches(const volatile std::uint32_t* word, std::uint32_t value) {
  const auto until = Deadline::in(10s);
  while (!until.passed()) {
    if (__atomic_load_n(const_cast<const std::uint32_t*>(word), __ATOMIC_ACQUIRE) == value) return true;
    std::this_thread::yield();
  }
  return false;
}

int destroy(Client& c, std::uint32_t id) {
  kfd::DestroyQueue d{.queue_id = id, .pad = 0};
  return call(c.kfd, Nr::destroy_queue, d);
}

}  // namespace

TEST_CASE("every engine has eight slots, by number, and each of them copies") {
  Client c;
  auto data = c.allocate(1 << 20, 0, kfd::kVram);
  auto words = c.allocate(4096);
  std::vector<std::unique_ptr<Queue>> queues;
  const auto engines = c.node.topology.gpus[0].engines();
  REQUIRE(engines == (c.node.topology.gpus[0].gfx == 90402 ? 16 : 5));
  for (std::uint32_t e = 0; e < engines; ++e)
    for (std::uint32_t slot = 0; slot < 8; ++slot) {
      queues.push_back(std::make_unique<Queue>(c, 0, kfd::kQueueSdmaByEngine, e));
      REQUIRE(queues.back()->error == 0);
    }
  CHECK(Queue(c, 0, kfd::kQueueSdmaByEngine, engines - 1).error == ENOMEM);
  CHECK(Queue(c, 0, kfd::kQueueSdmaByEngine, engines).error == EINVAL);
  CHECK(Queue(c, 0, kfd::kQueueSdma).error == ENOMEM);  // the two that face the host are taken too
  CHECK(Queue(c, 1, kfd::kQueueSdmaXgmi).error == 0);   // the other GPU's are not

  std::iota(data.as<std::uint32_t>(), data.as<std::uint32_t>() + 128 * 256, 1u);
  const auto n = engines * 8;
  for (std::uint32_t i = 0; i < n; ++i) {
    Ring<> ring(queues[i]->memory());
    REQUIRE(ring.submit(CopyLinear{.src = data.gpu(i * 1024), .dst = data.gpu((1 << 19) + i * 1024), .bytes = 1024},
                        Fence{.addr = words.gpu(i * 4), .value = i + 1}) == Errc::ok);
  }
  for (std::uint32_t i = 0; i < n; ++i) REQUIRE(reaches(words.as<std::uint32_t>(i * 4), i + 1));
  CHECK(std::memcmp(data.host(), data.host() + (1 << 19), n * 1024) == 0);
  queues.clear();
  CHECK(Queue(c, 0, kfd::kQueueSdma).error == 0);
  c.free(data);
  c.free(words);
}

TEST_CASE("a ring wraps around many times") {
  Client c;
  auto words = c.allocate(4096);
  Queue q(c, 1, kfd::kQueueSdmaXgmi);
  REQUIRE(q.error == 0);
  Ring<> ring(q.memory());
  for (std::uint32_t i = 1; i <= 3000; ++i) {
    const auto until = Deadline::in(10s);
    while (ring.submit(Fence{.addr = words.gpu(), .value = i}) == Errc::no_space) REQUIRE_FALSE(until.passed());
  }
  CHECK(reaches(words.as<std::uint32_t>(), 3000));
  c.free(words);
}

TEST_CASE("queues that the kernel would refuse") {
  Client c;
  auto ring = c.allocate(8192), pointers = c.allocate(4096), wide = c.allocate(8192);
  kfd::CreateQueue good{};
  good.ring = ring.va;
  good.ring_bytes = 8192;
  good.rptr = pointers.va;
  good.wptr = pointers.va + 64;
  good.gpu_id = c.gpu_id(0);
  good.type = kfd::kQueueSdma;
  good.percentage = 100;
  const auto with = [&](auto&& change) {
    auto a = good;
    change(a);
    const int error = call(c.kfd, Nr::create_queue, a);
    if (error == 0) destroy(c, a.queue_id);
    return error;
  };
  CHECK(with([](auto&) {}) == 0);
  CHECK(with([](auto& a) { a.percentage = 101; }) == EINVAL);
  CHECK(with([](auto& a) { a.priority = 16; }) == EINVAL);
  CHECK(with([](auto& a) { a.ring_bytes = 6000; }) == EINVAL);    // no power of two
  CHECK(with([](auto& a) { a.ring_bytes = 4096; }) == EINVAL);    // not the whole mapping
  CHECK(with([](auto& a) { a.ring += 4096; }) == EINVAL);         // not its beginning
  CHECK(with([](auto& a) { a.ring = 0x1000; }) == EINVAL);        // not mapped
  CHECK(with([](auto& a) { a.ring = ~0ull - 4096; }) == EFAULT);  // no address of a program
  CHECK(with([](auto& a) { a.rptr = 0x1000; }) == EINVAL);
  CHECK(with([&](auto& a) { a.wptr = wide.va; }) == EINVAL);  // pointers stand on a page of their own
  CHECK(with([](auto& a) { a.rptr = ~0ull; }) == EFAULT);
  CHECK(with([](auto& a) { a.gpu_id = 3; }) == EINVAL);
  CHECK(with([](auto& a) { a.type = 17; }) == 524);
  CHECK(with([&](auto& a) {
          a.type = kfd::kQueueSdmaByEngine;
          a.sdma_engine_id = c.node.topology.gpus[0].engines() - 1;
        }) == 0);

  auto old = good;  // a caller of an older interface: no engine id, whatever lies behind its struct
  old.type = kfd::kQueueSdmaXgmi;
  old.sdma_engine_id = 99;
  REQUIRE(call(c.kfd, Nr::create_queue, old, 88) == 0);
  CHECK(old.sdma_engine_id == 99);
  kfd::FreeMemory f{ring.handle};
  CHECK(call(c.kfd, Nr::free_memory, f) == EBUSY);
  CHECK(c.unmap(ring, 1) == EBUSY);  // pinned while the queue lives
  REQUIRE(destroy(c, old.queue_id) == 0);
  CHECK(destroy(c, old.queue_id) == EINVAL);
  CHECK(c.free(ring) == 0);
  c.free(pointers);
  c.free(wide);
}

TEST_CASE("wptr is honoured when queues are mapped anew") {
  Client c;
  auto words = c.allocate(4096);
  Queue q(c, 0, kfd::kQueueSdmaByEngine, 3);
  REQUIRE(q.error == 0);
  const auto m = q.memory();
  auto* end = encode_to(Fence{.addr = words.gpu(), .value = 7}, m.dwords.data());
  const auto bytes = static_cast<std::uint64_t>(end - m.dwords.data()) * 4;
  __atomic_store_n(m.wptr, bytes, __ATOMIC_RELEASE);
  std::this_thread::sleep_for(20ms);
  CHECK(*words.as<std::uint32_t>() == 0);  // nobody rang
  {
    Queue other(c, 0, kfd::kQueueSdmaByEngine, 4);  // maps all queues of the GPU anew
    REQUIRE(other.error == 0);
  }
  CHECK(reaches(words.as<std::uint32_t>(), 7));
  c.free(words);
}

TEST_CASE("a doorbell that is rung while its queue is not mapped is lost, unless wptr says the same") {
  Client c;
  auto words = c.allocate(4096);
  Queue q(c, 0, kfd::kQueueSdma);
  REQUIRE(q.error == 0);
  const auto m = q.memory();
  auto* end = encode_to(Fence{.addr = words.gpu(), .value = 7}, m.dwords.data());
  const auto bytes = static_cast<std::uint64_t>(end - m.dwords.data()) * 4;
  const auto enable = [&](bool on) {
    kfd::UpdateQueue u{
        .ring = on ? q.ring.va : 0, .queue_id = q.id, .ring_bytes = on ? 4096u : 0u, .percentage = 100, .priority = 7};
    REQUIRE(call(c.kfd, Nr::update_queue, u) == 0);
  };
  enable(false);
  __atomic_store_n(m.doorbell, bytes, __ATOMIC_RELEASE);  // wptr in memory still says 0
  std::this_thread::sleep_for(5ms);
  enable(true);
  std::this_thread::sleep_for(20ms);
  CHECK(*words.as<std::uint32_t>() == 0);
  __atomic_store_n(m.wptr, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(m.doorbell, bytes, __ATOMIC_RELEASE);
  CHECK(reaches(words.as<std::uint32_t>(), 7));
  c.free(words);
}

TEST_CASE("a queue in another's place rings the same value and is heard") {
  Client c;
  auto words = c.allocate(4096);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    Queue q(c, 0, kfd::kQueueSdmaByEngine, 1);
    Ring<> ring(q.memory());
    REQUIRE(ring.submit(Fence{.addr = words.gpu(), .value = i}) == Errc::ok);
    REQUIRE(reaches(words.as<std::uint32_t>(), i));
  }
  c.free(words);
}

TEST_CASE("engines that move much at the same time move every byte, in order") {
  Client c;
  constexpr std::uint64_t kBytes = 6 << 20, kPieces = 3;
  constexpr std::uint32_t kQueues = 6;  // two of them on one engine
  auto words = c.allocate(4096);
  std::memset(words.host(), 0, words.bytes);
  auto from = c.allocate(kQueues * kBytes, 0, kfd::kVram), to = c.allocate(kQueues * kBytes, 0, kfd::kVram);
  for (std::uint64_t i = 0; i < kQueues * kBytes / 8; ++i) from.as<std::uint64_t>()[i] = i * 0x9e3779b97f4a7c15;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<sdma::Ring<>>> rings;
  for (std::uint32_t i = 0; i < kQueues; ++i) {
    queues.push_back(std::make_unique<Queue>(c, 0, kfd::kQueueSdma, 0));
    REQUIRE(queues.back()->error == 0);
    rings.push_back(std::make_unique<sdma::Ring<>>(queues.back()->memory()));
  }
  for (std::uint32_t round = 1; round <= 3; ++round) {
    std::memset(to.host(), 0, to.bytes);
    for (std::uint64_t piece = 0; piece < kPieces; ++piece)
      for (std::uint32_t i = 0; i < kQueues; ++i) {
        const auto at = i * kBytes + piece * (kBytes / kPieces);
        REQUIRE(rings[i]->submit(CopyLinear{.src = from.gpu(at), .dst = to.gpu(at), .bytes = kBytes / kPieces}) ==
                sdma::Errc::ok);
      }
    for (std::uint32_t i = 0; i < kQueues; ++i)
      REQUIRE(rings[i]->submit(Fence{.addr = words.gpu(4 * i), .value = round}) == sdma::Errc::ok);
    // A fence comes after the copies of its queue.
    for (std::uint32_t i = 0; i < kQueues; ++i) {
      REQUIRE(reaches(words.as<std::uint32_t>(4 * i), round));
      CHECK(std::memcmp(to.host() + i * kBytes, from.host() + i * kBytes, kBytes) == 0);
    }
  }
  queues.clear();
  c.free(words);
  c.free(from);
  c.free(to);
}

TEST_CASE("UPDATE_QUEUE asks of a ring what CREATE_QUEUE asks") {
  Client c;
  auto words = c.allocate(4096);
  for (const std::uint32_t bytes : {1u, 2u, 512u, 1024u, 4096u}) {
    Queue q(c, 0, kfd::kQueueSdma);
    REQUIRE(q.error == 0);
    auto next = c.allocate(4096);
    const auto update = [&](std::uint64_t ring, std::uint32_t n) {
      kfd::UpdateQueue u{.ring = ring, .queue_id = q.id, .ring_bytes = n, .percentage = 100, .priority = 7};
      return call(c.kfd, Nr::update_queue, u);
    };
    for (const std::uint32_t bad : {3u, 4095u}) CHECK(update(next.va, bad) == EINVAL);
    for (const std::uint32_t larger : {8192u, 1u << 31}) CHECK(update(next.va, larger) == EFAULT);
    CHECK(update(next.va + 4096, bytes) == EFAULT);
    CHECK(update(std::uint64_t{1} << 50, bytes) == EFAULT);
    // The smallest ring has 1024 bytes, so packets at any place of it run. Misaligned addresses lose their low bits.
    REQUIRE(update(next.va + 1, bytes) == 0);
    const auto used = std::max(bytes, 1024u);
    std::uint64_t at = 0;
    for (std::uint32_t i = 1; at < 2 * used; ++i) {
      auto* end = encode_to(Fence{.addr = words.gpu(), .value = i}, next.as<std::uint32_t>(at % used));
      at += static_cast<std::uint64_t>(end - next.as<std::uint32_t>(at % used)) * 4;
      __atomic_store_n(q.memory().wptr, at, __ATOMIC_RELEASE);
      __atomic_store_n(q.doorbell, at, __ATOMIC_RELEASE);
      REQUIRE(reaches(words.as<std::uint32_t>(), i));
    }
    // The old ring is free, and the new one is pinned.
    CHECK(c.unmap(next, 1) == EBUSY);
    CHECK(c.unmap(q.ring, 1) == 0);
    CHECK(q.destroy() == 0);
    CHECK(c.free(next) == 0);
  }
  c.free(words);
}

TEST_CASE("a disabled queue stands still and goes on") {
  Client c;
  auto words = c.allocate(4096);
  Queue q(c, 0, kfd::kQueueSdma);
  REQUIRE(q.error == 0);
  kfd::UpdateQueue u{.ring = 0, .queue_id = q.id, .ring_bytes = 0, .percentage = 0, .priority = 7};
  REQUIRE(call(c.kfd, Nr::update_queue, u) == 0);
  Ring<> ring(q.memory());
  REQUIRE(ring.submit(Fence{.addr = words.gpu(), .value = 5}) == Errc::ok);
  std::this_thread::sleep_for(20ms);
  CHECK(*words.as<std::uint32_t>() == 0);
  u = {.ring = q.ring.va, .queue_id = q.id, .ring_bytes = 4096, .percentage = 100, .priority = 7};
  REQUIRE(call(c.kfd, Nr::update_queue, u) == 0);
  CHECK(reaches(words.as<std::uint32_t>(), 5));
  c.free(words);
}

TEST_CASE("destroying does not drain, and a queue that polls forever can be destroyed") {
  Client c;
  auto words = c.allocate(4096);
  auto q = std::make_unique<Queue>(c, 0, kfd::kQueueSdmaByEngine, 2);
  Ring<> ring(q->memory());
  REQUIRE(ring.submit(Fence{.addr = words.gpu(8), .value = 1}, PollMem{.addr = words.gpu(), .reference = 1},
                      Fence{.addr = words.gpu(4), .value = 1}) == Errc::ok);
  REQUIRE(reaches(words.as<std::uint32_t>(8), 1));
  CHECK(q->destroy() == 0);
  *words.as<std::uint32_t>() = 1;
  std::this_thread::sleep_for(20ms);
  CHECK(*words.as<std::uint32_t>(4) == 0);
  c.free(words);
}

TEST_CASE("queues of two GPUs wait for each other") {
  Client c;
  auto words = c.allocate(4096, 1, kfd::kVram);
  Queue a(c, 0, kfd::kQueueSdmaByEngine, 4), b(c, 1, kfd::kQueueSdmaByEngine, 4);
  Ring<> ra(a.memory()), rb(b.memory());
  for (std::uint32_t i = 1; i <= 100; ++i) {
    while (ra.submit(PollMem{.addr = words.gpu(4), .reference = i - 1}, Fence{.addr = words.gpu(), .value = i}) !=
           Errc::ok)
      std::this_thread::yield();
    while (rb.submit(PollMem{.addr = words.gpu(), .reference = i}, Fence{.addr = words.gpu(4), .value = i}) != Errc::ok)
      std::this_thread::yield();
  }
  CHECK(reaches(words.as<std::uint32_t>(4), 100));
  c.free(words);
}

TEST_CASE("a queue's error reaches the runtime that has asked for exceptions") {
  Client c;
  (void)event_page(c);
  kfd::CreateEvent e{};
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  auto area = c.allocate(4096), payload = c.allocate(4096);
  area.as<std::uint64_t>()[3] =
      payload.va + 8;  // the header of the save area: where the exceptions go, and their event
  area.as<std::uint32_t>()[8] = e.event_id;
  const auto runtime = [&](std::uint32_t mode) {
    kfd::RuntimeEnable r{.r_debug = 0, .mode = mode, .capabilities = 0};
    return call(c.kfd, Nr::runtime_enable, r);
  };
  const auto raised = [&](std::uint32_t timeout_ms) {
    kfd::EventData data{};
    data.event_id = e.event_id;
    kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data),
                      .count = 1,
                      .wait_for_all = 0,
                      .timeout_ms = timeout_ms,
                      .result = 9};
    REQUIRE(call(c.kfd, Nr::wait_events, w) == 0);
    return w.result == kfd::kWaitComplete;
  };
  for (const bool enabled : {false, true}) {
    if (enabled) REQUIRE(runtime(1) == 0);
    Queue q(c, 0, kfd::kQueueComputeAql, 0, 4096, area.va);
    REQUIRE(q.error == 0);
    *q.ring.as<std::uint16_t>() = 17;  // not a type of packet
    __atomic_store_n(q.pointers.as<std::uint64_t>(64), std::uint64_t{1}, __ATOMIC_RELEASE);
    __atomic_store_n(q.doorbell, std::uint64_t{0}, __ATOMIC_RELEASE);
    CHECK(raised(enabled ? 20'000 : 200) == enabled);
    CHECK(payload.as<std::uint64_t>()[1] == (enabled ? 1u << 19 : 0u));  // unsupported packet
  }
  CHECK(runtime(0) == 0);
}

TEST_CASE("events: the mailbox before the interrupt, and a trap without it wakes nobody") {
  Client c;
  const auto& page = event_page(c);
  kfd::CreateEvent e{};
  e.auto_reset = 1;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  Queue q(c, 0, kfd::kQueueSdma);
  Ring<> ring(q.memory());
  kfd::EventData data{};
  data.event_id = e.event_id;
  const auto wait = [&](std::uint32_t ms) {
    kfd::WaitEvents w{
        .events = reinterpret_cast<std::uint64_t>(&data), .count = 1, .wait_for_all = 0, .timeout_ms = ms, .result = 0};
    REQUIRE(call(c.kfd, Nr::wait_events, w) == 0);
    return w.result;
  };
  REQUIRE(ring.submit(Trap{.context = e.event_id}) == Errc::ok);
  CHECK(wait(50) == kfd::kWaitTimeout);
  REQUIRE(ring.submit(Fence{.addr = page.gpu(e.slot * 8), .value = e.event_id}, Trap{.context = e.event_id}) ==
          Errc::ok);
  CHECK(wait(10'000) == kfd::kWaitComplete);
  CHECK(page.as<std::uint64_t>()[e.slot] == ~0ull);  // acknowledged

  // A VM fault: the memory event says where, all queues of the process on that GPU stand, the process lives.
  kfd::CreateEvent fault{};
  fault.type = kfd::kEventMemory;
  REQUIRE(call(c.kfd, Nr::create_event, fault) == 0);
  auto words = c.allocate(4096);
  Queue other(c, 0, kfd::kQueueSdmaXgmi), elsewhere(c, 1, kfd::kQueueSdma);
  REQUIRE(ring.submit(CopyLinear{.src = GpuVa{0x10000}, .dst = words.gpu(), .bytes = 64}) == Errc::ok);
  data.event_id = fault.event_id;
  CHECK(wait(10'000) == kfd::kWaitComplete);
  CHECK(data.memory.va == 0x10000);
  CHECK(data.memory.gpu_id == c.gpu_id(0));
  CHECK(data.memory.not_present == 1);
  std::this_thread::sleep_for(5ms);
  Queue later(c, 0, kfd::kQueueSdma);
  REQUIRE(later.error == 0);
  Ring<> still(other.memory()), alive(elsewhere.memory()), too_late(later.memory());
  REQUIRE(still.submit(Fence{.addr = words.gpu(), .value = 1}) == Errc::ok);
  REQUIRE(too_late.submit(Fence{.addr = words.gpu(8), .value = 1}) == Errc::ok);
  REQUIRE(alive.submit(Fence{.addr = words.gpu(4), .value = 1}) == Errc::ok);
  CHECK(reaches(words.as<std::uint32_t>(4), 1));
  std::this_thread::sleep_for(20ms);
  CHECK(*words.as<std::uint32_t>() == 0);
  CHECK(*words.as<std::uint32_t>(8) == 0);  // made, but it does not run
  c.free(words);
}
