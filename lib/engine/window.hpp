// SPDX-License-Identifier: MIT
#pragma once
// Packets in flight: those that have started and have not landed, and which of their effects may land next.
//
//   Window w{size};
//   Flight& f = w.push();  ...             // Requires !full()
//   n = w.effects(machine);                // how many effects may land now: any of 0 to n - 1
//   landed = w.land(k, machine, left);     // Landed::last: it was the packet's last effect
//
// `land` executes at most what the step's Allowance permits. If that is only a part of an effect, the rest of that
// effect is the only one that may land next, so an effect looks whole to all other packets of the queue.
//
// `effects` holds all rules of the ordering model about effects: data lands at any time; a release or a timestamp after
// every earlier effect; an interrupt after every earlier release. A release to VRAM need not wait for data that goes to
// host memory only (Q3: nothing shows that it does). One thread; no allocation.
#include "allowance.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The i-th set bit.
inline std::uint32_t nth_bit(std::uint64_t bits, std::uint32_t i) noexcept {
  for (; i > 0; --i) bits &= bits - 1;
  return static_cast<std::uint32_t>(std::countr_zero(bits));
}

inline std::uint64_t peek(Machine& m, GpuVa va, std::uint32_t bytes) noexcept {
  auto* at = m.memory.at(va, bytes, Access::read);
  if (!at) return 0;
  if (bytes == 4) return atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
  return atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_acquire);
}

// Unmapped memory counts as satisfied: the packet then starts, and stops the queue with a fault.
template <class P> bool satisfied(const P&, Machine&) noexcept { return true; }
inline bool satisfied(const PollMem& p, Machine& m) noexcept { return execute(p, m) != Outcome::not_yet; }
inline bool satisfied(const Semaphore& p, Machine& m) noexcept {
  return p.signal || !m.memory.at(p.addr, 8, Access::read) || peek(m, p.addr, 8) != 0;
}

inline bool satisfied(const Atomic& p, Machine& m) noexcept {
  return !p.loop || !m.memory.at(p.addr, width(p.op), Access::read) ||
         matches(p.op, peek(m, p.addr, width(p.op)), p.compare);
}

/// A packet as it was fetched: its first dwords are a copy, so that they cannot change between check and use.
struct Fetched {
  enum class Payload : std::uint8_t { none, head, pointer, va };

  const PacketInfo* info{};
  std::array<std::uint32_t, PacketInfo::kMaxHead> head{};
  std::uint32_t length{};  ///< dwords
  std::uint32_t payload_dwords{};
  Payload payload = Payload::none;
  std::uint8_t depth{};
  bool in_ring{};  ///< the payload stays in the ring until this packet has landed
  Role role = Role::none;
  const std::uint32_t* pointer{};
  GpuVa va{};
  std::uint64_t position{}, offset{};
};

/// fn(packet) with the typed value; Outcome::lost if its payload is no longer mapped.
template <class Fn> Outcome typed(const Fetched& f, AddressSpace::Reader& reader, Fn fn) noexcept {
  auto outcome = Outcome::lost;
  if (f.payload == Fetched::Payload::none) [[likely]] {
    visit(*f.info, f.head, [&](const auto& p) { outcome = fn(p); });
    return outcome;
  }
  // The payload need not follow the copied dwords. So the packet is decoded without it, and it is filled in here.
  auto head = f.head;
  store(*f.info->counted, 0, head.data());
  visit(*f.info, head, [&](const auto& p) {
    if constexpr (std::is_same_v<decltype(p), const Write&>) {
      Write w = p;
      const auto* at =
          f.payload == Fetched::Payload::head ? f.head.data() + grammar::layout<Write>.length.fixed : f.pointer;
      if (f.payload == Fetched::Payload::va)
        at = reinterpret_cast<const std::uint32_t*>(reader.at(f.va, std::uint64_t{4} * f.payload_dwords, Access::read));
      if (!at) return;
      w.data = {at, f.payload_dwords};
      outcome = fn(w);
    } else {
      outcome = fn(p);
    }
  });
  return outcome;
}

/// Is the condition of `f` satisfied? False only for a poll, a semaphore or a looping atomic whose word does not have
/// the awaited value yet. Changes nothing.
inline bool met(const Fetched& f, Machine& m) noexcept {
  bool yes = true;
  typed(f, m.memory, [&](const auto& p) {
    yes = satisfied(p, m);
    return Outcome::done;
  });
  return yes;
}

struct Flight : Fetched {
  std::uint64_t work{};  ///< bytes
  std::uint64_t todo{};  ///< bit i: piece i is not loaded yet; bit 0 if the packet is not divisible
  std::uint32_t pieces = 1;
  std::uint32_t staged{};   ///< the piece that is loaded, while `stores` is not 0, or that has landed in part
  std::uint64_t reached{};  ///< where the rest of a piece begins that has landed in part; 0: there is none
  std::uint32_t stores{};   ///< bit i: store i of that piece has not been performed yet
  std::uint32_t places{};   ///< how many separate stores follow the load of a piece; 0: load and store are one step
  /// Data that goes to host memory only; a release to VRAM, which may land before it.
  bool to_host = false, in_vram = false;
  Stage stage;

  Part piece(std::uint32_t i) const noexcept {
    // The product does not overflow: 64 pieces of at most 2^44 bytes.
    return {work * i / pieces, work * (i + 1) / pieces};
  }
  bool landed() const noexcept { return todo == 0 && stores == 0 && reached == 0; }
};

