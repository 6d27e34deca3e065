// SPDX-License-Identifier: MIT
#pragma once
// A ring that cannot be overrun: reserve a slot, write packets into it, publish it. Nothing here blocks or allocates.
// Any engine may read the ring, in hardware or in software.
//
//   Ring<> ring{memory};
//   auto slot = ring.reserve(64);                       // dwords; Errc::no_space: try again later
//   if (!slot) return slot.error();
//   Writer w{slot->dwords};
//   w.copy({.src = a, .dst = b, .bytes = n});
//   w.put(Atomic{.addr = left, .value = ~0ull});
//   ring.publish(*slot, w.written().size());            // pads with NOPs, stores wptr, rings the doorbell
//
//        read          doorbell = committed            reserved            read + size
//   ------+-----------------+------------------------------+--------------------+------
//         | engine works    | slots that are being written | room               |
//
// Positions count bytes since the ring was first used and never wrap. `reserved - read < size` always holds: at least
// one dword stays free, because no document says that hardware can distinguish a full ring from an empty one. A slot is
// contiguous and at most `max_slot()` dwords: the ring less one dword. Dwords that a slot skips at the end of the ring,
// and dwords that the producer leaves unwritten, become NOPs.
//
//   up to max_slot_anywhere()    half the ring: fits at every position once the engine has read enough
//   up to max_slot()             may fit at the start of the ring only. If it cannot begin at the current position even
//                                in an empty ring, `reserve` publishes NOPs up to the end of the ring and returns
//                                no_space. Try again: once the engine has read the NOPs, the slot fits. While one
//                                producer keeps other slots open, `reserve` publishes nothing, so publish those first.
//                                Among many producers, smaller slots may take the start of the ring before the large
//                                one; then the next try pads again
//
// Some engines take only submissions of a whole number of units: RingMemory::least_dwords. A slot then ends at such a
// unit: NOPs that the slot's dwords do not include fill it up.
//
// sync/submission.hpp waits for room, with a deadline, and divides work that is longer than a slot.
//
//   Ring<Producers::one>    one thread at a time; slots must be published in the order of reserve (asserted)
//   Ring<Producers::many>   any threads, with up to kOpenSlots slots open at once. The engine sees slots in the order
//                           of reserve. `publish` never waits for a slower thread: the thread that completes the slot
//                           at the front rings the doorbell for that slot and all complete slots after it. Doorbell
//                           values never go backwards. A slot that is never published blocks all later ones: to
//                           abandon a slot, call publish(slot, 0). Without contention, reserve and publish execute one
//                           locked instruction each
//
// rptr shows, with a delay, what the engine has consumed; it never shows what has completed. Only a fence or an atomic
// signals completion. The engine may have prefetched published dwords, so a Ring never changes them. After a fork, only
// one of the two processes may produce. A signal handler may use a Ring<many>, but not the one whose producer it
// interrupted: the handler's slot could not reach the engine until the interrupted thread publishes its own.
//
// Generations: a ring has the generation of its engine (RingMemory::generation), and `submit` writes packets of this
// generation. A Writer for its slots is AnyWriter{slot.dwords, {ring.generation()}}. Frames, which are built once, are
// in stream/frame.hpp.
//
// Two Rings over the same memory overwrite each other's packets, in two processes or on a host and in a kernel.
// Errc::two_producers says so: wptr is not what this Ring stored, or rptr is past it. A Ring<one> on the host whose
// memory is write_back compares wptr in every reserve; others compare both when the ring seems full, and so do not
// notice a producer whose packets they have covered with their own.
//
// Errors: Errc::no_space, Errc::two_producers and Errc::too_large from reserve and submit; Errc::bad_argument from
// reserve(0); Errc::bad_packet and Errc::wrong_generation from submit; Errc::bad_ring for memory that `validate`
// rejects.
#include "sdma/core/compiler.hpp"
#include "sdma/core/result.hpp"
#include "sdma/forward.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/queue/order.hpp"

#include <array>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace sdma { inline namespace v0_3 {

/// A doorbell that is a call: a driver that takes the new position as an argument, a software engine to wake, a layer
/// that records submissions. Called with the context and the new wptr, in bytes, after wptr and `doorbell` (if there is
/// one) have been stored with all the fences that the memory needs. With many producers, the thread that rings calls
/// it; calls do not overlap, and their positions grow. It must not submit to the same ring. A kernel does not call it.
using DoorbellCall = void (*)(void* context, std::uint64_t wptr) noexcept;

