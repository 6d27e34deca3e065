#pragma once
// A ring that cannot overrun: get a slot, write it, publish it. Nothing here blocks, allocates or knows who reads.
//
//   Ring<> ring{memory};
//   auto slot = ring.reserve(64);                       // dwords; no_space: later
//   if (!slot) return slot.error();
//   Writer w{slot->dwords};
//   w.copy({.src = a, .dst = b, .bytes = n});
//   w.put(Atomic{.addr = left, .value = ~0ull});
//   ring.publish(*slot, w.written().size());            // NOPs for the rest, wptr, doorbell
//
//        read          doorbell = committed            reserved            read + size
//   ------+-----------------+------------------------------+--------------------+------
//         | engine works    | slots that are being written | room               |
//
// Positions count bytes from the ring's first use and never wrap. `reserved - read < size`: at least a dword stays free, for
// whether the hardware tells a full ring from an empty one is not known. A slot lies in one piece and is at most half the
// ring; the dwords that it skips at the end of the ring, and those that it leaves unwritten, become NOPs.
//
// Ring<Producers::one>   one thread at a time; slots are published in the order of reserve (asserted).
// Ring<Producers::many>  any threads, kOpenSlots slots open at once. Slots become visible in the order of reserve, and
//                        `publish` never waits for a slower thread: whoever completes the front rings the doorbell for all
//                        that is complete behind it. Doorbell values never go backwards. A slot that is never published
//                        holds back all behind it: give it back with publish(slot, 0).
//
// rptr tells what the engine has consumed, late, and never what is complete: completion is a fence or an atomic.
// What is published may have been fetched: it is never changed. After fork only one of the two processes may produce.
// A signal handler may produce into a Ring<many>, but not into the ring that it interrupted (its slot would wait for one
// that cannot go on).
//
// Errors: Errc::no_space, Errc::too_large; Errc::bad_packet from submit; Errc::bad_ring for memory that `refusal` refuses.
#include "sdma/core/result.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/queue/order.hpp"

#include <array>
#include <cassert>
#include <type_traits>
#include <utility>

