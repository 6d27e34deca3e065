// SPDX-License-Identifier: MIT
// Records events from any number of threads, and collects them into a trace.
#include "sdma/core/atomic_ref.hpp"
#include "sdma/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

constexpr std::string_view kNames[kKinds] = {"doorbell",      "packet_begin",    "packet_end", "signal",     "fault",
                                             "queue_created", "queue_destroyed", "counter",    "flow_begin", "flow_end",
                                             "action_begin",  "action_end",      "epoch"};

}  // namespace

std::string_view name(Kind k) noexcept {
  const auto i = static_cast<std::size_t>(k);
  return i < kKinds ? kNames[i] : std::string_view();
}

Lane queue_lane(GpuId gpu, EngineId engine, std::string_view queue) {
  return {fmt::format("gpu{}", gpu.value), fmt::format("engine {} {}", engine.value, queue)};
}

struct Recorder::Slots {
  /// An event, and whether it is complete. All zero bytes are an empty slot.
  struct Slot {
    Event event;
    std::uint32_t ready;
  };

  struct alignas(64) Cursor {
    std::atomic<std::size_t> next{0};
  };

  explicit Slots(std::size_t events) noexcept {
    static_assert(std::is_trivially_copyable_v<Slot> && std::is_trivially_destructible_v<Slot> && sizeof(Slot) <= 128);
    grows = events == kGrows;
    if (events > kMostEvents) return;
    const auto wanted = events / kStripes + (events % kStripes != 0);
    all = static_cast<Slot*>(std::calloc(wanted * kStripes, sizeof(Slot)));
    if (!all) return;
    // An atomic store, so that no compiler removes it: it touches the pages now, so that they do not fault during a
    // measurement.
    for (std::size_t i = 0; i < wanted * kStripes; ++i) atomic_ref(all[i].ready).store(0, std::memory_order_relaxed);
    each = wanted;
  }
  ~Slots() { std::free(all); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  bool append(const Event& e) noexcept {
    const std::lock_guard lock(mutex);
    try {
      more.push_back(e);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  bool grows = false;
  mutable std::mutex mutex{};
  std::deque<Event> more{};  // of a recorder that grows, which has no stripes

  std::size_t each = 0;  // slots per stripe
  Slot* all = nullptr;
  std::array<Cursor, kStripes> cursors{};
};

struct Recorder::Names {
  mutable std::mutex mutex{};
  std::string clock{};
  std::vector<Lane> lanes{};
  std::vector<std::string> texts{};
  NameTable ranges{};
  std::map<std::pair<std::string, std::string>, std::uint32_t> lane_ids{};
  std::map<std::string, std::uint32_t, std::less<>> text_ids{};
};

Recorder::Recorder(std::size_t events, std::string_view clock)
    : slots_(std::make_unique<Slots>(events)), names_(std::make_unique<Names>()) {
  names_->clock = clock;
}
Recorder::~Recorder() = default;

LaneId Recorder::lane(std::string_view group, std::string_view name) {
  auto& n = *names_;
  const std::lock_guard lock(n.mutex);
  const auto next = static_cast<std::uint32_t>(n.lanes.size());
  const auto [it, fresh] = n.lane_ids.try_emplace({std::string(group), std::string(name)}, next);
  if (fresh) n.lanes.push_back({it->first.first, it->first.second});
  return {it->second};
}

TextId Recorder::text(std::string_view t) {
  auto& n = *names_;
  const std::lock_guard lock(n.mutex);
  const auto found = n.text_ids.find(t);
  if (found != n.text_ids.end()) return {found->second};
  const auto id = static_cast<std::uint32_t>(n.texts.size());
  n.texts.emplace_back(t);
  n.text_ids.emplace(t, id);
  return {id};
}

void Recorder::name(GpuVa va, std::uint64_t bytes, std::string_view name) {
  const std::lock_guard lock(names_->mutex);
  names_->ranges.add(va, bytes, name);
}
void Recorder::name(const NameTable& names) {
  const std::lock_guard lock(names_->mutex);
  names_->ranges.add(names);
}

std::size_t Recorder::capacity() const noexcept { return slots_->grows ? kGrows : slots_->each * kStripes; }

void Recorder::record(const Event& e) noexcept {
  auto& s = *slots_;
  for (std::size_t i = 0; i < kStripes; ++i) {
    const auto stripe = (e.lane.value + i) % kStripes;
    auto& next = s.cursors[stripe].next;
    // Load first: so a cursor stops within a few increments of the end, however many events are lost.
    if (next.load(std::memory_order_relaxed) >= s.each) continue;
    const auto at = next.fetch_add(1, std::memory_order_relaxed);
    if (at >= s.each) continue;
    auto& slot = s.all[stripe * s.each + at];
    slot.event = e;
    atomic_ref(slot.ready).store(1, std::memory_order_release);
    return;
  }
  if (!s.grows || !s.append(e)) lost_.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::packet_begin(LaneId l, std::uint64_t ns, std::uint64_t position, std::span<const std::uint32_t> dwords,
                            Generation g) noexcept {
  Event e{.ns = ns, .lane = l, .kind = Kind::packet_begin, .position = position};
  const auto kept = dwords.first(std::min(dwords.size(), Event::kDwords));
  e.dword_count = static_cast<std::uint8_t>(kept.size());
  e.generation = g;
  e.length = static_cast<std::uint32_t>(dwords.size());
  std::copy(kept.begin(), kept.end(), e.dwords.begin());
  record(e);
}

Trace Recorder::snapshot() const {
  // Also keep where an event lay: for one lane and time, events in the lane's own stripe were recorded before those
  // that overflowed to another.
  struct Found {
    Event event;
    std::size_t stripes_on, at;
  };
  const auto& s = *slots_;
  std::vector<Found> found;
  std::uint64_t missing = 0;
  for (std::size_t stripe = 0; stripe < kStripes; ++stripe) {
    const auto taken = std::min(s.cursors[stripe].next.load(std::memory_order_relaxed), s.each);
    for (std::size_t at = 0; at < taken; ++at) {
      auto& slot = s.all[stripe * s.each + at];
      if (atomic_ref(slot.ready).load(std::memory_order_acquire) == 0) {
        ++missing;
        continue;
      }
      const auto own = slot.event.lane.value % kStripes;
      found.push_back({slot.event, (stripe + kStripes - own) % kStripes, at});
    }
  }
  {
    const std::lock_guard lock(s.mutex);
    for (const auto& e : s.more) found.push_back({e, 0, found.size()});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tuple(a.event.ns, a.event.lane.value, a.stripes_on, a.at) <
           std::tuple(b.event.ns, b.event.lane.value, b.stripes_on, b.at);
  });

  Trace t;
  {
    // Copy these after the events: the lane and the text of an event were created before it was recorded.
    const std::lock_guard lock(names_->mutex);
    t.clock = names_->clock;
    t.lanes = names_->lanes;
    t.texts = names_->texts;
    t.names = names_->ranges;
  }
  for (const auto& f : found) {
    const auto& e = f.event;
    const bool has_text = e.kind == Kind::fault || e.kind == Kind::counter || e.kind == Kind::action_begin;
    const bool known = e.lane.value < t.lanes.size() && static_cast<std::size_t>(e.kind) < kKinds &&
                       (!has_text || e.text.value < t.texts.size()) && e.dword_count <= Event::kDwords;
    if (known) t.events.push_back(e);
    else ++missing;
  }
  t.lost = lost() + missing;
  return t;
}

}}}  // namespace sdma::v0_3::trace
