// SPDX-License-Identifier: MIT
#pragma once
// Atomic access to a word that was not declared atomic: std::atomic_ref, also for a standard library that lacks it, as
// libc++ before version 19 does.
//
//   atomic_ref(*word).store(7, std::memory_order_release);
//   const auto seen = atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
//
// If the standard library has std::atomic_ref, this is std::atomic_ref itself. Otherwise, it is the part of it that
// sdma uses, made of the same instructions: integers of 1, 2, 4 or 8 bytes, with every memory order.
//
// As for std::atomic_ref, the word must be aligned to its size. A 32-bit processor may align a std::uint64_t to 4 bytes
// only: declare such words with alignas(8). Any thread may use an atomic_ref. No errors.
#include "sdma/core/standard.hpp"

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace sdma::inline v0 {

#ifdef __cpp_lib_atomic_ref
using std::atomic_ref;
#else
template <class T> class atomic_ref {
  static_assert(std::is_integral_v<T> && sizeof(T) <= 8);

 public:
  using value_type = T;  ///< the word's type
  /// Does the processor have an instruction for it, whatever the address?
  static constexpr bool is_always_lock_free = __atomic_always_lock_free(sizeof(T), nullptr);
  static constexpr std::size_t required_alignment = sizeof(T);  ///< of the word, in bytes

  explicit atomic_ref(T& word) noexcept : word_(&word) {}

  /// The word's value.
  T load(std::memory_order o = std::memory_order_seq_cst) const noexcept { return __atomic_load_n(word_, order(o)); }
  /// Replaces the word's value.
  void store(T v, std::memory_order o = std::memory_order_seq_cst) const noexcept {
    __atomic_store_n(word_, v, order(o));
  }
  /// Replaces the word's value, and returns the value before.
  T exchange(T v, std::memory_order o = std::memory_order_seq_cst) const noexcept {
    return __atomic_exchange_n(word_, v, order(o));
  }
  /// Adds n, with wrap-around, and returns the value before.
  T fetch_add(T n, std::memory_order o = std::memory_order_seq_cst) const noexcept {
    return __atomic_fetch_add(word_, n, order(o));
  }
  /// If the word is not `expected`, sets `expected` to what it is. May also fail without a reason.
  bool compare_exchange_weak(T& expected, T v, std::memory_order success, std::memory_order failure) const noexcept {
    return __atomic_compare_exchange_n(word_, &expected, v, true, order(success), order(failure));
  }

 private:
  static constexpr int order(std::memory_order o) noexcept {
    switch (o) {
      case std::memory_order_relaxed: return __ATOMIC_RELAXED;
      case std::memory_order_consume: return __ATOMIC_CONSUME;
      case std::memory_order_acquire: return __ATOMIC_ACQUIRE;
      case std::memory_order_release: return __ATOMIC_RELEASE;
      case std::memory_order_acq_rel: return __ATOMIC_ACQ_REL;
      default: return __ATOMIC_SEQ_CST;
    }
  }
  T* word_;
};
#endif

}  // namespace sdma::inline v0
