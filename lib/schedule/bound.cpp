// SPDX-License-Identifier: MIT
#include "bound.hpp"

#include "../engine/baton.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/sync/wait.hpp"
#include "sdma/trace/trace.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <atomic>

namespace sdma { inline namespace v0_3 {

Bound::Bound(std::unique_ptr<Impl> i) noexcept : impl_(std::move(i)) {}
Bound::Bound(Bound&&) noexcept = default;
Bound& Bound::operator=(Bound&&) noexcept = default;
Bound::~Bound() = default;

const Schedule& Bound::schedule() const noexcept { return impl_->schedule; }
Device& Bound::device() const noexcept { return impl_->device; }

GpuVa Bound::address(GpuVa link) const noexcept {
  const auto l = find_symbol(impl_->schedule, link);
  return l ? impl_->home(*l).va + l->offset : link;
}

std::string Bound::name(GpuVa va) const { return impl_->names.text(va); }
const NameTable& Bound::names() const noexcept { return impl_->names; }

std::span<std::byte> Bound::bytes(const Schedule::Range& r) const noexcept {
  const auto l = find_symbol(impl_->schedule, r.va);
  auto* const host = impl_->home(*l).host;
  return host ? std::span(host + l->offset, static_cast<std::size_t>(r.bytes)) : std::span<std::byte>{};
}

const Signal& Bound::signal(std::size_t i) const noexcept { return impl_->waits[i]; }

std::uint64_t Bound::value(std::size_t i) const noexcept {
  auto* const p = impl_->signals[i].host;
  if (impl_->schedule.signals[i].bits == 32)
    return atomic_ref(*reinterpret_cast<std::uint32_t*>(p)).load(std::memory_order_acquire);
  return atomic_ref(*reinterpret_cast<std::uint64_t*>(p)).load(std::memory_order_acquire);
}
void Bound::set(std::size_t i, std::uint64_t v) const noexcept {
  order::Native::before_doorbell(Caching::write_combining);
  auto* const p = impl_->signals[i].host;
  if (impl_->schedule.signals[i].bits == 32)
    atomic_ref(*reinterpret_cast<std::uint32_t*>(p)).store(static_cast<std::uint32_t>(v), std::memory_order_release);
  else atomic_ref(*reinterpret_cast<std::uint64_t*>(p)).store(v, std::memory_order_release);
  if (const auto& w = impl_->waits[i]; w.wake) w.wake(w.context, w.va);
}

std::uint64_t Bound::add(std::size_t i, std::uint64_t v) const noexcept {
  order::Native::before_doorbell(Caching::write_combining);
  auto* const p = impl_->signals[i].host;
  std::uint64_t now = 0;
  if (impl_->schedule.signals[i].bits == 32) {
    const auto n = static_cast<std::uint32_t>(v);
    now = atomic_ref(*reinterpret_cast<std::uint32_t*>(p)).fetch_add(n, std::memory_order_acq_rel) + n;
    now = static_cast<std::uint32_t>(now);
  } else {
    now = atomic_ref(*reinterpret_cast<std::uint64_t*>(p)).fetch_add(v, std::memory_order_acq_rel) + v;
  }
  if (const auto& w = impl_->waits[i]; w.wake) w.wake(w.context, w.va);
  return now;
}

std::uint32_t Bound::rank() const noexcept { return impl_->team ? impl_->team->mine() : 0; }
bool Bound::owns(Place p) const noexcept { return !impl_->team || impl_->team->ranks().of(p) == rank(); }
std::string Bound::lost() const {
  const auto lost = impl_->team ? impl_->team->lost() : std::nullopt;
  return lost ? to_string(*lost) : "";
}
void Bound::give_up() const noexcept {
  if (impl_->team) impl_->team->stop();
}
bool Bound::owns(std::size_t q) const noexcept { return impl_->programs[q] != nullptr; }
detail::Team* detail::team_of(const Bound& b) noexcept { return b.impl_->team ? &*b.impl_->team : nullptr; }

detail::NetworkThread* detail::network_of(const Bound& b) noexcept { return b.impl_->network.get(); }

Ring<Producers::many>& Bound::ring(std::size_t q) const noexcept { return *impl_->programs[q]->ring; }
const Queue& Bound::queue(std::size_t q) const noexcept { return impl_->programs[q]->queue; }
std::span<const std::uint32_t> Bound::packets(std::size_t q) const noexcept {
  return impl_->programs[q]->linked.dwords;
}

Result<std::uint64_t> Bound::submit(std::size_t q, Deadline d, SubmitObserver* observer) const noexcept {
  auto& p = *impl_->programs[q];
  auto* const hand = detail::Baton::held();
  std::unique_lock lock(p.mutex, std::defer_lock);
  // Another thread may wait for room in this ring, and then needs a turn.
  while (hand && !lock.try_lock()) hand->until([&] { return p.mutex.try_lock() && (p.mutex.unlock(), true); });
  if (!hand) lock.lock();
  auto& dwords = p.linked.dwords;
  const auto next = p.epoch + 1;
  const auto& source = impl_->schedule.queues[q];
  if (!source.epochs.empty() && store_epoch(source, next, dwords)) return Errc::epoch_overflow;
  for (const auto& [begin, end, packets] : p.linked.pieces) {
    Backoff backoff;
    SubmittedPiece piece{.epoch = next, .packets = packets};
    const std::size_t wanted = end - begin;
    auto slot = p.ring->reserve(wanted);
    while (!slot && slot.error() == Errc::no_space) {
      piece.waited = true;
      if (hand) hand->until([&] { return (slot = p.ring->reserve(wanted)) || slot.error() != Errc::no_space; });
      else if (backoff.step(d)) slot = p.ring->reserve(wanted);
      else return Errc::timed_out;
      if (hand && hand->ending()) break;
    }
    if (!slot) return slot.error() == Errc::no_space ? Errc::timed_out : slot.error();
    if (observer) piece.began_ns = trace::now();
    std::copy(dwords.begin() + static_cast<std::ptrdiff_t>(begin), dwords.begin() + static_cast<std::ptrdiff_t>(end),
              slot->dwords.begin());
    if (observer) piece.built_ns = trace::now();
    p.ring->publish(*slot);
    if (!observer) continue;
    piece.rung_ns = trace::now();
    piece.position = slot->begin;
    observer->submitted(piece);
  }
  return p.epoch = next;
}

std::uint64_t Bound::epoch(std::size_t q) const noexcept {
  auto& p = *impl_->programs[q];
  const std::lock_guard lock(p.mutex);
  return p.epoch;
}
void Bound::set_epoch(std::size_t q, std::uint64_t n) const noexcept {
  auto& p = *impl_->programs[q];
  const std::lock_guard lock(p.mutex);
  p.epoch = n;
}

Errc Bound::restart(Deadline d) const noexcept {
  for (const auto& p : impl_->programs) {
    if (!p) continue;
    Backoff backoff;
    for (auto at = p->ring->positions(); at.read != at.reserved; at = p->ring->positions())
      if (!backoff.step(d)) return Errc::timed_out;
  }
  for (Backoff backoff; impl_->network && !impl_->network->quiet();)
    if (!backoff.step(d)) return Errc::timed_out;
  for (std::size_t i = 0; i < impl_->signals.size(); ++i)
    if (impl_->has({true, i, 0})) set(i, impl_->schedule.signals[i].value);
  for (std::size_t q = 0; q < impl_->programs.size(); ++q)
    if (owns(q)) set_epoch(q, 0);
  return Errc::ok;
}

}}  // namespace sdma::v0_3
