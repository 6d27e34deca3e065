// SPDX-License-Identifier: MIT
// A GPU's queues while others of its queues are created and destroyed,
// and events with many waiters. Part of the program of queues.cpp.
#include "../../lib/device/kfd/raw_client.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

using namespace sdma::raw;
using namespace sdma;
using namespace std::chrono_literals;

TEST_CASE("odd copies on all queues, there and back, while one of them is destroyed and created again") {
  Client c;
  constexpr std::uint32_t kPart = 16'384;
  const auto engines = c.node.topology.gpus[0].engines();
  const std::uint32_t n = std::min(engines * 4, 64u);
  auto from = c.allocate(n * kPart), back = c.allocate(n * kPart), words = c.allocate(4096),
       vram = c.allocate(n * kPart, 0, kfd::kVram);
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Ring<>>> rings;
  const auto create = [&](std::uint32_t i) {
    auto q = std::make_unique<Queue>(c, 0, kfd::kQueueSdmaByEngine, i % engines);
    REQUIRE(q->error == 0);
    return q;
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    queues.push_back(create(i));
    rings.push_back(std::make_unique<Ring<>>(queues.back()->memory()));
  }
  std::uint32_t seed = 1;
  const auto random = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  for (std::uint32_t round = 1; round <= 8; ++round) {
    for (std::uint32_t i = 0; i < n * kPart; ++i) from.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
    std::memset(back.host(), 0, n * kPart);
    std::vector<std::uint32_t> bytes;
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto at = i * kPart;
      bytes.push_back(1 + random() % (kPart - 8));
      const auto there = words.gpu(i * 8), home = words.gpu(i * 8 + 4);
      REQUIRE(rings[i]->submit(CopyLinear{.src = from.gpu(at + 3), .dst = vram.gpu(at + 1), .bytes = bytes[i]},
                               Fence{.addr = there, .value = round}, PollMem{.addr = there, .reference = round},
                               CopyLinear{.src = vram.gpu(at + 1), .dst = back.gpu(at + 2), .bytes = bytes[i]},
                               Fence{.addr = home, .value = round}) == Errc::ok);
    }
    // The last queue goes, with or without its work; each change maps the others anew.
    for (int again = 0; again < 3; ++again) {
      rings.back().reset();
      queues.back().reset();
      queues.back() = create(n - 1);
      rings.back() = std::make_unique<Ring<>>(queues.back()->memory());
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      const auto until = Deadline::in(20s);
      while (__atomic_load_n(words.as<std::uint32_t>(i * 8 + 4), __ATOMIC_ACQUIRE) != round && !until.passed())
        std::this_thread::yield();
      const auto at = i * kPart;
      REQUIRE(std::memcmp(back.as<std::byte>(at + 2), from.as<std::byte>(at + 3), bytes[i]) == 0);
      REQUIRE(*back.as<std::byte>(at + 1) == std::byte{0});
      REQUIRE(*back.as<std::byte>(at + 2 + bytes[i]) == std::byte{0});
      const auto m = queues[i]->memory();
      while (__atomic_load_n(m.rptr, __ATOMIC_ACQUIRE) != *m.wptr && !until.passed()) std::this_thread::yield();
      REQUIRE(*m.rptr == *m.wptr);
    }
  }
  rings.clear();
  queues.clear();
  for (const auto& m : {from, back, words, vram}) CHECK(c.free(m) == 0);
}

TEST_CASE("one event wakes five waiters, by a trap and by SET_EVENT") {
  Client c;
  const auto& page = event_page(c);
  kfd::CreateEvent e{};
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  Queue q(c, 0, kfd::kQueueSdma);
  REQUIRE(q.error == 0);
  Ring<> ring(q.memory());
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  for (const bool by_engine : {true, false}) {
    std::atomic<int> waiting{0}, woken{0};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 5; ++i)
      waiters.emplace_back([&] {
        kfd::EventData data{};
        data.event_id = e.event_id;
        kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data),
                          .count = 1,
                          .wait_for_all = 0,
                          .timeout_ms = 20'000,
                          .result = 9};
        ++waiting;
        if (call(c.kfd, Nr::wait_events, w) == 0 && w.result == kfd::kWaitComplete) ++woken;
      });
    while (waiting < 5) std::this_thread::yield();
    std::this_thread::sleep_for(10ms);
    CHECK(woken == 0);
    if (by_engine)
      CHECK(ring.submit(Fence{.addr = page.gpu(e.slot * 8), .value = e.event_id}, Trap{.context = e.event_id}) ==
            Errc::ok);
    else CHECK(call(c.kfd, Nr::set_event, id) == 0);
    for (auto& t : waiters) t.join();
    CHECK(woken == 5);
    CHECK(call(c.kfd, Nr::reset_event, id) == 0);
  }
  CHECK(call(c.kfd, Nr::destroy_event, id) == 0);
}
