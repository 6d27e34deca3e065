// SPDX-License-Identifier: MIT
// The cost of a checked batch: [poll, 7 copies, atomic], 63 dwords, reserved, written and published, compared with
// unchecked hand-written stores of the same dwords to the same ring, and with a memcpy of the bytes. All run together,
// with interleaved repetitions, and the best of each counts. Compare the ratios.
//
//   bench-ring            nanoseconds per batch, and ratios; exit code 1 if they write different dwords
//   bench-ring NAME N     runs one of them N times, to count its instructions (callgrind, perf stat)
#include "sdma/queue/ring.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/writer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

using namespace sdma;

namespace {

constexpr std::size_t kDwords = 16384, kBatch = 6 + 7 * 7 + 8;

// The compiler must not know the address of a queue's memory, nor who else accesses it.
template <class T> T* hidden(T* p) {
  asm volatile("" : "+r"(p)::"memory");
  return p;
}

alignas(256) std::uint32_t ring_dwords[kDwords];
alignas(64) std::uint64_t rptr_word;
alignas(64) std::uint64_t wptr_word;
alignas(64) std::uint64_t doorbell_word;

struct Bare {
  std::uint32_t* dwords = hidden(ring_dwords);
  std::uint64_t *rptr = hidden(&rptr_word), *wptr = hidden(&wptr_word), *doorbell = hidden(&doorbell_word);

  RingMemory memory() const {
    return {
        .dwords = {dwords, kDwords}, .rptr = rptr, .wptr = wptr, .doorbell = doorbell, .caching = Caching::write_back};
  }
  void consume() const { *rptr = *wptr; }
};

/// As in a typical runtime: checks no value, only the space, and puts a NOP at the ring's end.
[[gnu::always_inline]] inline std::uint32_t* by_hand(std::uint32_t* d, std::uint64_t a) {
  const auto wide = [&](int i, std::uint64_t v) { std::memcpy(d + i, &v, 8); };
  d[0] = 0xb0000008, wide(1, a), d[3] = 0, d[4] = 0xffffffff, d[5] = 0x0fff0004;
  d += 6;
  for (int k = 0; k < 7; ++k, d += 7) d[0] = 1, d[1] = 63, d[2] = 0, wide(3, a), wide(5, a + 64);
  d[0] = 0x5e00000a, wide(1, a), wide(3, ~0ull), wide(5, 0), d[7] = 0;
  return d + 8;
}
[[gnu::always_inline]] inline std::uint32_t* room_by_hand(const Bare& m) {
  auto at = *m.wptr / 4 % kDwords;
  if (*m.wptr + kBatch * 4 - *m.rptr >= kDwords * 4) return nullptr;
  if (at + kBatch > kDwords) {
    m.dwords[at] = static_cast<std::uint32_t>(kDwords - at - 1) << 16;
    order::Native::store(m.wptr, *m.wptr + (kDwords - at) * 4, std::memory_order_relaxed);
    at = 0;
  }
  return m.dwords + at;
}
[[gnu::always_inline]] inline void ring_by_hand(const Bare& m) {
  const auto end = *m.wptr + kBatch * 4;
  order::Native::store(m.wptr, end, std::memory_order_release);
  order::Native::store(m.doorbell, end, std::memory_order_release);
}

[[gnu::noinline]] bool hand(Bare& m, std::uint64_t a) {
  auto* d = room_by_hand(m);
  if (!d) return false;
  by_hand(d, a);
  ring_by_hand(m);
  return true;
}
[[gnu::noinline]] bool copy(Bare& m, const std::uint32_t* from) {
  auto* d = room_by_hand(m);
  if (!d) return false;
  std::memcpy(d, from, kBatch * 4);
  ring_by_hand(m);
  return true;
}
template <Producers K> [[gnu::noinline]] bool submit(Ring<K>& r, std::uint64_t a) {
  const CopyLinear c{.src = GpuVa{a}, .dst = GpuVa{a + 64}, .bytes = 64};
  return r.submit(PollMem{.addr = GpuVa{a}, .func = Compare::eq}, c, c, c, c, c, c, c,
                  Atomic{.addr = GpuVa{a}, .value = ~0ull}) == Errc::ok;
}
template <Producers K> [[gnu::noinline]] bool write(Ring<K>& r, std::uint64_t a) {
  const auto s = r.reserve(kBatch);
  if (!s) return false;
  Writer w{s->dwords};
  auto e = w.put(PollMem{.addr = GpuVa{a}, .func = Compare::eq});
  for (int k = 0; k < 7 && e == Errc::ok; ++k)
    e = w.put(CopyLinear{.src = GpuVa{a}, .dst = GpuVa{a + 64}, .bytes = 64});
  if (e == Errc::ok) e = w.put(Atomic{.addr = GpuVa{a}, .value = ~0ull});
  r.publish(*s, e == Errc::ok ? w.written().size() : 0);
  return e == Errc::ok;
}

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 60, kTimes = 20000;

struct Case {
  const char* name;
  double best = 1e9;
};

}  // namespace

int main(int argc, char** argv) {
  Bare m;
  Ring<> one{m.memory()};
  Ring<Producers::many> many{m.memory()};
  std::uint32_t image[kBatch];
  by_hand(image, 0x1000);
  const auto* from = hidden(image);
  // Each ring continues at the position of the others.
  const auto run = [&](std::string_view name, int times) {
    auto a = std::uint64_t{0x1000};
    const auto loop = [&](auto&& f) {
      bool ok = true;
      for (int i = 0; i < times; ++i) {
        asm volatile("" : "+r"(a)::"memory");
        ok &= f();
        m.consume();
      }
      if (!ok) std::abort();
    };
    m.consume();
    if (name == "hand") loop([&] { return hand(m, a); });
    if (name == "memcpy") loop([&] { return copy(m, from); });
    if (name == "submit") loop([&, &r = *new (&one) Ring<>{m.memory()}] { return submit(r, a); });
    if (name == "write") loop([&, &r = *new (&one) Ring<>{m.memory()}] { return write(r, a); });
    if (name == "submit_many") loop([&, &r = *new (&many) Ring<Producers::many>{m.memory()}] { return submit(r, a); });
    if (name == "write_many") loop([&, &r = *new (&many) Ring<Producers::many>{m.memory()}] { return write(r, a); });
  };
  if (argc == 3) {
    run(argv[1], std::atoi(argv[2]));
    return 0;
  }
  Case cases[] = {{"hand"}, {"submit"}, {"write"}, {"memcpy"}, {"submit_many"}, {"write_many"}};
  for (auto& c : cases) {
    const auto at = wptr_word / 4 % kDwords;
    if (at + kBatch > kDwords) continue;
    run(c.name, 1);
    if (std::memcmp(ring_dwords + at, image, sizeof image) != 0) {
      std::printf("%s writes different dwords\n", c.name);
      return 1;
    }
  }
  for (int round = 0; round < kRounds; ++round)
    for (auto& c : cases) {
      const auto t = Clock::now();
      run(c.name, kTimes);
      c.best = std::min(c.best, std::chrono::duration<double, std::nano>(Clock::now() - t).count() / kTimes);
    }
  std::printf("[poll, 7 copies, atomic]: %zu dwords, checked, reserved, written, published\n", kBatch);
  for (const auto& c : cases)
    std::printf("%-12s %6.1f ns   %5.2f x hand-written   %5.2f x memcpy\n", c.name, c.best, c.best / cases[0].best,
                c.best / cases[3].best);
}
