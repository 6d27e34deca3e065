#pragma once
// A word in memory that engines and hosts raise and wait for.
//
//   Signal done{.word = host_pointer, .va = GpuVa{...}};          // 8 bytes, 8-byte aligned, in system memory
//   w.put(Atomic{.addr = done.va, .value = 1});                   // an engine raises it
//   wait(done, Compare::ge, 1, Deadline::in(200ms), ring);        // sync/wait.hpp
//   done.set(7);                                                  // the host raises it: what was written before is seen
//   w.put(PollMem{.addr = done.low(), .func = Compare::ge, .reference = 7});
//
//            va                va + 4
//     word = [ low dword       | high dword ]      a poll compares one of the two, a fence stores one of the two
//
// Not an owner: whoever made the word keeps it until every queue that polls or changes it is destroyed or past it. A signal
// that gangs share outlives all of them.
//
// Ordering. `load` acquires: what was released before the value was stored is seen by what follows. In system memory that
// is all: engines snoop the caches. `set` releases: what this thread wrote before it, is seen by whoever sees the value.
// A C++ release does not order stores to write-combining memory nor non-temporal ones, so `set` issues an sfence unless
// told that all it releases went through caches. Data in VRAM that the CPU wrote through the BAR needs a flush of the host
// data path as well, packet HdpFlush behind the poll: no store to a signal replaces it.
//
// Values should be monotone (epochs). A word that is reset while a poll of the round before has not run yet satisfies that
// poll, or hangs it, and nobody is told: reset only when the completion of every poller was seen.
//
// Any thread, at any time. No errors: a Signal whose word is null, or not 8-byte aligned, is the caller's mistake (asserted).
#include "sdma/core/deadline.hpp"
#include "sdma/core/units.hpp"
#include "sdma/queue/order.hpp"

#include <atomic>
#include <cassert>
#include <cstdint>

namespace sdma {
inline namespace v0 {

/// A 64-bit word, seen by the host at `word` and by engines at `va`.
struct Signal {
  /// Sleeps until the word may differ from `seen`, or until the deadline; early returns are allowed. It must compare the
  /// word with `seen` after it has announced itself, or a change between the caller's look and its own sleep is lost; and
  /// it must look again at least each millisecond where somebody may store the word without waking it (by its address).
  using Sleep = void (*)(void* context, std::uint64_t* word, std::uint64_t seen, Deadline) noexcept;
  /// Called behind the store of `set` and `add`: wakes who sleeps until the word at `va` changes, engines in software too.
  using Wake = void (*)(void* context, GpuVa va) noexcept;

  std::uint64_t* word{};
  GpuVa va{};
  Sleep sleep = nullptr;  ///< null: waits spin, yield and nap (sync/wait.hpp). Software devices sleep on a condition.
  void* context{};
  Wake wake = nullptr;  ///< null: engines look at memory by themselves, as hardware does

  std::uint64_t load() const noexcept { return ref().load(std::memory_order_acquire); }

  /// Stores `value` and releases what this thread wrote before. `written`: the weakest memory that it wrote.
  void set(std::uint64_t value, Caching written = Caching::write_combining) const noexcept {
    order::Native::before_doorbell(written);
    ref().store(value, std::memory_order_release);
    if (wake) wake(context, va);
  }

  /// Adds, indivisibly also with engines' atomics where the link completes PCIe AtomicOps, and returns the new value.
  /// Releases as `set` does, and acquires what earlier adders released. Two's complement: ~0 takes one away.
  std::uint64_t add(std::uint64_t n, Caching written = Caching::write_combining) const noexcept {
    order::Native::before_doorbell(written);
    const auto sum = ref().fetch_add(n, std::memory_order_acq_rel) + n;
    if (wake) wake(context, va);
    return sum;
  }

  /// Where polls and fences find the halves.
  constexpr GpuVa low() const noexcept { return va; }
  constexpr GpuVa high() const noexcept { return va + 4; }

 private:
  std::atomic_ref<std::uint64_t> ref() const noexcept {
    assert(word && reinterpret_cast<std::uintptr_t>(word) % 8 == 0);
    return std::atomic_ref(*word);
  }
};

/// The half of a value that a poll of Signal::low() compares, and that of Signal::high().
constexpr std::uint32_t low_half(std::uint64_t v) noexcept { return static_cast<std::uint32_t>(v); }
constexpr std::uint32_t high_half(std::uint64_t v) noexcept { return static_cast<std::uint32_t>(v >> 32); }

}  // namespace v0
}  // namespace sdma
