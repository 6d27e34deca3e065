// SPDX-License-Identifier: MIT
#include "execute.hpp"

#include "sdma/core/atomic_ref.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace sdma { inline namespace v0_3 {

std::uint64_t host_ticks() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) / 10;
}

namespace {

using MemoryReader = AddressSpace::Reader;

/// Calls fn(pointer, bytes) for each piece of host memory that backs [va, va + bytes).
template <class Fn> Outcome each_piece(MemoryReader& r, GpuVa va, std::uint64_t bytes, Access a, Fn fn) noexcept {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto s = r.run(va + done, bytes - done, a);
    if (s.empty()) return Outcome::lost;
    fn(s.data(), done, s.size());
    done += s.size();
  }
  return Outcome::done;
}

/// memmove, because two VAs may map the same host memory, and overlap on the host is not known here.
Outcome copy(MemoryReader& r, GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
  while (bytes != 0) {
    const auto from = r.run(src, bytes, Access::read);
    const auto to = r.run(dst, bytes, Access::write);
    const auto n = std::min(from.size(), to.size());
    if (n == 0) return Outcome::lost;
    std::memmove(to.data(), from.data(), n);
    src = src + n;
    dst = dst + n;
    bytes -= n;
  }
  return Outcome::done;
}

Outcome take(MemoryReader& r, std::byte* to, GpuVa src, std::uint64_t bytes) noexcept {
  return each_piece(r, src, bytes, Access::read,
                    [&](std::byte* from, std::uint64_t at, std::size_t n) { std::memcpy(to + at, from, n); });
}
/// memmove, because the data of a WRITE may lie in the ring or indirect buffer that it overwrites.
Outcome give(MemoryReader& r, GpuVa dst, const std::byte* from, std::uint64_t bytes) noexcept {
  return each_piece(r, dst, bytes, Access::write,
                    [&](std::byte* to, std::uint64_t at, std::size_t n) { std::memmove(to, from + at, n); });
}

/// Repeats a 32-bit pattern; byte i of the whole gets its byte i mod 4, and `phase` is where this part begins.
Outcome repeat(MemoryReader& r, GpuVa dst, std::uint32_t pattern, std::uint64_t phase, std::uint64_t bytes) noexcept {
  std::array<std::byte, 4> unit{};
  std::memcpy(unit.data(), &pattern, sizeof pattern);
  return each_piece(r, dst, bytes, Access::write, [&](std::byte* to, std::uint64_t at, std::size_t n) {
    if (std::equal(unit.begin() + 1, unit.end(), unit.begin())) {
      std::memset(to, std::to_integer<int>(unit[0]), n);
      return;
    }
    std::array<std::byte, 256> block{};
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] = unit[static_cast<std::size_t>((phase + at + i) % unit.size())];
    for (std::size_t done = 0; done < n; done += block.size())
      std::memcpy(to + done, block.data(), std::min(block.size(), n - done));
  });
}

/// A box as a row of bytes: calls fn(va, offset in the row, bytes) for each run of [part.begin, part.end).
template <class Fn> Outcome each_row(const Region& box, Part part, Fn fn) noexcept {
  while (part.begin < part.end) {
    const auto row = part.begin / box.bytes, x = part.begin % box.bytes;
    const auto n = std::min(box.bytes - x, part.end - part.begin);
    if (const auto o = fn(box.va + row / box.rows * box.slice_pitch + row % box.rows * box.pitch + x, part.begin, n);
        o != Outcome::done)
      return o;
    part.begin += n;
  }
  return Outcome::done;
}

template <class U> atomic_ref<U> word(std::byte* at) noexcept { return atomic_ref<U>(*reinterpret_cast<U*>(at)); }

/// A release store of a word.
template <class U> Outcome announce(Machine& m, GpuVa va, U value) noexcept {
  auto* at = m.memory.at(va, sizeof(U), Access::write);
  if (!at) return Outcome::lost;
  word<U>(at).store(value, std::memory_order_release);
  return Outcome::done;
}

}  // namespace

// Packets, in the order of the registry.

Outcome execute(const Nop&, Machine&) noexcept { return Outcome::done; }

Outcome execute(const CopyLinear& p, Machine& m, Part part) noexcept {
  return copy(m.memory, p.dst + part.begin, p.src + part.begin, part.end - part.begin);
}
Outcome load(const CopyLinear& p, Machine& m, Part part, Stage& s) noexcept {
  return take(m.memory, s.first.data(), p.src + part.begin, part.end - part.begin);
}
Outcome store(const CopyLinear& p, Machine& m, Part part, const Stage& s, unsigned) noexcept {
  return give(m.memory, p.dst + part.begin, s.first.data(), part.end - part.begin);
}

// Loads once, so that a concurrent change goes to both destinations or to neither.
Outcome execute(const CopyBroadcast& p, Machine& m, Part part) noexcept {
  std::array<std::byte, 4096> block;
  while (part.begin < part.end) {
    const auto n = std::min<std::uint64_t>(block.size(), part.end - part.begin);
    auto o = take(m.memory, block.data(), p.src + part.begin, n);
    if (o == Outcome::done) o = give(m.memory, p.dst1 + part.begin, block.data(), n);
    if (o == Outcome::done) o = give(m.memory, p.dst2 + part.begin, block.data(), n);
    if (o != Outcome::done) return o;
    part.begin += n;
  }
  return Outcome::done;
}
Outcome load(const CopyBroadcast& p, Machine& m, Part part, Stage& s) noexcept {
  return take(m.memory, s.first.data(), p.src + part.begin, part.end - part.begin);
}
Outcome store(const CopyBroadcast& p, Machine& m, Part part, const Stage& s, unsigned which) noexcept {
  return give(m.memory, (which == 0 ? p.dst1 : p.dst2) + part.begin, s.first.data(), part.end - part.begin);
}

