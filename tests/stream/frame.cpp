// SPDX-License-Identifier: MIT
#include "sdma/stream/fixed_frame.hpp"

#include "queue/memory.hpp"
#include "sdma/packets/cache.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/hsa.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <thread>

namespace {
/// A packet whose address comes after a part that may be missing.
struct Parted {
  bool wait{};
  sdma::GpuVa word{}, dst{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Parted> =
    packet("parted", op(201, 0), dwords(5).optional(1, 2, "wait"), "wait for a word, or do not",
           bits<&Parted::wait>("wait", 0, 16, 16, "the word is there"), addr64<&Parted::word>("word", 1, "the word"),
           addr64<&Parted::dst>("dst", 3, "destination"));

using namespace sdma;
using test::Memory;

namespace {

enum : std::uint16_t { kEpoch, kSource, kTarget, kWord, kContext, kData, kCount };

template <class Fn> void each_generation(Fn fn) {
  for (std::size_t i = 0; i < kGenerationCount; ++i) {
    const auto g = static_cast<Generation>(i);
    INFO(name_of(g));
    fn(g);
  }
}

struct Room {
  std::array<std::uint32_t, 256> dwords{};
  std::array<Relocation, 16> changes{};
  Frame frame;
  explicit Room(Generation g = kDefaultGeneration, std::size_t most = 16)
      : frame(dwords, std::span(changes).first(most), g) {}
};
/// A frame of one fence, to `addr`.
struct FenceFrame : Room {
  explicit FenceFrame(GpuVa addr, Generation g = kDefaultGeneration) : Room(g) {
    frame.writer().put(Fence{.addr = addr, .value = 7});
    REQUIRE(frame.finish() == Errc::ok);
  }
};

struct Values {
  std::uint64_t epoch, source, target, word, context, data, count;
};
/// What Room `r` holds with parameters, written with their values.
template <class W> void write(W& w, const Values& v) {
  w.put(PollMem{.addr = GpuVa{v.word}, .func = Compare::ge, .reference = static_cast<std::uint32_t>(v.epoch + 1)});
  w.copy({.src = GpuVa{v.source}, .dst = GpuVa{v.target} + 0x40, .bytes = 9 << 20});
  w.put(Fill{.dst = GpuVa{v.target - 0x80},
             .data = static_cast<std::uint32_t>(v.data),
             .bytes = static_cast<std::uint32_t>(v.count + 4)});
  w.put(Atomic{.addr = GpuVa{v.word} + 8, .value = v.data});
  complete_with_fence(w, GpuVa{v.word} + 0x10, static_cast<std::uint32_t>(v.epoch));
  w.put(Trap{.context = static_cast<std::uint32_t>(v.context)});
}
void build(Frame& f) {
  f.bind<&PollMem::reference>(kEpoch);
  f.bind<&Fill::data>(kData);
  f.bind<&Fill::bytes>(kCount);
  f.bind<&Atomic::value>(kData);
  f.bind<&Fence::value>(kEpoch);
  f.bind<&Trap::context>(kContext);
  write(f.writer(), {0, parameter(kSource).value, parameter(kTarget).value, parameter(kWord).value, 0, 0, 0});
}

/// Sets each address of `p` to `value(i)`, where i counts them, and returns how many there are.
template <class P, class Value> std::uint16_t set_addresses(P& p, Value value) {
  std::uint16_t n = 0;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t M>() {
      using F = sdma::detail::MemberOf<P, M>;
      if constexpr (std::is_same_v<typename F::Type, GpuVa> && grammar::layout<P>.fields[M].width() == 64)
        p.*F::member = GpuVa{value(n++)};
    };
    static_cast<void>(one);  // a packet may have no field
    (one.template operator()<I>(), ...);
  }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
  return n;
}
template <class... P, class Fn> void each_packet_of(PacketList<P...>, Fn fn) { (fn.template operator()<P>(), ...); }

}  // namespace

TEST_CASE("the exact size is known before anything is written") {
  struct {
    std::int64_t value = 1;
    std::uint64_t event_mailbox_ptr = 0;
    std::uint32_t event_id = 3;
    std::uint64_t start_ts = 0, end_ts = 0;
  } s;
  each_generation([&](Generation g) {
    for (const bool sleeps : {false, true}) {
      s.event_mailbox_ptr = sleeps ? 0x1000 : 0;
      const auto all = [&](auto& w) {
        hsa::depend(w, s, {.halves = hsa::Halves::by_value});
        w.copy({.src = GpuVa{0x1000}, .dst = GpuVa{0x9000}, .bytes = 9 << 20});
        w.append(std::array<std::uint32_t, 3>{});
        hsa::complete_signal(w, s, {.stamp_end = true});
      };
      std::array<std::uint32_t, 256> d{};
      AnyWriter w{d, {g}};
      all(w);
      REQUIRE(w.error() == Errc::ok);
      CHECK(dwords_of(g, all) == w.position_dwords());
    }
  });
  CHECK(dwords_of(Generation::v4_0, [](auto& w) { w.put(Gcr{}); }) == 0);
  constexpr auto n = dwords_of(Generation::v4_2, [](auto& w) { w.copy({.bytes = 8 << 20}); });
  static_assert(n == 21);
}

TEST_CASE("a relocated frame holds what a Writer writes with those values, in every generation") {
  each_generation([](Generation g) {
    Room r(g);
    build(r.frame);
    REQUIRE(r.frame.finish() == Errc::ok);
    CHECK(r.frame.parameters() == 7);
    for (const std::uint64_t i : {0u, 1u, 0xffffu}) {
      const Values v{i, 0x7f00'0000'1003 + i, 0x7f00'1000'0080, 0x7f00'2000'0000 + i * 8, i, 0x1'0000 - i, i * 4};
      const std::uint64_t given[] = {v.epoch, v.source, v.target, v.word, v.context, v.data, v.count};
      REQUIRE(r.frame.relocate(given) == Errc::ok);
      std::array<std::uint32_t, 256> d{};
      AnyWriter w{d, {g}};
      write(w, v);
      REQUIRE(w.error() == Errc::ok);
      CHECK(std::vector(r.frame.dwords().begin(), r.frame.dwords().end()) ==
            std::vector(w.written().begin(), w.written().end()));
    }
  });
}

TEST_CASE("a frame that is relocated in its slot is the frame that relocate and submit make") {
  each_generation([](Generation g) {
    Memory m(1024);
    auto memory = m.ring();
    memory.generation = g;
    Ring<> ring(memory);
    Room r(g);
    build(r.frame);
    REQUIRE(r.frame.finish() == Errc::ok);
    const std::uint64_t given[] = {1, 0x7f00'0000'1003, 0x7f00'1000'0080, 0x7f00'2000'0000, 5, 6, 60};
    REQUIRE(r.frame.relocate(given) == Errc::ok);
    const std::vector<std::uint32_t> want(r.frame.dwords().begin(), r.frame.dwords().end());
    Room again(g);
    build(again.frame);
    REQUIRE(again.frame.finish() == Errc::ok);
    REQUIRE(again.frame.submit(ring, given) == Errc::ok);
    CHECK(std::vector(m.dwords.begin(), m.dwords.begin() + static_cast<long>(want.size())) == want);
    CHECK(m.doorbell == want.size() * 4);
    auto wrong = std::to_array(given);
    wrong[kWord] += 2;
    CHECK(again.frame.submit(ring, wrong) == Errc::bad_argument);
    CHECK(again.frame.submit(ring, std::span(given).first(6)) == Errc::bad_argument);
    CHECK(ring.positions().reserved == want.size() * 4);
  });
}

TEST_CASE("neighbouring addresses of copies are moved in runs, however many there are") {
  for (std::uint16_t copies = 1; copies < 70; ++copies)
    for (const bool apart : {false, true}) {
      INFO(copies << (apart ? ", a fence between them" : ""));
      Memory m(2048), n(2048);
      Ring<> ring(m.ring()), other(n.ring());
      std::vector<std::uint32_t> dwords(1024);
      std::vector<Relocation> changes(200);
      std::vector<std::uint64_t> values(200);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0x7f00'0000'0000 + i * 0x1'0001'0000;
      Frame f(dwords, changes);
      const auto write = [&](auto& w, auto address) {
        w.put(Fence{.addr = address(0), .value = 1});
        for (std::uint16_t i = 0; i < copies; ++i) {
          w.copy({.src = address(static_cast<std::uint16_t>(2 * i + 1)),
                  .dst = address(static_cast<std::uint16_t>(2 * i + 2)) + (i == 11 ? 64 : 0),
                  .bytes = 64});
          if (apart && i % 3 == 1) w.put(Fence{.addr = address(0) + 8, .value = i});
        }
      };
      write(f.writer(), [](std::uint16_t k) { return parameter(k); });
      REQUIRE(f.finish() == Errc::ok);
      Writer w{std::span(n.dwords)};
      write(w, [&](std::uint16_t k) { return GpuVa{values[k]}; });
      REQUIRE(w.error() == Errc::ok);
      REQUIRE(f.submit(ring, values) == Errc::ok);
      CHECK(std::equal(w.written().begin(), w.written().end(), m.dwords.begin()));
      CHECK(f.submit(other) == Errc::bad_argument);  // its own memory is not relocated
      REQUIRE(f.relocate(values) == Errc::ok);
      CHECK(std::equal(w.written().begin(), w.written().end(), f.dwords().begin(), f.dwords().end()));
    }
}

namespace {
/// A step with fields of every width: 64 bits alone and in pairs, 32, 30 and 28.
struct Step {
  static constexpr void build(auto& frame) {
    auto& w = frame.writer();
    frame.template bind<&PollMem::reference>(0);
    (void)acquire(w, parameter(1), 1);
    frame.template bind<&CopyLinear::bytes>(5);
    (void)w.put(CopyLinear{.src = parameter(2), .dst = parameter(3), .bytes = 1});
    (void)w.copy({.src = parameter(3) + 64, .dst = parameter(2), .bytes = 4096});
    (void)complete_with_atomic(w, parameter(4));
    frame.template bind<&Trap::context>(6);
    (void)w.put(Trap{.context = 0});
  }
};
}  // namespace

TEMPLATE_TEST_CASE_SIG("a frame that is known at compile time is the same", "", ((Generation G), G), Generation::v4_0,
                       Generation::v4_4_2, Generation::v6_0) {
  using Fixed = FixedFrame<Step, G>;
  static_assert(Fixed::kParameters == 7);
  Memory m(256);
  auto memory = m.ring();
  memory.generation = G;
  Ring<> ring(memory);
  Room r(G);
  Step::build(r.frame);
  REQUIRE(r.frame.finish() == Errc::ok);
  REQUIRE(r.frame.dwords().size() == Fixed::kDwords);
  const std::array<std::uint64_t, 7> values{
      41, 0x7f00'2000'0000, 0x7f00'0000'1003, 0x7f00'1000'0080, 0x7f00'2000'0008, 4095, 77};
  REQUIRE(r.frame.relocate(values) == Errc::ok);
  REQUIRE(Fixed::submit(ring, values) == Errc::ok);
  CHECK(std::equal(r.frame.dwords().begin(), r.frame.dwords().end(), m.dwords.begin()));
  CHECK(m.doorbell == Fixed::kDwords * 4);
  const auto wrong = [&](std::size_t parameter, std::uint64_t value) {
    auto bad = values;
    bad[parameter] = value;
    CHECK(r.frame.relocate(bad) == Errc::bad_argument);
    CHECK(Fixed::submit(ring, bad) == Errc::bad_argument);
  };
  wrong(0, 0xffff'ffff);       // the poll waits for one more
  wrong(1, 0x7f00'2000'0002);  // the poll's word
  wrong(4, 0x7f00'2000'0004);  // the atomic's
  wrong(5, 1u << 30);          // 30 bits
  wrong(6, 1u << 28);          // 28 bits
  CHECK(ring.positions().reserved == Fixed::kDwords * 4);
  constexpr auto kOther = G == Generation::v6_0 ? Generation::v4_4_2 : Generation::v6_0;
  CHECK(FixedFrame<Step, kOther>::submit(ring, values) == Errc::wrong_generation);
}

TEST_CASE("every address of every packet can be a parameter") {
  std::size_t tried = 0;
  each_generation([&](Generation g) {
    each_packet_of(Packets{}, [&]<class P>() {
      if constexpr (!std::is_same_v<P, Indirect>) {
        if (!exists<P>(g)) return;
        INFO(grammar::layout<P>.name);
        P p{};
        if constexpr (requires { p.bytes = 64; }) p.bytes = 64;
        const auto n = set_addresses(p, [](std::uint16_t i) { return parameter(i).value + 64; });
        if (n == 0 || !fits(p, g)) return;
        Room r(g);
        r.frame.writer().put(Nop{3});
        r.frame.writer().put(p);
        REQUIRE(r.frame.finish() == Errc::ok);
        const std::uint64_t given[] = {0x10000, 0x20000, 0x30000, 0x40000, 0x50000, 0x60000};
        REQUIRE(n <= std::size(given));
        REQUIRE(r.frame.relocate(given) == Errc::ok);
        set_addresses(p, [&](std::uint16_t i) { return given[i] + 64; });
        std::array<std::uint32_t, 64> d{};
        auto* end = encode_to(p, d.data(), g);
        CHECK(std::equal(d.data(), end, r.dwords.begin() + 3));
        tried += n;
      }
    });
  });
  CHECK(tried > 300);
}

TEST_CASE("an address before a payload, and a field of a part, are found") {
  Room r(Generation::v7_0);
  const std::uint32_t data[] = {1, 2, 3};
  r.frame.writer().put(Write{.dst = parameter(0), .data = data});
  r.frame.bind<&CopyLinear::dcc>(1);
  r.frame.writer().put(CopyLinear{.src = parameter(0), .bytes = 4, .cpv = true, .dcc = 1});
  REQUIRE(r.frame.finish() == Errc::ok);
  const std::uint64_t given[] = {0x1000, 6};
  REQUIRE(r.frame.relocate(given) == Errc::ok);
  const auto copy = decode<CopyLinear>(r.frame.dwords().subspan(7), Generation::v7_0);
  CHECK((copy.src == GpuVa{0x1000} && copy.dcc == 7));
  // No aligned field is stored minus one: the sum that is stored shows whether it is aligned.
  each_packet_of(Packets{}, []<class P>() {
    for (const auto& f : grammar::layout<P>.fields) CHECK((f.alignment == 1 || f.bias == 0));
  });
}

TEST_CASE("a field after a part that is missing is found where it is") {
  for (const bool wait : {false, true}) {
    Room r;
    r.frame.writer().put(Parted{.wait = wait, .dst = parameter(0)});
    REQUIRE(r.frame.finish() == Errc::ok);
    const std::uint64_t given[] = {0x7f12'3456'7000};
    REQUIRE(r.frame.relocate(given) == Errc::ok);
    REQUIRE(r.frame.dwords().size() == (wait ? 5u : 3u));
    CHECK(decode<Parted>(r.frame.dwords()).dst == GpuVa{given[0]});
  }
}

TEST_CASE("a misaligned sum is refused where the packet has no rule of its own") {
  Room r;
  r.frame.writer().put(Fence{.addr = parameter(0), .value = 1});
  REQUIRE(r.frame.finish() == Errc::ok);
  for (const std::uint64_t at : {0x1001u, 0x1002u, 0x1004u})
    CHECK(r.frame.relocate(std::span(&at, 1)) == (at % 4 == 0 ? Errc::ok : Errc::bad_argument));
}

TEST_CASE("a wrong relocation is refused, and the frame cannot be submitted until a right one") {
  Memory m(256);
  Ring<> ring(m.ring());
  Room r;
  build(r.frame);
  CHECK(r.frame.submit(ring) == Errc::bad_argument);  // not finished
  REQUIRE(r.frame.finish() == Errc::ok);
  CHECK(r.frame.submit(ring) == Errc::bad_argument);  // holds placeholders
  std::array<std::uint64_t, 7> v{1, 0x1000, 0x2000, 0x3000, 5, 6, 60};
  const auto wrong = [&](std::size_t parameter, std::uint64_t value) {
    REQUIRE(r.frame.relocate(v) == Errc::ok);
    auto bad = v;
    bad[parameter] = value;
    CHECK(r.frame.relocate(bad) == Errc::bad_argument);
    CHECK(r.frame.submit(ring) == Errc::bad_argument);
    CHECK(r.frame.submit_indirect(ring, GpuVa{0x1000}) == Errc::bad_argument);
  };
  wrong(kWord, 0x3004);              // the atomic's
  wrong(kWord, 0x3002);              // the poll's
  wrong(kEpoch, 0xffff'ffff);        // the poll waits for one more
  wrong(kContext, 1u << 28);         // 28 bits
  wrong(kCount, 1u << 30);           // 30 bits, minus one
  wrong(kCount, ~std::uint64_t{3});  // no bytes
  CHECK(r.frame.relocate(std::span(v).first(6)) == Errc::bad_argument);
  CHECK(r.frame.submit(ring) == Errc::bad_argument);
  CHECK((m.doorbell == 0 && ring.positions().reserved == 0));
  REQUIRE(r.frame.relocate(v) == Errc::ok);
  CHECK(r.frame.submit(ring) == Errc::ok);
}

TEST_CASE("a relocation keeps the rules of its packet") {
  Room r;
  r.frame.writer().broadcast({.src = parameter(0), .dst1 = parameter(1), .dst2 = parameter(2), .bytes = 64});
  REQUIRE(r.frame.finish() == Errc::ok);
  const std::uint64_t apart[] = {1, 2, 3}, equal[] = {1, 34, 2};
  CHECK(r.frame.relocate(apart) == Errc::bad_argument);
  CHECK(r.frame.relocate(equal) == Errc::ok);
}

TEST_CASE("what cannot become a frame is an error of finish") {
  Room r(kDefaultGeneration, 2);
  auto& w = r.frame.writer();
  SECTION("a packet that does not fit") {
    CHECK(w.put(Gcr{}) == Errc::bad_packet);
    CHECK(r.frame.finish() == Errc::bad_packet);
  }
  SECTION("an INDIRECT, which has to end at a certain place of the ring") {
    CHECK(w.put(Indirect{.base = GpuVa{32}, .dwords = 8}) == Errc::bad_packet);
    CHECK(r.frame.finish() == Errc::bad_packet);
  }
  SECTION("more dwords than there is room for") {
    CHECK(w.put(Nop{257}) == Errc::no_space);
    CHECK(r.frame.finish() == Errc::no_space);
  }
  SECTION("more changes than there is room for") {
    w.copy({.src = parameter(0), .dst = parameter(1), .bytes = 64});
    w.put(Fence{.addr = parameter(0)});
    CHECK(r.frame.finish() == Errc::no_space);
  }
  SECTION("a bind whose packet never comes") {
    r.frame.bind<&Fence::value>(0);
    w.put(Trap{});
    CHECK(r.frame.finish() == Errc::bad_argument);
  }
  SECTION("a bind of a field that the generation lacks") {
    r.frame.bind<&Fence::mtype>(0);
    w.put(Fence{});
    CHECK(r.frame.finish() == Errc::bad_argument);
  }
  SECTION("a bind of what decides the packet's length") {
    r.frame.bind<&Nop::dwords>(0);
    w.put(Nop{4});
    CHECK(r.frame.finish() == Errc::bad_argument);
  }
  SECTION("a parameter of 256 or more") {
    r.frame.bind<&Fence::value>(kMostParameters);
    CHECK(r.frame.finish() == Errc::bad_argument);
  }
  SECTION("more binds than may wait") {
    for (int i = 0; i < 9; ++i) r.frame.bind<&Fence::value>(0);
    CHECK(r.frame.finish() == Errc::bad_argument);
  }
  const std::uint64_t any[8]{};
  CHECK(r.frame.relocate(any) == Errc::bad_argument);
}

TEMPLATE_TEST_CASE_SIG("a frame goes into a ring as one slot, also where the ring ends or is full", "",
                       ((Producers K), K), Producers::one, Producers::many) {
  Memory m(256);
  Ring<K> ring(m.ring());
  Room r;
  for (std::uint32_t i = 0; i < 25; ++i) r.frame.writer().put(Fence{.addr = GpuVa{0x1000}, .value = i});
  REQUIRE(r.frame.finish() == Errc::ok);
  REQUIRE(r.frame.dwords().size() == 100);
  const auto at = [&](std::size_t dword) {
    return std::equal(r.frame.dwords().begin(), r.frame.dwords().end(), m.dwords.begin() + static_cast<long>(dword));
  };
  CHECK(r.frame.submit(ring) == Errc::ok);
  CHECK(r.frame.submit(ring) == Errc::ok);
  CHECK((m.doorbell == 800 && m.wptr == 800 && at(0) && at(100)));
  CHECK(r.frame.submit(ring) == Errc::no_space);
  CHECK((m.doorbell == 800 && ring.positions().reserved == 800));
  std::fill_n(m.dwords.begin(), 100, test::kPoison);
  m.rptr = 404;
  CHECK(r.frame.submit(ring) == Errc::ok);  // after 56 NOPs
  CHECK((m.doorbell == 1024 + 400 && at(0)));
  CHECK(Reader{std::span<const std::uint32_t>(m.dwords).subspan(200)}.next().dwords.size() == 56);
}

TEST_CASE("a ring refuses frames of another generation") {
  each_generation([](Generation g) {
    Memory m(256);
    auto memory = m.ring();
    memory.generation = Generation::v6_0;
    Ring<> ring(memory);
    const FenceFrame f(GpuVa{0x1000}, g);
    const auto want = g == Generation::v6_0 ? Errc::ok : Errc::wrong_generation;
    CHECK(f.frame.submit(ring) == want);
    CHECK((m.doorbell != 0) == (want == Errc::ok));
    FenceFrame buffer(GpuVa{0x1000}, g);
    REQUIRE(buffer.frame.finish(kIndirectMultiple) == Errc::ok);
    CHECK(buffer.frame.submit_indirect(ring, GpuVa{0x2000}) == want);
  });
}

TEST_CASE("an indirect frame is padded to 8 dwords, and its INDIRECT ends on 8 dwords of the ring") {
  each_generation([](Generation g) {
    Room r(g);
    r.frame.bind<&Fence::value>(0);
    r.frame.writer().put(Fence{.addr = parameter(1), .value = 0});
    REQUIRE(r.frame.finish(kIndirectMultiple) == Errc::ok);
    const std::uint64_t given[] = {5, 0x4000};
    REQUIRE(r.frame.relocate(given) == Errc::ok);
    REQUIRE(r.frame.dwords().size() == 8);
    CHECK(decode<Fence>(r.frame.dwords(), g).value == 5);
    CHECK(decode<Nop>(r.frame.dwords().subspan(4), g).dwords == 4);
    Memory m(256);
    auto memory = m.ring();
    memory.generation = g;
    Ring<> ring(memory);
    for (int i = 0; i < 20; ++i) {
      const auto begin = static_cast<std::size_t>(m.doorbell / 4);
      REQUIRE(r.frame.submit_indirect(ring, GpuVa{0x8000}) == Errc::ok);
      const auto end = static_cast<std::size_t>(m.doorbell / 4);
      std::size_t at = begin;
      while ((m.dwords[at % 256] & 0xff) == 0) at += decode<Nop>(m.dwords.subspan(at % 256), g).dwords;
      const auto p = decode<Indirect>(m.dwords.subspan(at % 256), g);
      CHECK((p.base == GpuVa{0x8000} && p.dwords == 8));
      CHECK((at + 6) % 8 == 0);
      for (at += 6; at < end; ++at) CHECK((m.dwords[at % 256] & 0xff) <= 1);
      m.rptr = m.wptr;
      if (i % 3 == 0) REQUIRE(ring.submit(Nop{static_cast<std::uint32_t>(i % 7 + 1)}) == Errc::ok);
      m.rptr = m.wptr;
    }
    CHECK(r.frame.submit_indirect(ring, GpuVa{0x8004}) == Errc::bad_packet);  // 32-byte aligned
    CHECK(FenceFrame(GpuVa{0x1000}, g).frame.submit_indirect(ring, GpuVa{0x8000}) == Errc::bad_packet);  // 4 dwords
  });
}

TEST_CASE("threads submit one frame to one ring") {
  constexpr std::size_t kTimes = 200;
  Memory m(1024);
  Ring<Producers::many> ring(m.ring());
  const FenceFrame f(GpuVa{0x1000});
  // Catch2 counts assertions of one thread at a time.
  std::atomic<std::size_t> submitted{0};
  const auto submit = [&] {
    for (std::size_t i = 0; i < kTimes / 2; ++i) submitted += f.frame.submit(ring) == Errc::ok;
  };
  std::thread other(submit);
  submit();
  other.join();
  CHECK(submitted == kTimes);
  CHECK(m.doorbell == kTimes * 16);
  for (std::size_t i = 0; i < kTimes; ++i)
    CHECK(std::equal(f.frame.dwords().begin(), f.frame.dwords().end(), m.dwords.begin() + static_cast<long>(i * 4)));
}
