// SPDX-License-Identifier: MIT
#pragma once
// Puts: what a kernel asks an engine to copy, through a ring that the kernel writes itself. The host takes no part.
//
//   Puts puts{ring};                                 // in a kernel: every lane of the wave calls
//   for (std::uint32_t t = 0; t < n; ++t) {
//     ...                                            // the lanes compute tile t and store it, then:
//     const Writer::Copy tile{.src = src + t * bytes, .dst = dst + t * bytes, .bytes = 4096};
//     if (auto e = puts.put_signal(tile, flag, t + 1); e != Errc::ok) return e;        // no_space: try again
//   }
//   if (auto e = puts.quiet(done, epoch, 1'000'000); e != Errc::ok) return e;          // all tiles may be overwritten
//
//   after         the bytes are at dst   src may be overwritten   the ring has room again
//   put                  no                      no                        no
//   put_signal           once the signal has the value, for a wave or thread that acquires it; src too
//   consumed             no                      no                        yes
//   quiet                yes                     yes                       yes
//
// A put covers what all lanes of its wave have stored before: the wave's release reaches the system. Data of other
// waves needs a barrier of the block first. The puts of a ring are executed in the order of its slots, but a copy may
// begin before an earlier one has ended: what reads the result of another put needs its signal (rules Q1, Q3 of
// docs/ordering.md). `quiet` waits for a fence, and covers all that was published on this ring before it, by any wave.
// `consumed` waits for rptr, which says that an engine has read the packets, and nothing about the bytes.
//
// W is Wave: all lanes call with equal arguments, and write a slot together. With OneLane, each lane is on its own.
// A full ring is Errc::no_space, never a wait: the caller decides. The waits take the number of loads after which they
// give up: Errc::timed_out. A GPU's clock is not asked, because its rate differs between generations.
//
// The Signal's word, the ring's memory and the Ring itself must be mapped for the GPU, uncached or coherent with the
// host. Where the link has no atomics for the host (NVIDIA over PCIe), keep a Ring<many> in the GPU's memory, and let
// no host thread produce: docs/device_side.md. Each wave needs a word of its own for `quiet`, and a larger epoch each
// time. On the host, the same functions run: a wave is one lane.
//
// Errors: those of Ring::submit (bad_packet also for a copy that is longer than one packet), timed_out.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/wave.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/signal.hpp"

#include <concepts>

namespace sdma { inline namespace v0_3 {

SDMA_DEVICE_BEGIN
template <Generation G = kDefaultGeneration, class W = Wave, Producers K = Producers::many, class Order = order::Native>
class Puts {
 public:
  explicit Puts(Ring<K, Order>& ring, W wave = {}) noexcept : ring_(&ring), wave_(wave) {}

  /// Copies. Promises nothing about when. A copy is a Writer::Copy, as Writer::copy takes it, or a CopyLinear.
  [[nodiscard]] Errc put(const Writer::Copy& c) noexcept { return put(packet(c)); }
  [[nodiscard]] Errc put(const std::same_as<CopyLinear> auto& c) noexcept {
    return submit_together<G>(wave_, *ring_, c);
  }

  /// Copies, and stores `value` to the low half of the signal's word once the bytes are there.
  [[nodiscard]] Errc put_signal(const Writer::Copy& c, const Signal& s, std::uint32_t value) noexcept {
    return put_signal(packet(c), s, value);
  }
  [[nodiscard]] Errc put_signal(const std::same_as<CopyLinear> auto& c, const Signal& s, std::uint32_t value) noexcept {
    return submit_together<G>(wave_, *ring_, c, completion_fence(G, s.low_va(), value));
  }
  /// Copies, and adds `n` to the 64-bit word once the bytes are there: many puts may count in one word, if the link to
  /// it has atomics.
  [[nodiscard]] Errc put_add(const Writer::Copy& c, const Signal& s, std::uint64_t n = 1) noexcept {
    return put_add(packet(c), s, n);
  }
  [[nodiscard]] Errc put_add(const std::same_as<CopyLinear> auto& c, const Signal& s, std::uint64_t n = 1) noexcept {
    return submit_together<G>(wave_, *ring_, c, Atomic{.addr = s.va, .op = AtomicOp::add_rtn_64, .value = n});
  }

  /// Waits until all that was put on this ring before is complete: sends a fence of its own, and loads its word at most
  /// `loads` times. `epoch`: larger than the word, and less than 2^31 larger. After timed_out, the fence is still under
  /// way: wait with `reached`, and do not free the word.
  [[nodiscard]] Errc quiet(const Signal& done, std::uint32_t epoch, std::uint32_t loads) noexcept {
    const auto e = submit_together<G>(wave_, *ring_, completion_fence(G, done.low_va(), epoch));
    return e == Errc::ok ? reached(done, epoch, loads) : e;
  }
  /// Waits until the low half of the word has `epoch`, or is past it.
  [[nodiscard]] Errc reached(const Signal& s, std::uint32_t epoch, std::uint32_t loads) noexcept {
    constexpr std::uint32_t kHalf = 0x8000'0000;  // of all epochs
    return until(loads, [&] { return low_half(s.load()) - epoch < kHalf; });
  }
  /// Waits until an engine has read all that was put on this ring before. The sources are not reusable.
  [[nodiscard]] Errc consumed(std::uint32_t loads) noexcept {
    const auto end = ring_->positions().reserved;
    return until(loads, [&] { return ring_->positions().read >= end; });
  }

 private:
  /// Its packet; one without bytes, which no ring takes, if one packet is not enough.
  static constexpr CopyLinear packet(const Writer::Copy& c) noexcept {
    const bool one = c.bytes <= c.chunk && c.bytes <= max_bytes<CopyLinear>(G);
    return {.src = c.src, .dst = c.dst, .bytes = one ? static_cast<std::uint32_t>(c.bytes) : 0};
  }
  /// Lane 0 loads; every lane gets its answer, and sees what it has seen.
  template <class Condition> Errc until(std::uint32_t loads, Condition met) noexcept {
    auto e = Errc::timed_out;
    if (wave_.lane() == 0)
      for (; e != Errc::ok && loads != 0; --loads) {
        if (met()) e = Errc::ok;
        else SDMA_PAUSE();
      }
    e = wave_.first(e);
    wave_.barrier();
    return e;
  }

  Ring<K, Order>* ring_;
  SDMA_NO_UNIQUE_ADDRESS W wave_;
};
template <Producers K, class Order> Puts(Ring<K, Order>&) -> Puts<kDefaultGeneration, Wave, K, Order>;
template <Producers K, class Order, class W> Puts(Ring<K, Order>&, W) -> Puts<kDefaultGeneration, W, K, Order>;
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
