// SPDX-License-Identifier: MIT
// The cost of a prebuilt frame, [poll, 7 copies, atomic], 63 dwords: submitted as it is, and relocated before each
// submission. The unit is a memcpy of the same bytes into a slot of the same ring, and its publication.
//
//   bench-frame            instructions and nanoseconds (best of 30), and ratios
//   bench-frame --check    instructions alone; exit code 1 if a frame takes more than its limit
//
// Instructions are counted, and not estimated: a child process executes one call step by step. Linux on x86-64 only.
#include "sdma/queue/ring.hpp"
#include "sdma/stream/fixed_frame.hpp"
#include "sdma/sync/recipes.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

using namespace sdma;

namespace {

constexpr std::size_t kDwords = 16384;
constexpr std::uint16_t kEpoch = 0, kFirstAddress = 1;

alignas(256) std::uint32_t ring_dwords[kDwords];
alignas(64) std::uint64_t rptr_word;
alignas(64) std::uint64_t wptr_word;
alignas(64) std::uint64_t doorbell_word;

// The compiler must not know the address of a queue's memory, nor the length of a frame.
template <class T> T hidden(T p) {
  asm volatile("" : "+r"(p)::"memory");
  return p;
}
RingMemory memory() {
  return {.dwords = {hidden(&ring_dwords[0]), kDwords},
          .rptr = hidden(&rptr_word),
          .wptr = hidden(&wptr_word),
          .doorbell = hidden(&doorbell_word),
          .caching = Caching::write_back};
}
void consume() { rptr_word = wptr_word; }

/// [poll, 7 copies, atomic]. Copy k goes from parameter 1 + 2k to the next if k < `moved`; the poll waits for an epoch.
template <class W> constexpr void write(W& w, std::size_t moved) {
  (void)acquire(w, GpuVa{0x1000}, 0);
  for (std::size_t k = 0; k < 7; ++k) {
    const auto first = static_cast<std::uint16_t>(kFirstAddress + 2 * k);
    const bool moves = k < moved;
    (void)w.copy({.src = moves ? parameter(first) : GpuVa{0x2000 + k},
                  .dst = moves ? parameter(static_cast<std::uint16_t>(first + 1)) : GpuVa{0x3000 + k},
                  .bytes = 4096});
  }
  (void)complete_with_atomic(w, GpuVa{0x4000});
}

struct Built {
  std::uint32_t dwords[64];
  Relocation changes[16];
  Frame frame{dwords, changes};
  Built(bool epoch, std::size_t moved) {
    if (epoch) frame.bind<&PollMem::reference>(kEpoch);
    write(frame.writer(), moved);
    if (frame.finish() != Errc::ok) std::abort();
  }
};

template <Producers K> [[gnu::noinline]] bool unit(Ring<K>& r, const std::uint32_t* from, std::size_t n) {
  const auto s = r.reserve(n);
  if (!s) return false;
  std::memcpy(s->dwords.data(), from, n * 4);
  r.publish(*s);
  return true;
}
template <Producers K> [[gnu::noinline]] bool submit(Ring<K>& r, const Frame& f) { return f.submit(r) == Errc::ok; }
template <Producers K>
[[gnu::noinline]] bool relocate(Ring<K>& r, Frame& f, const std::uint64_t* values, std::size_t n) {
  return f.relocate({values, n}) == Errc::ok && f.submit(r) == Errc::ok;
}
template <Producers K>
[[gnu::noinline]] bool relocate_there(Ring<K>& r, Frame& f, const std::uint64_t* values, std::size_t n) {
  return f.submit(r, {values, n}) == Errc::ok;
}
struct AllMove {
  static constexpr void build(auto& frame) {
    frame.template bind<&PollMem::reference>(kEpoch);
    write(frame.writer(), 7);
  }
};
template <Producers K> [[gnu::noinline]] bool fixed(Ring<K>& r, const std::uint64_t (&values)[15]) {
  return FixedFrame<AllMove>::submit(r, values) == Errc::ok;
}
template <Producers K> [[gnu::noinline]] bool encode(Ring<K>& r, std::size_t n) {
  const auto s = r.reserve(n);
  if (!s) return false;
  Writer w{s->dwords};
  write(w, 0);
  r.publish(*s, w.position_dwords());
  return w.error() == Errc::ok;
}
template <Producers K> [[gnu::noinline]] bool indirect(Ring<K>& r, const Frame& f) {
  return f.submit_indirect(r, GpuVa{0x8000}) == Errc::ok;
}

/// How many instructions one call executes, in the second of two calls: the first binds symbols.
long instructions(const std::function<bool()>& call) {
  const auto child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
    if (!call()) _exit(3);
    asm volatile("int3" ::: "memory");
    const bool ok = call();
    asm volatile("int3" ::: "memory");
    _exit(ok ? 0 : 3);
  }
  int status = 0;
  long steps = -1;
  for (bool counts = false; waitpid(child, &status, 0) == child && WIFSTOPPED(status);) {
    siginfo_t why{};
    ptrace(PTRACE_GETSIGINFO, child, nullptr, &why);
    if (WSTOPSIG(status) == SIGTRAP && why.si_code == SI_KERNEL) counts = !counts;  // an int3
    steps += counts;
    ptrace(counts ? PTRACE_SINGLESTEP : PTRACE_CONT, child, nullptr,
           reinterpret_cast<void*>(WSTOPSIG(status) == SIGTRAP ? 0L : static_cast<long>(WSTOPSIG(status))));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "instructions cannot be counted: the child ended with status %d\n", status);
    std::exit(2);
  }
  return steps;
}
double nanoseconds(const std::function<void(int)>& calls) {
  constexpr int kTimes = 20000;
  double best = 1e9;
  for (int round = 0; round < 30; ++round) {
    const auto t = std::chrono::steady_clock::now();
    calls(kTimes);
    best =
        std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - t).count() / kTimes);
  }
  return best;
}

