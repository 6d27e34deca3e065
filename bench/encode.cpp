// SPDX-License-Identifier: MIT
// The same packets twice: by this library, and by hand, with a structure of bit fields over the ring.
//
// `ours_X` and `hand_X` take the same arguments, in registers, and must store the same dwords. bench/count_instructions
// compares their machine instructions; as a program, this file checks that both store the same dwords.
#include <array>
#include <cstdio>
#include <cstring>

#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/packets/write.hpp"

using sdma::GpuVa;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

struct Copy {
  u32 op : 8, sub_op : 8, encrypt : 1, : 1, tmz : 1, : 8, broadcast : 1, : 4, count : 30, : 2;
  u32 : 16, dst_swap : 2, dst_policy : 3, : 3, src_swap : 2, src_policy : 3, : 3;
  u32 src_lo, src_hi, dst_lo, dst_hi;
};
struct Broadcast {
  Copy copy;
  u32 dst2_lo, dst2_hi;
};
struct Fence {
  u32 op : 8, sub_op : 8, : 16, addr_lo, addr_hi, data;
};
struct Poll {
  u32 op : 8, sub_op : 8, : 10, hdp : 1, : 1, func : 3, mem : 1, addr_lo, addr_hi, reference, mask;
  u32 interval : 16, retry : 12, : 4;
};
struct Atomic {
  u32 op : 8, : 8, loop : 1, : 8, code : 7, addr_lo, addr_hi, value_lo, value_hi, compare_lo, compare_hi;
  u32 interval : 13, : 19;
};
struct Fill {
  u32 op : 8, sub_op : 8, : 14, unit : 2, addr_lo, addr_hi, data, count : 30, : 2;
};
static_assert(sizeof(Copy) == 28 && sizeof(Broadcast) == 36 && sizeof(Fence) == 16);
static_assert(sizeof(Poll) == 24 && sizeof(Atomic) == 32 && sizeof(Fill) == 20);

constexpr u32 low(u64 v) { return static_cast<u32>(v); }
constexpr u32 high(u64 v) { return static_cast<u32>(v >> 32); }

/// The packet at `out`, zeroed, as in a hand-written encoder.
template <class P> P* zeroed(u32* out) {
  std::memset(out, 0, sizeof(P));
  return reinterpret_cast<P*>(out);
}

}  // namespace

