// SPDX-License-Identifier: MIT
// One queue as a state machine: doorbells, budgets, rptr, conditions, indirect buffers, hooks.
#include "engine/rig.hpp"

#include <cstdlib>
#include <new>

using namespace sdma;
using namespace sdma::test;

namespace {

const auto kOrderings = {Ordering::strict, Ordering::rocr, Ordering::adversarial};
std::size_t allocations = 0;

}  // namespace

// ThreadSanitizer has operators of its own that cannot be replaced: there, nothing is counted.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SDMA_TEST_OWN_NEW 0
#endif
#endif
#ifndef SDMA_TEST_OWN_NEW
[[gnu::noinline]] void* operator new(std::size_t n) {
  ++allocations;
  if (auto* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return std::malloc(n); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

TEST_CASE("nothing behind the doorbell is executed") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering}};
    for (std::uint32_t i = 0; i < 10; ++i) rig.put(Fence{.addr = rig.a(4 * i), .value = i});
    for (std::uint32_t n : {0u, 3u, 7u, 10u}) {
      rig.pipeline->doorbell(n * 16);
      CHECK(rig.drain(5) == Progress::idle);
      CHECK(rig.rptr == n * 16);
      CHECK(rig.pipeline->position() == n * 16);
      for (std::uint32_t i = 0; i < 10; ++i) CHECK(rig.at(rig.a(4 * i)) == (i < n ? i : 0xcdcdcdcd));
    }
    CHECK(rig.pipeline->counters().packets == 10);
    CHECK(rig.pipeline->counters().doorbells == 3);
  }
}

TEST_CASE("a step does no more than its budget, and says when nothing is left") {
  Rig rig;
  for (std::uint32_t i = 0; i < 10; ++i) rig.put(Fence{.addr = rig.a(4 * i), .value = i});
  rig.pipeline->doorbell(rig.wptr);
  for (std::uint64_t done = 0; done < 10;) {
    const auto budget = std::min<std::uint64_t>(3, 10 - done);
    CHECK(rig.pipeline->ready());
    CHECK(rig.pipeline->step(3) == Progress::progressed);
    done += budget;
    CHECK(rig.pipeline->counters().packets == done);
    CHECK(rig.rptr == done * 16);
  }
  CHECK(!rig.pipeline->ready());
  CHECK(rig.pipeline->step(3) == Progress::idle);
}

TEST_CASE("execution begins where rptr stands, and goes round the ring many times") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering, .ring_dwords = 256}};
    for (std::uint32_t i = 0; i < 1000; ++i) {  // 7 and 4 dwords: packets lie across the end
      rig.put(CopyLinear{.src = rig.a(8 * (i % 100)), .dst = rig.b(8 * (i % 100)), .bytes = 8});
      rig.put(Fence{.addr = rig.a(4096), .value = i});
      rig.go();
      REQUIRE(rig.at(rig.a(4096)) == i);
    }
    CHECK(rig.rptr == 44000);
  }
}

TEST_CASE("a queue whose window is full of what waits is not ready for more") {
  Rig rig{{.ordering = Ordering::adversarial, .more = {.window = 1}}};
  rig.at<std::uint64_t>(rig.a(0)) = 1;
  rig.put(Atomic{.addr = rig.a(0), .op = AtomicOp::cmpswap_64, .value = 9, .compare = 5, .loop = true});
  rig.put(Fence{.addr = rig.a(8), .value = 1});
  CHECK(rig.run() == Progress::waiting);
  CHECK(rig.pipeline->waits_for() == rig.a(0));
  CHECK(!rig.pipeline->ready());
  rig.at<std::uint64_t>(rig.a(0)) = 5;
  CHECK(rig.pipeline->ready());
  CHECK(rig.drain() == Progress::idle);
  CHECK(rig.at<std::uint64_t>(rig.a(0)) == 9);
  CHECK(rig.at(rig.a(8)) == 1);
}