/// The memory of a queue, as hardware sees it. The creator (KFD, ROCr, a software device, a test) keeps it alive.
struct RingMemory {
  std::span<std::uint32_t> dwords{};           ///< 256-byte aligned; a power of two, at least 256 dwords
  std::uint64_t* rptr{};                       ///< in bytes; written by the engine, which owns 16 bytes from here
  std::uint64_t* wptr{};                       ///< in bytes
  std::uint64_t* doorbell{};                   ///< null if the engine watches wptr, or if `on_doorbell` is the doorbell
  Caching caching = Caching::write_combining;  ///< of `dwords`
  bool accept_vram = false;                    ///< permits Caching::vram, which is slow and easy to get wrong
  DoorbellCall on_doorbell = nullptr;          ///< null: the store to `doorbell` is enough
  void* on_doorbell_context{};                 ///< passed to `on_doorbell`
  std::uint32_t least_dwords = 1;              ///< what is published is a multiple of this: see least_submission
  Generation generation = kDefaultGeneration;  ///< of the engine that reads it: devices set that of their GPU
};

/// The shortest submission that the engines of a target take, in dwords: 64 (256 bytes) on gfx900 to gfx904 and gfx90c,
/// otherwise 1. Source: ROCr, which pads its own to that length. `target`: KFD's gfx_target_version, as 90402.
constexpr std::uint32_t least_submission(std::uint32_t target) noexcept {
  return (target >= 90000 && target <= 90004) || target == 90012 ? 64 : 1;
}

inline constexpr std::size_t kMinRingDwords = 256;  ///< 1 KiB: KFD rounds smaller rings up to this

SDMA_DEVICE_BEGIN
/// Why this memory cannot be a ring, in one sentence; empty if it can. Reads rptr and wptr.
[[nodiscard]] inline std::string_view validate(const RingMemory& m) noexcept {
  using namespace std::string_view_literals;  // their length is known without a call, which a kernel has not
  const auto n = m.dwords.size();
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  if (n < kMinRingDwords) return "the ring is smaller than 1 KiB"sv;
  if ((n & (n - 1)) != 0) return "the size of the ring is not a power of two"sv;
  if (address(m.dwords.data()) % 256 != 0) return "the ring is not aligned to 256 bytes"sv;
  if (!m.rptr) return "rptr is missing"sv;
  if (!m.wptr) return "wptr is missing"sv;
  if (address(m.rptr) % 8 != 0) return "rptr is not aligned to 8 bytes"sv;
  if (address(m.wptr) % 8 != 0) return "wptr is not aligned to 8 bytes"sv;
  if (address(m.doorbell) % 8 != 0) return "the doorbell is not aligned to 8 bytes"sv;
  if (address(m.wptr) - address(m.rptr) < 16)
    return "wptr lies in the 16 bytes from rptr on that belong to the firmware"sv;
  if (m.least_dwords == 0 || (m.least_dwords & (m.least_dwords - 1)) != 0 || m.least_dwords > n / 2)
    return "the shortest submission is not a power of two from 1 dword to half the ring"sv;
  if (m.caching == Caching::vram && !m.accept_vram) return "a ring in VRAM that the CPU writes needs accept_vram"sv;
  const auto w = order::Native::load(m.wptr, std::memory_order_relaxed);
  const auto r = order::Native::load(m.rptr, std::memory_order_relaxed);
  if (w % 4 != 0) return "wptr is not a multiple of 4"sv;
  if (w >> 57 != 0) return "wptr is 2^57 or more, which no ring can have reached"sv;
  if (w - r >= n * 4) return w < r ? "rptr is ahead of wptr"sv : "rptr lags wptr by a whole ring or more"sv;
  return {};
}

/// Contiguous room in the ring.
struct Slot {
  std::span<std::uint32_t> dwords{};  ///< for the producer's packets
  /// Positions in bytes. The range includes dwords that were skipped at the end of the ring.
  std::uint64_t begin{}, end{};
  std::uint32_t ticket{};  ///< used by `publish`; 0 with one producer
};

