// SPDX-License-Identifier: MIT
// PM4 packets one by one, in a queue of PM4 and in the vendor packet
// of an AQL queue: effects, waits, and everything that is refused.
#include "../../lib/emulator/queues/aql.hpp"
#include "../../lib/emulator/queues/pm4_queue.hpp"
#include "compute_rig.hpp"
#include "pm4_words.hpp"

#include <memory>
#include <random>

using namespace compute;
using namespace pm4_words;

namespace {

using Dwords = std::vector<std::uint32_t>;

Dwords packet(std::uint32_t opcode, Dwords body) {
  body.insert(body.begin(), header(opcode, static_cast<std::uint32_t>(body.size() + 1)));
  return body;
}
Dwords operator+(Dwords a, const Dwords& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A queue whose ring begins with some packets.
struct Run {
  ComputeRig rig{};
  ComputeConfig config = rig.config();
  std::unique_ptr<Pm4Queue> queue{};

  std::uint64_t va(std::size_t at = 64) const { return rig.memory.va(at); }
  std::uint32_t& word(std::size_t at = 64) const { return rig.memory.at<std::uint32_t>(at); }
  std::uint64_t& wide(std::size_t at = 64) const { return rig.memory.at<std::uint64_t>(at); }
  std::uint32_t rptr() const { return rig.memory.at<std::uint32_t>(0); }
  Progress operator()(const Dwords& dwords) {
    queue = std::make_unique<Pm4Queue>(config);
    rig.memory.at<std::uint32_t>(0) = 0;
    std::copy(dwords.begin(), dwords.end(), &rig.ring.at<std::uint32_t>(0));
    rig.publish(*queue, dwords.size());
    return on();
  }
  Progress on() {
    auto p = queue->step();
    while (p == Progress::progressed) p = queue->step();
    return p;
  }
};

}  // namespace

TEST_CASE("WAIT_REG_MEM: every comparison, masked, of 32 and of 64 bits") {
  Run r;
  struct Case {
    std::uint32_t function;
    std::uint64_t holds, fails;
  };
  for (const auto& t : {Case{1, 6, 7}, Case{2, 7, 8}, Case{3, 7, 8}, Case{4, 8, 7}, Case{5, 7, 6}, Case{6, 8, 7}}) {
    INFO(t.function);
    const auto narrow = packet(0x3c, {t.function | 1u << 4, low(r.va()), high(r.va()), 7, 0xf, 4});
    r.word() = static_cast<std::uint32_t>(t.fails | 0xf0);
    CHECK(r(narrow) == Progress::waiting);
    CHECK(r.on() == Progress::waiting);
    CHECK(r.rptr() == 0);
    r.word() = static_cast<std::uint32_t>(t.holds | 0xf0);
    CHECK(r.on() == Progress::idle);
    CHECK(r.rptr() == 7);
    const auto wide = packet(0x93, {t.function | 1u << 4, low(r.va()), high(r.va()), 0, 7, 0, 0xf, 4});
    r.wide() = t.fails << 32 | 0xf0'0000'0005;
    CHECK(r(wide) == Progress::waiting);
    r.wide() = t.holds << 32 | 0xf0'0000'0005;
    CHECK(r.on() == Progress::idle);
  }
  CHECK(r(packet(0x3c, {0u | 1u << 4, low(r.va()), high(r.va()), 7, 0xf, 4})) == Progress::idle);  // always
  CHECK(r(packet(0x3c, {3u | 1u << 4 | 3u << 6, low(r.va()), high(r.va()), 5, 0xf, 4})) == Progress::idle);
  CHECK(r(packet(0x3c, {5u | 1u << 6, 0xe26, 0xe27, ~0u, ~0u, 4})) == Progress::idle);  // a flush of the HDP
}

TEST_CASE("COPY_DATA: memory, constants and the clock") {
  Run r;
  r.wide() = 0x1122334455667788;
  for (const std::uint32_t destination : {1u, 2u, 5u}) {
    r.wide(128) = 0;
    CHECK(r(packet(0x40, {2u | destination << 8, low(r.va()), high(r.va()), low(r.va(128)), high(r.va(128))})) ==
          Progress::idle);
    CHECK(r.wide(128) == 0x55667788);
  }
  CHECK(r(packet(0x40, {1u | 5u << 8 | 1u << 16, low(r.va()), high(r.va()), low(r.va(128)), high(r.va(128))})) ==
        Progress::idle);
  CHECK(r.wide(128) == r.wide());
  CHECK(r(packet(0x40, {5u | 5u << 8 | 1u << 16, 1, 2, low(r.va(128)), high(r.va(128))})) == Progress::idle);
  CHECK(r.wide(128) == 0x200000001);
  const auto before = host_ticks();
  CHECK(r(packet(0x40, {9u | 5u << 8 | 1u << 16, 0, 0, low(r.va(128)), high(r.va(128))})) == Progress::idle);
  CHECK(r.wide(128) >= before);
  CHECK(r.wide(128) <= host_ticks());
}

TEST_CASE("ATOMIC_MEM: once per XCC that is selected; PRED_EXEC selects") {
  Run r;
  const auto add = packet(0x1e, {0x0f, low(r.va()), high(r.va()), 1, 0, 0, 0, 0x10});
  CHECK(r(add) == Progress::idle);
  CHECK(r.word() == 1);
  r.config.xccs = 8;
  CHECK(r(add) == Progress::idle);
  CHECK(r.word() == 9);
  CHECK(r(packet(0x23, {9u | 5u << 24}) + add + add) == Progress::idle);  // two XCCs, then all
  CHECK(r.word() == 9 + 2 + 8);
  CHECK(r(packet(0x23, {18u}) + add + add + add) == Progress::idle);  // none of them
  CHECK(r.word() == 19 + 8);
  r.wide() = 5;
  CHECK(r(packet(0x1e, {0x27, low(r.va()), high(r.va()), 1, 2, 0, 0, 0x10})) == Progress::idle);  // swap, 64 bits
  CHECK(r.wide() == 0x200000001);
  // A predicate within a buffer ends with it.
  const auto inner = packet(0x23, {100u}) + add;
  std::copy(inner.begin(), inner.end(), &r.rig.memory.at<std::uint32_t>(4096));
  const auto jump =
      packet(0x3f, {low(r.va(4096)), high(r.va(4096)), static_cast<std::uint32_t>(inner.size()) | 1u << 23});
  r.wide() = 0;
  CHECK(r(jump + add) == Progress::idle);
  CHECK(r.word() == 8);
  // A jump that is not selected does not happen.
  std::copy(add.begin(), add.end(), &r.rig.memory.at<std::uint32_t>(4096));
  CHECK(r(packet(0x23, {4u}) + packet(0x3f, {low(r.va(4096)), high(r.va(4096)), 9}) + add) == Progress::idle);
  CHECK(r.word() == 16);
}

TEST_CASE("RELEASE_MEM and WRITE_DATA: each choice of data and interrupt") {
  Run r;
  const auto release = [&](std::uint32_t interrupt, std::uint32_t data, std::uint32_t event = 5) {
    r.rig.slot() = r.rig.event;
    r.wide() = 0;
    return r(packet(0x49, {0x14u | event << 8, interrupt << 24 | data << 29, low(r.va()), high(r.va()), 1, 2,
                           r.rig.event})) == Progress::idle;
  };
  for (const std::uint32_t interrupt : {0u, 1u, 2u, 3u, 4u}) {
    INFO(interrupt);
    CHECK(release(interrupt, 1));
    CHECK(r.wide() == 1);
    CHECK(r.rig.signalled() == (interrupt != 0 && interrupt != 3));
  }
  CHECK(release(0, 2, 6));
  CHECK(r.wide() == 0x200000001);
  CHECK(release(0, 0));
  CHECK(r.wide() == 0);
  CHECK(release(0, 3));
  CHECK(r.wide() != 0);
  CHECK(r(packet(0x46, {0x407}) + packet(0x76, {0x20c, 1, 2}) + packet(0x58, {0, ~0u, 0xff, 0, 0, 10})) ==
        Progress::idle);
}

TEST_CASE("an effect that is not carried out stops the queue, and raises the process's exception events") {
  Run r;
  kfd::CreateEvent e{};
  e.type = kfd::kEventHwException;
  e.auto_reset = 1;
  REQUIRE(r.rig.events.create(e) == 0);
  const auto a = low(r.va()), b = high(r.va());
  const auto release = [&](std::uint32_t first, std::uint32_t second) {
    return packet(0x49, {first, second, a, b, 1, 0, 1});
  };
  const std::pair<const char*, Dwords> all[] = {
      {"WRITE_DATA: a register", packet(0x37, {0, a, b, 1})},
      {"WRITE_DATA: global data share", packet(0x37, {3u << 8, a, b, 1})},
      {"WRITE_DATA: another engine", packet(0x37, {5u << 8 | 1u << 30, a, b, 1})},
      {"COPY_DATA: from a register", packet(0x40, {5u << 8, 1, 0, a, b})},
      {"COPY_DATA: to a register", packet(0x40, {5u, 1, 0, a, b})},
      {"COPY_DATA: an atomic's result", packet(0x40, {6u | 5u << 8, 1, 0, a, b})},
      {"ATOMIC_MEM: a loop", packet(0x1e, {0x0fu | 1u << 8, a, b, 1, 0, 0, 0, 0})},
      {"ATOMIC_MEM: an unknown operation", packet(0x1e, {0, a, b, 1, 0, 0, 0, 0})},
      {"WAIT_REG_MEM: a register", packet(0x3c, {3, 0x10, 0, 1, 1, 4})},
      {"WAIT_REG_MEM: registers of another kind", packet(0x3c, {3u | 1u << 6, 0xe26, 0xe28, 1, 1, 4})},
      {"WAIT_REG_MEM: an unknown comparison", packet(0x3c, {7u | 1u << 4, a, b, 1, 1, 4})},
      {"WAIT_REG_MEM: an unknown space", packet(0x3c, {3u | 2u << 4, a, b, 1, 1, 4})},
      {"WAIT_REG_MEM: writes memory", packet(0x3c, {3u | 1u << 4 | 1u << 6, a, b, 1, 1, 4})},
      {"RELEASE_MEM: not an end of work", release(0x14u | 4u << 8, 1u << 29)},
      {"RELEASE_MEM: the queue's pointer", release(0x14u | 5u << 8, 2u << 16 | 1u << 29)},
      {"RELEASE_MEM: a counter", release(0x14u | 5u << 8, 4u << 29)},
      {"RELEASE_MEM: a conditional interrupt", release(0x14u | 5u << 8, 5u << 24 | 1u << 29)},
      {"EVENT_WRITE: a counter", packet(0x46, {0x102, a, b})},
      {"a chain", packet(0x3f, {a, b, 4u | 1u << 20})},
      {"a dispatch", packet(0x15, {1, 1, 1, 1})},
      {"unknown", packet(0x79, {0, 1})},
      {"too short", packet(0x3c, {3u | 1u << 4, a, b})},
  };
  for (const auto& [name, dwords] : all) {
    INFO(name);
    r.wide() = 0;
    CHECK(r(dwords) == Progress::stopped);
    CHECK(r.queue->step() == Progress::stopped);
    CHECK(r.rptr() == 0);
    CHECK(r.wide() == 0);
    CHECK(r.rig.faults.empty());
    kfd::EventData data{};
    data.event_id = e.event_id;
    kfd::WaitEvents w{.events = 0, .count = 1, .wait_for_all = 0, .timeout_ms = 0, .result = 9};
    REQUIRE(r.rig.events.wait(w, {&data, 1}) == 0);
    CHECK(w.result == kfd::kWaitComplete);
  }
}

TEST_CASE("memory that is not mapped, or a misaligned word, is a fault") {
  Run r;
  const auto a = low(r.va()), b = high(r.va());
  for (const auto& dwords : {packet(0x37, {5u << 8, 64, 0, 1}), packet(0x40, {2u | 5u << 8, 64, 0, a, b}),
                             packet(0x40, {5u | 5u << 8 | 1u << 16, 0, 0, a + 4, b}),
                             packet(0x1e, {0x0f, 64, 0, 1, 0, 0, 0, 0}), packet(0x3c, {3u | 1u << 4, 64, 0, 1, 1, 4}),
                             packet(0x3f, {64, 0, 4}), packet(0x49, {0x514, 2u << 29, a + 4, b, 1, 0, 0})}) {
    INFO(std::hex << dwords[0]);
    CHECK(r(dwords) == Progress::stopped);
    CHECK(r.rig.faults.size() == 1);
    r.rig.faults.clear();
  }
}

TEST_CASE("AQL: a vendor packet's PM4 is executed before the packet completes") {
  ComputeRig rig;
  AqlQueue q(rig.config());
  const std::size_t signal = 1024, word = 2048;
  const auto a = low(rig.memory.va(word)), b = high(rig.memory.va(word));
  const auto buffer = packet(0x37, {5u << 8, a, b, 7}) + packet(0x3c, {3u | 1u << 4, a, b, 8, ~0u, 4}) +
                      packet(0x37, {5u << 8, a, b, 9});
  std::copy(buffer.begin(), buffer.end(), &rig.memory.at<std::uint32_t>(4096));
  const auto jump = packet(0x3f, {low(rig.memory.va(4096)), high(rig.memory.va(4096)),
                                  static_cast<std::uint32_t>(buffer.size()) | 1u << 23});
  rig.ring.at<std::uint16_t>(2) = 1;
  std::copy(jump.begin(), jump.end(), &rig.ring.at<std::uint32_t>(4));
  rig.ring.at<std::uint32_t>(20) = 10;
  rig.ring.at<std::uint64_t>(56) = rig.memory.va(signal);
  rig.memory.at<std::int64_t>(signal + 8) = 1;
  rig.publish(q, 1);
  auto p = q.step();
  while (p == Progress::progressed) p = q.step();
  CHECK(p == Progress::waiting);
  CHECK(rig.memory.at<std::uint32_t>(word) == 7);
  CHECK(rig.memory.at<std::int64_t>(signal + 8) == 1);
  CHECK(rig.memory.at<std::uint64_t>(0) == 0);
  rig.memory.at<std::uint32_t>(word) = 8;
  CHECK(q.step() == Progress::progressed);
  CHECK(rig.memory.at<std::uint32_t>(word) == 9);
  CHECK(rig.memory.at<std::int64_t>(signal + 8) == 0);
  CHECK(rig.memory.at<std::uint64_t>(0) == 1);
}

TEST_CASE("AQL: a packet that is not executed stops the queue, with the error that the runtime reports") {
  const auto jump = packet(0x3f, {0, 0, 1u << 23});
  struct Case {
    const char* name;
    std::uint32_t header;
    Dwords body;
  };
  for (const auto& t :
       {Case{"a vendor packet of another format", 0x30000, {}}, Case{"PM4 that is not a jump", 0x10000, {}},
        Case{"a jump with more after it", 0x10000, jump + Dwords{9}},
        Case{"PM4 that is refused", 0x10000, packet(0x3f, {0, 0, 1u << 20}) + Dwords{10}},
        Case{"a condition that is not known", 0x20000, {0, 64, 0, 0, 0, 0, 0, 4}}, Case{"an agent", 4, {}},
        Case{"an unknown type", 6, {}}}) {
    INFO(t.name);
    ComputeRig rig;
    AqlQueue q(rig.config());
    rig.ring.at<std::uint32_t>(0) = t.header;
    std::copy(t.body.begin(), t.body.end(), &rig.ring.at<std::uint32_t>(4));
    if (rig.ring.at<std::uint64_t>(8) == 64) rig.ring.at<std::uint64_t>(8) = rig.memory.va(512);
    const std::size_t signal = 1024;
    rig.memory.at<std::uint64_t>(64) = rig.memory.va(signal);  // of the queue
    rig.publish(q, 1);
    CHECK(q.step() == Progress::stopped);
    CHECK(q.step() == Progress::stopped);
    CHECK(rig.memory.at<std::int64_t>(signal + 8) == 32);
    CHECK(rig.memory.at<std::uint64_t>(0) == 0);
    CHECK(rig.faults.empty());
  }
}

TEST_CASE("any packets: each step ends, and memory that is not mapped stays as it is") {
  std::mt19937_64 random(11);
  const auto any = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::uint32_t kOpcodes[] = {0x10, 0x15, 0x1e, 0x23, 0x37, 0x3c, 0x3f, 0x40, 0x46, 0x49, 0x58, 0x76, 0x93};
  unsigned complete = 0, stopped = 0, waiting = 0;
  std::array<std::uint64_t, 2> guards{};
  for (int n = 0; n < 3000; ++n) {
    ComputeRig rig;
    auto config = rig.config();
    config.xccs = 1 + any(8);
    // The ring, and a buffer to which it may jump, contain packets whose fields are likely values.
    const auto fill = [&](std::uint32_t* at, std::size_t dwords) {
      for (std::size_t i = 0; i < dwords;) {
        const auto length = std::min<std::size_t>(4 + any(6), dwords - i);
        if (length < 2) break;
        at[i] = 3u << 30 | static_cast<std::uint32_t>(length - 2) << 16 | kOpcodes[any(std::size(kOpcodes))] << 8;
        for (std::size_t k = 1; k < length; ++k) switch (any(6)) {
            case 0: at[i + k] = low(rig.memory.va(any(rig.memory.bytes / 4 + 8) * 4)); break;
            case 1: at[i + k] = high(rig.memory.va()); break;
            case 2: at[i + k] = any(16) << 8 | any(8) << 24 | any(4) << 29 | any(16); break;
            case 3: at[i + k] = any(64); break;
            default: at[i + k] = static_cast<std::uint32_t>(random());
          }
        i += length;
      }
    };
    fill(&rig.ring.at<std::uint32_t>(0), 64);
    fill(&rig.memory.at<std::uint32_t>(4096), 512);
    Block outside(rig.space, 4096, Access::read);
    guards = {random(), random()};
    std::memcpy(outside.data, guards.data(), sizeof guards);
    Pm4Queue q(config);
    rig.publish(q, 64);
    auto p = q.step();
    for (int steps = 0; p == Progress::progressed && steps < 100'000; ++steps) p = q.step();
    REQUIRE(p != Progress::progressed);
    complete += p == Progress::idle;
    stopped += p == Progress::stopped;
    waiting += p == Progress::waiting;
    REQUIRE(std::memcmp(outside.data, guards.data(), sizeof guards) == 0);
  }
  CHECK(complete + stopped + waiting == 3000);
  CHECK(stopped > 0);
}

TEST_CASE("AQL: any packets") {
  std::mt19937_64 random(12);
  const auto any = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int n = 0; n < 3000; ++n) {
    ComputeRig rig;
    for (std::size_t slot = 0; slot < 4; ++slot) {
      auto* at = &rig.ring.at<std::uint64_t>(slot * 64);
      for (std::size_t i = 0; i < 8; ++i)
        at[i] = any(3) == 0 ? 0 : any(3) == 0 ? random() : rig.memory.va(any(rig.memory.bytes / 8) * 8);
      rig.ring.at<std::uint32_t>(slot * 64) = any(6) | any(3) << 16;
    }
    for (std::size_t i = 8; i < rig.memory.bytes; i += 8)
      rig.memory.at<std::uint64_t>(i) = any(2) == 0 ? any(4) : rig.memory.va(any(rig.memory.bytes / 8) * 8);
    AqlQueue q(rig.config());
    rig.publish(q, 4);
    auto p = q.step();
    for (int steps = 0; p == Progress::progressed && steps < 1000; ++steps) p = q.step();
    REQUIRE(p != Progress::progressed);
  }
}
