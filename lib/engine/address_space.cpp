// SPDX-License-Identifier: MIT
#include "address_space.hpp"

#include <algorithm>
#include <new>
#include <thread>

namespace sdma { inline namespace v0_3 {

// How a reader and a writer detect each other, in the single order of seq_cst operations:
//
//   reader                                   writer
//   1 inside = serial (an old one will do)   3 current = new snapshot, then serial
//   2 use current                            4 load inside
//
// If 4 comes before 1, then 3 comes before 2: the reader uses the new snapshot. Otherwise, 4 sees the reader and waits.

namespace {

constexpr auto kOrder = std::memory_order_seq_cst;

/// The most mappings of a run.
constexpr std::size_t kRun = 256;

bool starts_before(const Mapping& m, GpuVa va) noexcept { return m.va < va; }

bool well_formed(const Mapping& m) noexcept {
  const auto host = reinterpret_cast<std::uintptr_t>(m.host);
  return m.bytes != 0 && m.host && m.va.value % 8 == 0 && m.bytes % 8 == 0 && host % 8 == 0 &&
         m.bytes <= ~std::uint64_t{} - m.va.value;
}

}  // namespace

/// How many runs begin at or before `va`.
std::size_t AddressSpace::runs_to(const std::vector<Run>& runs, GpuVa va) noexcept {
  const auto above = std::upper_bound(runs.begin(), runs.end(), va, [](GpuVa v, const Run& r) { return v < r.first; });
  return static_cast<std::size_t>(above - runs.begin());
}

/// The mapping that holds `va`.
const Mapping* AddressSpace::lookup(const std::vector<Run>& runs, GpuVa va) noexcept {
  const auto n = runs_to(runs, va);
  if (n == 0) return nullptr;
  const auto& sorted = *runs[n - 1].sorted;
  const auto behind =
      std::upper_bound(sorted.begin(), sorted.end(), va, [](GpuVa v, const Mapping& m) { return v < m.va; });
  const auto& m = *(behind - 1);  // the run begins at va or before
  return va - m.va < m.bytes ? &m : nullptr;
}

/// Replaces the run at an index, or adds one after the last. A long run becomes two.
void AddressSpace::store(std::vector<Run>& runs, std::size_t at, std::span<const Mapping> sorted) {
  const auto run = [](std::span<const Mapping> s) {
    return Run{s.front().va, std::make_shared<const std::vector<Mapping>>(s.begin(), s.end())};
  };
  const auto first = sorted.first(sorted.size() > kRun ? kRun / 2 : sorted.size());
  const auto second = sorted.subspan(first.size());
  auto place = runs.begin() + static_cast<std::ptrdiff_t>(at);
  if (place != runs.end()) place = runs.erase(place);
  if (!second.empty()) place = runs.insert(place, run(second));
  if (!first.empty()) runs.insert(place, run(first));
}

/// The runs of these mappings, which are sorted. bad_argument: as for `map`.
Errc AddressSpace::build(std::vector<Run>& runs, std::span<const Mapping> sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (!well_formed(sorted[i]) || (i > 0 && sorted[i].va - sorted[i - 1].va < sorted[i - 1].bytes))
      return Errc::bad_argument;
  for (std::size_t at = 0; at < sorted.size(); at += kRun / 2)
    store(runs, runs.size(), sorted.subspan(at, std::min(kRun / 2, sorted.size() - at)));
  return Errc::ok;
}

Errc AddressSpace::insert(std::vector<Run>& runs, std::span<const Mapping> all) {
  if (runs.empty() && std::is_sorted(all.begin(), all.end(), [](auto& a, auto& b) { return a.va < b.va; }))
    return build(runs, all);
  for (const auto& m : all) {
    if (!well_formed(m) || lookup(runs, m.va)) return Errc::bad_argument;
    const auto n = runs_to(runs, m.va), at = n == 0 ? 0 : n - 1;
    if (n < runs.size() && runs[n].first - m.va < m.bytes) return Errc::bad_argument;
    std::vector<Mapping> sorted;
    if (at < runs.size()) sorted = *runs[at].sorted;
    const auto behind = std::lower_bound(sorted.begin(), sorted.end(), m.va, starts_before);
    if (behind != sorted.end() && behind->va - m.va < m.bytes) return Errc::bad_argument;
    sorted.insert(behind, m);
    store(runs, at, sorted);
  }
  return Errc::ok;
}

Errc AddressSpace::erase(std::vector<Run>& runs, GpuVa va) {
  const auto* m = lookup(runs, va);
  if (!m || m->va != va) return Errc::unmapped;
  const auto at = runs_to(runs, va) - 1;
  auto sorted = *runs[at].sorted;
  sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), va, starts_before));
  store(runs, at, sorted);
  return Errc::ok;
}

AddressSpace::AddressSpace() : current_(nullptr), serial_(1) {
  alive_.push_back(std::make_unique<const Snapshot>(Snapshot{.serial = 1, .runs = {}}));
  current_.store(alive_.back().get(), kOrder);
}

AddressSpace::~AddressSpace() = default;

/// Replaces the mappings with a copy that `change` has modified. Requires the lock.
template <class Change> Errc AddressSpace::change(Change change) noexcept {
  try {
    auto next = std::make_unique<Snapshot>(*alive_.back());
    if (const auto e = change(next->runs); e != Errc::ok) return e;
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
  return change([&](std::vector<Run>& runs) { return insert(runs, all); });
}

Errc AddressSpace::replace(std::span<const GpuVa> removed, std::span<const Mapping> added, Deadline deadline) {
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto e = change([&](std::vector<Run>& runs) {
      for (const auto va : removed)
        if (const auto error = erase(runs, va); error != Errc::ok) return error;
      return insert(runs, added);
    });
    if (e != Errc::ok) return e;
    serial = alive_.back()->serial;
  }
  return wait_for(serial, deadline);
}

Errc AddressSpace::drain(Deadline deadline) { return wait_for(serial_.load(kOrder), deadline); }

Result<Mapping> AddressSpace::find(GpuVa va) const {
  const std::lock_guard lock(mutex_);
  const auto* m = lookup(alive_.back()->runs, va);
  if (!m) return Errc::unmapped;
  return *m;
}

std::vector<Mapping> AddressSpace::mappings() const {
  const std::lock_guard lock(mutex_);
  std::vector<Mapping> all;
  for (const auto& r : alive_.back()->runs) all.insert(all.end(), r.sorted->begin(), r.sorted->end());
  return all;
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
  const auto* m = lookup(seen_->runs, va);
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

}}  // namespace sdma::v0_3
