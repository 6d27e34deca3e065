// SPDX-License-Identifier: MIT
// The copy path of integration/runtime on software engines of several generations, in every order: bytes, gangs,
// pending bytes, recovery.
#include "rig.hpp"

#include "sdma/device/soft.hpp"

#include <algorithm>
#include <span>
#include <thread>

using namespace rig;
using namespace runtime;

namespace {

std::unique_ptr<SoftDevice> open(std::uint32_t gfx = 90402, Ordering o = Ordering::strict, std::uint64_t seed = 0) {
  auto node = *mi300x(2);
  for (auto& g : node.gpus) g.gfx = gfx;
  return *SoftDevice::open({.topology = node, .ordering = o, .seed = seed});
}

/// What a box should do, byte by byte.
void copy_box(const Box& b, GpuVa from, const std::byte* src, GpuVa to, std::byte* dst) {
  for (std::uint64_t z = 0; z < b.z; ++z)
    for (std::uint64_t y = 0; y < b.y; ++y)
      for (std::uint64_t x = 0; x < b.x; ++x) dst[b.dst.at(x, y, z) - to] = src[b.src.at(x, y, z) - from];
}

/// A box that waits for `held`, on each side of a buffer. Its signal falls when it is complete.
struct Held {
  Signals signals;
  explicit Held(Device& d, std::size_t n) : signals(d, n + 1) {}
  std::vector<SignalView> after() const { return {view(signals[signals.size() - 1])}; }
  void release() { __atomic_store_n(&signals[signals.size() - 1].value, 0, __ATOMIC_RELEASE); }
};

}  // namespace

