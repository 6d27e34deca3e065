// SPDX-License-Identifier: MIT
#pragma once
// The memory-ordering rules among a producer, other producers and an engine. Each rule has a name of its own.
//
//   producer                                        engine
//   1 packet dwords   plain stores                  4 load doorbell         acquire: sees 1 and 2
//   2 wptr            release: 1 before 2           5 read, execute dwords
//   3 doorbell        release: 2 before 3           6 store rptr            release: reads of 5 before 6
//   7 load rptr       acquire: 6 before the stores that reuse the space
//
// Some kinds of ring memory need more than these orders. `before_wptr` and `before_doorbell` add what they need:
//
//   write_back        x86 keeps stores to cacheable memory in order, and a doorbell page is uncached, so no instruction
//                     is needed. Other processors need a store barrier that reaches devices.
//   write_combining   stores leave the core in any order until an sfence, which a C++ release does not emit. There is
//                     one sfence before wptr, and another before the doorbell, because wptr may lie in such memory too.
//                     An sfence drains only the buffers of its own core, so the producer that wrote the dwords executes
//                     it before it notifies another producer.
//   vram              the ring is in VRAM, which the CPU writes through the PCIe BAR. Even after the sfence, the bytes
//                     may still be in flight when the engine fetches. Reading one of them back flushes them. A Ring
//                     refuses such memory by default.
//
// The producer always stores wptr in memory, and always before the doorbell. When a queue is mapped again (because any
// queue of the GPU is created or destroyed, or after an eviction or a reset), the doorbell value is lost and the engine
// starts from wptr. The doorbell is one aligned 64-bit store, because hardware reports an error if it arrives in
// pieces.
//
// Kernels use the same rules, with the scope of the whole system for each, and no kind of memory needs more. Dwords are
// plain stores, which a GPU's L2 may keep: `before_wptr` writes L2 back and waits, once for each slot. All other words
// are atomic, and are in memory as soon as their stores are complete, so a release of such a word only waits. Dwords
// that other lanes of a wave have stored need `before_leader` on each lane, and then a barrier of the wave; then one
// lane announces them, without another write-back (Ring::publish_released). The model takes no dword for visible that
// its own thread has not flushed, whatever a release of another word says.
//
// Ring takes these rules from a policy, so that a test can substitute a model of memory, explore every interleaving,
// and weaken each rule in turn to prove that the exploration notices. The policy has no state; any thread may use it.
// No errors.
#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/compiler.hpp"

#include <atomic>
#include <cstdint>

namespace sdma { inline namespace v0_3 {

/// How the CPU maps the memory of a ring. If you do not know, `write_combining` is the safe assumption.
/// `write_back`: cached host memory; `write_combining`: stores go through a buffer, out of order; `vram`: GPU memory.
enum class Caching : std::uint8_t { write_back, write_combining, vram };

namespace order {

SDMA_DEVICE_BEGIN
/// The policy for real memory. Each constant is one rule: `Ring` uses these and no other memory order.
struct Native {
  template <class T> using Atomic = atomic_word<T, written_back_ref<T>>;  ///< the type of a word that threads share

  // Between producer and engine, on words that both access.
  static constexpr auto kWptr = std::memory_order_release;      ///< 2: dwords before wptr
  static constexpr auto kDoorbell = std::memory_order_release;  ///< 3: wptr before the doorbell
  static constexpr auto kRptr = std::memory_order_acquire;      ///< 7: what the engine has read may be overwritten

  // Between producers.
  static constexpr auto kReserve = std::memory_order_relaxed;   ///< takes a position; only the RMW's atomicity matters
  static constexpr auto kSeenRead = std::memory_order_acquire;  ///< 7, when another producer has loaded rptr
  static constexpr auto kTellRead = std::memory_order_release;  ///< the other producer's side of kSeenRead
  static constexpr auto kTurn = std::memory_order_acquire;      ///< the doorbells of the slots before it have been rung
  static constexpr auto kSeenWptr = std::memory_order_acquire;  ///< what was published had been reserved before
  /// A producer whose turn has not come makes its dwords visible to the one that rings for it; or its turn comes now.
  static constexpr auto kLeave = std::memory_order_acq_rel;
  static constexpr auto kFront = std::memory_order_acquire;  ///< the producer that rings for a slot has seen its dwords
  /// The next slot rings after this one; or its dwords have been seen, and its producer has left.
  static constexpr auto kPass = std::memory_order_acq_rel;
  /// A ticket is free once its slot's doorbell has been rung.
  static constexpr auto kCommit = std::memory_order_release;
  /// The other side of kCommit: for a producer that looks for a free ticket, and for Ring::positions.
  static constexpr auto kCommitted = std::memory_order_acquire;

  /// Loads a word that engines or other threads may store to.
  static std::uint64_t load(const std::uint64_t* word, std::memory_order o) noexcept {
    return atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(word)).load(o);
  }
  /// Stores a word that engines or other threads may load.
  static void store(std::uint64_t* word, std::uint64_t v, std::memory_order o) noexcept {
    written_back_ref<std::uint64_t>(*word).store(v, o);
  }

  /// Called after the dwords of a slot have been stored (`last` is the last one) and before the store that announces
  /// them. That store is wptr or, to another producer, kLeave.
  static void before_wptr([[maybe_unused]] Caching c, [[maybe_unused]] const std::uint32_t* last) noexcept {
#ifdef __AMDGCN__
    SDMA_STORE_FENCE();
#else
    barrier(c);
    if (!SDMA_DEVICE_PASS && c == Caching::vram) [[unlikely]]
      (void)*static_cast<const volatile std::uint32_t*>(last);
#endif
  }
  /// Called on each lane of a wave that has stored dwords of a slot, before the barrier after which one lane publishes.
  static void before_leader() noexcept { SDMA_STORE_FENCE(); }
  /// Called between the stores to wptr and to the doorbell.
  static void before_doorbell(Caching c) noexcept { barrier(c); }

 private:
  static void barrier(Caching c) noexcept {
    if (SDMA_DEVICE_PASS || (SDMA_KEEPS_ORDER && c == Caching::write_back)) return;
    SDMA_STORE_FENCE();
  }
};
static_assert(atomic_ref<std::uint64_t>::is_always_lock_free, "a doorbell is one 64-bit store");
SDMA_DEVICE_END

}  // namespace order

}}  // namespace sdma::v0_3