TEST_CASE("a poll waits, names its word, and holds back all that is later") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering}};
    rig.at(rig.a(0)) = 0;
    rig.put(PollMem{.addr = rig.a(0), .func = Compare::ge, .reference = 2});
    rig.put(CopyLinear{.src = rig.a(64), .dst = rig.b(0), .bytes = 64});
    rig.first.randomise(1);
    rig.at(rig.a(0)) = 1;
    Expected untouched{rig.second};
    CHECK(rig.run() == Progress::waiting);
    CHECK(rig.pipeline->waits_for() == rig.a(0));
    CHECK(!rig.pipeline->ready());
    CHECK(untouched.holds());
    rig.at(rig.a(0)) = 7;
    CHECK(rig.pipeline->ready());
    CHECK(rig.drain() == Progress::idle);
    CHECK(rig.pipeline->waits_for() == GpuVa{});
    CHECK(std::memcmp(rig.second.data(), rig.first.data() + 64, 64) == 0);
    CHECK(rig.rptr == rig.wptr);
  }
}

TEST_CASE("what is earlier lands while a poll waits") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering}};
    rig.put(CopyLinear{.src = rig.a(64), .dst = rig.b(0), .bytes = 64});
    rig.put(Fence{.addr = rig.b(128), .value = 3});
    rig.put(PollMem{.addr = rig.a(0), .func = Compare::eq, .reference = 2});
    CHECK(rig.run() == Progress::waiting);
    CHECK(rig.at(rig.b(128)) == 3);
  }
}

TEST_CASE("rptr stays before a payload that has not landed") {
  const std::vector<std::uint32_t> data(100, 5);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rig rig{{.ordering = Ordering::adversarial, .seed = seed}};
    rig.put(Nop{});
    rig.put(Write{.dst = rig.a(0), .data = data});
    rig.put(Nop{});
    rig.pipeline->doorbell(rig.wptr);
    while (rig.pipeline->step(1) == Progress::progressed)
      if (rig.at(rig.a(396)) != 5 || rig.at(rig.a(0)) != 5) REQUIRE(rig.rptr <= 4);
    CHECK(rig.rptr == rig.wptr);
  }
}

TEST_CASE("rptr lags in adversarial, and arrives") {
  bool lagged = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig{{.ordering = Ordering::adversarial, .seed = seed}};
    for (int i = 0; i < 20; ++i) rig.put(Nop{});
    rig.pipeline->doorbell(rig.wptr);
    while (rig.pipeline->step(1) == Progress::progressed) lagged = lagged || rig.rptr < rig.pipeline->position();
    CHECK(rig.rptr == rig.wptr);
  }
  CHECK(lagged);
}

TEST_CASE("of a queue that stopped rptr stands at the packet that is to blame") {
  for (const auto ordering : {Ordering::strict, Ordering::rocr}) {
    Rig rig({.ordering = ordering});
    rig.put(Fence{.addr = rig.a(0), .value = 1});
    const auto at = rig.wptr;
    rig.put(CopyLinear{.src = GpuVa{64}, .dst = rig.b(0), .bytes = 8});
    REQUIRE(rig.run() == Progress::stopped);
    CHECK(rig.pipeline->fault()->position == at);
    CHECK(rig.rptr == at);
  }
}

TEST_CASE("a trap is consumed, and what precedes it has landed, before its interrupt") {
  struct Seen {
    std::uint64_t* rptr{};
    std::uint32_t* word{};
    std::vector<std::uint64_t> positions{};
    std::vector<std::uint32_t> words{};
  };
  for (const auto ordering : {Ordering::strict, Ordering::rocr}) {
    Seen seen;
    RigOptions o{.ordering = ordering};
    o.more.hooks = {.context = &seen, .trap = [](void* s, std::uint64_t, std::uint32_t) noexcept {
                      auto& all = *static_cast<Seen*>(s);
                      all.positions.push_back(*all.rptr);
                      all.words.push_back(*all.word);
                    }};
    Rig rig(o);
    seen.rptr = &rig.rptr;
    seen.word = &rig.at(rig.a(0));
    std::vector<std::uint64_t> ends;
    for (std::uint32_t n = 1; n <= 3; ++n) {
      rig.put(Fence{.addr = rig.a(0), .value = n});
      rig.put(Trap{.context = n});
      ends.push_back(rig.wptr);
    }
    rig.go();
    CHECK(seen.positions == ends);
    CHECK(seen.words == std::vector<std::uint32_t>{1, 2, 3});
  }
}

