// SPDX-License-Identifier: MIT
// A submission as a runtime makes it, twice: by this library, and by hand with bit fields. It waits for a signal,
// stamps the start, copies any number of bytes, stamps the end, completes a signal, and wakes its waiter.
//
//   g++ -std=c++20 -O2 -c -DOURS -Iinclude bench/typical.cpp; size typical.o          without -DOURS: by hand
//
// With -DTWICE, a second function of the same kind stands beside it, to see what each further one adds.
// bench/count_instructions compares the bytes of the two. The hand-written one checks nothing but the room.
#include <cstdint>

struct Signal {
  std::int64_t kind, value;
  std::uint64_t event_mailbox_ptr;
  std::uint32_t event_id, reserved;
  std::uint64_t start_ts, end_ts;
};

#ifdef OURS
#include "sdma/queue/ring.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/hsa.hpp"

using Ring = sdma::Ring<>;
[[gnu::always_inline]] static inline bool submit(sdma::Ring<>& ring, std::uint64_t src, std::uint64_t dst,
                                                 std::uint64_t bytes, const Signal& before, const Signal& after) {
  using sdma::AnyWriter, sdma::GpuVa, sdma::Errc;
  const auto g = ring.generation();
  const AnyWriter::Copy copy{.src = GpuVa{src}, .dst = GpuVa{dst}, .bytes = bytes};
  constexpr auto kAround =
      sdma::hsa::kDependAtMost.dwords + sdma::dwords_of<sdma::Timestamp>() + sdma::hsa::kCompleteAtMost.dwords;
  const auto slot = ring.reserve(kAround + sdma::dwords_of(g, copy));
  if (!slot) return false;
  AnyWriter w{slot->dwords, {g}};
  sdma::hsa::depend(w, before);
  sdma::hsa::stamp_start(w, after);
  w.copy(copy);
  sdma::hsa::complete_signal(w, after, {.stamp_end = true});
  ring.publish(*slot, w.error() == Errc::ok ? w.position_dwords() : 0);
  return w.error() == Errc::ok;
}

#else
#include <atomic>
#include <cstring>

namespace {
using u32 = std::uint32_t;
using u64 = std::uint64_t;
struct Poll {
  u32 op : 8, : 20, func : 3, mem : 1, address[2], reference, mask, interval : 16, retry : 12, : 4;
};
struct Stamp {
  u32 op : 8, sub_op : 8, : 16, address[2];
};
struct Copy {
  u32 op : 8, : 24, count : 30, : 2, parameters, src[2], dst[2];
};
struct Add {
  u32 op : 8, : 17, code : 7, address[2], value[2], compare[2], interval;
};
struct Mailbox {
  u32 op : 8, : 8, mtype : 3, : 13, address[2], event, trap : 8, : 24, context : 28, : 4;
};
constexpr u64 kChunk = 0x3fffffc0;

struct Bare {
  u32* dwords;
  u64 bytes, position;
  const volatile u64* rptr;
  volatile u64 *wptr, *doorbell;
  bool uncached;
};
template <class P> P& next(char*& at) {
  auto* p = reinterpret_cast<P*>(at);
  std::memset(at, 0, sizeof(P));
  at += sizeof(P);
  return *p;
}
void set(u32 (&at)[2], u64 v) { std::memcpy(at, &v, 8); }
u64 address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
}  // namespace

using Ring = Bare;
[[gnu::always_inline]] static inline bool submit(Bare& ring, u64 src, u64 dst, u64 bytes, const Signal& before,
                                                 const Signal& after) {
  const auto want = 2 * sizeof(Poll) + 2 * sizeof(Stamp) + (bytes + kChunk - 1) / kChunk * sizeof(Copy) + sizeof(Add) +
                    sizeof(Mailbox);
  auto offset = ring.position & (ring.bytes - 1);
  const auto skip = offset + want > ring.bytes ? ring.bytes - offset : 0;
  if (ring.position + skip + want - *ring.rptr >= ring.bytes) return false;
  if (skip != 0) {
    std::memset(reinterpret_cast<char*>(ring.dwords) + offset, 0, skip);
    ring.position += skip;
    offset = 0;
  }
  auto* at = reinterpret_cast<char*>(ring.dwords) + offset;
  for (const u64 half : {4, 0}) {
    auto& p = next<Poll>(at);
    p.op = 8, p.mem = 1, p.func = 3, p.mask = ~0u, p.interval = 4, p.retry = 0xfff;
    set(p.address, address(&before.value) + half);
  }
  auto& start = next<Stamp>(at);
  start.op = 13, start.sub_op = 2;
  set(start.address, address(&after.start_ts));
  for (u64 done = 0; done < bytes; done += kChunk) {
    auto& c = next<Copy>(at);
    c.op = 1, c.count = static_cast<u32>((bytes - done < kChunk ? bytes - done : kChunk) - 1) & 0x3fffffff;
    set(c.src, src + done), set(c.dst, dst + done);
  }
  auto& end = next<Stamp>(at);
  end.op = 13, end.sub_op = 2;
  set(end.address, address(&after.end_ts));
  auto& add = next<Add>(at);
  add.op = 10, add.code = 0x2f;
  set(add.address, address(&after.value)), set(add.value, ~u64{0});
  auto& m = next<Mailbox>(at);
  if (after.event_mailbox_ptr != 0) {
    m.op = 5, m.event = after.event_id, m.trap = 6, m.context = after.event_id & 0xfffffff;
    if (ring.uncached) m.mtype = 3;
    set(m.address, after.event_mailbox_ptr);
  }
  ring.position += want;
  std::atomic_thread_fence(std::memory_order_release);
  *ring.wptr = ring.position;
  std::atomic_thread_fence(std::memory_order_release);
  *ring.doorbell = ring.position;
  return true;
}
#endif

extern "C" bool typical(Ring& ring, std::uint64_t src, std::uint64_t dst, std::uint64_t bytes, const Signal& before,
                        const Signal& after) {
  return submit(ring, src, dst, bytes, before, after);
}
#ifdef TWICE
extern "C" bool another(Ring& ring, std::uint64_t dst, std::uint64_t src, std::uint64_t bytes, const Signal& after,
                        const Signal& before) {
  return submit(ring, src, dst, bytes, before, after);
}
#endif