Outcome execute(const CopyStruct& p, Machine& m, Part part) noexcept {
  return each_row(table(p), part, [&](GpuVa element, std::uint64_t at, std::uint64_t n) {
    return p.detile ? copy(m.memory, p.linear + at, element, n) : copy(m.memory, element, p.linear + at, n);
  });
}

Outcome execute(const CopySubwindow& p, Machine& m, Part part) noexcept {
  const auto from = source(p);
  return each_row(destination(p), part, [&](GpuVa to, std::uint64_t at, std::uint64_t n) {
    return each_row(from, {at, at + n},
                    [&](GpuVa row, std::uint64_t, std::uint64_t k) { return copy(m.memory, to, row, k); });
  });
}

Outcome execute(const CopyDirtyPage& p, Machine& m, Part part) noexcept {
  return copy(m.memory, p.dst + part.begin, p.src + part.begin, part.end - part.begin);
}

Outcome execute(const CopySwap& p, Machine& m, Part part) noexcept {
  Stage s;
  while (part.begin < part.end) {
    const Part piece{part.begin, std::min(part.end, part.begin + Stage::kBytes)};
    auto o = load(p, m, piece, s);
    for (unsigned which = 0; o == Outcome::done && which < kStores<CopySwap>; ++which) o = store(p, m, piece, s, which);
    if (o != Outcome::done) return o;
    part.begin = piece.end;
  }
  return Outcome::done;
}
Outcome load(const CopySwap& p, Machine& m, Part part, Stage& s) noexcept {
  const auto o = take(m.memory, s.first.data(), p.a + part.begin, part.end - part.begin);
  return o == Outcome::done ? take(m.memory, s.second.data(), p.b + part.begin, part.end - part.begin) : o;
}
Outcome store(const CopySwap& p, Machine& m, Part part, const Stage& s, unsigned which) noexcept {
  if (which == 0) return give(m.memory, p.a + part.begin, s.second.data(), part.end - part.begin);
  return give(m.memory, p.b + part.begin, s.first.data(), part.end - part.begin);
}

Outcome execute(const Write& p, Machine& m, Part part) noexcept {
  return give(m.memory, p.dst + part.begin, std::as_bytes(p.data).data() + part.begin, part.end - part.begin);
}

Outcome execute(const Indirect& p, Machine&) noexcept { return p.dwords == 0 ? Outcome::done : Outcome::call; }

Outcome execute(const Fence& p, Machine& m) noexcept { return announce(m, p.addr, p.value); }

Outcome execute(const Trap& p, Machine& m) noexcept {
  if (m.trap) m.trap(m.context, p.context);
  return Outcome::done;
}

Outcome execute(const Semaphore& p, Machine& m) noexcept {
  if (p.signal && p.write_one) return announce(m, p.addr, std::uint64_t{1});
  auto* at = m.memory.at(p.addr, sizeof(std::uint64_t), Access::read_write);
  if (!at) return Outcome::lost;
  const auto count = word<std::uint64_t>(at);
  if (p.signal) {
    count.fetch_add(1, std::memory_order_acq_rel);
    return Outcome::done;
  }
  auto old = count.load(std::memory_order_acquire);
  do {
    if (old == 0) return Outcome::not_yet;
  } while (!count.compare_exchange_weak(old, old - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  return Outcome::done;
}

Outcome execute(const PollMem& p, Machine& m) noexcept {
  auto* at = m.memory.at(p.addr, sizeof p.reference, Access::read);
  if (!at) return Outcome::lost;
  const auto value = word<std::uint32_t>(at).load(std::memory_order_acquire);
  return holds(value & p.mask, p.func, p.reference) ? Outcome::done : Outcome::not_yet;
}

Outcome execute(const HdpFlush&, Machine&) noexcept { return Outcome::done; }

Outcome execute(const CondExec& p, Machine& m) noexcept {
  auto* at = m.memory.at(p.addr, sizeof p.reference, Access::read);
  if (!at) return Outcome::lost;
  return word<std::uint32_t>(at).load(std::memory_order_acquire) == p.reference ? Outcome::done : Outcome::skip;
}

// Atomic: atomic.cpp.

Outcome execute(const Fill& p, Machine& m, Part part) noexcept {
  return repeat(m.memory, p.dst + part.begin, pattern_of(p), part.begin, part.end - part.begin);
}

Outcome execute(const FillMulti& p, Machine& m, Part part) noexcept {
  return each_row(destination(p), part,
                  [&](GpuVa to, std::uint64_t, std::uint64_t n) { return repeat(m.memory, to, 0, 0, n); });
}

Outcome execute(const TimestampSet& p, Machine& m) noexcept {
  m.state.local_clock = p.value - ticks(m.ticks);
  return Outcome::done;
}

Outcome execute(const TimestampLocal& p, Machine& m) noexcept {
  return announce(m, p.addr, ticks(m.ticks) + m.state.local_clock);
}

Outcome execute(const Timestamp& p, Machine& m) noexcept { return announce(m, p.addr, ticks(m.ticks)); }

Outcome execute(const PreExec& p, Machine& m) noexcept {
  return (p.devices >> (m.engine.value % 8)) % 2 == 1 ? Outcome::done : Outcome::skip;
}

Outcome execute(const DummyTrap&, Machine&) noexcept { return Outcome::done; }
// Software memory has no caches.
Outcome execute(const Gcr&, Machine&) noexcept { return Outcome::done; }

}}  // namespace sdma::v0_3