/// How many threads may produce: `one` at a time, or `many` at once.
enum class Producers : std::uint8_t { one, many };

/// Fills `s` with NOP packets: with one, or with several if one cannot be long enough.
SDMA_NOINLINE constexpr void fill_nops(std::span<std::uint32_t> s) noexcept {
  constexpr auto kLongest = static_cast<std::size_t>(detail::field<Nop, 0>.max());
  while (!s.empty()) {
    const auto n = s.size() < kLongest ? s.size() : kLongest;
    encode_to(Nop{static_cast<std::uint32_t>(n)}, s.data());
    s = s.subspan(n);
  }
}

namespace detail {
#if !defined NDEBUG && !SDMA_DEVICE_PASS
/// Here, and not in Ring, so that programs without NDEBUG do not hold the names of its instances.
[[noreturn]] SDMA_COLD inline void misused() noexcept {
  SDMA_ASSERT(false && "more published than the slot has, or not in the order of reserve");
  std::abort();
}
#endif
SDMA_ALWAYS_INLINE inline void require([[maybe_unused]] bool ok) noexcept {
#if !defined NDEBUG && !SDMA_DEVICE_PASS
  if (!ok) [[unlikely]]
    misused();
#endif
}
}  // namespace detail

template <Producers K, class OrderOf> class Ring {  // the defaults are in forward.hpp: Producers::one, order::Native
  static constexpr bool kMany = K == Producers::many;

 public:
  using Order = OrderOf;                           ///< its memory orders
  static constexpr std::uint32_t kOpenSlots = 64;  ///< how many slots may be open at once, with many producers

  /// Continues at the current wptr. So the ring must be new, or its previous producer must have stopped. If validate(m)
  /// refuses the memory, every reserve returns bad_ring.
  explicit Ring(const RingMemory& m) noexcept : m_(m), bytes_(validate(m).empty() ? m.dwords.size_bytes() : 0) {
    if (bytes_ == 0) return;
    max_slot_ = m.dwords.size() - m.least_dwords;
    if (m.least_dwords == 1) max_plain_ = max_slot_;
    const auto at = Order::load(m.wptr, std::memory_order_relaxed);
    init(reserved_, pack(at, 0));
    init(committed_, pack(at, 0));
    if constexpr (kMany) init(turn_[0], turn(at));
    else if (m.caching == Caching::write_back) watched_ = m.wptr;
    init(read_, Order::load(m.rptr, Order::kRptr));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// The longest slot that this ring can grant, in dwords; 0 if the memory was refused.
  [[nodiscard]] std::size_t max_slot() const noexcept { return max_slot_; }
  /// The longest slot that fits at every position, in dwords: half the ring.
  [[nodiscard]] std::size_t max_slot_anywhere() const noexcept { return static_cast<std::size_t>(bytes_ / 8); }

  /// Reserves room for `dwords` dwords. Errors: no_space (retry after the engine has read more), too_large (more than
  /// max_slot()), bad_argument (zero), two_producers (end this Ring or the other one), bad_ring.
  Result<Slot> reserve(std::size_t dwords) noexcept { return take<false>(dwords); }
  /// For the lanes of a wave, which write all dwords from slot.begin to slot.end themselves: 0, a NOP, in those
  /// before and after the N of the packets. N is at most half the smallest ring; slot.dwords is not set. Errors: as for
  /// `reserve`. Publish it with publish_released.
  template <std::size_t N>
  requires(N != 0 && N <= kMinRingDwords / 2) Errc reserve_unfilled(Slot& slot)
  noexcept {
    if (bytes_ == 0) return Errc::bad_ring;
    if (intruded()) return Errc::two_producers;
    const auto s = take<false, true, false>(padded(static_cast<std::uint32_t>(N)));
    if (s) slot = *s;
    return s ? Errc::ok : s.error();
  }
  /// How many dwords a slot takes: `dwords`, rounded up to RingMemory::least_dwords.
  template <class N> N padded(N dwords) const noexcept {
    const N least = m_.least_dwords;
    return (dwords + least - 1) & ~(least - 1);
  }
  /// How many dwords a slot of that many skips at the end of the ring, if its position is `begin` in dwords.
  std::uint32_t skipped(std::uint32_t begin, std::uint32_t dwords) const noexcept {
    const auto size = static_cast<std::uint32_t>(m_.dwords.size()), offset = begin & (size - 1);
    return offset + dwords > size ? size - offset : 0;
  }

  /// Like `reserve`, but where `reserve` would publish NOPs up to the end of the ring, the slot is that part of the
  /// ring: shorter than `dwords`. Publish it, empty or with packets, and try again.
  Result<Slot> reserve_or_rest(std::size_t dwords) noexcept { return take<true>(dwords); }

  /// Makes a slot visible to the engine; call it once per slot. Dwords after the first `used` become NOPs, so used = 0
  /// abandons the slot. Requires used <= s.dwords.size(). Not inlined, so that each use of a Writer is short.
  SDMA_NOINLINE void publish(const Slot& s, std::size_t used) noexcept {
    detail::require(used <= s.dwords.size());
    if (used != s.dwords.size()) fill_nops(s.dwords.subspan(used));
    publish(s);
  }
  /// The same for a slot whose dwords are all written.
  void publish(const Slot& s) noexcept {
#ifndef NDEBUG
    if constexpr (!kMany) detail::require(s.begin == committed_);  // in the order of reserve
#endif
    Order::before_wptr(m_.caching, &s.dwords.back());  // here, not in ring(): the thread that wrote them must release
    publish_released(s);
  }
  /// The same for a slot whose dwords are all written, and after each thread or lane that wrote some of them has
  /// called Order::before_leader and has met this one.
  void publish_released(const Slot& s) noexcept {
    if constexpr (!kMany) {
      committed_ = s.end;
      ring(s.end);
    } else {
      // Each slot rings in its turn. Its producer and that of the slot before it meet at its word: the second finds
      // what the first has left there, and rings. Alone, a producer finds its turn, and exchanges nothing.
      const auto next = [this](std::uint64_t now) -> auto& { return turn_[ticket(now) % kOpenSlots]; };
      auto& mine = turn_[s.ticket % kOpenSlots];
      if (mine.load(Order::kTurn) != turn(s.begin) && mine.exchange(done(s.end), Order::kLeave) != turn(s.begin))
        return;
      for (auto now = pack(s.end, s.ticket + 1);;) {
        for (std::uint64_t e; (e = next(now).load(Order::kFront)) > turn(position(now));)
          now = pack(e & ~kDoneBit, ticket(now) + 1);
        ring(position(now));
        committed_.store(now, Order::kCommit);
        const auto e = next(now).exchange(turn(position(now)), Order::kPass);
        if (e < turn(position(now))) return;
        now = pack(e & ~kDoneBit, ticket(now) + 1);
      }
    }
  }

  /// Checks, encodes and publishes the packets in one slot with one doorbell: all of them or none. They are those of
  /// the ring's generation. submit<Generation::v6_0>(copy, fence) is for packets that were chosen for 6.0, and refuses
  /// other rings: wrong_generation. Other errors: bad_packet, and those of reserve.
  template <Packet... P> [[nodiscard]] SDMA_ALWAYS_INLINE Errc submit(const P&... p) noexcept {
    if (m_.generation != kDefaultGeneration) [[unlikely]]
      return submit_any(p...);
    return submit_as<kDefaultGeneration>(p...);
  }
  template <Generation G, Packet... P> [[nodiscard]] SDMA_ALWAYS_INLINE Errc submit(const P&... p) noexcept {
    if (m_.generation != G) [[unlikely]]
      return Errc::wrong_generation;
    return submit_as<G>(p...);
  }

  /// The generation of the packets that the ring's engine reads.
  [[nodiscard]] Generation generation() const noexcept { return m_.generation; }

  struct Positions {
    std::uint64_t read, committed, reserved;  ///< in bytes: read by the engine, published, taken
  };
  /// In bytes; read <= committed <= reserved. rptr is loaded first, so the engine may have advanced since. All zero if
  /// the memory was refused.
  [[nodiscard]] Positions positions() const noexcept {
    if (bytes_ == 0) return {};
    const auto read = Order::load(m_.rptr, Order::kRptr), committed = position(load(committed_, Order::kCommitted));
    // The engine may already be past a doorbell whose position `committed_` does not show yet.
    return {read, committed < read ? read : committed, position(load(reserved_, Order::kReserve))};
  }
  /// The memory that the constructor was given, even if it was refused.
  [[nodiscard]] const RingMemory& memory() const noexcept { return m_; }

 private:
  // One producer: a position in bytes. Many producers: position / 4 in the high bits and an 8-bit ticket in the low
  // bits, so that one CAS takes both.
  using Word = std::conditional_t<kMany, typename Order::template Atomic<std::uint64_t>, std::uint64_t>;
  static constexpr std::uint32_t kTicketBits = 8, kTicketMask = (1u << kTicketBits) - 1;
  static constexpr std::uint64_t pack(std::uint64_t position, std::uint32_t ticket) noexcept {
    return kMany ? position / 4 << kTicketBits | (ticket & kTicketMask) : position;
  }
  static constexpr std::uint64_t position(std::uint64_t w) noexcept { return kMany ? (w >> kTicketBits) * 4 : w; }
  static constexpr std::uint32_t ticket(std::uint64_t w) noexcept {
    return kMany ? static_cast<std::uint32_t>(w & kTicketMask) : 0;
  }

  static void init(Word& w, std::uint64_t v) noexcept { store(w, v, std::memory_order_relaxed); }
  static std::uint64_t load(const Word& w, [[maybe_unused]] std::memory_order o) noexcept {
    if constexpr (kMany) return w.load(o);
    else return w;
  }
  static void store(Word& w, std::uint64_t v, [[maybe_unused]] std::memory_order o) noexcept {
    if constexpr (kMany) w.store(v, o);
    else w = v;
  }
  template <Generation G, Packet... P> SDMA_ALWAYS_INLINE Errc submit_as(const P&... p) noexcept {
    if (!(fits<G>(p) && ...)) return Errc::bad_packet;
    const auto s = reserve((length<G>(p) + ...));
    if (!s) return s.error();
    auto* at = s->dwords.data();
    ((at = encode_to<G>(p, at)), ...);
    publish(*s);
    return Errc::ok;
  }
  /// The same where only the running program knows the generation. Not inlined: rings of 4.4.2 do not pay for it.
  template <Packet... P> SDMA_COLD Errc submit_any(const P&... p) noexcept {
    const auto g = m_.generation;
    if (!(fits(p, g) && ...)) return Errc::bad_packet;
    const auto s = reserve((length(p, g) + ...));
    if (!s) return s.error();
    auto* at = s->dwords.data();
    ((at = encode_to(p, at, g)), ...);
    publish(*s);
    return Errc::ok;
  }
  bool advance(std::uint64_t& from, std::uint64_t to) noexcept {
    if constexpr (kMany) return reserved_.compare_exchange_weak(from, to, Order::kReserve, Order::kReserve);
    else reserved_ = to;
    return true;
  }
  /// Has another producer reserved since `r` was loaded? If so, the engine may be past `r`, and an empty ring would
  /// look full.
  bool outdated([[maybe_unused]] std::uint64_t& r) const noexcept {
    if constexpr (kMany) return std::exchange(r, reserved_.load(Order::kReserve)) != r;
    else return false;
  }
  /// Has another Ring published on this memory? Known where wptr may be loaded often.
  bool intruded() const noexcept {
    if constexpr (kMany || SDMA_DEVICE_PASS) return false;
    else return watched_ && Order::load(watched_, std::memory_order_relaxed) != committed_;
  }
  /// Why there is no room: positions in memory that this Ring has neither published nor reserved are another one's.
  SDMA_COLD Errc full(std::uint64_t read) const noexcept {
    const auto published = position(load(committed_, Order::kCommitted));
    const auto w = Order::load(m_.wptr, Order::kSeenWptr);
    const auto reserved = position(load(reserved_, Order::kReserve));
    return w < published || w > reserved || read > reserved ? Errc::two_producers : Errc::no_space;
  }
  // What the word of a slot holds: that it may ring, or that it is complete; or one of these of an earlier slot, which
  // is less. Positions are multiples of 4.
  static constexpr std::uint64_t kDoneBit = 2;
  static constexpr std::uint64_t turn(std::uint64_t begin) noexcept { return begin | 1; }
  static constexpr std::uint64_t done(std::uint64_t end) noexcept { return end | kDoneBit; }

  /// Refuses what is too long, pads where submissions have a shortest length, and skips the end of the ring. Rare, so
  /// it is not inlined, and `take` stays short.
  template <bool Rest> SDMA_COLD Result<Slot> take_rare(std::size_t dwords) noexcept {
    if (dwords - 1 >= max_slot_)
      return bytes_ == 0 ? Errc::bad_ring : dwords == 0 ? Errc::bad_argument : Errc::too_large;
    if (intruded()) return Errc::two_producers;
    auto s = take<Rest, true>(padded(dwords));
    if (!s || s->dwords.size() <= dwords) return s;
    fill_nops(s->dwords.subspan(dwords));
    s->dwords = s->dwords.first(dwords);
    return s;
  }
  /// Rare: with what take_rare is for. Fill: false for a slot of at most half the ring, which its producer fills.
  template <bool Rest, bool Rare = false, bool Fill = true>
  SDMA_ALWAYS_INLINE Result<Slot> take(std::size_t dwords) noexcept {
    if constexpr (!Rare)
      if (dwords - 1 >= max_plain_ || intruded()) [[unlikely]]
        return take_rare<Rest>(dwords);
    const std::uint64_t want = dwords * 4;
    auto r = load(reserved_, Order::kReserve);
    for (;;) {
      const auto begin = position(r), offset = begin & (bytes_ - 1);
      const bool fits = offset + want <= bytes_;
      if constexpr (!Rare)
        if (!fits) [[unlikely]]
          return take_rare<Rest>(dwords);
      const auto skip =
          !Fill  ? std::uint64_t{4} * skipped(static_cast<std::uint32_t>(begin / 4), static_cast<std::uint32_t>(dwords))
          : fits ? 0
                 : bytes_ - offset;
      const bool never_fits = Rare && Fill && skip + want >= bytes_;  // at this position, even if the ring is empty
      const auto end = begin + skip + (never_fits ? 0 : want);
      if (end - load(read_, Order::kSeenRead) >= bytes_) {
        const auto read = Order::load(m_.rptr, Order::kRptr);
        store(read_, read, Order::kTellRead);
        if (end - read >= bytes_) {
          if (outdated(r)) continue;
          return full(read);
        }
      }
      if constexpr (kMany)
        if (((ticket(r) - ticket(load(committed_, Order::kCommitted))) & kTicketMask) >= kOpenSlots) {
          if (outdated(r)) continue;
          return Errc::no_space;
        }
      if constexpr (!kMany && Rare && !Rest)
        if (never_fits && committed_ != begin) return Errc::no_space;
      if (!advance(r, pack(end, ticket(r) + 1))) continue;
      if constexpr (!Fill) return Slot{{}, begin, end, ticket(r)};
      const auto at = m_.dwords.data() + offset / 4;
      if constexpr (Rare) {
        if (never_fits) {
          const Slot rest{{at, static_cast<std::size_t>(skip / 4)}, begin, end, ticket(r)};
          if constexpr (Rest) return rest;
          publish(rest, 0);
          return Errc::no_space;
        }
        if (skip != 0) {
          fill_nops({at, static_cast<std::size_t>(skip / 4)});
          return Slot{{m_.dwords.data(), dwords}, begin, end, ticket(r)};
        }
      }
      return Slot{{at, dwords}, begin, end, ticket(r)};
    }
  }

  void ring(std::uint64_t end) noexcept {
    Order::store(m_.wptr, end, Order::kWptr);
    Order::before_doorbell(m_.caching);
    if (m_.doorbell) Order::store(m_.doorbell, end, Order::kDoorbell);
    if constexpr (!SDMA_DEVICE_PASS)  // a kernel calls nothing: it is a function of the host
      if (m_.on_doorbell) [[unlikely]]
        m_.on_doorbell(m_.on_doorbell_context, end);
  }

  RingMemory m_;
  std::uint64_t bytes_;
  std::size_t max_slot_ = 0, max_plain_ = 0;  ///< the longest slot, and the longest that needs no padding
  Word reserved_{}, committed_{}, read_{};
  const std::uint64_t* watched_{};  ///< wptr, where one producer may load it often
  struct None {};
  SDMA_NO_UNIQUE_ADDRESS
  std::conditional_t<kMany, std::array<typename Order::template Atomic<std::uint64_t>, kOpenSlots>, None> turn_{};
};
SDMA_DEVICE_END

}}  // namespace sdma::v0_3
