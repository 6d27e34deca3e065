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

#include <array>

namespace sdma::inline v0::detail {

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
bool met(const Fetched& f, Machine&) noexcept;

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
  explicit Window(std::uint32_t size) noexcept;

  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == size_; }
  Flight& push(const Fetched&) noexcept;
  std::uint32_t effects(Machine&) noexcept;
  Landed land(std::uint32_t k, Machine&, Allowance&) noexcept;
  void drop(std::uint32_t index) noexcept;
  void clear() noexcept {
    count_ = 0;
    in_part_ = nullptr;
  }

  /// The least position of a packet whose payload is still in the ring, or `otherwise`.
  std::uint64_t oldest_in_ring(std::uint64_t otherwise) const noexcept;
  /// The word that a looping atomic waits for; zero if none does.
  GpuVa waits_for(Machine&) const noexcept;

 private:
  template <class Fn> void each_effect(Machine&, Fn) noexcept;
  Landed land_data(Flight&, std::uint32_t k, Machine&, Allowance&) noexcept;

  std::array<Flight, kMax> flights_;
  std::array<std::uint8_t, kMax> order_{};  ///< the first `count_`: in flight, oldest first; the rest: free
  std::uint32_t size_, count_ = 0;
  const Flight* in_part_ = nullptr;  ///< a piece of this one has landed in part
};

}  // namespace sdma::inline v0::detail