struct Landed {
  Outcome outcome = Outcome::done;
  const Flight* flight{};  ///< whose effect it was
  bool last{};             ///< all of its effects have landed: drop it
  std::uint32_t index{};   ///< the argument for drop
};

class Window {
 public:
  static constexpr std::uint32_t kMax = 32;
  explicit Window(std::uint32_t size) noexcept : size_(std::clamp(size, 1u, kMax)) {
    for (std::uint32_t i = 0; i < kMax; ++i) order_[i] = static_cast<std::uint8_t>(i);
  }

  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == size_; }
  Flight& push(const Fetched& f) noexcept {
    auto& flight = flights_[order_[count_++]];
    static_cast<Fetched&>(flight) = f;
    flight.work = 0;
    flight.todo = 1;
    flight.pieces = 1;
    flight.stores = flight.places = 0;
    flight.to_host = flight.in_vram = false;
    flight.reached = 0;
    return flight;
  }
  std::uint32_t effects(Machine& m) noexcept {
    std::uint32_t all = 0;
    each_effect(m, [&](std::uint32_t, std::uint32_t n) {
      all += n;
      return true;
    });
    return all;
  }
  Landed land(std::uint32_t k, Machine& m, Allowance& left) noexcept {
    Landed l;
    each_effect(m, [&](std::uint32_t i, std::uint32_t n) {
      if (k >= n) {
        k -= n;
        return true;
      }
      auto& f = flights_[order_[i]];
      if (f.role == Role::data) {
        l = land_data(f, k, m, left);
      } else {
        l.outcome = typed(f, m.memory, [&](const auto& p) {
          if constexpr (requires { execute(p, m); }) return execute(p, m);
          else return Outcome::lost;
        });
        // The word of a looping atomic may have changed since it was read.
        if (l.outcome != Outcome::not_yet) f.todo = 0;
      }
      l.flight = &f;
      l.index = i;
      l.last = f.landed();
      return false;
    });
    return l;
  }
  void drop(std::uint32_t index) noexcept {
    const auto slot = order_[index];
    std::copy(order_.begin() + index + 1, order_.begin() + count_, order_.begin() + index);
    order_[--count_] = slot;
  }
  void clear() noexcept {
    count_ = 0;
    in_part_ = nullptr;
  }

  /// The least position of a packet whose payload is still in the ring, or `otherwise`.
  std::uint64_t oldest_in_ring(std::uint64_t otherwise) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (const auto& f = flights_[order_[i]]; f.in_ring) return std::min(otherwise, f.position);
    return otherwise;
  }
  /// The word that a looping atomic waits for; zero if none does.
  GpuVa waits_for(Machine& m) const noexcept {
    GpuVa word;
    for (std::uint32_t i = 0; i < count_ && word == GpuVa{}; ++i) {
      const auto& f = flights_[order_[i]];
      if (f.role != Role::release || met(f, m)) continue;
      typed(f, m.memory, [&](const auto& p) {
        if constexpr (std::is_same_v<decltype(p), const Atomic&>) word = p.addr;
        return Outcome::done;
      });
    }
    return word;
  }

 private:
  /// fn(index, how many of its effects may land now), oldest first, until it returns false.
  template <class Fn> void each_effect(Machine& m, Fn fn) noexcept {
    bool effect_before = false, vram_effect_before = false, release_before = false;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const auto& f = flights_[order_[i]];
      std::uint32_t n = 0;
      if (in_part_) n = &f == in_part_;
      else if (f.role == Role::data) n = static_cast<std::uint32_t>(std::popcount(f.stores ? f.stores : f.todo));
      else if (f.role == Role::stamp) n = !effect_before;
      else if (f.role == Role::release) n = !(f.in_vram ? vram_effect_before : effect_before) && met(f, m);
      else n = !release_before;
      if (n != 0 && !fn(i, n)) return;
      if (f.role == Role::notify || f.role == Role::release) release_before = true;
      if (f.role == Role::notify) continue;
      effect_before = true;
      if (!f.to_host) vram_effect_before = true;
    }
  }
  Landed land_data(Flight& f, std::uint32_t k, Machine& m, Allowance& left) noexcept {
    Landed l;
    const bool storing = f.stores != 0, continues = f.reached != 0;
    const auto which = continues ? f.staged : nth_bit(storing ? f.stores : f.todo, k);
    const auto piece = f.piece(storing ? f.staged : which);
    const bool apart = f.places != 0 && piece.end - piece.begin <= Stage::kBytes;
    auto part = piece;
    l.outcome = typed(f, m.memory, [&](const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (kStores<P> != 0) {
        if (storing) return sdma::store(p, m, part, f.stage, which);
        if (apart) return load(p, m, part, f.stage);
      }
      if constexpr (Divisible<P>) {
        if (continues) part.begin = f.reached;
        part = left.take(p, part);
        return execute(p, m, part);
      } else {
        return Outcome::lost;
      }
    });
    if (storing) {
      f.stores &= ~(1u << which);
      return l;
    }
    f.todo &= ~(std::uint64_t{1} << which);
    f.staged = which;
    f.reached = part.end == piece.end ? 0 : part.end;
    in_part_ = f.reached == 0 ? nullptr : &f;
    if (apart) f.stores = (1u << f.places) - 1;
    return l;
  }

  std::array<Flight, kMax> flights_;
  std::array<std::uint8_t, kMax> order_{};  ///< the first `count_`: in flight, oldest first; the rest: free
  std::uint32_t size_, count_ = 0;
  const Flight* in_part_ = nullptr;  ///< a piece of this one has landed in part
};

}}}  // namespace sdma::v0_3::detail
