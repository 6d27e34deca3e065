// SPDX-License-Identifier: MIT
#include "svm.hpp"

#include "../inside.hpp"
#include "../no_memory.hpp"
#include "user.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace sdma::emulator {

using kfd::SvmAttribute, kfd::SvmKind;

namespace {

Mapping mapping_of(std::uint64_t begin, std::uint64_t end, std::uint32_t g, bool read_only) noexcept {
  Mapping m{.va = GpuVa{begin}, .bytes = end - begin, .host = reinterpret_cast<std::byte*>(begin)};
  m.gpus = std::uint64_t{1} << g;
  if (read_only) m.access = Access::read;
  return m;
}

}  // namespace

int Svm::check(std::uint64_t begin, std::uint64_t bytes) const {
  if (begin == 0 || bytes == 0 || begin % kPage != 0 || bytes % kPage != 0) return EINVAL;
  return check_pages(begin, bytes, false);
}

/// Makes a range begin at `at`, if one contains it. Returns the first range that begins there or later.
Svm::Ranges::iterator Svm::split(std::uint64_t at) {
  const auto next = ranges_.lower_bound(at);
  if (next == ranges_.begin()) return next;
  const auto before = std::prev(next);
  auto& r = before->second;
  if (r.end <= at) return next;
  const auto made = ranges_.try_emplace(next, at, r);
  for (std::uint32_t g = 0; g < memory_.gpus(); ++g) {
    if ((r.mapped >> g & 1) == 0) continue;
    const std::array parts{mapping_of(before->first, at, g, r.read_only), mapping_of(at, r.end, g, r.read_only)};
    const auto e = memory_.gpu(g).space.replace(std::span(&parts[0].va, 1), parts, engine_patience());
    if (e == Errc::no_space) {  // the first part of both stays mapped as one: neither range is any more
      r.mapped &= ~(std::uint64_t{1} << g);
      made->second.mapped &= ~(std::uint64_t{1} << g);
    }
  }
  r.end = at;
  return made;
}

void Svm::change(Range& r, const SvmAttribute& a) noexcept {
  const auto bit = std::uint64_t{1} << memory_.index(a.value) % 64;
  switch (a.kind) {
    case SvmKind::preferred_location: r.preferred = a.value; break;
    case SvmKind::prefetch_location: r.prefetched = a.value; break;
    case SvmKind::access: r.access |= bit, r.in_place &= ~bit; break;
    case SvmKind::access_in_place: r.in_place |= bit, r.access &= ~bit; break;
    case SvmKind::no_access: r.access &= ~bit, r.in_place &= ~bit; break;
    case SvmKind::set_flags: r.flags |= a.value; break;
    case SvmKind::clear_flags: r.flags &= ~a.value; break;
    case SvmKind::granularity: r.granularity = std::min(a.value, 63u); break;
  }
}

int Svm::unmap(std::uint64_t begin, Range& r) noexcept {
  const GpuVa va{begin};
  for (std::uint32_t g = 0; g < memory_.gpus(); ++g) {
    const auto bit = std::uint64_t{1} << g;
    if ((r.mapped & bit) == 0) continue;
    if (memory_.gpu(g).space.unmap({&va, 1}, engine_patience()) == Errc::no_space) return ENOMEM;
    r.mapped &= ~bit;
  }
  return 0;
}

/// Makes exactly the GPUs see the range that have access.
int Svm::map(std::uint64_t begin, Range& r, bool writable) {
  const auto wanted = r.access | r.in_place;
  const bool read_only = !writable || (r.flags & kfd::kSvmGpuReadOnly) != 0;
  if (wanted == r.mapped && (read_only == r.read_only || wanted == 0)) return 0;
  if (const int error = unmap(begin, r)) return error;
  r.read_only = read_only;
  for (std::uint32_t g = 0; g < memory_.gpus(); ++g) {
    if ((wanted >> g & 1) == 0) continue;
    const auto e = memory_.gpu(g).space.map(mapping_of(begin, r.end, g, read_only));
    if (e != Errc::ok) return e == Errc::no_space ? ENOMEM : EADDRINUSE;
    r.mapped |= std::uint64_t{1} << g;
  }
  return 0;
}

