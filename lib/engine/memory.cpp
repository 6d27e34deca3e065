// SPDX-License-Identifier: MIT
#include "sdma/engine/memory.hpp"

#include <algorithm>
#include <new>
#include <thread>

namespace sdma::inline v0 {

// How a reader and a writer detect each other, in the single order of seq_cst operations:
//
//   reader                                   writer
//   1 inside = serial (an old one will do)   3 current = new snapshot, then serial
//   2 use current                            4 load inside
//
// If 4 comes before 1, then 3 comes before 2: the reader uses the new snapshot. Otherwise, 4 sees the reader and waits.

namespace {

constexpr auto kOrder = std::memory_order_seq_cst;

bool starts_before(const Mapping& m, GpuVa va) noexcept { return m.va < va; }

/// The mapping that holds `va`, in a sorted list.
const Mapping* lookup(const std::vector<Mapping>& sorted, GpuVa va) noexcept {
  const auto behind =
      std::upper_bound(sorted.begin(), sorted.end(), va, [](GpuVa v, const Mapping& m) { return v < m.va; });
  if (behind == sorted.begin()) return nullptr;
  const auto& m = *(behind - 1);
  return va - m.va < m.bytes ? &m : nullptr;
}

bool well_formed(const Mapping& m) noexcept {
  const auto host = reinterpret_cast<std::uintptr_t>(m.host);
  return m.bytes != 0 && m.host && m.va.value % 8 == 0 && m.bytes % 8 == 0 && host % 8 == 0 &&
         m.bytes <= ~std::uint64_t{} - m.va.value;
}

Errc insert(std::vector<Mapping>& sorted, std::span<const Mapping> all) {
  for (const auto& m : all) {
    if (!well_formed(m)) return Errc::bad_argument;
    const auto behind = std::lower_bound(sorted.begin(), sorted.end(), m.va, starts_before);
    if (behind != sorted.end() && behind->va - m.va < m.bytes) return Errc::bad_argument;
    if (behind != sorted.begin() && m.va - (behind - 1)->va < (behind - 1)->bytes) return Errc::bad_argument;
    sorted.insert(behind, m);
  }
  return Errc::ok;
}

}  // namespace

AddressSpace::AddressSpace() : current_(nullptr), serial_(1) {
  alive_.push_back(std::make_unique<const Snapshot>(Snapshot{.serial = 1, .sorted = {}}));
  current_.store(alive_.back().get(), kOrder);
}

AddressSpace::~AddressSpace() = default;

/// Replaces the mappings with a copy that `change` has modified. Requires the lock.
template <class Change> Errc AddressSpace::change(Change change) noexcept {
  try {
    auto next = std::make_unique<Snapshot>(*alive_.back());
    if (const auto e = change(next->sorted); e != Errc::ok) return e;
    alive_.reserve(alive_.size() + 1);
    ++next->serial;
    alive_.push_back(std::move(next));
  } catch (const std::bad_alloc&) {
    return Errc::no_space;
  }
  current_.store(alive_.back().get(), kOrder);
  serial_.store(alive_.back()->serial, kOrder);
  oldest_left(alive_.back()->serial);
  return Errc::ok;
}

/// Frees snapshots that no reader uses. Have all readers left those older than `serial`? Requires the lock.
bool AddressSpace::oldest_left(std::uint64_t serial) noexcept {
  auto oldest = alive_.back()->serial;
  for (const auto* r : readers_)
    if (const auto inside = r->inside_.load(kOrder); inside != 0) oldest = std::min(oldest, inside);
  const auto used = std::find_if(alive_.begin(), alive_.end(), [&](const auto& s) { return s->serial >= oldest; });
  alive_.erase(alive_.begin(), used);
  return oldest >= serial;
}

Errc AddressSpace::wait_for(std::uint64_t serial, Deadline deadline) noexcept {
  for (unsigned tries = 0;; ++tries) {
    {
      const std::lock_guard lock(mutex_);
      if (oldest_left(serial)) return Errc::ok;
    }
    if (deadline.passed()) return Errc::timed_out;
    // Engines leave after a batch of packets, so a few yields usually suffice; a long copy takes longer.
    if (tries < 64) std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::microseconds(50)));
  }
}

