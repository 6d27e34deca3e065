// SPDX-License-Identifier: MIT
// Snapshots of several processes as one.
#include "sdma/doctor/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

constexpr unsigned kProcessShift = 48;
constexpr std::uint64_t kAddressBits = (std::uint64_t{1} << kProcessShift) - 1;

GpuVa own_address(std::uint32_t process, GpuVa va) {
  return GpuVa{(va.value & kAddressBits) | std::uint64_t{process} << kProcessShift};
}

/// What range `r` of a process has in common with a range of an earlier one.
void share(Snapshot& s, std::uint32_t process, const Range& r, const std::vector<Range>& earlier) {
  for (const auto& e : earlier) {
    const auto begin = std::max(r.offset, e.offset), end = std::min(r.offset + r.bytes, e.offset + e.bytes);
    if (r.object.empty() || e.object != r.object || begin >= end) continue;
    const auto at = e.va + (begin - e.offset);
    // The earlier process may share it with a still earlier one.
    s.shared.push_back({process, r.va + (begin - r.offset), end - begin, at});
    return;
  }
}

}  // namespace

GpuVa address_in(const Snapshot& s, std::uint32_t process, GpuVa va) noexcept {
  for (const auto& r : s.shared)
    if (r.process == process && va - r.va < r.bytes) return r.at + (va - r.va);
  return own_address(process, va);
}

Snapshot merged(std::vector<Snapshot> all) {
  if (all.size() == 1) return std::move(all.front());
  Snapshot s{.ranges_complete = true, .all_queues = true, .all_threads = true, .watched_ns = ~std::uint64_t{0}};
  std::vector<Peek> peeks;
  for (std::uint32_t p = 0; p < all.size(); ++p) {
    auto& from = all[p];
    const auto prefix = from.from.substr(0, from.from.find(" on ")) + ": ";
    s.from += (s.from.empty() ? "" : "; ") + from.from;
    const auto earlier = s.ranges;
    for (const auto& r : from.ranges) share(s, p, r, earlier);
    for (auto& r : from.ranges) {
      r.va = own_address(p, r.va);
      r.name = prefix + r.name;
      s.ranges.push_back(std::move(r));
    }
    const auto address = [&](GpuVa& va) { va = address_in(s, p, va); };
    for (auto& q : from.queues) {
      q.process = p;
      q.name = prefix + q.name;
      address(q.ring_va.value);
      s.queues.push_back(std::move(q));
    }
    for (auto& f : from.page_faults) address(f.page), s.page_faults.push_back(std::move(f));
    std::move(from.events.begin(), from.events.end(), std::back_inserter(s.events));
    for (auto& w : from.waits) address(w.signal), s.waits.push_back(std::move(w));
    for (auto& w : from.posts) address(w.signal), s.posts.push_back(w);
    for (auto& w : from.moving) address(w.va), s.moving.push_back(w);
    from.words.each([&](GpuVa va, std::span<const std::byte> bytes) { s.words.add(address_in(s, p, va), bytes); });
    peeks.push_back(std::move(from.peek));
    for (const auto& n : from.notes) s.notes.push_back(prefix + n);
    if (p != 0)
      s.notes.push_back(
          fmt::format("{}its address A is shown as {:#x} + A, but for {} ranges of memory that an earlier "
                      "process has, too.",
                      prefix, std::uint64_t{p} << kProcessShift,
                      std::count_if(s.shared.begin(), s.shared.end(), [&](auto& r) { return r.process == p; })));
    s.ranges_complete = s.ranges_complete && from.ranges_complete;
    s.all_queues = s.all_queues && from.all_queues;
    s.all_threads = s.all_threads && from.all_threads;
    s.others_run = s.others_run || from.others_run;
    s.stalls = s.stalls || from.stalls;
    s.after_reset = s.after_reset || from.after_reset;
    if (!from.queues.empty()) s.watched_ns = std::min(s.watched_ns, from.watched_ns);
  }
  if (s.queues.empty()) s.watched_ns = 0;
  s.peek = [peeks = std::move(peeks)](GpuVa va, std::span<std::byte> out) {
    const auto p = va.value >> kProcessShift;
    return p < peeks.size() && peeks[p] ? peeks[p](GpuVa{va.value & kAddressBits}, out) : Errc::unmapped;
  };
  return s;
}

}}}  // namespace sdma::v0_3::doctor
