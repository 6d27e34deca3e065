// SPDX-License-Identifier: MIT
#pragma once
// Atomic access to a word that was not declared atomic: std::atomic_ref, also for a standard library that lacks it, as
// libc++ before version 19 does.
//
//   atomic_ref(*word).store(7, std::memory_order_release);
//   const auto seen = atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
//
// If the standard library has std::atomic_ref, this is std::atomic_ref itself. Otherwise, and where kernels are
// compiled, it is the part of it that sdma uses, made of the same instructions: integers of 1, 2, 4 or 8 bytes, with
// every memory order. In a kernel, its scope is the whole system: other kernels, the host, and engines. For an AMD GPU,
// a release is a fence, a wait that no compiler leaves out (SDMA_WAIT_FOR_STORES), and a relaxed access.
//
// As for std::atomic_ref, the word must be aligned to its size. A 32-bit processor may align a std::uint64_t to 4 bytes
// only: declare such words with alignas(8). Any thread may use an atomic_ref. No errors.
#include "sdma/core/compiler.hpp"

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace sdma { inline namespace v0_3 {

#if defined(__cpp_lib_atomic_ref) && !defined(__HIP__) && !defined(__CUDA__)
using std::atomic_ref;
#else
SDMA_DEVICE_BEGIN
namespace detail {
/// What a release of an AMD GPU covers: all stores, which it writes back; or those of the lane that are visible to the
/// system once they are complete, as all atomic stores are.
enum class Releases : bool { all, complete };
}  // namespace detail
template <class T, detail::Releases Covers = detail::Releases::all> class atomic_ref {
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
    __atomic_store_n(word_, v, order(released(o)));
  }
  /// Replaces the word's value, and returns the value before.
  T exchange(T v, std::memory_order o = std::memory_order_seq_cst) const noexcept {
#ifdef __NVPTX__
    return swap([v](T) { return v; }, o);
#else
    return __atomic_exchange_n(word_, v, order(released(o)));
#endif
  }
  /// Adds n, with wrap-around, and returns the value before.
  T fetch_add(T n, std::memory_order o = std::memory_order_seq_cst) const noexcept {
#ifdef __NVPTX__
    return swap([n](T seen) { return static_cast<T>(seen + n); }, o);
#else
    return __atomic_fetch_add(word_, n, order(released(o)));
#endif
  }
  /// If the word is not `expected`, sets `expected` to what it is. May also fail without a reason.
  bool compare_exchange_weak(T& expected, T v, std::memory_order success, std::memory_order failure) const noexcept {
    return __atomic_compare_exchange_n(word_, &expected, v, true, order(released(success)), order(failure));
  }

 private:
#ifdef __NVPTX__
  /// Clang 22 makes PTX of these operations without their order, and with the scope of the GPU; its comparison keeps
  /// both.
  template <class Fn> T swap(Fn next, std::memory_order o) const noexcept {
    auto seen = load(std::memory_order_relaxed);
    while (!compare_exchange_weak(seen, next(seen), o, std::memory_order_relaxed)) {}
    return seen;
  }
#endif
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
  /// Waits for what a store with this order releases, and returns the order that is left.
  static std::memory_order released(std::memory_order o) noexcept {
#ifdef __AMDGCN__
    if (o == std::memory_order_relaxed || o == std::memory_order_consume || o == std::memory_order_acquire) return o;
    if constexpr (Covers == detail::Releases::all) SDMA_STORE_FENCE();
    else SDMA_WAIT_FOR_STORES();
    return o == std::memory_order_release ? std::memory_order_relaxed : std::memory_order_acquire;
#else
    return o;
#endif
  }
  T* word_;
};
SDMA_DEVICE_END
#endif

#ifdef __AMDGCN__
/// An atomic_ref whose release covers what its lane has written back already, and atomic stores: it only waits.
template <class T> using written_back_ref = atomic_ref<T, detail::Releases::complete>;
#else
/// An atomic_ref whose release covers what its lane has written back already, and atomic stores; here, an atomic_ref.
template <class T> using written_back_ref = atomic_ref<T>;
#endif

SDMA_DEVICE_BEGIN
/// A word of its own: the part of std::atomic that sdma uses, also as device code.
template <class T, class Ref = atomic_ref<T>> class atomic_word {
 public:
  atomic_word() noexcept = default;
  atomic_word(const atomic_word&) = delete;
  atomic_word& operator=(const atomic_word&) = delete;

  /// The value.
  T load(std::memory_order o) const noexcept { return Ref(word_).load(o); }
  /// Replaces the value.
  void store(T v, std::memory_order o) noexcept { Ref(word_).store(v, o); }
  /// Replaces the value, and returns the one before.
  T exchange(T v, std::memory_order o) noexcept { return Ref(word_).exchange(v, o); }
  /// If the value is not `expected`, sets `expected` to what it is. May also fail without a reason.
  bool compare_exchange_weak(T& expected, T v, std::memory_order success, std::memory_order failure) noexcept {
    return Ref(word_).compare_exchange_weak(expected, v, success, failure);
  }

 private:
  alignas(sizeof(T)) mutable T word_{};
};
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