Errc AddressSpace::map(std::span<const Mapping> all) {
  const std::lock_guard lock(mutex_);
  return change([&](std::vector<Mapping>& sorted) { return insert(sorted, all); });
}

Errc AddressSpace::replace(std::span<const GpuVa> removed, std::span<const Mapping> added, Deadline deadline) {
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto e = change([&](std::vector<Mapping>& sorted) {
      for (const auto va : removed) {
        const auto at = std::lower_bound(sorted.begin(), sorted.end(), va, starts_before);
        if (at == sorted.end() || at->va != va) return Errc::unmapped;
        sorted.erase(at);
      }
      return insert(sorted, added);
    });
    if (e != Errc::ok) return e;
    serial = alive_.back()->serial;
  }
  return wait_for(serial, deadline);
}

Errc AddressSpace::drain(Deadline deadline) { return wait_for(serial_.load(kOrder), deadline); }

Result<Mapping> AddressSpace::find(GpuVa va) const {
  const std::lock_guard lock(mutex_);
  const auto* m = lookup(alive_.back()->sorted, va);
  if (!m) return Errc::unmapped;
  return *m;
}

std::vector<Mapping> AddressSpace::mappings() const {
  const std::lock_guard lock(mutex_);
  return alive_.back()->sorted;
}

AddressSpace::Reader::Reader(AddressSpace& space, GpuId gpu) : space_(space), gpu_(gpu) {
  const std::lock_guard lock(space_.mutex_);
  space_.readers_.push_back(this);
}

AddressSpace::Reader::~Reader() {
  const std::lock_guard lock(space_.mutex_);
  std::erase(space_.readers_, this);
}

void AddressSpace::Reader::enter() noexcept {
  inside_.store(space_.serial_.load(std::memory_order_acquire), kOrder);
  seen_ = space_.current_.load(kOrder);
  if (seen_->serial == serial_) return;
  serial_ = seen_->serial;
  hits_ = {};
}

std::span<std::byte> AddressSpace::Reader::search(GpuVa va, std::uint64_t bytes, Access a) noexcept {
  const auto* m = lookup(seen_->sorted, va);
  if (!m || gpu_.value >= 64 || (m->gpus >> gpu_.value) % 2 == 0 || !allows(m->access, a)) return {};
  hits_[oldest_] = *m;
  oldest_ = (oldest_ + 1) % static_cast<std::uint32_t>(hits_.size());
  return piece(*m, va, bytes);
}

bool AddressSpace::Reader::covers_run(GpuVa va, std::uint64_t bytes, Access a, GpuVa* missing) noexcept {
  while (bytes != 0) {
    const auto s = run(va, bytes, a);
    if (s.empty()) {
      if (missing) *missing = va;
      return false;
    }
    va = va + s.size();
    bytes -= s.size();
  }
  return true;
}

bool AddressSpace::Reader::covers(const Region& r, GpuVa* missing) noexcept {
  if (r.rows == 1 && r.slices == 1) [[likely]]
    return covers_run(r.va, r.bytes, r.access, missing);
  // Boxes usually lie in one mapping: try the hull of the box first, then those of its slices, then single rows.
  if (covers_run(r.va, hull(r), r.access, nullptr)) return true;
  auto one_slice = r;
  one_slice.slices = 1;
  const auto slice = hull(one_slice);
  const auto slices = r.slice_pitch ? r.slices : 1u, rows = r.pitch ? r.rows : 1u;
  for (std::uint32_t s = 0; s < slices; ++s) {
    const auto first = r.va + s * r.slice_pitch;
    if (covers_run(first, slice, r.access, nullptr)) continue;
    for (std::uint32_t y = 0; y < rows; ++y)
      if (!covers_run(first + y * r.pitch, r.bytes, r.access, missing)) return false;
  }
  return true;
}

}  // namespace sdma::inline v0
