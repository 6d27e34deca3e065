// SPDX-License-Identifier: MIT
#include "sdma/queue/ring.hpp"

#include "memory.hpp"
#include "sdma/packets/cache.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/queue.hpp"
#include "sdma/stream/reader.hpp"
#include "support/catch.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

// A build that compiles a ring once and declares it extern elsewhere instantiates every member.
template class sdma::Ring<sdma::Producers::one>;
template class sdma::Ring<sdma::Producers::many>;

using namespace sdma;
using test::kPoison;
using test::Memory;

namespace {

/// "fence nop:3": what an engine reads between two positions.
std::string packets(const Memory& m, std::uint64_t from, std::uint64_t to) {
  std::string out;
  while (from < to) {
    const auto offset = from / 4 % m.dwords.size();
    const auto n = std::min<std::size_t>((to - from) / 4, m.dwords.size() - offset);
    const auto v = Reader{std::span<const std::uint32_t>(m.dwords).subspan(offset, n)}.next();
    out += out.empty() ? "" : " ";
    out += v.whole() ? std::string(v.info->name) : "?";
    if (v.is<Nop>()) out += ":" + std::to_string(v.dwords.size());
    from += v.dwords.size() * 4;
  }
  return out;
}

template <Producers K> void use(Ring<K>& r, std::size_t dwords) {
  const auto s = r.reserve(dwords);
  REQUIRE(s);
  r.publish(*s, 0);
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("a slot is at least one dword and at most the ring less one dword", "", ((Producers K), K),
                       Producers::one, Producers::many) {
  Memory m(256);
  Ring<K> r(m.ring());
  CHECK((r.max_slot() == 255 && r.max_slot_anywhere() == 128));
  CHECK(r.reserve(0).error() == Errc::bad_argument);
  CHECK(r.reserve(256).error() == Errc::too_large);
  CHECK(r.reserve(~std::size_t{}).error() == Errc::too_large);
  CHECK(r.reserve(~std::size_t{} / 4 + 2).error() == Errc::too_large);
  CHECK(r.positions().reserved == 0);
  const auto s = r.reserve(255);
  REQUIRE(s);
  CHECK(s->dwords.data() == m.dwords.data());
  CHECK(s->dwords.size() == 255);
  CHECK(s->end == 1020);
  CHECK(r.reserve(1).error() == Errc::no_space);
  r.publish(*s, 0);
}

TEMPLATE_TEST_CASE_SIG("a second ring over the same memory is named", "", ((Producers K), K), Producers::one,
                       Producers::many) {
  Memory m(256);
  auto memory = m.ring();
  memory.caching = Caching::write_combining;  // wptr is not compared each time
  Ring<K> ours(memory), theirs(memory);
  SECTION("it has published less, last") {
    use(ours, 200);
    use(theirs, 60);
    CHECK(ours.submit(Nop{60}) == Errc::two_producers);
  }
  SECTION("it has published more, last") {
    use(ours, 100);
    use(theirs, 250);
    CHECK(ours.submit(Nop{100}) == Errc::ok);  // over theirs
    use(theirs, 2);
    CHECK(ours.submit(Nop{100}) == Errc::two_producers);
  }
  SECTION("its packets have been read") {
    for (int i = 0; i < 3; ++i) {
      use(theirs, 120);
      m.rptr = m.wptr;
    }
    use(ours, 100);
    CHECK(ours.reserve(200).error() == Errc::two_producers);
  }
  SECTION("a full ring is no second one") {
    use(ours, 200);
    const auto open = ours.reserve(10);
    REQUIRE(open);
    CHECK(ours.reserve(60).error() == Errc::no_space);
    ours.publish(*open, 0);
    CHECK(ours.submit(Nop{60}) == Errc::no_space);
  }
}

TEST_CASE("one producer notices a second one before it overwrites anything") {
  Memory m(256);
  Ring<> ours(m.ring()), theirs(m.ring());
  CHECK(ours.submit(Nop{8}) == Errc::ok);
  const auto open = ours.reserve(8);
  REQUIRE(open);
  CHECK(ours.submit(Nop{247}) == Errc::no_space);
  const auto wptr = m.wptr;
  CHECK(theirs.submit(Nop{1}) == Errc::two_producers);
  CHECK(theirs.submit(Nop{200}) == Errc::two_producers);
  CHECK(m.wptr == wptr);
  CHECK(m.dwords[8] == kPoison);
  ours.publish(*open, 0);
}

TEMPLATE_TEST_CASE_SIG("a slot that cannot begin at any later position of this lap waits for the start of the ring", "",
                       ((Producers K), K), Producers::one, Producers::many) {
  Memory m(256);
  Ring<K> r(m.ring());
  use(r, 100);
  m.rptr = 400;  // the ring is empty, at dword 100
  CHECK(r.reserve(156)->dwords.data() == m.dwords.data() + 100);
  SECTION("up to the position less one dword, the slot skips the end; with one dword more, it cannot") {
    Memory n(256);
    Ring<K> q(n.ring());
    use(q, 200);
    n.rptr = 800;
    SECTION("skips") {
      const auto s = q.reserve(199);
      REQUIRE(s);
      CHECK((s->dwords.data() == n.dwords.data() && s->begin == 800 && s->end == 1024 + 199 * 4));
    }
    SECTION("pads") {
      CHECK(q.reserve(200).error() == Errc::no_space);
      CHECK((n.wptr == 1024 && n.doorbell == 1024 && q.positions().reserved == 1024));
      CHECK(packets(n, 800, 1024) == "nop:56");
      CHECK(q.reserve(200).error() == Errc::no_space);  // not read yet, and nothing more is published
      CHECK(n.doorbell == 1024);
      n.rptr = 1024;
      const auto s = q.reserve(255);
      REQUIRE(s);
      CHECK((s->dwords.data() == n.dwords.data() && s->begin == 1024 && s->end == 1024 + 255 * 4));
      q.publish(*s, 0);
      CHECK(packets(n, 1024, n.doorbell) == "nop:255");
    }
    SECTION("the NOPs need room, too") {
      n.rptr = 0;
      CHECK(q.reserve(200).error() == Errc::no_space);
      CHECK(n.doorbell == 800);
      n.rptr = 4;
      CHECK(q.reserve(200).error() == Errc::no_space);
      CHECK(n.doorbell == 1024);
    }
    SECTION("the caller may have the end of the ring") {
      const auto s = q.reserve_or_rest(200);
      REQUIRE(s);
      CHECK((s->dwords.size() == 56 && s->begin == 800 && s->end == 1024 && n.doorbell == 800));
      q.publish(*s, 0);
      n.rptr = 1024;
      CHECK(q.reserve_or_rest(200)->dwords.size() == 200);
    }
  }
}

TEST_CASE("one producer: while a slot is open, a large slot publishes nothing") {
  Memory m(256);
  Ring<> r(m.ring());
  use(r, 150);
  m.rptr = 600;
  const auto open = *r.reserve(8);
  CHECK(r.reserve(200).error() == Errc::no_space);
  CHECK((m.doorbell == 600 && r.positions().reserved == 632));
  r.publish(open, 0);
  CHECK(r.reserve(200).error() == Errc::no_space);
  CHECK(m.doorbell == 1024);
}

TEMPLATE_TEST_CASE_SIG("a dword always stays free", "", ((Producers K), K), Producers::one, Producers::many) {
  Memory m(256);
  Ring<K> r(m.ring());
  use(r, 128);
  CHECK(r.reserve(128).error() == Errc::no_space);
  use(r, 127);
  CHECK(r.reserve(1).error() == Errc::no_space);
  m.rptr = 4;
  CHECK(r.reserve(2).error() == Errc::no_space);
  use(r, 1);
  CHECK(r.reserve(1).error() == Errc::no_space);
  CHECK(r.positions().reserved == 1024);
  m.rptr = m.wptr;
  use(r, 128);
}

TEMPLATE_TEST_CASE_SIG("a slot fits exactly before the end, or skips to the beginning", "", ((Producers K), K),
                       Producers::one, Producers::many) {
  Memory m(256);
  Ring<K> r(m.ring());
  use(r, 100);
  use(r, 100);
  m.rptr = 800;
  SECTION("exactly") {
    const auto s = r.reserve(56);
    REQUIRE(s);
    CHECK((s->begin == 800 && s->end == 1024 && s->dwords.data() == m.dwords.data() + 200));
    r.publish(*s, 0);
    CHECK(packets(m, 800, 1024) == "nop:56");
    CHECK(r.reserve(1)->dwords.data() == m.dwords.data());
  }
  SECTION("one dword more") {
    const auto s = r.reserve(57);
    REQUIRE(s);
    CHECK((s->begin == 800 && s->end == 1024 + 57 * 4 && s->dwords.data() == m.dwords.data()));
    encode_to(Fence{}, s->dwords.data());
    r.publish(*s, 4);
    CHECK(packets(m, 800, s->end) == "nop:56 fence nop:53");
    CHECK(m.doorbell == s->end);
  }
  SECTION("what is skipped needs room too") {
    m.rptr = 200;
    CHECK(r.reserve(57).error() == Errc::no_space);
    m.rptr = 57 * 4;
    CHECK(r.reserve(57).error() == Errc::no_space);
    m.rptr = 57 * 4 + 4;
    CHECK(r.reserve(57).has_value());
  }
}

TEST_CASE("what is left of a slot becomes NOPs, several where one is too short") {
  Memory m(131072);
  Ring<> r(m.ring());
  auto s = r.reserve(65536);
  REQUIRE(s);
  r.publish(*s, 0);
  CHECK(packets(m, 0, s->end) == "nop:16384 nop:16384 nop:16384 nop:16384");
  s = r.reserve(16389);
  REQUIRE(s);
  encode_to(Fence{}, s->dwords.data());
  r.publish(*s, 4);
  CHECK(packets(m, s->begin, s->end) == "fence nop:16384 nop:1");
  s = r.reserve(5);
  REQUIRE(s);
  encode_to(Fence{}, s->dwords.data());
  r.publish(*s, 4);
  CHECK(packets(m, s->begin, s->end) == "fence nop:1");
}

TEMPLATE_TEST_CASE_SIG("a ring is continued where it stands", "", ((Producers K), K), Producers::one, Producers::many) {
  const auto start = GENERATE(std::uint64_t{20}, (1ull << 32) - 8, (1ull << 40) + 1020, (1ull << 57) - 4);
  Memory m(256, start);
  m.rptr -= 16;
  Ring<K> r(m.ring());
  const auto p = r.positions();
  CHECK((p.read == start - 16 && p.committed == start && p.reserved == start));
  for (int i = 0; i < 40; ++i) {
    const auto s = r.reserve(60);
    REQUIRE(s);
    CHECK((s->end / 4 - 60) % 256 == static_cast<std::size_t>(s->dwords.data() - m.dwords.data()));
    r.publish(*s, 0);
    CHECK((m.wptr == s->end && m.doorbell == s->end));
    m.rptr = s->end;
  }
}

TEST_CASE("submit writes all packets and rings once, or does nothing") {
  Memory m(256);
  Ring<> r(m.ring());
  const Fence fence{.addr = GpuVa{0x1000}, .value = 7};
  const auto untouched = [&](std::uint64_t at) {
    const auto p = r.positions();
    return p.reserved == at && p.committed == at && m.wptr == at && m.doorbell == at &&
           m.dwords[at / 4 % 256] == test::kPoison;
  };
  CHECK(r.submit(fence, Fence{.addr = GpuVa{2}}) == Errc::bad_packet);
  CHECK(untouched(0));
  CHECK(r.submit(fence, Nop{252}) == Errc::too_large);
  CHECK(untouched(0));
  CHECK(r.submit(fence, Trap{.context = 5}) == Errc::ok);
  CHECK(packets(m, 0, m.doorbell) == "fence trap");
  CHECK(r.submit(Nop{100}) == Errc::ok);
  CHECK(r.submit(Nop{100}) == Errc::ok);
  CHECK(r.submit(fence, Nop{60}) == Errc::no_space);
  CHECK(untouched(206 * 4));
}

TEST_CASE("submit writes the packets of the ring's generation, and refuses those of another") {
  Memory m(256), later(256);
  auto memory = later.ring();
  memory.generation = Generation::v6_0;
  Ring<> r(m.ring()), other(memory);
  CHECK((r.generation() == kDefaultGeneration && other.generation() == Generation::v6_0));
  const Fence cached{.addr = GpuVa{0x1000}, .value = 7, .mtype = 3};
  const Gcr flush{.gl2_writeback = true};
  CHECK(r.submit(cached) == Errc::bad_packet);  // 4.4.2 has no such field,
  CHECK(r.submit(flush) == Errc::bad_packet);   // and no such packet
  CHECK(r.submit<Generation::v6_0>(cached, flush) == Errc::wrong_generation);
  CHECK(other.submit<kDefaultGeneration>(Nop{}) == Errc::wrong_generation);
  CHECK((m.doorbell == 0 && later.doorbell == 0 && r.positions().reserved == 0));
  const auto want = encode<Generation::v6_0>(cached);
  const auto bytes = (length<Generation::v6_0>(cached) + length<Generation::v6_0>(flush)) * 4;
  for (const auto times : {1u, 2u}) {
    CHECK((times == 1 ? other.submit<Generation::v6_0>(cached, flush) : other.submit(cached, flush)) == Errc::ok);
    const auto at = std::span<const std::uint32_t>(later.dwords).subspan((times - 1) * bytes / 4);
    CHECK(std::equal(want.begin(), want.end(), at.begin()));
    CHECK(decode<Generation::v6_0, Gcr>(at.subspan(want.size())).gl2_writeback);
    CHECK(later.doorbell == bytes * times);
  }
}

TEST_CASE("a ring takes the packets of its generation, whichever it is") {
  for (std::size_t i = 0; i < kGenerationCount; ++i) {
    const auto g = static_cast<Generation>(i);
    Memory m(256);
    auto memory = m.ring();
    memory.generation = g;
    Ring<Producers::many> r(memory);
    const CopyLinear copy{.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = 1 << 22}, longer{.bytes = (1 << 22) + 1};
    CHECK(r.submit(copy, Trap{.context = 7}) == Errc::ok);
    CHECK(decode<CopyLinear>(m.dwords, g).bytes == copy.bytes);
    CHECK(m.doorbell == (length(copy, g) + length(Trap{}, g)) * 4);
    CHECK(r.submit(longer) == (max_bytes<CopyLinear>(g) < longer.bytes ? Errc::bad_packet : Errc::ok));
    CHECK(r.submit(Gcr{}) == (g < Generation::v5_0 ? Errc::bad_packet : Errc::ok));
  }
}

TEST_CASE("many producers: slots become visible in the order of reserve") {
  Memory m(4096);
  Ring<Producers::many> r(m.ring());
  const auto a = *r.reserve(8), b = *r.reserve(8), c = *r.reserve(8);
  r.publish(b);
  CHECK(m.doorbell == 0);
  CHECK(r.positions().committed == 0);
  r.publish(a, 0);
  CHECK((m.doorbell == b.end && m.wptr == b.end && r.positions().committed == b.end));
  r.publish(c);
  CHECK(m.doorbell == c.end);
}

TEST_CASE("many producers: so many slots may be open at once, whatever room there is") {
  Memory m(4096);
  using Many = Ring<Producers::many>;
  Many r(m.ring());
  for (int round = 0; round < 10; ++round) {  // so that tickets come round too
    std::vector<Slot> open;
    for (std::uint32_t i = 0; i < Many::kOpenSlots; ++i) open.push_back(*r.reserve(2));
    CHECK(r.reserve(2).error() == Errc::no_space);
    for (auto i = open.size(); i-- > 1;) r.publish(open[i], 0);
    CHECK(r.reserve(2).error() == Errc::no_space);
    CHECK(m.doorbell == open[0].begin);
    r.publish(open[0], 0);
    CHECK(m.doorbell == open.back().end);
    m.rptr = m.doorbell;
  }
}

TEMPLATE_TEST_CASE_SIG("a null doorbell is not rung; a doorbell call gets the new wptr, which is stored by then", "",
                       ((Producers K), K), Producers::one, Producers::many) {
  Memory m(256);
  struct Rung {
    const Memory& m;
    std::vector<std::uint64_t> calls{};
    bool stored_before = true;
  } rung{m};
  auto memory = m.ring();
  const bool both = GENERATE(false, true);
  if (!both) memory.doorbell = nullptr;
  memory.on_doorbell_context = &rung;
  memory.on_doorbell = [](void* c, std::uint64_t wptr) noexcept {
    auto& k = *static_cast<Rung*>(c);
    k.calls.push_back(wptr);
    k.stored_before = k.stored_before && k.m.wptr == wptr && (k.m.doorbell == wptr || k.m.doorbell == 0);
  };
  Ring<K> r(memory);
  use(r, 8);
  use(r, 3);
  CHECK(rung.calls == std::vector<std::uint64_t>{32, 44});
  CHECK(rung.stored_before);
  CHECK(m.doorbell == (both ? 44 : 0));
}

TEST_CASE("many producers: one doorbell call for all slots that become visible together") {
  Memory m(256);
  std::vector<std::uint64_t> calls;
  auto memory = m.ring();
  memory.on_doorbell_context = &calls;
  memory.on_doorbell = [](void* c, std::uint64_t wptr) noexcept {
    static_cast<std::vector<std::uint64_t>*>(c)->push_back(wptr);
  };
  Ring<Producers::many> r(memory);
  const auto a = *r.reserve(8), b = *r.reserve(8);
  r.publish(b, 0);
  CHECK(calls.empty());
  r.publish(a, 0);
  CHECK(calls == std::vector<std::uint64_t>{64});
}

TEST_CASE("memory that cannot be a ring is refused with a reason, and every reserve says so") {
  Memory m(512);
  auto memory = m.ring();
  std::string_view part;
  const auto refuses = [&](std::string_view why) {
    part = why;
    CHECK_THAT(std::string(validate(memory)), Catch::Contains(std::string(part)));
    Ring<> one(memory);
    Ring<Producers::many> many(memory);
    CHECK(one.reserve(4).error() == Errc::bad_ring);
    CHECK(one.reserve(0).error() == Errc::bad_ring);
    CHECK(many.reserve(4).error() == Errc::bad_ring);
    CHECK(one.submit(Nop{1}) == Errc::bad_ring);
    CHECK((one.positions().reserved == 0 && many.positions().read == 0));
  };
  CHECK(validate(memory).empty());
  SECTION("none") {
    memory = {};
    refuses("smaller than 1 KiB");
  }
  SECTION("small") {
    memory.dwords = m.dwords.first(255);
    refuses("smaller than 1 KiB");
  }
  SECTION("odd") {
    memory.dwords = m.dwords.first(384);
    refuses("not a power of two");
  }
  SECTION("askew") {
    memory.dwords = m.dwords.subspan(1, 256);
    refuses("not aligned to 256 bytes");
  }
  SECTION("shortest submission") {
    memory.least_dwords = GENERATE(0u, 3u, 512u);
    refuses("the shortest submission is not a power of two");
  }
  SECTION("no rptr") {
    memory.rptr = nullptr;
    refuses("rptr is missing");
  }
  SECTION("no wptr") {
    memory.wptr = nullptr;
    refuses("wptr is missing");
  }
  SECTION("askew doorbell") {
    memory.doorbell = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(&m.doorbell) + 4);
    refuses("doorbell is not aligned to 8 bytes");
  }
  SECTION("wptr behind rptr") {
    memory.rptr = &m.wptr - 1;
    refuses("belong to the firmware");
  }
  SECTION("wptr is rptr") {
    memory.wptr = &m.rptr;
    refuses("belong to the firmware");
  }
  SECTION("vram") {
    memory.caching = Caching::vram;
    refuses("accept_vram");
  }
  SECTION("askew wptr") {
    m.wptr = 6;
    refuses("not a multiple of 4");
  }
  SECTION("huge") {
    m.wptr = m.rptr = 1ull << 57;
    refuses("2^57");
  }
  SECTION("ahead") {
    m.rptr = 4;
    refuses("rptr is ahead of wptr");
  }
  SECTION("a ring behind") {
    m.wptr = 2048;
    refuses("by a whole ring or more");
  }
}

TEMPLATE_TEST_CASE_SIG("where submissions have a shortest length, each doorbell is a whole number of it", "",
                       ((Producers K), K), Producers::one, Producers::many) {
  Memory m(256);
  auto memory = m.ring();
  memory.least_dwords = least_submission(90000);
  REQUIRE(memory.least_dwords == 64);
  std::vector<std::uint64_t> bells;
  memory.on_doorbell_context = &bells;
  memory.on_doorbell = [](void* all, std::uint64_t at) noexcept { static_cast<decltype(bells)*>(all)->push_back(at); };
  Ring<K> r(memory);
  CHECK(r.max_slot() == 192);
  CHECK(r.reserve(193).error() == Errc::too_large);
  CHECK(r.reserve(0).error() == Errc::bad_argument);
  REQUIRE(r.submit(Fence{.addr = GpuVa{64}, .value = 1}) == Errc::ok);
  CHECK(packets(m, 0, 256) == "fence nop:60");
  auto s = r.reserve(65);
  REQUIRE(s);
  CHECK((s->dwords.size() == 65 && s->begin == 256 && s->end == 768));
  r.publish(*s, 0);
  CHECK(packets(m, 256, 768) == "nop:65 nop:63");
  CHECK(r.reserve(64).error() == Errc::no_space);  // it would fill the ring
  m.rptr = 768;
  CHECK(r.reserve(192).error() == Errc::no_space);  // first the end of the ring
  CHECK(bells == std::vector<std::uint64_t>{256, 768, 1024});
  m.rptr = 1024;
  s = r.reserve(192);
  REQUIRE(s);
  CHECK(s->dwords.data() == m.dwords.data());
  r.publish(*s, 192);
  CHECK(bells.back() == 1024 + 768);
  CHECK(least_submission(90402) == 1);
  CHECK(least_submission(90012) == 64);
  CHECK(least_submission(90006) == 1);
}

TEST_CASE("vram that is asked for, and the other kinds of memory, work") {
  const auto caching = GENERATE(Caching::write_back, Caching::write_combining, Caching::vram);
  Memory m(256);
  auto memory = m.ring();
  memory.caching = caching;
  memory.accept_vram = true;
  Ring<> r(memory);
  CHECK(r.submit(Nop{8}) == Errc::ok);
  CHECK(m.doorbell == 32);
}

#ifndef NDEBUG
TEST_CASE("one producer that publishes out of order is stopped") {
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGABRT, SIG_DFL);  // Catch's handler would report a test of its own
    if (!std::freopen("/dev/null", "w", stderr)) _exit(1);
    Memory m(256);
    Ring<> r(m.ring());
    const auto a = *r.reserve(8), b = *r.reserve(8);
    r.publish(b, 0);
    r.publish(a, 0);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
#endif

TEST_CASE("a queue is given back once, by whoever holds it last") {
  std::vector<std::uint64_t> gone;
  const auto make = [&](std::uint64_t id) {
    return Queue(
        Lease([](void* v, std::uint64_t i) noexcept { static_cast<std::vector<std::uint64_t>*>(v)->push_back(i); },
              &gone, id),
        {}, GpuId{1}, EngineId{2});
  };
  {
    auto a = make(1), b = make(2);
    CHECK((a && a.id() == 1 && a.gpu() == GpuId{1} && a.engine() == EngineId{2}));
    a = std::move(b);
    CHECK(gone == std::vector<std::uint64_t>{1});
    auto& same = a;
    a = std::move(same);
    CHECK((a && a.id() == 2));
    Queue c(std::move(a));
    c.reset();
    c.reset();
    CHECK_FALSE(c);
  }
  CHECK(gone == std::vector<std::uint64_t>{1, 2});
}
