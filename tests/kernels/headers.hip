// SPDX-License-Identifier: MIT
// Each part that a kernel may use, used once. Clang's own <algorithm> and <new> need names that
// a toolkit's headers have.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#include <cstdlib>

#include "sdma/stream/frame.hpp"
#include "sdma/sync/device.hpp"
#include "sdma/sync/recipes.hpp"

using namespace sdma;
#define KERNEL extern "C" __attribute__((global)) void

KERNEL ring_of_one(Ring<>* ring, CopyLinear copy, Fence fence, Errc* e) {
  *e = ring->submit<Generation::v4_4_2>(copy, fence);
}
KERNEL ring_of_many(Ring<Producers::many>* ring, CopyLinear copy, Fence fence, Errc* e) {
  *e = ring->submit<Generation::v4_4_2>(copy, fence);
}
KERNEL writer(Ring<Producers::many>* ring, WriterRequests::Copy copy, GpuVa word, std::uint32_t epoch, Errc* e) {
  const auto slot = ring->reserve(64);
  if (!slot) return;
  Writer w{slot->dwords};
  (void)acquire(w, word, epoch);
  (void)w.copy(copy);
  (void)complete_with_fence(w, word + 8, epoch);
  (void)complete_with_atomic(w, word + 16);
  (void)full_barrier(w, word + 24, epoch);
  *e = w.error();
  ring->publish(*slot, w.position_dwords());
}
KERNEL puts_together(Ring<Producers::many>* ring, CopyLinear copy, Signal flag, Signal done, Errc* e) {
  Puts puts{*ring};
  e[0] = puts.put(copy);
  e[1] = puts.put_signal(copy, flag, 1);
  e[2] = puts.put_add(copy, flag);
  e[3] = puts.quiet(done, 1, 1000);
  e[4] = puts.consumed(1000);
}
KERNEL puts_alone(Ring<>* ring, CopyLinear copy, Errc* e) {
  Puts puts{*ring, OneLane{}};
  *e = puts.put(copy);
}
KERNEL frames(Ring<Producers::many>* ring, Frame* frame, std::span<const std::uint64_t> values, GpuVa copy, Errc* e) {
  e[0] = frame->relocate(values);
  e[1] = frame->submit(*ring);
  e[2] = frame->submit_indirect(*ring, copy);
}