TEST_CASE("cond_exec runs or skips; what is skipped may come later") {
  for (auto ordering : kOrderings)
    for (std::uint32_t value : {5u, 6u}) {
      Rig rig{{.ordering = ordering}};
      rig.at(rig.a(0)) = value;
      rig.put(CondExec{.addr = rig.a(0), .reference = 5, .dwords = 8});
      rig.go();  // nothing to skip yet
      rig.put(Fence{.addr = rig.a(8), .value = 1});
      rig.go();
      rig.put(Fence{.addr = rig.a(16), .value = 1});
      rig.put(Fence{.addr = rig.a(24), .value = 1});
      rig.go();
      CHECK(rig.at(rig.a(8)) == (value == 5 ? 1 : 0xcdcdcdcd));
      CHECK(rig.at(rig.a(16)) == (value == 5 ? 1 : 0xcdcdcdcd));
      CHECK(rig.at(rig.a(24)) == 1);
    }
}

TEST_CASE("what is skipped need not be a packet") {
  Rig rig;
  rig.at(rig.a(0)) = 1;
  rig.put(CondExec{.addr = rig.a(0), .reference = 5, .dwords = 3});
  for (int i = 0; i < 3; ++i) rig.put_dword(0xffffffff);
  rig.put(Fence{.addr = rig.a(24), .value = 1});
  rig.go();
  CHECK(rig.at(rig.a(24)) == 1);
}

TEST_CASE("pre_exec selects engines") {
  for (std::uint32_t engine : {0u, 1u, 7u, 9u}) {
    RigOptions o;
    o.more.engine = EngineId{engine};
    Rig rig{o};
    rig.put(PreExec{.dwords = 4, .devices = 0b00000010});
    rig.put(Fence{.addr = rig.a(0), .value = 1});
    rig.put(Fence{.addr = rig.a(4), .value = 1});
    rig.go();
    CHECK(rig.at(rig.a(0)) == (engine % 8 == 1 ? 1 : 0xcdcdcdcd));
    CHECK(rig.at(rig.a(4)) == 1);
  }
}

TEST_CASE("indirect buffers nest, return, and end a skip") {
  for (auto ordering : kOrderings)
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Rig rig{{.ordering = ordering, .seed = seed}};
      std::vector<std::uint32_t> large(40, 9);
      // The inner buffer: a large write, and a skip beyond its end. The outer one calls it twice.
      auto* at = &rig.at(rig.b(0x1000));
      const auto* inner = at;
      at = encode_to(Write{.dst = rig.a(64), .data = large}, at);
      at = encode_to(Atomic{.addr = rig.a(0), .value = 1}, at);
      at = encode_to(CondExec{.addr = rig.a(8), .reference = 1, .dwords = 1000}, at);
      const auto inner_dwords = static_cast<std::uint32_t>(at - inner);
      auto* outer = &rig.at(rig.b(0x2000));
      at = encode_to(Indirect{.base = rig.b(0x1000), .dwords = inner_dwords}, outer);
      at = encode_to(Indirect{.base = rig.b(0x1000), .dwords = inner_dwords}, at);
      at = encode_to(Atomic{.addr = rig.a(0), .value = 100}, at);
      rig.at<std::uint64_t>(rig.a(0)) = 0;
      rig.put(Indirect{.base = rig.b(0x2000), .dwords = static_cast<std::uint32_t>(at - outer)});
      rig.put(Indirect{.base = rig.b(0x2000), .dwords = 0});
      rig.put(Atomic{.addr = rig.a(0), .value = 1000});
      rig.go();
      CHECK(rig.at<std::uint64_t>(rig.a(0)) == 1102);
      for (unsigned i = 0; i < 40; ++i) CHECK(rig.at(rig.a(64 + 4 * i)) == 9);
      CHECK(rig.at(rig.a(64 + 160)) == 0xcdcdcdcd);
      CHECK(rig.pipeline->counters().packets == 3 + 3 + 2 * 3);
    }
}

