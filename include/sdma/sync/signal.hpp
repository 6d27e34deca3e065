// SPDX-License-Identifier: MIT
#pragma once
// A 64-bit word in memory, which engines and host threads post to and wait for.
//
//   Signal done{.word = host_pointer, .va = GpuVa{0x7f0000001000}};   // 8 bytes, 8-byte aligned, in system memory
//   w.put(Atomic{.addr = done.va, .value = 1});                       // an engine signals it
//   wait(done, Compare::ge, 1, Deadline::in(200ms), ring);            // the host waits: sync/wait.hpp
//   done.set(7);                                                      // the host signals it, and releases its writes
//   w.put(PollMem{.addr = done.low_va(), .func = Compare::ge, .reference = 7});
//
//            va                va + 4
//     word = [ low dword       | high dword ]      a poll compares one of the two, a fence stores one of the two
//
// A Signal does not own its word. The allocator of the word keeps it until every queue that polls or changes it has
// been destroyed, or has executed the last packet that does so. A signal shared by several queues must outlive all of
// them.
//
// Ordering. `load` acquires: everything that was released before the value was stored is visible to later loads. For
// data in system memory, nothing more is needed, because engines snoop the CPU caches. `set` releases: a reader that
// sees the value also sees what this thread wrote before. A C++ release does not order non-temporal stores or stores to
// write-combining memory, so `set` issues an sfence unless the caller says that everything it releases was written
// through caches. Data in VRAM that the CPU wrote through the PCIe BAR also needs an HdpFlush packet after the poll: no
// store to a signal replaces it.
//
// Values should be monotone (epochs). If a word is reset before a poll of the previous round has run, that poll is
// satisfied too early or hangs, and nothing reports it. Reset a word only after you have seen the completions of all
// its pollers.
//
// Any thread may use a Signal at any time. No errors: the word must be neither null nor misaligned (asserted).
#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/units.hpp"
#include "sdma/queue/order.hpp"

#include <atomic>
#include <cassert>
#include <cstdint>

namespace sdma { inline namespace v0_3 {

SDMA_DEVICE_BEGIN
/// A 64-bit word, seen by the host at `word` and by engines at `va`.
struct Signal {
  /// Sleeps until the word may differ from `seen`, or until the deadline; it may return early. The hook must compare
  /// the word with `seen` after it has registered as a sleeper. Otherwise it misses a change between the caller's load
  /// and its sleep. A program that stores the word by its address does not wake sleepers. If that may happen, the hook
  /// must check the word at least every millisecond.
  using Sleep = void (*)(void* context, std::uint64_t* word, std::uint64_t seen, Deadline) noexcept;
  /// Called after the store of `set` and `add` on the host: wakes the threads and software engines that sleep until the
  /// word at `va` changes. A kernel does not call it.
  using Wake = void (*)(void* context, GpuVa va) noexcept;

  std::uint64_t* word{};  ///< the host's pointer to it; 8-byte aligned
  GpuVa va{};             ///< its address as engines see it
  Sleep sleep = nullptr;  ///< null: waits spin, yield and nap (sync/wait.hpp). Software devices sleep on a condition.
  void* context{};        ///< passed to `sleep` and `wake`
  Wake wake = nullptr;    ///< null: engines poll memory by themselves, as hardware does

  /// The word's value, loaded with acquire.
  std::uint64_t load() const noexcept { return ref().load(std::memory_order_acquire); }

  /// Stores `value`, and releases what this thread wrote before. `written`: how the memory that the thread wrote is
  /// mapped. If there are several kinds, pass the weakest (vram, then write_combining, then write_back).
  void set(std::uint64_t value, Caching written = Caching::write_combining) const noexcept {
    order::Native::before_doorbell(written);
    ref().store(value, std::memory_order_release);
    woken();
  }

  /// Adds `n` and returns the new value. The addition is atomic, also with respect to engines' atomics if the link
  /// completes PCIe AtomicOps. Releases like `set`, and acquires what earlier adders released. Two's complement: ~0
  /// subtracts one.
  std::uint64_t add(std::uint64_t n, Caching written = Caching::write_combining) const noexcept {
    order::Native::before_doorbell(written);
    const auto sum = ref().fetch_add(n, std::memory_order_acq_rel) + n;
    woken();
    return sum;
  }

  /// The address of the low half, for polls and fences: the low dword.
  [[nodiscard]] constexpr GpuVa low_va() const noexcept { return va; }
  /// The address of the high half.
  [[nodiscard]] constexpr GpuVa high_va() const noexcept { return va + 4; }

  [[deprecated("use low_va()")]] constexpr GpuVa low() const noexcept { return va; }        ///< deprecated: low_va()
  [[deprecated("use high_va()")]] constexpr GpuVa high() const noexcept { return va + 4; }  ///< deprecated: high_va()

 private:
  /// A kernel calls nothing: `wake` is a function of the host.
  void woken() const noexcept {
    if constexpr (!SDMA_DEVICE_PASS)
      if (wake) wake(context, va);
  }
  atomic_ref<std::uint64_t> ref() const noexcept {
    SDMA_ASSERT(word && reinterpret_cast<std::uintptr_t>(word) % 8 == 0);
    return atomic_ref<std::uint64_t>(*word);
  }
};
SDMA_DEVICE_END

/// The half of a value that a poll of Signal::low_va() compares, and below it the one of Signal::high_va().
constexpr std::uint32_t low_half(std::uint64_t v) noexcept { return static_cast<std::uint32_t>(v); }
/// The high 32 bits of a value.
constexpr std::uint32_t high_half(std::uint64_t v) noexcept { return static_cast<std::uint32_t>(v >> 32); }

}}  // namespace sdma::v0_3