TEST_CASE("copies, fills, batches and boxes of every generation have their bytes, and no others", "[path]") {
  const auto gfx = GENERATE(90000u, 90008u, 90010u, 90402u, 100100u, 100300u, 110000u, 120000u);
  const auto seed = GENERATE(0u, 3u);
  CAPTURE(gfx, seed);
  const auto d = open(gfx, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  constexpr std::size_t kBytes = 6 << 20;
  Host src(*d, kBytes), dst(*d, kBytes);
  Signals s(*d, 4);
  Lane lane(*d, 1, {.atomics = seed == 0, .xgmi_to_host = seed != 0});
  src.fill(seed + 1);
  std::vector<std::byte> expected(kBytes);

  const LinearCopy copies[] = {{src.va() + 1, dst.va() + 2, 4'845'605}, {src.va(), dst.va() + 5'000'000, 3}};
  std::copy_n(src.begin() + 1, copies[0].bytes, expected.begin() + 2);
  std::copy_n(src.begin(), 3, expected.begin() + 5'000'000);
  REQUIRE(lane.path.submit({.work = std::span(copies), .out = view(s[0]), .stamps = true}, far()));

  const LinearFill fill{dst.va() + 5'000'100, 0x01020304, 251};
  for (std::size_t i = 0; i < 4 * 251; ++i) expected[5'000'100 + i] = std::byte(4 - i % 4);
  REQUIRE(lane.path.submit({.work = fill, .out = view(s[1])}, far()));

  // Odd widths and starts, several tiles in x, several planes, and rows that are too far apart for a packet's pitch.
  const auto at = src.va() + 64, to = dst.va() + 5'100'000;
  const Box boxes[] = {{{at, 100, 1000, 3, 2, 1}, {to, 52, 520, 1, 0, 0}, 47, 7, 3},
                       {{at, 70'004, 0, 1, 0, 0}, {to + 8192, 70'004, 0, 2, 1, 0}, 70'001, 2, 1},
                       {{at, 64, 128, 32, 0, 0}, {to + 400'000, 64, 256, 0, 1, 0}, 32, 2, 17},
                       {{at, 1'600'000, 0, 17, 0, 0}, {to + 420'000, 36, 0, 5, 0, 0}, 31, 3, 1},
                       {{at, 8'400'000, 0, 16, 0, 0}, {to + 430'000, 8'400'000, 0, 0, 0, 0}, 1616, 1, 1}};
  for (std::size_t i = 0; i < std::size(boxes); ++i) {
    copy_box(boxes[i], src.va(), src.begin(), dst.va(), expected.data());
    s[2].value = 1;
    const auto n = lane.path.submit({.work = boxes[i], .out = view(s[2])}, far());
    REQUIRE(n);
    CHECK(complete(s[2]));
    CHECK(lane.path.completed() == *n);
  }
  CHECK(complete(s[0]));
  CHECK(complete(s[1]));
  CHECK(s[0].start_ts != 0);
  CHECK(s[0].start_ts <= s[0].end_ts);
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
  CHECK(lane.path.pending_bytes() == 0);
  CHECK(std::equal(expected.begin(), expected.end(), dst.begin()));
}

TEST_CASE("operations of a batch wait, move and post each on its own", "[path]") {
  using How = Operation::Post::How;
  const auto seed = GENERATE(range(0u, 6u));
  const auto d = open(90402, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  Host src(*d, 1 << 16), dst(*d, 1 << 16);
  src.fill(seed + 1);
  Signals s(*d, 5);
  Lane lane(*d, 1);
  const auto word = [&](std::size_t i) { return view(s[i]).value_word; };
  std::vector<std::byte> expected(1 << 16), original(src.begin(), src.begin() + (1 << 16));
  s[0].value = 0x7700'0000'0000;  // the bits beside the mask
  s[1].value = 5;
  s[2].value = s[3].value = 10;
  s[4].value = 1;
  const Operation all[] = {{.src = src.va(),
                            .dst = dst.va() + 1,
                            .bytes = 1000,
                            .wait = {.word = word(0), .func = Compare::ge, .value = 3, .mask = 0xff},
                            .post = {.word = word(1), .how = How::write, .value = 0x1'2345'6789}},
                           {.kind = Operation::Kind::broadcast,
                            .src = src.va() + 2000,
                            .dst = dst.va() + 4096,
                            .dst2 = dst.va() + 8192,
                            .bytes = 500,
                            .post = {.word = word(2), .how = How::add, .value = 7}},
                           {.kind = Operation::Kind::swap,
                            .src = src.va() + 16384,
                            .dst = src.va() + 32768,
                            .bytes = 4096,
                            .wait = {.word = word(1), .value = 0x1'2345'6789},
                            .post = {.word = word(3), .how = How::subtract, .value = 4}}};
  REQUIRE(lane.path.submit({.work = std::span(all), .out = view(s[4])}, far()));
  CHECK(lane.path.pending_bytes() == 5596);
  CHECK(lane.path.wait_idle(past()) == Errc::timed_out);
  __atomic_store_n(&s[0].value, 0x7700'0000'0003, __ATOMIC_RELEASE);
  CHECK(complete(s[4]));
  CHECK(load(s[1]) == 0x1'2345'6789);
  CHECK(load(s[2]) == 17);
  CHECK(load(s[3]) == 6);
  std::copy_n(original.begin(), 1000, expected.begin() + 1);
  for (const auto at : {4096, 8192}) std::copy_n(original.begin() + 2000, 500, expected.begin() + at);
  CHECK(std::equal(expected.begin(), expected.end(), dst.begin()));
  std::swap_ranges(original.begin() + 16384, original.begin() + 16384 + 4096, original.begin() + 32768);
  CHECK(std::equal(original.begin(), original.end(), src.begin()));
}

TEST_CASE("an operation that no packet can do is refused, and nothing is written", "[path]") {
  const auto e = *engine_of(90402);
  const GpuVa a{0x10000}, b{0x20000}, w{0x30000};
  const auto refused = [](const Engine& on, const Operation& o) {
    const Operation all[] = {o};
    const Command c{.work = std::span(all)};
    const auto n = dwords_of(on, c);
    std::uint32_t room[64];
    AnyWriter out{room, {on.generation}};
    const auto error = encode(out, on, c);
    // What is measured is what is written.
    if (n && error == Errc::ok) CHECK(*n == out.position_dwords());
    return !n || error != Errc::ok;
  };
  const Operation plain{.src = a, .dst = b, .bytes = 64};
  CHECK_FALSE(refused(e, plain));
  const auto with_wait = [&](Operation::Wait x) {
    auto o = plain;
    return o.wait = x, o;
  };
  const auto with_post = [&](Operation::Post x) {
    auto o = plain;
    return o.post = x, o;
  };
  CHECK_FALSE(refused(e, with_wait({w, Compare::eq, 1ull << 40 | 3})));
  CHECK_FALSE(refused(e, with_wait({w, Compare::lt, 5ull << 32, 0xffull << 32})));
  CHECK(refused(e, with_wait({w, Compare::ge, 1})));          // 64 bits
  CHECK(refused(e, with_wait({w, Compare::eq, 256, 0xff})));  // never
  CHECK(refused(e, with_wait({w + 4, Compare::eq, 1, 0xff})));
  CHECK_FALSE(refused(e, with_post({w, Operation::Post::How::add, 1})));
  const auto fences = *engine_of(90402, {.atomics = false});
  CHECK(refused(fences, with_post({w, Operation::Post::How::add, 1})));
  CHECK_FALSE(refused(fences, with_post({w, Operation::Post::How::write, 1})));
  CHECK(refused(e, with_post({w + 4, Operation::Post::How::write, 1})));
  CHECK(refused(e, {.src = a, .dst = b, .bytes = 0}));
  CHECK(refused(e, {.kind = Operation::Kind::broadcast, .src = a, .dst = b, .dst2 = b + 4096 + 1, .bytes = 64}));
  CHECK(refused(e, {.kind = Operation::Kind::swap, .src = a + 32, .dst = b, .bytes = 64}));
  CHECK(refused(*engine_of(90010), {.kind = Operation::Kind::swap, .src = a, .dst = b, .bytes = 64}));
}

TEST_CASE("a gang is one copy with one completion, whatever its length", "[path]") {
  const auto seed = GENERATE(range(0u, 6u));
  const auto bytes = GENERATE(std::uint64_t{1}, std::uint64_t{65}, std::uint64_t{200'001});
  const auto d = open(90402, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  Host src(*d, 1 << 20), dst(*d, 1 << 20);
  src.fill(seed);
  Held held(*d, 4);
  auto& s = held.signals;
  const HostLink link{.atomics = seed % 2 == 0};
  Lane a(*d, 2, link), b(*d, 3, link), c(*d, 4, link);
  for (std::size_t i = 1; i < 3; ++i) s[i].value = 2;
  CopyPath* const paths[] = {&a.path, &b.path, &c.path};
  const SignalView items[] = {view(s[1]), view(s[2])};
  const auto after = held.after();
  REQUIRE(submit({paths, items}, {src.va(), dst.va(), bytes}, {.after = after, .out = view(s[0])}, far()));
  CHECK(a.path.pending_bytes() + b.path.pending_bytes() + c.path.pending_bytes() == bytes);
  held.release();
  CHECK(complete(s[0]));
  CHECK(std::equal(src.begin(), src.begin() + bytes, dst.begin()));
  for (std::size_t i = 1; i < 3; ++i) CHECK((load(s[i]) == 0) == (bytes > 64 * i));
  for (auto* p : paths) CHECK(p->pending_bytes() == 0);
  CHECK(submit({paths, std::span(items).first(1)}, {src.va(), dst.va(), bytes}, {.out = view(s[3])}, far()).error() ==
        Errc::bad_argument);
}

TEST_CASE("pending bytes are exact while threads submit, and a completion is counted before it is seen", "[path]") {
  constexpr std::size_t kThreads = 4, kEach = 40;
  const auto seed = GENERATE(0u, 1u, 2u);
  const auto d = open(90402, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  Host src(*d, 1 << 16), dst(*d, 1 << 16);
  Held held(*d, kThreads * kEach);
  Lane lane(*d, 1);
  const auto after = held.after();
  const auto bytes = [](std::size_t i) { return 100 + i * 7; };
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < kThreads * kEach; i += kThreads) {
        const LinearCopy copy[] = {{src.va() + i, dst.va() + 300 * i, bytes(i) % 300 + 1}};
        const auto before = lane.path.pending_bytes();
        if (!lane.path.submit({.work = std::span(copy), .after = after, .out = view(held.signals[i])}, far()) ||
            lane.path.pending_bytes() < before + copy[0].bytes)
          ++failed;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(failed == 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kThreads * kEach; ++i) sum += bytes(i) % 300 + 1;
  CHECK(lane.path.pending_bytes() == sum);
  CHECK(lane.path.wait_idle(past()) == Errc::timed_out);
  held.release();
  for (std::size_t i = 0; i < kThreads * kEach; ++i) {
    CHECK(complete(held.signals[i]));
    const auto left = lane.path.pending_bytes();
    CHECK(left <= sum);
    sum = left;
  }
  CHECK(sum == 0);
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
}

TEST_CASE("commands wait for room in the ring", "[path]") {
  const auto d = open();
  Host src(*d, 1 << 16), dst(*d, 1 << 16);
  Held held(*d, 200);
  Lane lane(*d, 1, {}, 1024);
  const auto after = held.after();
  const LinearCopy copy[] = {{src.va(), dst.va(), 100}};
  std::size_t n = 0;
  while (lane.path.submit({.work = std::span(copy), .after = after, .out = view(held.signals[n])}, past())) ++n;
  CHECK(n >= 4);
  CHECK(lane.path.pending_bytes() == 100 * n);
  held.release();
  for (std::size_t i = n; i < 200; ++i)
    REQUIRE(lane.path.submit({.work = std::span(copy), .out = view(held.signals[i])}, far()));
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
  for (std::size_t i = 0; i < 200; ++i) CHECK(load(held.signals[i]) == 0);
}

TEST_CASE("what is longer than the ring is divided, and has one completion", "[path]") {
  const auto seed = GENERATE(0u, 1u, 2u);
  const auto d = open(90402, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  constexpr std::size_t kBytes = 1 << 20;
  Host src(*d, kBytes), dst(*d, kBytes);
  src.fill(seed + 5);
  Held held(*d, 4);
  Lane lane(*d,
            *[] {
              auto e = engine_of(90402);
              e->longest_copy = 1000;
              e->longest_fill = 512;
              return e;
            }(),
            {.engine = EngineId{1}, .ring_bytes = 1024});
  const auto after = held.after();
  const auto expect = [&](const std::vector<std::byte>& bytes) {
    return std::equal(bytes.begin(), bytes.end(), dst.begin());
  };
  std::vector<std::byte> expected(kBytes);

  // One long copy, one too long for a part among short ones, a batch of short ones.
  std::vector<LinearCopy> work{{src.va() + 3, dst.va() + 1, 300'001}};
  for (std::size_t i = 0; i < 40; ++i)
    work.push_back({src.va() + i, dst.va() + 400'000 + 30'000 * (i > 20) + 100 * i, i == 20 ? 30'000u : 90u});
  for (const auto& c : work)
    std::copy_n(src.begin() + (c.src - src.va()), c.bytes, expected.begin() + static_cast<long>(c.dst - dst.va()));
  std::thread release([&] { held.release(); });
  const auto n = lane.path.submit(
      {.work = std::span<const LinearCopy>(work), .after = after, .out = view(held.signals[0]), .stamps = true}, far());
  release.join();
  REQUIRE(n);
  CHECK(*n > 20);
  CHECK(complete(held.signals[0]));
  CHECK(held.signals[0].start_ts != 0);
  CHECK(held.signals[0].start_ts <= held.signals[0].end_ts);
  CHECK(expect(expected));

  const LinearFill fill{dst.va() + 500'000, 0x07070707, 10'001};
  std::fill_n(expected.begin() + 500'000, 40'004, std::byte{7});
  REQUIRE(lane.path.submit({.work = fill, .out = view(held.signals[1])}, far()));
  CHECK(complete(held.signals[1]));
  CHECK(load(held.signals[1]) == 0);
  CHECK(expect(expected));
  CHECK(lane.path.pending_bytes() == 0);

  const std::vector<SignalView> many(30, view(held.signals[2]));
  CHECK(lane.path.submit({.work = fill, .after = many, .out = view(held.signals[3])}, far()).error() ==
        Errc::too_large);
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
  CHECK(load(held.signals[3]) == 1);
}

TEST_CASE("what cannot be done is refused, and what was submitted goes on", "[path]") {
  const auto d = open();
  Host src(*d, 1 << 16), dst(*d, 1 << 16);
  Signals s(*d, 3);
  Lane lane(*d, 1);
  const auto refused = [&](auto work, SignalView out) {
    return lane.path.submit({.work = work, .out = out}, far()).error();
  };
  const LinearCopy none[] = {{src.va(), dst.va(), 0}}, wraps[] = {{src.va(), GpuVa{~0ull - 3}, 100}};
  auto odd = view(s[0]), unknown = view(s[0]);
  odd.value_word = odd.value_word + 4;
  unknown.event_mailbox_ptr = 0x1000;
  unknown.event_id = 1u << 28;
  const LinearCopy good[] = {{src.va(), dst.va(), 100}};
  CHECK(refused(std::span<const LinearCopy>{}, view(s[0])) == Errc::bad_argument);
  CHECK(refused(std::span(none), view(s[0])) == Errc::bad_argument);
  CHECK(refused(std::span(wraps), view(s[0])) == Errc::bad_packet);
  CHECK(refused(LinearFill{dst.va() + 2, 1, 5}, view(s[0])) == Errc::bad_packet);
  CHECK(refused(LinearFill{dst.va(), 1, 0}, view(s[0])) == Errc::bad_argument);
  CHECK(refused(std::span(good), odd) == Errc::bad_packet);
  CHECK(refused(std::span(good), unknown) == Errc::bad_packet);
  const Box box{{src.va(), 64, 0, 0, 0, 0}, {dst.va(), 64, 0, 0, 0, 0}, 8, 2, 1};
  for (const auto& change : std::initializer_list<void (*)(Box&)>{
           [](Box& b) { b.src.base = b.src.base + 2; }, [](Box& b) { b.dst.pitch = 66; }, [](Box& b) { b.x = 65; },
           [](Box& b) { b.z = 2; }, [](Box& b) { b.y = 0; }, [](Box& b) { b.y = b.z = ~0ull; }}) {
    auto bad = box;
    change(bad);
    CHECK(refused(bad, view(s[0])) == Errc::bad_argument);
  }
  CHECK(lane.path.submit({.work = std::span(good), .out = view(s[1])}, far()));
  CHECK(complete(s[1]));
  CHECK(load(s[0]) == 1);
  CHECK(lane.path.pending_bytes() == 0);
}

TEST_CASE("after a fault, every command that is not complete is reported, and the path goes on", "[path]") {
  const auto seed = GENERATE(range(0u, 8u));
  const auto d = open(90402, seed == 0 ? Ordering::strict : Ordering::adversarial, seed);
  Host src(*d, 1 << 16), dst(*d, 1 << 16);
  Signals s(*d, 6);
  src.fill(seed);
  Lane lane(*d, 1);
  const auto copy = [&](GpuVa to, std::size_t i) {
    const LinearCopy work[] = {{src.va() + i * 100, to, 100}};
    return lane.path.submit({.work = std::span(work), .out = view(s[i])}, far());
  };
  REQUIRE(copy(dst.va(), 0));
  CHECK(complete(s[0]));
  REQUIRE(lane.path.wait_idle(far()) == Errc::ok);
  REQUIRE(copy(GpuVa{0x1000}, 1));  // no memory
  const auto last = copy(dst.va() + 200, 2);
  REQUIRE(last);
  REQUIRE(d->wait_fault(far()));
  CHECK(lane.path.recover(lane.queue.memory(), [](auto) {}) == Errc::bad_argument);
  REQUIRE(lane.path.stop(far()) == Errc::ok);
  CHECK(copy(dst.va(), 3).error() == Errc::stopped);
  CHECK(lane.path.wait(*last, far()) == Errc::stopped);
  CHECK(lane.path.wait_idle(far()) == Errc::stopped);
  CHECK(lane.path.pending_bytes() == 200);

  lane.queue = *d->create_queue({.engine = EngineId{1}});
  std::vector<CopyPath::Unfinished> lost;
  REQUIRE(lane.path.recover(lane.queue.memory(), [&](const CopyPath::Unfinished& u) { lost.push_back(u); }) ==
          Errc::ok);
  REQUIRE(lost.size() == 2);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    CHECK(lost[i].signal == reinterpret_cast<std::uintptr_t>(&s[i + 1]));
    CHECK_FALSE(lost[i].moved);
    CHECK(load(s[i + 1]) == 1);
  }
  CHECK(lane.path.pending_bytes() == 0);
  CHECK(lane.path.wait(*last, far()) == Errc::stopped);
  const auto next = copy(dst.va() + 400, 4);
  REQUIRE(next);
  CHECK(*next > *last);
  CHECK(lane.path.wait(*next, far()) == Errc::ok);
  CHECK(complete(s[4]));
  CHECK(std::equal(src.begin() + 400, src.begin() + 500, dst.begin() + 400));
}

TEST_CASE("a command whose completion its queue did not execute has moved its bytes", "[path]") {
  const auto d = open();
  Host src(*d, 4096), dst(*d, 4096);
  Signals s(*d, 2);
  src.fill(1);
  Lane lane(*d, 1);
  auto out = view(s[0]);
  out.value_word = GpuVa{0x1000};  // the completion is what faults
  const LinearCopy work[] = {{src.va(), dst.va(), 4096}};
  REQUIRE(lane.path.submit({.work = std::span(work), .out = out}, far()));
  REQUIRE(d->wait_fault(far()));
  REQUIRE(lane.path.stop(far()) == Errc::ok);
  lane.queue = *d->create_queue({.engine = EngineId{1}});
  std::vector<CopyPath::Unfinished> lost;
  REQUIRE(lane.path.recover(lane.queue.memory(), [&](const CopyPath::Unfinished& u) { lost.push_back(u); }) ==
          Errc::ok);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].moved);
  CHECK(std::equal(src.begin(), src.end(), dst.begin()));
}

TEST_CASE("a wide box is cut into tiles of large elements, and the rest", "[path]") {
  const Box box{{GpuVa{0x1000}, 70'004, 0, 0, 0, 0}, {GpuVa{0x900000}, 70'004, 0, 0, 0, 0}, 70'001, 2, 1};
  std::vector<CopySubwindow> tiles;
  const auto keep = [&](const CopySubwindow& p) { return tiles.push_back(p), Errc::ok; };
  REQUIRE(check(box) == Errc::ok);
  REQUIRE(each_tile(box, Generation::v4_4_2, keep) == Errc::ok);
  REQUIRE(tiles.size() == 2);
  CHECK((tiles[0].element_log2 == 2 && tiles[0].x == 16384 && tiles[0].src_pitch == 17'501));
  CHECK((tiles[1].element_log2 == 0 && tiles[1].x == 70'001 - 65'536 && tiles[1].src_pitch == 70'004));
  CHECK(tiles[1].dst == GpuVa{0x910000});
}

TEST_CASE("what an engine has read and not completed stays pending, as much as it may be", "[path]") {
  test::RingBytes ring;
  std::uint64_t word = 7;
  CopyPath path(*engine_of(90402), ring.memory(), Signal{.word = &word, .va = GpuVa{0x1000}});
  CHECK(word == 0);
  const LinearCopy copy[] = {{GpuVa{0x2000}, GpuVa{0x3000}, 100}}, wraps[] = {{GpuVa{0x2000}, GpuVa{~0ull}, 100}};
  const auto submit = [&](std::span<const LinearCopy> work) {
    const auto n = path.submit({.work = work, .out = {.value_word = GpuVa{0x4000}, .handle = 9}}, past());
    ring.read_to(ring.published());
    return n;
  };
  CHECK(submit(std::span(wraps)).error() == Errc::bad_packet);
  std::uint64_t n = 0;
  while (submit(std::span(copy))) REQUIRE(++n < 1000);
  CHECK(n > 2 * test::RingBytes::kDwords / 19);
  CHECK(path.pending_bytes() == 100 * (n + 1));
  word = n / 2 + 1;  // the engine's fence
  CHECK(path.pending_bytes() == 100 * (n - n / 2));
  CHECK(submit(std::span(copy)));

  REQUIRE(path.stop(past()) == Errc::ok);
  test::RingBytes other;
  std::uint64_t lost = 0;
  REQUIRE(path.recover(other.memory(), [&](const CopyPath::Unfinished& u) { lost += u.signal == 9 && !u.moved; }) ==
          Errc::ok);
  CHECK(lost == n - n / 2 + 1);
  CHECK(path.pending_bytes() == 0);
}

TEST_CASE("a command that could not be encoded has no signal to report", "[path]") {
  test::RingBytes ring, other;
  std::uint64_t word = 0;
  CopyPath path(*engine_of(90402), ring.memory(), Signal{.word = &word, .va = GpuVa{0x1000}});
  const LinearCopy wraps[] = {{GpuVa{0x2000}, GpuVa{~0ull}, 100}};
  CHECK(path.submit({.work = std::span(wraps), .out = {.value_word = GpuVa{0x4000}}}, past()).error() ==
        Errc::bad_packet);
  CHECK(path.wait_idle(past()) == Errc::timed_out);
  REQUIRE(path.stop(past()) == Errc::ok);
  REQUIRE(path.recover(other.memory(), [](const CopyPath::Unfinished&) { FAIL("nothing was submitted"); }) == Errc::ok);
}