extern "C" {

u32* ours_copy(u32* out, u64 src, u64 dst, u32 bytes) {
  return sdma::encode_to(sdma::CopyLinear{.src = GpuVa{src}, .dst = GpuVa{dst}, .bytes = bytes}, out);
}
u32* hand_copy(u32* out, u64 src, u64 dst, u32 bytes) {
  auto* p = zeroed<Copy>(out);
  p->op = 1;
  p->count = (bytes - 1) & 0x3fffffff;
  p->src_lo = low(src), p->src_hi = high(src), p->dst_lo = low(dst), p->dst_hi = high(dst);
  return out + 7;
}

// All fields of a copy are set at run time, not only the common ones.
u32* ours_copy_any(u32* out, const sdma::CopyLinear& c) { return sdma::encode_to(c, out); }
u32* hand_copy_any(u32* out, const sdma::CopyLinear& c) {
  auto* p = zeroed<Copy>(out);
  p->op = 1, p->encrypt = c.encrypt, p->tmz = c.tmz;
  p->count = (c.bytes - 1) & 0x3fffffff;
  p->dst_swap = c.dst_swap & 3, p->dst_policy = c.dst_policy & 7;
  p->src_swap = c.src_swap & 3, p->src_policy = c.src_policy & 7;
  p->src_lo = low(c.src.value), p->src_hi = high(c.src.value);
  p->dst_lo = low(c.dst.value), p->dst_hi = high(c.dst.value);
  return out + 7;
}

u32* ours_broadcast(u32* out, u64 src, u64 dst1, u64 dst2, u32 bytes) {
  return sdma::encode_to(
      sdma::CopyBroadcast{.src = GpuVa{src}, .dst1 = GpuVa{dst1}, .dst2 = GpuVa{dst2}, .bytes = bytes}, out);
}
u32* hand_broadcast(u32* out, u64 src, u64 dst1, u64 dst2, u32 bytes) {
  auto* p = zeroed<Broadcast>(out);
  p->copy.op = 1, p->copy.broadcast = 1;
  p->copy.count = (bytes - 1) & 0x3fffffff;
  p->copy.src_lo = low(src), p->copy.src_hi = high(src), p->copy.dst_lo = low(dst1), p->copy.dst_hi = high(dst1);
  p->dst2_lo = low(dst2), p->dst2_hi = high(dst2);
  return out + 9;
}

u32* ours_fence(u32* out, u64 addr, u32 value) {
  return sdma::encode_to(sdma::Fence{.addr = GpuVa{addr}, .value = value}, out);
}
u32* hand_fence(u32* out, u64 addr, u32 value) {
  auto* p = zeroed<Fence>(out);
  p->op = 5;
  p->addr_lo = low(addr), p->addr_hi = high(addr), p->data = value;
  return out + 4;
}

u32* ours_poll(u32* out, u64 addr, u32 reference) {
  return sdma::encode_to(sdma::PollMem{.addr = GpuVa{addr}, .reference = reference}, out);
}
u32* hand_poll(u32* out, u64 addr, u32 reference) {
  auto* p = zeroed<Poll>(out);
  p->op = 8, p->func = 3, p->mem = 1;
  p->addr_lo = low(addr), p->addr_hi = high(addr), p->reference = reference, p->mask = ~0u;
  p->interval = 4, p->retry = 0xfff;
  return out + 6;
}

u32* ours_atomic(u32* out, u64 addr, u64 value) {
  return sdma::encode_to(sdma::Atomic{.addr = GpuVa{addr}, .value = value}, out);
}
u32* hand_atomic(u32* out, u64 addr, u64 value) {
  auto* p = zeroed<Atomic>(out);
  p->op = 10, p->code = 0x2f;
  p->addr_lo = low(addr), p->addr_hi = high(addr), p->value_lo = low(value), p->value_hi = high(value);
  return out + 8;
}

u32* ours_fill(u32* out, u64 dst, u32 data, u32 bytes) {
  return sdma::encode_to(sdma::Fill{.dst = GpuVa{dst}, .data = data, .bytes = bytes}, out);
}
u32* hand_fill(u32* out, u64 dst, u32 data, u32 bytes) {
  auto* p = zeroed<Fill>(out);
  p->op = 11, p->unit = 2;
  p->addr_lo = low(dst), p->addr_hi = high(dst), p->data = data;
  p->count = (bytes - 1) & 0x3fffffff;
  return out + 5;
}

}  // extern "C"

int main() {
  constexpr u64 kA = 0x7f1122334000, kB = 0x7f5566778000, kC = 0x7f99aabbc000;
  const auto same = [](const char* name, auto ours, auto hand, auto... arguments) {
    std::array<u32, 9> a{}, b{};
    const auto n = ours(a.data(), arguments...) - a.data(), m = hand(b.data(), arguments...) - b.data();
    if (n != m || a != b) std::fprintf(stderr, "%s: ours and hand-written differ\n", name);
    return n == m && a == b;
  };
  bool ok = same("copy", ours_copy, hand_copy, kA, kB, 4096u);
  const sdma::CopyLinear any{.src = GpuVa{kA},
                             .dst = GpuVa{kB},
                             .bytes = 4096,
                             .encrypt = true,
                             .tmz = true,
                             .src_swap = 1,
                             .src_policy = 5,
                             .dst_swap = 2,
                             .dst_policy = 3};
  ok = same("copy_any", ours_copy_any, hand_copy_any, any) && ok;
  ok = same("broadcast", ours_broadcast, hand_broadcast, kA, kB, kC, 4096u) && ok;
  ok = same("fence", ours_fence, hand_fence, kA, 7u) && ok;
  ok = same("poll", ours_poll, hand_poll, kA, 7u) && ok;
  ok = same("atomic", ours_atomic, hand_atomic, kA, ~u64{}) && ok;
  ok = same("fill", ours_fill, hand_fill, kA, 0xa5a5a5a5u, 4096u) && ok;
  return ok ? 0 : 1;
}
