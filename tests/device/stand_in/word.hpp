// SPDX-License-Identifier: MIT
#pragma once
// One word of memory, which hosts and other streams may access at the same time.
//
//   with_word<std::uint32_t>(address, device, Use::write, [](std::atomic_ref<std::uint32_t> w) { w.store(1); });
//
// Returns kMisaligned, or kIllegalAddress for a word that this device cannot access.
#include "memory.hpp"

#include <atomic>

namespace stand_in {

template <class T, class Fn> Status with_word(Pointer at, int device, Use use, Fn fn) {
  if (at % sizeof(T) != 0) return kMisaligned;
  const auto piece = find_memory(at, sizeof(T), device, use);
  if (!piece || piece->size < sizeof(T)) return kIllegalAddress;
  fn(std::atomic_ref<T>(*reinterpret_cast<T*>(piece->data)));
  return kSuccess;
}

}  // namespace stand_in
