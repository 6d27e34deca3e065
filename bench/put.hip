// SPDX-License-Identifier: MIT
// What a put costs a kernel: a copy and a fence, written by all lanes of a wave into one slot of a ring, by the headers
// and by hand. The hand-written ones check nothing but the room.
//
//   python3 tests/kernels/device_code.py clang++-22 . gfx942 --print       instructions, registers and stack of each
//
// One producer: positions are plain words of the ring's owner. Many producers: a position is taken with a
// compare-and-swap, and each waits until all before it have rung the doorbell (the headers' ring never waits).
#include "sdma/sync/device.hpp"

using u32 = std::uint32_t;
using u64 = std::uint64_t;
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device)) inline

namespace {

struct Bare {
  u32* dwords;
  u64 bytes, reserved, committed, read;
  const u64* rptr;
  u64 *wptr, *doorbell;
};
constexpr u32 kDwords = 11, kBytes = kDwords * 4;

DEVICE u32 lane() { return SDMA_LANE(); }
DEVICE u64 first(u64 v) {
  return u64{SDMA_FIRST_LANE(static_cast<u32>(v >> 32))} << 32 | SDMA_FIRST_LANE(static_cast<u32>(v));
}

/// Where the slot begins, and where the one before it ended.
struct Place {
  u32* at;
  u64 begin, end;
};

/// Is there room from `begin` on? rptr may lie in the host's memory, so what it was is kept.
DEVICE bool room(Bare& r, u64 begin, u64& end, u64& skip) {
  const u64 offset = begin & (r.bytes - 1);
  skip = offset + kBytes > r.bytes ? r.bytes - offset : 0;
  end = begin + skip + kBytes;
  if (end - __atomic_load_n(&r.read, __ATOMIC_RELAXED) < r.bytes) return true;
  const auto read = __atomic_load_n(r.rptr, __ATOMIC_ACQUIRE);
  __atomic_store_n(&r.read, read, __ATOMIC_RELAXED);
  return end - read < r.bytes;
}
/// Where the packets go. The end of the ring is a NOP if the slot skips it.
DEVICE u32* placed(Bare& r, u64 begin, u64 skip) {
  auto* at = r.dwords + (begin & (r.bytes - 1)) / 4;
  if (skip == 0) return at;
  *at = static_cast<u32>(skip / 4 - 1) << 16;
  return r.dwords;
}

DEVICE bool take_one(Bare& r, Place& p) {
  u64 skip;
  p.begin = r.reserved;
  if (!room(r, p.begin, p.end, skip)) return false;
  r.reserved = p.end;
  p.at = placed(r, p.begin, skip);
  return true;
}
DEVICE bool take_many(Bare& r, Place& p) {
  u64 skip;
  p.begin = __atomic_load_n(&r.reserved, __ATOMIC_RELAXED);
  do
    if (!room(r, p.begin, p.end, skip)) return false;
  while (!__atomic_compare_exchange_n(&r.reserved, &p.begin, p.end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  p.at = placed(r, p.begin, skip);
  return true;
}

DEVICE void write(u32* at, u64 src, u64 dst, u32 bytes, u64 flag, u32 value) {
  const u32 dwords[kDwords] = {1,
                               bytes - 1,
                               0,
                               static_cast<u32>(src),
                               static_cast<u32>(src >> 32),
                               static_cast<u32>(dst),
                               static_cast<u32>(dst >> 32),
                               5,
                               static_cast<u32>(flag),
                               static_cast<u32>(flag >> 32),
                               value};
  for (u32 i = lane(); i < kDwords; i += SDMA_LANES()) {
    u32 mine = 0;
    for (u32 k = 0; k < kDwords; ++k) mine = k == i ? dwords[k] : mine;
    at[i] = mine;
  }
  SDMA_STORE_FENCE();
  SDMA_WAVE_BARRIER();
}
DEVICE void ring(Bare& r, u64 end) {
  __atomic_store_n(r.wptr, end, __ATOMIC_RELAXED);
  SDMA_WAIT_FOR_STORES();
  __atomic_store_n(r.doorbell, end, __ATOMIC_RELAXED);
}

}  // namespace

KERNEL hand_one(Bare* r, u64 src, u64 dst, u32 bytes, u64 flag, u32 value, bool* ok) {
  Place p{};
  const bool leader = lane() == 0;
  if (leader && !take_one(*r, p)) p.at = nullptr;
  p.at = reinterpret_cast<u32*>(first(reinterpret_cast<u64>(p.at)));
  *ok = p.at != nullptr;
  if (!p.at) return;
  write(p.at, src, dst, bytes, flag, value);
  if (leader) ring(*r, p.end);
}
KERNEL hand_many(Bare* r, u64 src, u64 dst, u32 bytes, u64 flag, u32 value, bool* ok) {
  Place p{};
  const bool leader = lane() == 0;
  if (leader && !take_many(*r, p)) p.at = nullptr;
  p.at = reinterpret_cast<u32*>(first(reinterpret_cast<u64>(p.at)));
  *ok = p.at != nullptr;
  if (!p.at) return;
  write(p.at, src, dst, bytes, flag, value);
  if (!leader) return;
  while (__atomic_load_n(&r->committed, __ATOMIC_ACQUIRE) != p.begin) SDMA_PAUSE();
  ring(*r, p.end);
  SDMA_WAIT_FOR_STORES();
  __atomic_store_n(&r->committed, p.end, __ATOMIC_RELAXED);
}

template <class Ring> DEVICE bool put(Ring& r, u64 src, u64 dst, u32 bytes, u64 flag, u32 value) {
  using namespace sdma;
  Puts puts{r};
  return puts.put_signal(CopyLinear{.src = GpuVa{src}, .dst = GpuVa{dst}, .bytes = bytes}, Signal{.va = GpuVa{flag}},
                         value) == Errc::ok;
}
KERNEL ours_one(sdma::Ring<>* r, u64 src, u64 dst, u32 bytes, u64 flag, u32 value, bool* ok) {
  *ok = put(*r, src, dst, bytes, flag, value);
}
KERNEL ours_many(sdma::Ring<sdma::Producers::many>* r, u64 src, u64 dst, u32 bytes, u64 flag, u32 value, bool* ok) {
  *ok = put(*r, src, dst, bytes, flag, value);
}