TEST_CASE("an indirect buffer that is not enabled is passed, holds up its queue, or stops it; nothing looks at it") {
  for (auto ordering : kOrderings)
    for (auto indirect : {IndirectBuffers::ignore, IndirectBuffers::stall, IndirectBuffers::fault}) {
      INFO(name(ordering) << " " << name(indirect));
      RigOptions o{.ordering = ordering};
      o.more.indirect = indirect;
      Rig rig{o};
      const GpuVa nowhere{0x700000};  // not mapped
      rig.put(Fence{.addr = rig.a(0), .value = 1});
      const auto at = rig.wptr;
      rig.put(Indirect{.base = nowhere, .dwords = 8});
      rig.put(Fence{.addr = rig.a(4), .value = 2});
      const auto p = rig.run();
      const bool ignored = indirect == IndirectBuffers::ignore, stopped = indirect == IndirectBuffers::fault;
      CHECK(p == (ignored ? Progress::idle : stopped ? Progress::stopped : Progress::waiting));
      if (ordering != Ordering::adversarial || !stopped) CHECK(rig.at(rig.a(0)) == 1);
      CHECK(rig.at(rig.a(4)) == (ignored ? 2 : 0xcdcdcdcd));
      CHECK((rig.pipeline->fault() != nullptr) == stopped);
      if (stopped) {
        CHECK(rig.pipeline->fault()->kind == FaultKind::bad_ib);
        CHECK(rig.pipeline->fault()->rule == "disabled");
        CHECK(rig.pipeline->fault()->va == nowhere);
        CHECK(describe(*rig.pipeline->fault()).ends_with("is not executed: the queue has them disabled"));
      }
      if (indirect != IndirectBuffers::stall) continue;
      CHECK_FALSE(rig.pipeline->ready());
      CHECK(rig.pipeline->waits_for() == GpuVa{});
      if (ordering == Ordering::strict) CHECK(rig.rptr == at);
      rig.put(Fence{.addr = rig.a(8), .value = 3});
      CHECK(rig.run() == Progress::waiting);  // more doorbells change nothing
      CHECK(rig.at(rig.a(8)) == 0xcdcdcdcd);
    }
}

TEST_CASE("hooks see each packet begin and end, once") {
  struct Log {
    std::vector<std::pair<std::uint64_t, char>> events;
  } log;
  for (auto ordering : kOrderings) {
    log.events.clear();
    RigOptions o{.ordering = ordering};
    o.more.hooks.context = &log;
    o.more.hooks.begin = [](void* l, const PacketEvent& e) noexcept {
      REQUIRE(e.view.info);
      static_cast<Log*>(l)->events.emplace_back(e.position, 'b');
    };
    o.more.hooks.end = [](void* l, const PacketEvent& e) noexcept {
      CHECK(e.queue == 7);
      static_cast<Log*>(l)->events.emplace_back(e.position, 'e');
    };
    Rig rig{o};
    rig.put(CopyLinear{.src = rig.a(0), .dst = rig.b(0), .bytes = 100});
    rig.put(PollMem{.addr = rig.a(1024), .func = Compare::eq, .reference = 1});
    rig.put(Fence{.addr = rig.b(1024), .value = 1});
    CHECK(rig.run() == Progress::waiting);
    rig.at(rig.a(1024)) = 1;
    CHECK(rig.drain() == Progress::idle);
    auto sorted = log.events;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted ==
          std::vector<std::pair<std::uint64_t, char>>{{0, 'b'}, {0, 'e'}, {28, 'b'}, {28, 'e'}, {52, 'b'}, {52, 'e'}});
    if (ordering == Ordering::strict) CHECK(log.events == sorted);
    CHECK(rig.pipeline->counters().bytes == 100);
  }
}

