// SPDX-License-Identifier: MIT
#include "doctor_times.hpp"

#include "../lib/core/page.hpp"
#include "../lib/core/plural.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace sdma::tool {
namespace {

using Ns = std::int64_t;
/// Common events whose differences are further apart are not all the same events.
constexpr Ns kAgree = 10'000'000;

/// A time of a recording; not one that no clock shows, of which sums would overflow.
std::optional<Ns> time_of(const std::optional<std::uint64_t>& ns) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 61;
  return ns && *ns < kMost ? std::optional(static_cast<Ns>(*ns)) : std::nullopt;
}

/// What makes an event the same in two files, and when it was; nullopt: a file has it twice.
enum class EventKind : std::uint8_t { allocated, freed, asked, ran };
using EventKey = std::tuple<EventKind, std::uint64_t, std::uint64_t, std::uint64_t>;
using Events = std::map<EventKey, std::optional<Ns>>;

Events events_of(const RecordedCopies& r) {
  Events all;
  const auto add = [&](EventKey key, const std::optional<std::uint64_t>& ns) {
    const auto at = time_of(ns);
    if (!at) return;
    const auto [known, fresh] = all.emplace(key, *at);
    if (!fresh) known->second.reset();
  };
  for (const auto& a : r.allocations) {
    if (a.bytes == 0) continue;
    add({EventKind::allocated, a.address, a.bytes, 0}, a.from_ns);
    if (!a.freed.empty()) add({EventKind::freed, a.address, a.bytes, 0}, a.to_ns);
  }
  for (const auto& c : r.copies) {
    if (!c.source || !c.destination || c.bytes == 0) continue;
    add({EventKind::asked, *c.source, *c.destination, c.bytes}, c.asked_ns);
    add({EventKind::ran, *c.source, *c.destination, c.bytes}, c.begin_ns);
  }
  return all;
}

/// How the clock of one file differs from that of another.
struct Difference {
  Ns least = 0, most = 0;  ///< later minus earlier file, by the events that agree
  std::size_t events = 0;
  std::string what{};
  std::string words() const {
    const auto agree = events == 1 ? std::string{}
                                   : fmt::format(", which agree to {:.3f} ms", static_cast<double>(most - least) / 1e6);
    return fmt::format("{}{}", what, agree);
  }
};

std::optional<Difference> by_kinds(const Events& a, const Events& b, std::initializer_list<EventKind> kinds,
                                   std::string_view what) {
  std::vector<Ns> all;
  for (const auto& [key, at] : a) {
    if (!at || std::find(kinds.begin(), kinds.end(), std::get<0>(key)) == kinds.end()) continue;
    if (const auto there = b.find(key); there != b.end() && there->second) all.push_back(*there->second - *at);
  }
  std::sort(all.begin(), all.end());
  std::size_t first = 0, count = 0;
  for (std::size_t from = 0, to = 0; from < all.size(); ++from) {
    while (to < all.size() && all[to] - all[from] <= kAgree) ++to;
    if (to - from > count) first = from, count = to - from;
  }
  // Single ones that look alike prove nothing against others that differ.
  if (count * 2 <= all.size()) return {};
  return Difference{all[first], all[first + count - 1], count, plural(count, what)};
}

std::optional<Difference> between(const RecordedCopies& a, const RecordedCopies& b) {
  const auto of_a = events_of(a), of_b = events_of(b);
  if (auto d = by_kinds(of_a, of_b, {EventKind::allocated, EventKind::freed}, "common allocation")) return d;
  if (auto d = by_kinds(of_a, of_b, {EventKind::asked}, "common copy")) return d;
  return by_kinds(of_a, of_b, {EventKind::ran}, "common copy");
}

bool same_page(const doctor::PageFault& f, const RecordedFault& r) {
  return f.page.value / detail::kPage == r.address / detail::kPage;
}

