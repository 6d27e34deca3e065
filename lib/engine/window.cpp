// SPDX-License-Identifier: MIT
#include "window.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace sdma::inline v0::detail {

namespace {

/// The i-th set bit.
std::uint32_t nth_bit(std::uint64_t bits, std::uint32_t i) noexcept {
  for (; i > 0; --i) bits &= bits - 1;
  return static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::uint64_t peek(Machine& m, GpuVa va, std::uint32_t bytes) noexcept {
  auto* at = m.memory.at(va, bytes, Access::read);
  if (!at) return 0;
  if (bytes == 4) return atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
  return atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_acquire);
}

// Unmapped memory counts as satisfied: the packet then starts, and stops the queue with a fault.
template <class P> bool met(const P&, Machine&) noexcept { return true; }
bool met(const PollMem& p, Machine& m) noexcept { return execute(p, m) != Outcome::not_yet; }
bool met(const Semaphore& p, Machine& m) noexcept {
  return p.signal || !m.memory.at(p.addr, 8, Access::read) || peek(m, p.addr, 8) != 0;
}
bool met(const Atomic& p, Machine& m) noexcept {
  return !p.loop || !m.memory.at(p.addr, width(p.op), Access::read) ||
         matches(p.op, peek(m, p.addr, width(p.op)), p.compare);
}

}  // namespace

bool met(const Fetched& f, Machine& m) noexcept {
  bool yes = true;
  typed(f, m.memory, [&](const auto& p) {
    yes = met(p, m);
    return Outcome::done;
  });
  return yes;
}

Window::Window(std::uint32_t size) noexcept : size_(std::clamp(size, 1u, kMax)) {
  for (std::uint32_t i = 0; i < kMax; ++i) order_[i] = static_cast<std::uint8_t>(i);
}

Flight& Window::push(const Fetched& f) noexcept {
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

void Window::drop(std::uint32_t index) noexcept {
  const auto slot = order_[index];
  std::copy(order_.begin() + index + 1, order_.begin() + count_, order_.begin() + index);
  order_[--count_] = slot;
}

/// fn(index, how many of its effects may land now), oldest first, until it returns false.
template <class Fn> void Window::each_effect(Machine& m, Fn fn) noexcept {
  bool effect_before = false, vram_effect_before = false, release_before = false;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const auto& f = flights_[order_[i]];
    std::uint32_t n = 0;
    if (in_part_) n = &f == in_part_;
    else if (f.role == Role::data) n = static_cast<std::uint32_t>(std::popcount(f.stores ? f.stores : f.todo));
    else if (f.role == Role::stamp) n = !effect_before;
    else if (f.role == Role::release) n = !(f.in_vram ? vram_effect_before : effect_before) && detail::met(f, m);
    else n = !release_before;
    if (n != 0 && !fn(i, n)) return;
    if (f.role == Role::notify || f.role == Role::release) release_before = true;
    if (f.role == Role::notify) continue;
    effect_before = true;
    if (!f.to_host) vram_effect_before = true;
  }
}

std::uint32_t Window::effects(Machine& m) noexcept {
  std::uint32_t all = 0;
  each_effect(m, [&](std::uint32_t, std::uint32_t n) {
    all += n;
    return true;
  });
  return all;
}

Landed Window::land(std::uint32_t k, Machine& m, Allowance& left) noexcept {
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

Landed Window::land_data(Flight& f, std::uint32_t k, Machine& m, Allowance& left) noexcept {
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

std::uint64_t Window::oldest_in_ring(std::uint64_t otherwise) const noexcept {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (const auto& f = flights_[order_[i]]; f.in_ring) return std::min(otherwise, f.position);
  return otherwise;
}

GpuVa Window::waits_for(Machine& m) const noexcept {
  GpuVa word;
  for (std::uint32_t i = 0; i < count_ && word == GpuVa{}; ++i) {
    const auto& f = flights_[order_[i]];
    if (f.role != Role::release || detail::met(f, m)) continue;
    typed(f, m.memory, [&](const auto& p) {
      if constexpr (std::is_same_v<decltype(p), const Atomic&>) word = p.addr;
      return Outcome::done;
    });
  }
  return word;
}

}  // namespace sdma::inline v0::detail
