// SPDX-License-Identifier: MIT
// Compute queues of PM4 packets: writes, fences with interrupts, indirect
// buffers, wrap-around, and what they refuse. Part of the program of queues.cpp.
#include "../../lib/device/kfd/raw_client.hpp"
#include "pm4_words.hpp"

#include "support/catch.hpp"

#include <array>
#include <initializer_list>
#include <memory>
#include <vector>

using namespace sdma::raw;
using namespace pm4_words;

namespace {

/// A PM4 queue and its position, in dwords.
struct Pm4 {
  Queue q;
  std::uint64_t written = 0;
  explicit Pm4(Client& c, std::uint32_t g = 0) : q(c, g, kfd::kQueueCompute) { REQUIRE(q.error == 0); }

  void put(std::initializer_list<std::uint32_t> dwords) {
    for (const auto d : dwords) q.ring.as<std::uint32_t>()[written++ % (q.ring.bytes / 4)] = d;
  }
  void write(std::uint64_t va, std::uint32_t value) { put({header(0x37, 5), 5u << 8, low(va), high(va), value}); }
  void ring() {
    __atomic_store_n(q.pointers.as<std::uint64_t>(64), written, __ATOMIC_SEQ_CST);
    __atomic_store_n(q.doorbell, written, __ATOMIC_RELEASE);
  }
  std::uint32_t read() const { return __atomic_load_n(q.pointers.as<std::uint32_t>(), __ATOMIC_ACQUIRE); }
  bool consumed() const {
    for (int i = 0; i < 10'000 && read() != written % (q.ring.bytes / 4); ++i) ::usleep(1000);
    return read() == written % (q.ring.bytes / 4);
  }
};

std::uint32_t wait(Client& c, std::uint32_t event, std::uint32_t ms) {
  kfd::EventData data{};
  data.event_id = event;
  kfd::WaitEvents w{
      .events = reinterpret_cast<std::uint64_t>(&data), .count = 1, .wait_for_all = 0, .timeout_ms = ms, .result = 9};
  REQUIRE(call(c.kfd, Nr::wait_events, w) == 0);
  return w.result;
}

}  // namespace

TEST_CASE("PM4: writes, in order and around the end of the ring") {
  Client c;
  auto words = c.allocate(8192);
  Pm4 q(c);
  for (std::uint32_t i = 0; i < 500; ++i) {
    q.put({header(0x10, 4), 7, 7, 7});              // NOP
    q.put({3u << 30 | 0x3fffu << 16 | 0x10 << 8});  // and the one that is its header alone
    q.write(words.va + i * 4, i + 1);
    q.put({header(0x58, 7), 0, ~0u, 0xff, 0, 0, 10});  // ACQUIRE_MEM
    q.ring();
    REQUIRE(q.consumed());
  }
  for (std::uint32_t i = 0; i < 500; ++i) REQUIRE(words.as<std::uint32_t>()[i] == i + 1);
  // Three dwords one behind another; then three to one address.
  q.put({header(0x37, 7), 5u << 8, low(words.va), high(words.va), 10, 20, 30});
  q.put({header(0x37, 7), 5u << 8 | 1u << 16, low(words.va + 64), high(words.va), 10, 20, 31});
  q.ring();
  REQUIRE(q.consumed());
  CHECK(words.as<std::uint32_t>()[2] == 30);
  CHECK(words.as<std::uint32_t>()[16] == 31);
  CHECK(words.as<std::uint32_t>()[17] == 18);
  c.free(words);
}

TEST_CASE("PM4: a fence and its interrupt wake, out of an indirect buffer too") {
  Client c;
  const auto& page = event_page(c);
  kfd::CreateEvent e{};
  e.auto_reset = 1;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  const auto mailbox = page.va + e.slot * 8;
  const auto release = [&](std::uint32_t select, std::uint64_t va, std::uint64_t data, std::uint32_t event) {
    return std::array{header(0x49, 8), 0x14u | 5u << 8, select, low(va), high(va), low(data), high(data), event};
  };
  Pm4 q(c, 1);
  auto words = c.allocate(4096);
  *words.as<std::uint64_t>() = ~0ull;
  for (const auto d : release(2u << 29, words.va, 77, 0)) q.put({d});  // 64 bits, no interrupt
  q.ring();
  REQUIRE(q.consumed());
  CHECK(*words.as<std::uint64_t>() == 77);
  CHECK(wait(c, e.event_id, 0) == kfd::kWaitTimeout);
  for (const auto d : release(2u << 24 | 2u << 29, mailbox, e.event_id, e.event_id)) q.put({d});
  q.ring();
  CHECK(wait(c, e.event_id, 10'000) == kfd::kWaitComplete);
  CHECK(*page.as<std::uint64_t>(e.slot * 8) == ~0ull);  // acknowledged

  auto* buffer = words.as<std::uint32_t>(1024);
  std::uint32_t n = 0;
  for (const auto d : release(1u << 29, words.va, 5, 0)) buffer[n++] = d;
  for (const auto d : release(2u << 24 | 2u << 29, mailbox, e.event_id, e.event_id)) buffer[n++] = d;
  for (const auto d : release(3u << 29, words.va + 8, 0, 0)) buffer[n++] = d;  // the clock
  q.put({header(0x3f, 4), low(words.va + 1024), high(words.va), n | 1u << 23});
  q.ring();
  CHECK(wait(c, e.event_id, 10'000) == kfd::kWaitComplete);
  REQUIRE(q.consumed());
  CHECK(*words.as<std::uint32_t>() == 5);
  CHECK(*words.as<std::uint64_t>(8) != 0);
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_event, id) == 0);
  c.free(words);
}

TEST_CASE("PM4: a dispatch, and whatever else is unknown, stops the queue and raises the process's exception events") {
  Client c;
  (void)event_page(c);
  kfd::CreateEvent e{};
  e.type = kfd::kEventHwException;
  e.auto_reset = 1;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  auto words = c.allocate(4096);
  const auto refused = [&](std::initializer_list<std::uint32_t> dwords) {
    Pm4 q(c);
    *words.as<std::uint32_t>() = 0;
    q.put(dwords);
    q.write(words.va, 1);
    q.ring();
    CHECK(wait(c, e.event_id, 10'000) == kfd::kWaitComplete);
    q.ring();
    ::usleep(2'000);
    CHECK(q.read() == 0);
    CHECK(*words.as<std::uint32_t>() == 0);  // what is behind it never runs
  };
  refused({header(0x15, 5), 1, 1, 1, 1});                                         // DISPATCH_DIRECT
  refused({header(0x79, 3), 0x20c, 0});                                           // SET_UCONFIG_REG
  refused({0});                                                                   // no packet at all
  refused({header(0x37, 5), 0, 0, 0, 0});                                         // a register
  refused({header(0x3f, 4), low(words.va + 256), high(words.va), 4 | 1u << 23});  // a buffer of zeros
  refused({header(0x10, 4096)});                                                  // longer than what was written
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_event, id) == 0);
  c.free(words);
}

TEST_CASE("compute queues: more than hardware has at once, with nothing submitted") {
  Client c;
  for (const auto type : {kfd::kQueueCompute, kfd::kQueueComputeAql}) {
    std::vector<std::unique_ptr<Queue>> all;
    for (int i = 0; i < 256; ++i) all.push_back(std::make_unique<Queue>(c, 0, type));
    for (const auto& q : all) CHECK(q->error == 0);
    kfd::UpdateQueue u{.ring = 0, .queue_id = all[0]->id, .ring_bytes = 0, .percentage = 100, .priority = 7};
    CHECK(call(c.kfd, Nr::update_queue, u) == 0);
    u.ring = all[0]->ring.va;
    u.ring_bytes = 4096;
    u.priority = 15;
    CHECK(call(c.kfd, Nr::update_queue, u) == 0);
  }
}

TEST_CASE("PM4: an exception event says that nothing was reset") {
  Client c;
  (void)event_page(c);
  kfd::CreateEvent e{};
  e.type = kfd::kEventHwException;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  Pm4 q(c);
  q.put({0});
  q.ring();
  kfd::EventData data{};
  data.exception = {.reset_type = 7, .reset_cause = 7, .memory_lost = 7, .gpu_id = 7};  // the caller's rest
  data.event_id = e.event_id;
  kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data),
                    .count = 1,
                    .wait_for_all = 0,
                    .timeout_ms = 10'000,
                    .result = 9};
  REQUIRE(call(c.kfd, Nr::wait_events, w) == 0);
  CHECK(w.result == kfd::kWaitComplete);
  const auto& x = data.exception;
  CHECK((x.reset_type == 0 && x.reset_cause == 0 && x.memory_lost == 0 && x.gpu_id == 0));
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_event, id) == 0);
}