namespace sdma {
inline namespace v0 {

/// What a queue is to hardware. Whoever made it (KFD, ROCr, a software device, a test) keeps it alive.
struct RingMemory {
  std::span<std::uint32_t> dwords{};             ///< 256-byte aligned; a power of two, 256 dwords at least
  std::uint64_t* rptr{};                         ///< bytes; written by the engine, which owns the 16 bytes from here on
  std::uint64_t* wptr{};                         ///< bytes
  std::uint64_t* doorbell{};                     ///< null where the engine watches wptr
  Caching caching = Caching::write_combining;    ///< of `dwords`
  bool accept_vram = false;                      ///< Caching::vram is slow and easily wrong: say that it is meant
  void (*wake)(void* waker) noexcept = nullptr;  ///< software engines only: called behind the doorbell
  void* waker{};
};

inline constexpr std::size_t kMinRingDwords = 256;  ///< 1 KiB: what KFD rounds smaller rings up to

/// Why memory cannot be a ring: one sentence, empty if it can. Reads rptr and wptr.
inline std::string_view refusal(const RingMemory& m) noexcept {
  const auto n = m.dwords.size();
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  if (n < kMinRingDwords) return "the ring has less than 1 KiB";
  if ((n & (n - 1)) != 0) return "the size of the ring is no power of two";
  if (address(m.dwords.data()) % 256 != 0) return "the ring is not aligned to 256 bytes";
  if (!m.rptr || !m.wptr) return "rptr or wptr is missing";
  if ((address(m.rptr) | address(m.wptr) | address(m.doorbell)) % 8 != 0)
    return "rptr, wptr or doorbell is not aligned to 8 bytes";
  if (address(m.wptr) - address(m.rptr) < 16)
    return "wptr lies in the 16 bytes from rptr on that belong to the firmware";
  if (m.caching == Caching::vram && !m.accept_vram)
    return "a ring in VRAM that the CPU writes was not asked for (accept_vram)";
  const auto w = order::Native::load(m.wptr, std::memory_order_relaxed);
  const auto r = order::Native::load(m.rptr, std::memory_order_relaxed);
  if (w % 4 != 0) return "wptr is no multiple of 4";
  if (w >> 57 != 0) return "wptr is 2^57 or more, which no ring has come to";
  if (w - r >= n * 4) return "rptr is ahead of wptr, or a whole ring behind it";
  return {};
}

/// Room in the ring, in one piece.
struct Slot {
  std::span<std::uint32_t> dwords{};
  std::uint64_t begin{}, end{};  ///< positions, bytes; what was skipped at the ring's end included
  std::uint32_t ticket{};
};

enum class Producers : std::uint8_t { one, many };

/// Fills `s` with NOPs: several where one is too short.
constexpr void fill_nops(std::span<std::uint32_t> s) noexcept {
  constexpr auto kLongest = static_cast<std::size_t>(detail::field<Nop, 0>.max());
  while (!s.empty()) {
    const auto n = s.size() < kLongest ? s.size() : kLongest;
    encode_to(Nop{static_cast<std::uint32_t>(n)}, s.data());
    s = s.subspan(n);
  }
}

template <Producers K = Producers::one, class Order = order::Native> class Ring {
  static constexpr bool kMany = K == Producers::many;

 public:
  static constexpr std::uint32_t kOpenSlots = 64;  ///< of many producers, at once

  /// Continues where wptr stands: on a fresh ring, or on that of somebody who has stopped producing. On memory that
  /// refusal(m) refuses, every reserve answers bad_ring.
  explicit Ring(const RingMemory& m) noexcept : m_(m), bytes_(refusal(m).empty() ? m.dwords.size_bytes() : 0) {
    if (bytes_ == 0) return;
    const auto at = Order::load(m.wptr, std::memory_order_relaxed);
    init(reserved_, pack(at, 0));
    init(committed_, pack(at, 0));
    init(read_, Order::load(m.rptr, Order::kRptr));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Room for `dwords`, or no_space (try again when the engine has moved), or too_large (never fits), or bad_ring.
  Result<Slot> reserve(std::size_t dwords) noexcept {
    if (dwords - 1 >= bytes_ / 8) [[unlikely]]
      return bytes_ != 0 ? Errc::too_large : Errc::bad_ring;
    const std::uint64_t want = dwords * 4;
    auto r = load(reserved_, Order::kReserve);
    for (;;) {
      const auto begin = position(r), offset = begin & (bytes_ - 1);
      const auto skip = offset + want > bytes_ ? bytes_ - offset : 0;
      const auto end = begin + skip + want;
      if (end - load(read_, Order::kSeenRead) >= bytes_) {
        const auto read = Order::load(m_.rptr, Order::kRptr);
        store(read_, read, Order::kTellRead);
        if (end - read >= bytes_) {
          if (outdated(r)) continue;
          return Errc::no_space;
        }
      }
      if constexpr (kMany)
        if (((ticket(r) - ticket(load(committed_, Order::kCommitted))) & kTicketMask) >= kOpenSlots) {
          if (outdated(r)) continue;
          return Errc::no_space;
        }
      if (!advance(r, pack(end, ticket(r) + 1))) continue;
      const auto at = m_.dwords.data() + offset / 4;
      if (skip != 0) [[unlikely]] {
        fill_nops({at, skip / 4});
        return Slot{{m_.dwords.data(), dwords}, begin, end, ticket(r)};
      }
      return Slot{{at, dwords}, begin, end, ticket(r)};
    }
  }

  /// Hands a slot to the engine, once. What was not written becomes NOPs, so `used` = 0 gives a slot back. Requires
  /// used <= s.dwords.size().
  void publish(const Slot& s, std::size_t used) noexcept {
    assert(used <= s.dwords.size());
    if (used != s.dwords.size()) fill_nops(s.dwords.subspan(used));
    Order::before_wptr(m_.caching, &s.dwords.back());  // here, not in ring(): who wrote the dwords lets go of them
    if constexpr (!kMany) {
      assert(s.begin == committed_ && "slots of one producer are published in the order of reserve");
      committed_ = s.end;
      ring(s.end);
    } else {
      done_[s.ticket % kOpenSlots].store(s.end, Order::kDone);
      // Whoever finds the bell taken leaves: its holder looks again after letting go, and the exchange shows it our slot.
      while (!bell_.exchange(true, Order::kTakeBell)) {
        const auto before = committed_.load(std::memory_order_relaxed);  // only the holder of the bell stores it
        auto now = before;
        for (std::uint64_t e; (e = front(now)) > position(now);) now = pack(e, ticket(now) + 1);
        if (now != before) {
          ring(position(now));
          committed_.store(now, Order::kCommit);
        }
        bell_.exchange(false, Order::kGiveBell);
        if (front(now) <= position(now)) return;
      }
    }
  }
  void publish(const Slot& s) noexcept { publish(s, s.dwords.size()); }

  /// Packets whose number is known: one slot, one doorbell; all or nothing.
  template <Packet... P> [[gnu::always_inline]] Errc submit(const P&... p) noexcept {
    if (!(fits(p) && ...)) return Errc::bad_packet;
    const auto s = reserve((length(p) + ...));
    if (!s) return s.error();
    auto* at = s->dwords.data();
    ((at = encode_to(p, at)), ...);
    publish(*s);
    return Errc::ok;
  }

  struct Positions {
    std::uint64_t read, committed, reserved;
  };
  /// Bytes; read <= committed <= reserved. `read` is rptr as it stood first: others may have gone on since. On memory that
  /// was refused: zeros.
  Positions positions() const noexcept {
    if (bytes_ == 0) return {};
    const auto read = Order::load(m_.rptr, Order::kRptr), committed = position(load(committed_, Order::kCommitted));
    // The engine may be past a doorbell whose ringer has not yet said so to us.
    return {read, committed < read ? read : committed, position(load(reserved_, Order::kReserve))};
  }
  const RingMemory& memory() const noexcept { return m_; }

 private:
  // One producer: a position in bytes. Many: position / 4 above an 8-bit ticket, so that one CAS takes both.
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
  bool advance(std::uint64_t& from, std::uint64_t to) noexcept {
    if constexpr (kMany) return reserved_.compare_exchange_weak(from, to, Order::kReserve, Order::kReserve);
    else reserved_ = to;
    return true;
  }
  /// Has somebody reserved since `r` was loaded? The engine may even have passed it, and an empty ring would look full.
  bool outdated([[maybe_unused]] std::uint64_t& r) const noexcept {
    if constexpr (kMany) return std::exchange(r, reserved_.load(Order::kReserve)) != r;
    else return false;
  }
  /// Where the slot at the front ends, if it is complete; else at most `c`'s own position.
  std::uint64_t front(std::uint64_t c) const noexcept { return done_[ticket(c) % kOpenSlots].load(Order::kFront); }

  void ring(std::uint64_t end) noexcept {
    Order::store(m_.wptr, end, Order::kWptr);
    Order::before_doorbell(m_.caching);
    if (m_.doorbell) Order::store(m_.doorbell, end, Order::kDoorbell);
    if (m_.wake) [[unlikely]]
      m_.wake(m_.waker);
  }

  RingMemory m_;
  std::uint64_t bytes_;
  Word reserved_{}, committed_{}, read_{};
  struct None {};
  [[no_unique_address]] std::conditional_t<kMany,
                                           std::array<typename Order::template Atomic<std::uint64_t>, kOpenSlots>, None>
      done_{};
  [[no_unique_address]] std::conditional_t<kMany, typename Order::template Atomic<bool>, None> bell_{};
};

}  // namespace v0
}  // namespace sdma