int Svm::set(std::uint64_t begin, std::uint64_t bytes, std::span<const SvmAttribute> attributes) {
  const Inside work;
  for (const auto& a : attributes) {
    const bool location = a.kind == SvmKind::preferred_location || a.kind == SvmKind::prefetch_location;
    const bool access = a.kind == SvmKind::access || a.kind == SvmKind::access_in_place || a.kind == SvmKind::no_access;
    if (a.kind > SvmKind::granularity) return EINVAL;
    const bool nowhere = location && (a.value == kfd::kSvmSystemMemory || a.value == kfd::kSvmUndefined);
    if ((location || access) && !nowhere && !known(a.value)) return EINVAL;
  }
  if (const int error = check(begin, bytes)) return error;
  const bool writable = check_pages(begin, bytes, true) == 0;
  const std::lock_guard lock(mutex_);
  any_.store(true, std::memory_order_release);
  const auto end = begin + bytes;
  auto at = split(begin);
  split(end);
  for (auto from = begin; from < end;) {
    const auto to = at == ranges_.end() ? end : std::min(at->first, end);
    if (from < to) at = ranges_.try_emplace(at, from, Range{.end = to});
    for (const auto& a : attributes) change(at->second, a);
    if (const int error = map(at->first, at->second, writable)) return error;
    from = at->second.end;
    ++at;
  }
  return 0;
}

int Svm::get(std::uint64_t begin, std::uint64_t bytes, std::span<SvmAttribute> attributes) {
  const Inside work;
  if (const int error = check(begin, bytes)) return error;
  for (const auto& a : attributes) {
    const bool nobody = a.kind == SvmKind::access && !known(a.value);
    if (nobody || a.kind > SvmKind::granularity || a.kind == SvmKind::access_in_place || a.kind == SvmKind::no_access)
      return EINVAL;
  }
  const std::lock_guard lock(mutex_);
  // What all ranges agree on. A gap has the defaults.
  Range all;
  std::uint32_t any_flags = 0;
  bool first = true;
  const auto add = [&](const Range& r) {
    any_flags |= r.flags;
    if (std::exchange(first, false)) {
      all = r;
      return;
    }
    if (all.preferred != r.preferred) all.preferred = kfd::kSvmUndefined;
    if (all.prefetched != r.prefetched) all.prefetched = kfd::kSvmUndefined;
    all.granularity = std::min(all.granularity, r.granularity);
    all.flags &= r.flags;
    // In place counts only if it holds everywhere; otherwise access of either kind does.
    const auto access = (all.access | all.in_place) & (r.access | r.in_place);
    all.in_place &= r.in_place;
    all.access = access & ~all.in_place;
  };
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second.end > begin) --next;
  const auto end = begin + bytes;
  for (auto from = begin; from < end;) {
    const bool gap = next == ranges_.end() || next->first > from;
    add(gap ? Range{} : next->second);
    if (gap) from = next == ranges_.end() ? end : next->first;
    else from = (next++)->second.end;
  }
  for (auto& a : attributes) {
    const auto bit = std::uint64_t{1} << memory_.index(a.value) % 64;
    switch (a.kind) {
      case SvmKind::preferred_location: a.value = all.preferred; break;
      case SvmKind::prefetch_location: a.value = all.prefetched; break;
      case SvmKind::access:
        a.kind = (all.in_place & bit) != 0 ? SvmKind::access_in_place
                 : (all.access & bit) != 0 ? SvmKind::access
                                           : SvmKind::no_access;
        break;
      case SvmKind::set_flags: a.value = all.flags; break;
      case SvmKind::clear_flags: a.value = ~any_flags; break;
      case SvmKind::granularity: a.value = all.granularity; break;
      case SvmKind::access_in_place:
      case SvmKind::no_access: break;
    }
  }
  return 0;
}

void Svm::forget(std::uint64_t begin, std::uint64_t bytes) noexcept {
  const Inside work;
  if (!work.first()) return;
  (void)errno_of([&] {
    const std::lock_guard lock(mutex_);
    const auto end = (begin + bytes + kPage - 1) & ~(kPage - 1);
    auto at = split(begin);
    split(end);
    while (at != ranges_.end() && at->first < end) {
      (void)unmap(at->first, at->second);
      at = ranges_.erase(at);
    }
    if (ranges_.empty()) any_.store(false, std::memory_order_release);
    return 0;
  });
}

}  // namespace sdma::emulator
