// SPDX-License-Identifier: MIT
// Each store of a kernel that says that something else is there: a flag after a tile, a slot of a ring. device_code.py
// reads what stands before these stores, and that no kernel calls anything.
#include "sdma/sync/device.hpp"

using namespace sdma;
#define KERNEL extern "C" __attribute__((global)) void

KERNEL set(Signal s, std::uint64_t v) { s.set(v); }
KERNEL add(Signal s, std::uint64_t v, std::uint64_t* sum) { *sum = s.add(v); }
KERNEL publish_one(Ring<>* ring, Slot s) { ring->publish(s); }
KERNEL publish_many(Ring<Producers::many>* ring, Slot s) { ring->publish(s); }
/// The load is waited for, and with it the store of the tile: the compiler may believe that no store is pending.
KERNEL tile_then_flag(std::uint32_t* tile, const std::uint32_t* in, Signal flag) {
  tile[0] = 42;
  tile[1] = in[0];
  if (in[1] != 7) flag.set(1);
}
KERNEL tile_then_word(std::uint32_t* tile, const std::uint32_t* in, std::uint64_t* word) {
  tile[0] = 42;
  if (in[1] != 7) atomic_ref<std::uint64_t>(*word).exchange(1, std::memory_order_acq_rel);
}
