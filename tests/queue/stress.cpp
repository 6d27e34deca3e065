// SPDX-License-Identifier: MIT
// Real threads, a tiny ring, and an engine that trusts nobody: what the model cannot have wrong about the compiler and
// this machine. Under ThreadSanitizer the dwords themselves are watched.
#include "memory.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/reader.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <thread>

using namespace sdma;
using test::Memory;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t kFences = 4000;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr std::uint32_t kFences = 4000;
#else
constexpr std::uint32_t kFences = 60000;
#endif
#else
constexpr std::uint32_t kFences = 60000;
#endif

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

struct Play {
  int threads = 1;
  std::size_t dwords = 256;
  std::uint64_t start = 0;
  bool doorbell = true;
};

/// The first thing that went wrong; Catch's macros are for one thread.
class Verdict {
 public:
  void fail(const char* what) {
    const char* none = nullptr;
    what_.compare_exchange_strong(none, what);
  }
  explicit operator bool() const { return what_.load() == nullptr; }
  std::string text() const { return what_ ? what_.load() : ""; }

 private:
  std::atomic<const char*> what_{};
};

/// Reads up to the doorbell (or wptr), checks that each thread's fences come whole and in order, poisons those read.
void engine(Memory& m, const Play& p, std::uint64_t fences, Verdict& verdict) {
  std::vector<std::uint32_t> next(static_cast<std::size_t>(p.threads));
  const auto* word = p.doorbell ? &m.doorbell : &m.wptr;
  auto at = p.start, last = p.start;
  while (fences > 0 && verdict) {
    const auto end = order::Native::load(word, kAcquire);
    if (end < last) verdict.fail("the doorbell goes back");
    if (end - at >= p.dwords * 4) verdict.fail("the doorbell covers what has not been read");
    if (order::Native::load(&m.wptr, kAcquire) < end) verdict.fail("wptr is behind a doorbell that is seen");
    last = end;
    if (at == end) std::this_thread::yield();
    while (at < end && verdict) {
      const auto offset = at / 4 % p.dwords;
      const auto n = std::min<std::size_t>((end - at) / 4, p.dwords - offset);
      const auto v = Reader{std::span<const std::uint32_t>(m.dwords).subspan(offset, n)}.next();
      if (v.is<Fence>()) {
        const auto f = decode<Fence>(v.dwords);
        if (f.addr.value / 4 >= next.size() || f.value != next[f.addr.value / 4]++)
          verdict.fail("a fence is lost or repeated");
        --fences;
      } else if (!v.is<Nop>()) {
        verdict.fail("the engine reads what nobody wrote");
      }
      std::fill_n(m.dwords.begin() + static_cast<std::ptrdiff_t>(offset), v.dwords.size(), test::kPoison);
      at += v.dwords.size() * 4;
      // Not behind each packet: rptr lags.
      if (at == end || at % 128 == 0) order::Native::store(&m.rptr, at, kRelease);
    }
  }
}

template <Producers K> void producer(Ring<K>& ring, std::uint32_t me, std::uint32_t fences, const Verdict& verdict) {
  for (std::uint32_t i = 0, turn = 0; i < fences && verdict; ++turn) {
    const auto n = std::min(1 + turn % 3, fences - i), rest = (turn * 7 + me) % 5;
    const auto s = ring.reserve(n * 4 + rest);
    if (!s) {
      std::this_thread::yield();
      continue;
    }
    if (turn % 31 == 13) {
      ring.publish(*s, 0);
      continue;
    }
    auto* at = s->dwords.data();
    for (std::uint32_t j = 0; j < n; ++j)
      at = encode_to(Fence{.addr = GpuVa{std::uint64_t{me} * 4}, .value = i + j}, at);
    ring.publish(*s, n * 4);
    i += n;
  }
}

template <Producers K> void run(const Play& p) {
  INFO(p.threads << " threads from " << p.start);
  Memory m(p.dwords, p.start);
  std::atomic<std::uint64_t> wakes{};
  auto memory = m.ring();
  if (!p.doorbell) memory.doorbell = nullptr;
  memory.on_doorbell_context = &wakes;
  memory.on_doorbell = [](void* w, std::uint64_t) noexcept {
    static_cast<std::atomic<std::uint64_t>*>(w)->fetch_add(1, std::memory_order_relaxed);
  };
  Ring<K> ring(memory);
  const auto fences = kFences / static_cast<std::uint32_t>(p.threads);
  Verdict verdict;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { engine(m, p, std::uint64_t{fences} * static_cast<std::uint64_t>(p.threads), verdict); });
  for (int t = 0; t < p.threads; ++t)
    threads.emplace_back([&, t] { producer(ring, static_cast<std::uint32_t>(t), fences, verdict); });
  if (K == Producers::many && p.threads > 1)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000 && verdict; ++i) {
        const auto now = ring.positions();
        if (now.read > now.committed || now.committed > now.reserved)
          verdict.fail("positions: not read <= committed <= reserved");
        std::this_thread::yield();
      }
    });
  for (auto& t : threads) t.join();
  CHECK(verdict.text() == "");
  const auto end = ring.positions();
  CHECK((end.committed == end.reserved && m.wptr == end.reserved));
  if (p.doorbell) CHECK(m.doorbell == end.reserved);
  CHECK(wakes > 0);
}

}  // namespace

TEST_CASE("one producer and an engine") {
  run<Producers::one>({});
  run<Producers::one>({.start = 0x1'0000'0ff4});
  run<Producers::one>({.doorbell = false});
}

TEST_CASE("many producers and an engine") {
  run<Producers::many>({.threads = 1, .start = 4096 + 20});
  run<Producers::many>({.threads = 2});
  run<Producers::many>({.threads = 2, .start = (1ull << 57) - 4});
  run<Producers::many>({.threads = 4, .dwords = 1024, .start = 0xffff'ff00});
  run<Producers::many>({.threads = 8, .doorbell = false});
  run<Producers::many>({.threads = 8, .start = 1020});
}

TEST_CASE("two who publish at the same moment leave no slot without its doorbell") {
  Memory m(256);
  Ring<Producers::many> ring(m.ring());
  std::atomic<std::uint32_t> go{}, done{};
  std::uint32_t lost = 0;
  const auto one = [&](std::uint32_t i, std::uint32_t k) {
    for (std::uint32_t j = 0; j < i * (3 + 4 * k) % 41; ++j) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (const auto s = ring.reserve(2)) ring.publish(*s, 0);
  };
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= kFences / 4; ++i) {
      while (go.load() < i) std::this_thread::yield();
      one(i, 1);
      done = i;
    }
  });
  for (std::uint32_t i = 1; i <= kFences / 4; ++i) {
    go = i;
    one(i, 0);
    while (done.load() < i) std::this_thread::yield();
    lost += m.doorbell != ring.positions().reserved;
    order::Native::store(&m.rptr, ring.positions().reserved, kRelease);
  }
  other.join();
  CHECK(lost == 0);
}
