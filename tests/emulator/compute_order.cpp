// SPDX-License-Identifier: MIT
// Compute queues: rptr and data are visible before an interrupt is raised. rptr lies in the event's slot here: the
// interrupt wakes only if the slot was written before.
#include "../../lib/emulator/queues/aql.hpp"
#include "../../lib/emulator/queues/pm4_queue.hpp"
#include "compute_rig.hpp"
#include "pm4_words.hpp"

#include <initializer_list>

using namespace compute;
using namespace pm4_words;

namespace {

/// RELEASE_MEM with an interrupt and no data.
std::array<std::uint32_t, 8> interrupt(std::uint32_t event) {
  return {header(0x49, 8), 0x14u | 5u << 8, 1u << 24, 0, 0, 0, 0, event};
}
void put(std::uint32_t* at, std::initializer_list<std::uint32_t> dwords) {
  std::copy(dwords.begin(), dwords.end(), at);
}

}  // namespace

TEST_CASE("PM4: rptr before the interrupt, from the ring and from a buffer's last packet") {
  for (const bool buffer : {false, true}) {
    ComputeRig rig;
    Pm4Queue q(rig.config(&rig.slot()));
    rig.slot() = Events::kUnsignalled;
    const auto release = interrupt(rig.event);
    auto* ring = &rig.ring.at<std::uint32_t>(0);
    auto* target = buffer ? &rig.memory.at<std::uint32_t>(4096) : ring;
    std::copy(release.begin(), release.end(), target);
    if (buffer) put(ring, {header(0x3f, 4), low(rig.memory.va(4096)), high(rig.memory.va(4096)), 8 | 1u << 23});
    rig.publish(q, buffer ? 4 : 8);
    REQUIRE(q.step() == Progress::progressed);
    CHECK(rig.signalled());
    CHECK(q.step() == Progress::idle);
  }
}

TEST_CASE("PM4: an interrupt in the middle of a buffer is raised before a wait that follows it") {
  ComputeRig rig;
  Pm4Queue q(rig.config());
  const auto release = interrupt(rig.event);
  auto* buffer = &rig.memory.at<std::uint32_t>(4096);
  std::copy(release.begin(), release.end(), buffer);
  const auto word = rig.memory.va(64);
  put(buffer + 8, {header(0x3c, 7), 3u | 1u << 4, low(word), high(word), 5, ~0u, 4});
  put(&rig.ring.at<std::uint32_t>(0), {header(0x3f, 4), low(rig.memory.va(4096)), high(rig.memory.va(4096)), 15});
  rig.slot() = rig.event;
  rig.publish(q, 4);
  REQUIRE(q.step() == Progress::progressed);
  CHECK(rig.signalled());
  CHECK(q.step() == Progress::waiting);
  CHECK(rig.memory.at<std::uint32_t>(0) == 0);  // rptr
  rig.memory.at<std::uint32_t>(64) = 5;
  CHECK(q.step() == Progress::progressed);
  CHECK(rig.memory.at<std::uint32_t>(0) == 4);
}

TEST_CASE("PM4: each of two interrupts in a buffer is raised") {
  ComputeRig rig;
  kfd::CreateEvent e{};
  e.auto_reset = 1;
  REQUIRE(rig.events.create(e) == 0);
  Pm4Queue q(rig.config());
  auto* buffer = &rig.memory.at<std::uint32_t>(4096);
  for (const auto event : {rig.event, e.event_id}) {
    const auto release = interrupt(event);
    buffer = std::copy(release.begin(), release.end(), buffer);
  }
  put(&rig.ring.at<std::uint32_t>(0), {header(0x3f, 4), low(rig.memory.va(4096)), high(rig.memory.va(4096)), 16});
  rig.publish(q, 4);
  rig.slot() = rig.event;
  REQUIRE(q.step() == Progress::progressed);
  CHECK(rig.signalled());
  rig.event = e.event_id;
  rig.slot() = rig.event;
  REQUIRE(q.step() == Progress::progressed);
  CHECK(rig.signalled());
  CHECK(q.step() == Progress::idle);
  CHECK(rig.memory.at<std::uint32_t>(0) == 4);
}

TEST_CASE("PM4: a long buffer is executed in steps") {
  ComputeRig rig;
  Pm4Queue q(rig.config());
  auto* buffer = &rig.memory.at<std::uint32_t>(4096);
  for (std::uint32_t i = 0; i < 1000; ++i) buffer[i] = 3u << 30 | 0x3fffu << 16 | 0x10 << 8;  // NOP
  put(&rig.ring.at<std::uint32_t>(0), {header(0x3f, 4), low(rig.memory.va(4096)), high(rig.memory.va(4096)), 1000});
  rig.publish(q, 4);
  unsigned steps = 0;
  for (auto p = q.step(); p == Progress::progressed; p = q.step()) ++steps;
  CHECK(steps == (1000 + Pm4::kBatch - 1) / Pm4::kBatch);
  CHECK(rig.memory.at<std::uint32_t>(0) == 4);
}

TEST_CASE("AQL: a packet has left the ring before its signal's interrupt") {
  ComputeRig rig;
  rig.slot() = 0;
  AqlQueue q(rig.config(&rig.slot()));
  rig.slot() = Events::kUnsignalled;
  // The signal's mailbox is another word, so the slot gets read_dispatch_id alone.
  const std::size_t signal = 1024, mailbox = 2048;
  rig.memory.at<std::int64_t>(signal + 8) = 1;
  rig.memory.at<std::uint64_t>(signal + 16) = rig.memory.va(mailbox);
  rig.memory.at<std::uint32_t>(signal + 24) = rig.event;
  rig.ring.at<std::uint64_t>(56) = rig.memory.va(signal);
  rig.ring.at<std::uint16_t>(0) = 3;  // barrier-and
  rig.publish(q, 1);
  REQUIRE(q.step() == Progress::progressed);
  CHECK(rig.memory.at<std::int64_t>(signal + 8) == 0);
  CHECK(rig.memory.at<std::uint64_t>(mailbox) == rig.event);
  CHECK(rig.ring.at<std::uint16_t>(0) == 1);  // invalid
  CHECK(rig.signalled());
  CHECK(rig.faults.empty());
}

TEST_CASE("AQL: a completion signal that is not mapped leaves its packet in the ring") {
  ComputeRig rig;
  AqlQueue q(rig.config());
  rig.ring.at<std::uint64_t>(56) = 4096;
  rig.ring.at<std::uint16_t>(0) = 3;
  rig.publish(q, 1);
  CHECK(q.step() == Progress::stopped);
  CHECK(rig.faults == std::vector<std::uint64_t>{4096});
  CHECK(rig.memory.at<std::uint64_t>(0) == 0);
}
