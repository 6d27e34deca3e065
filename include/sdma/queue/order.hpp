#pragma once
// Every memory-order rule between a producer, other producers and an engine, each by name, and nothing else.
//
//   producer                                        engine
//   1 packet dwords   plain stores                  4 load doorbell         acquire: sees 1 and 2
//   2 wptr            release: 1 before 2           5 read, execute dwords
//   3 doorbell        release: 2 before 3           6 store rptr            release: reads of 5 before 6
//   7 load rptr       acquire: 6 before the stores that reuse the room
//
// What the memory of the ring asks beyond that is `before_wptr` and `before_doorbell`:
//
//   write_back        x86 keeps stores to cacheable memory in order, and a doorbell page is uncached: no instruction.
//                     Elsewhere a store barrier that reaches devices.
//   write_combining   such stores leave the core in any order until an sfence, which a C++ release does not emit: one
//                     before wptr, and one before the doorbell, for wptr may lie in such memory too. An sfence drains the
//                     buffers of its own core: the producer that wrote the dwords executes it, before it tells another.
//   vram              a ring in VRAM that the CPU writes through the BAR: after the sfence the bytes may still sit on the
//                     way when the engine fetches; reading one back pushes them out. Refused unless asked for.
//
// wptr in memory is stored always, and always before the doorbell: when a queue is mapped again (creation or destruction of
// any queue of the GPU, eviction, reset) the doorbell is gone and the engine starts from there. The doorbell is one aligned
// 64-bit store: in pieces it is an error of its own to the hardware.
//
// A Ring takes these from a policy, so that a test can put a model of memory in their place, explore every interleaving,
// and weaken each rule in turn to see it noticed. Thread-safe by its purpose; no errors.
#include <atomic>
#include <cstdint>

namespace sdma {
inline namespace v0 {

/// How the CPU maps the memory of a ring. `write_combining` is the safe assumption where nobody knows.
enum class Caching : std::uint8_t { write_back, write_combining, vram };

namespace order {

/// The real thing. Each constant is one rule; `Ring` names a rule at each access and no order of its own.
struct Native {
  template <class T> using Atomic = std::atomic<T>;

  // Between producer and engine: words that both map.
  static constexpr auto kWptr = std::memory_order_release;      ///< 2: dwords before wptr
  static constexpr auto kDoorbell = std::memory_order_release;  ///< 3: wptr before the doorbell
  static constexpr auto kRptr = std::memory_order_acquire;      ///< 7: what the engine has read may be overwritten

  // Between producers.
  static constexpr auto kReserve =
      std::memory_order_relaxed;  ///< a position is taken; the RMW itself is what is needed
  static constexpr auto kSeenRead =
      std::memory_order_acquire;  ///< 7 through another producer's eyes: load of what it saw
  static constexpr auto kTellRead = std::memory_order_release;  ///< and its store
  static constexpr auto kDone = std::memory_order_release;      ///< dwords before "this slot is complete"
  static constexpr auto kFront = std::memory_order_acquire;     ///< who rings for a slot has seen its dwords
  static constexpr auto kTakeBell = std::memory_order_acq_rel;  ///< who finds it taken has told the holder of its slot
  static constexpr auto kGiveBell = std::memory_order_acq_rel;  ///< who lets go sees all who found it taken
  static constexpr auto kCommit = std::memory_order_release;    ///< a ticket is free when its slot's doorbell is rung
  static constexpr auto kCommitted = std::memory_order_acquire;

  static std::uint64_t load(const std::uint64_t* word, std::memory_order o) noexcept {
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(o);
  }
  static void store(std::uint64_t* word, std::uint64_t v, std::memory_order o) noexcept {
    std::atomic_ref(*word).store(v, o);
  }

  /// Between the dwords of a slot, the last of which is at `last`, and what tells of them: wptr, or kDone to another producer.
  static void before_wptr(Caching c, const std::uint32_t* last) noexcept {
    barrier(c);
    if (c == Caching::vram) [[unlikely]]
      (void)*static_cast<const volatile std::uint32_t*>(last);
  }
  /// Between wptr and the doorbell.
  static void before_doorbell(Caching c) noexcept { barrier(c); }

 private:
  static void barrier([[maybe_unused]] Caching c) noexcept {
#if defined(__x86_64__)
    if (c != Caching::write_back) __builtin_ia32_sfence();
#elif defined(__aarch64__)
    asm volatile("dmb oshst" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "a doorbell is one 64-bit store");

}  // namespace order

}  // namespace v0
}  // namespace sdma