TEST_CASE("an indirect buffer that was prefetched serves no other packet") {
  // Prefetches the first and the third doorbell, so that the first packet is read from the ring after all.
  struct Some final : Chooser {
    int doorbells = 0;
    std::uint32_t choose(Choice what, std::uint32_t) noexcept override {
      return what == Choice::prefetch ? doorbells != 2 : what == Choice::front ? 1 : 0;
    }
  };
  // The packet changes after its buffer was prefetched: its length, then its address, then nothing.
  for (int change = 0; change < 3; ++change) {
    INFO(change);
    Some chooser;
    RigOptions o{.ordering = Ordering::adversarial};
    o.more.chooser = &chooser;
    Rig rig{o};
    auto at = &rig.at(rig.b(0));
    for (std::uint32_t i = 0; i < 2000; ++i) at = encode_to(Atomic{.addr = rig.a(0), .value = 1}, at);
    rig.at<std::uint64_t>(rig.a(0)) = 0;
    const auto ring = [&] {
      ++chooser.doorbells;
      rig.pipeline->doorbell(rig.wptr);
    };
    const std::uint32_t one = length(Atomic{});
    rig.put_unchecked(Indirect{.base = rig.b(0), .dwords = one});
    ring();
    rig.put(Nop{});
    ring();
    rig.put(Nop{});
    ring();
    if (change == 0) encode_to(Indirect{.base = rig.b(0), .dwords = 2000 * one}, rig.ring.data());
    if (change == 1) encode_to(Indirect{.base = rig.b(0) + 4 * one, .dwords = one}, rig.ring.data());
    encode_to(Atomic{.addr = rig.a(0), .value = 100}, &rig.at(rig.b(0)));
    encode_to(Atomic{.addr = rig.a(0), .value = 10}, &rig.at(rig.b(4 * one)));
    CHECK(rig.drain() == Progress::idle);
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == (change == 0 ? 2108u : change == 1 ? 10u : 1u));
  }
}

TEST_CASE("nothing is allocated once a pipeline stands") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering, .ring_dwords = 1024}};
    encode_to(Fence{.addr = rig.a(8192), .value = 1}, &rig.at(rig.b(0x8000)));
    const std::vector<std::uint32_t> data(30, 1);
    for (int round = 0; round < 50; ++round) {
      rig.put_unchecked(Indirect{.base = rig.b(0x8000), .dwords = 4});
      rig.put_unchecked(Write{.dst = rig.a(0), .data = data});
      for (std::uint64_t i = 0; i < 40; ++i)
        rig.put_unchecked(CopyLinear{.src = rig.a(4096 + 64 * i), .dst = rig.b(64 * i), .bytes = 64});
      rig.put_unchecked(Fence{.addr = rig.a(8192), .value = 2});
      const auto before = allocations;
      rig.pipeline->doorbell(rig.wptr);
      while (rig.pipeline->step(7) == Progress::progressed) {}
      CHECK(allocations == before);
      REQUIRE(rig.rptr == rig.wptr);
    }
  }
}

TEST_CASE("what is in flight when a pipeline goes never lands") {
  RigOptions o{.ordering = Ordering::adversarial};
  o.more.linger = 100;
  Rig rig{o};
  Expected untouched{rig.second};
  rig.put(CopyLinear{.src = rig.a(0), .dst = rig.b(0), .bytes = 64});
  rig.first.randomise(1);
  rig.pipeline->doorbell(rig.wptr);
  CHECK(rig.pipeline->step(1) == Progress::progressed);
  CHECK(rig.pipeline->step(50) == Progress::progressed);
  rig.pipeline.reset();
  CHECK(untouched.holds());
}