/// What `from` reports as a fault, for the allocations of `to`, whose clock is later by `by`.
void tell_allocations(const RecordedCopies& from, RecordedCopies& to, const Difference& by) {
  constexpr Ns kNever = std::numeric_limits<Ns>::max();
  for (const auto& f : from.faults) {
    const auto after = time_of(f.after_ns), before = time_of(f.before_ns);
    if (!after) continue;
    const Ns at_least = *after + by.least, at_most = before ? *before + by.most : kNever;
    RecordedAllocation* live = nullptr;
    for (auto& a : to.allocations) {
      const bool touches = f.address + detail::kPage > a.address && f.address < a.address + a.bytes;
      // Memory that was allocated after the report has another life.
      if (touches && time_of(a.from_ns).value_or(0) <= at_most) live = &a;
    }
    if (!live || !live->fault.empty()) continue;
    live->aligned = by.words();
    const Ns freed = live->freed.empty() ? kNever : time_of(live->to_ns).value_or(at_least);
    const bool known = live->freed.empty() || freed < at_least || freed > at_most;
    if (!known) continue;
    live->gone = freed < at_least;
    live->fault = fmt::format("{} of {}", f.where, from.file);
  }
}

/// A log of the kernel, with its page faults that have a time.
struct KernelLog {
  std::string name{};
  std::vector<const doctor::PageFault*> faults{};
};
std::vector<KernelLog> kernel_logs(const doctor::Snapshot& s) {
  std::vector<KernelLog> all;
  const auto of = [&](const std::string& name) -> KernelLog& {
    const auto known = std::find_if(all.begin(), all.end(), [&](const KernelLog& l) { return l.name == name; });
    return known != all.end() ? *known : all.emplace_back(KernelLog{.name = name});
  };
  for (const auto& f : s.page_faults)
    if (f.seconds) of(f.from).faults.push_back(&f);
  for (const auto& e : s.events)
    if (e.seconds) of(e.from);
  return all;
}

}  // namespace

std::vector<std::string> align_times(const doctor::Snapshot& s, std::vector<RecordedCopies>& recordings) {
  std::vector<std::string> notes, unaligned;
  const auto pair = [&](const std::string& a, const std::string& b, const std::string& by) {
    if (by.empty()) unaligned.push_back(fmt::format("{} and {}", a, b));
    else notes.push_back(fmt::format("{} and {}: their times are aligned by {}", a, b, by));
  };
  const auto logs = kernel_logs(s);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (std::size_t j = i + 1; j < logs.size(); ++j) {
      std::string by;
      for (const auto* f : logs[i].faults)
        for (const auto* g : logs[j].faults)
          if (by.empty() && f->page == g->page && f->device == g->device && f->process == g->process)
            by = fmt::format("the page fault at {:#x}: {:.6f} s is {:.6f} s", f->page.value, *f->seconds, *g->seconds);
      pair(logs[i].name, logs[j].name, by);
    }
    for (const auto& r : recordings) {
      std::string by;
      for (const auto* f : logs[i].faults)
        for (const auto& g : r.faults)
          if (by.empty() && same_page(*f, g))
            by = fmt::format("the page fault at {:#x}: {:.6f} s comes before {}", f->page.value, *f->seconds, g.where);
      pair(logs[i].name, r.file, by);
    }
  }
  for (std::size_t i = 0; i < recordings.size(); ++i)
    for (std::size_t j = i + 1; j < recordings.size(); ++j) {
      const auto d = between(recordings[i], recordings[j]);
      pair(recordings[i].file, recordings[j].file, d ? d->words() : "");
      if (!d) continue;
      tell_allocations(recordings[i], recordings[j], *d);
      tell_allocations(recordings[j], recordings[i], {-d->most, -d->least, d->events, d->what});
    }
  if (!unaligned.empty())
    notes.push_back(fmt::format("times are not aligned, because these files have no event in common: {}",
                                fmt::join(unaligned, "; ")));
  return notes;
}

}  // namespace sdma::tool