template <Producers K> bool measure_ring(const char* name, bool check) {
  Ring<K> ring{memory()};
  Built plain{false, 0}, epoch{true, 0}, all{true, 7};
  std::uint64_t values[15]{};
  for (auto& v : values) v = hidden(std::uint64_t{0x10000});
  const auto n = hidden(plain.frame.dwords().size());
  const std::uint32_t* const from = hidden(&plain.dwords[0]);
  struct Case {
    const char* what;
    std::function<bool()> call;
    long most;  ///< instructions more than the unit: a ratio depends on the processor, whose memcpy libc chooses
  };
  Built buffer{false, 0};
  if (buffer.frame.finish(kIndirectMultiple) != Errc::ok) return false;
  const Case cases[] = {
      {"memcpy", [&] { return unit(ring, from, n); }, 0},
      {"frame", [&] { return submit(ring, plain.frame); }, 4},
      {"new epoch", [&] { return relocate(ring, epoch.frame, values, 1); }, 42},
      {"epoch, 14 addresses", [&] { return relocate(ring, all.frame, values, 15); }, 72},
      {"  in the slot", [&] { return relocate_there(ring, all.frame, values, 15); }, 69},
      {"  known when compiled", [&] { return fixed(ring, values); }, 18},
      {"encoded again", [&] { return encode(ring, n); }, 510},
      {"indirect", [&] { return indirect(ring, buffer.frame); }, 112},
  };
  bool ok = true;
  long first = 0;
  double first_time = 0;
  for (const auto& c : cases) {
    consume();
    const auto steps = instructions(c.call);
    if (first == 0) first = steps;
    const auto ratio = static_cast<double>(steps) / static_cast<double>(first);
    const bool good = steps - first <= c.most;
    ok = ok && good;
    std::printf("%-5s %-20s %5ld instructions %5.2f", name, c.what, steps, ratio);
    if (!check) {
      const auto time = nanoseconds([&](int times) {
        for (int i = 0; i < times; ++i) {
          if (!c.call()) std::abort();
          consume();
        }
      });
      if (first_time == 0) first_time = time;
      std::printf("   %6.1f ns %5.2f", time, time / first_time);
    }
    std::printf("%s\n", good ? "" : "   more than it may");
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 2 && std::string_view(argv[1]) == "--check";
  const bool one = measure_ring<Producers::one>("one", check);
  return measure_ring<Producers::many>("many", check) && one ? 0 : 1;
}
