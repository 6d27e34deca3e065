// SPDX-License-Identifier: MIT
#include "sdma/trace/compare.hpp"
#include "bars.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/reader.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct Span {
  std::uint64_t from{}, to{};
};

/// A packet that has ended.
struct Ran {
  const Event* begin{};
  const PacketInfo* info{};
  Role role{};
  Span time{};
};

/// What one doorbell published.
struct Round {
  std::uint64_t position{};                 ///< of its first packet
  std::optional<std::uint64_t> doorbell{};  ///< its time
  std::size_t first{};                      ///< index of its first packet in QueueRun::packets
};

/// A queue that ran packets.
struct QueueRun {
  const Lane* lane{};
  std::vector<Ran> packets{};
  std::vector<Round> rounds{};  ///< at least one
  std::size_t unfinished{};

  /// How many packets there are from round `i` on.
  std::size_t left(std::size_t i) const { return packets.size() - rounds[i].first; }
};

/// "engine 14 " of "engine 14 queue 0"; "" if the lane is not a queue.
std::string_view engine_of(const Lane& lane) {
  constexpr std::string_view kEngine = "engine ";
  const std::string_view name = lane.name;
  if (!name.starts_with(kEngine)) return {};
  unsigned number{};
  const auto [rest, error] = std::from_chars(name.data() + kEngine.size(), name.data() + name.size(), number);
  if (error != std::errc{} || rest == name.data() + name.size() || *rest != ' ') return {};
  return name.substr(0, static_cast<std::size_t>(rest - name.data()) + 1);
}

bool is_host(const Lane& lane) { return lane.group == "host"; }

/// All packets that are longer than an event keeps carry data, except NOPs.
Role role_of(const PacketView& v) {
  if (v.whole()) return role(*v.info, v.dwords);
  return v.info && !is<Nop>(*v.info) ? Role::data : Role::none;
}

using AtPosition = std::unordered_map<std::uint64_t, const Event*>;

/// Are these the packets that a host thread submitted? `submitted` has their first dwords.
bool begins_with(const AtPosition& packets, const Event& submitted) {
  const auto dwords = submitted.packet();
  std::size_t at = 0;
  while (at < dwords.size()) {
    const auto found = packets.find(submitted.position + at * 4);
    if (found == packets.end() || found->second->length == 0) return false;
    const auto kept = found->second->packet();
    const auto n = std::min(kept.size(), dwords.size() - at);
    if (!std::equal(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(n),
                    dwords.begin() + static_cast<std::ptrdiff_t>(at)))
      return false;
    at += found->second->length;
  }
  return true;
}

/// A doorbell of a host thread, and the packets that it published.
struct Submission {
  const Event* packets{};
  const Event* doorbell{};
};
std::vector<Submission> submissions(const Trace& t) {
  std::vector<Submission> all;
  std::unordered_map<std::uint32_t, const Event*> built;
  for (const auto& e : t.events) {
    if (!is_host(t.lanes[e.lane.value])) continue;
    if (e.kind == Kind::packet_begin) built[e.lane.value] = &e;
    if (const auto b = built.find(e.lane.value); e.kind == Kind::doorbell && b != built.end())
      all.push_back({b->second, &e});
  }
  return all;
}

/// The rounds of a queue, in order. `doorbells`: those of its own lane.
std::vector<Round> rounds_of(std::vector<const Event*> doorbells, const std::vector<Submission>& submitted,
                             const detail::LaneBars& lane) {
  std::vector<Round> rounds;
  std::stable_sort(doorbells.begin(), doorbells.end(),
                   [](const Event* a, const Event* b) { return a->position < b->position; });
  for (std::uint64_t published = 0; const auto* d : doorbells) {
    if (d->position == published) continue;
    rounds.push_back({published, d->ns});
    published = d->position;
  }
  if (rounds.empty()) {
    AtPosition packets;
    for (const auto& b : lane.bars) packets.emplace(b.begin->position, b.begin);
    for (const auto& s : submitted)
      if (begins_with(packets, *s.packets)) rounds.push_back({s.packets->position, s.doorbell->ns});
    std::stable_sort(rounds.begin(), rounds.end(),
                     [](const Round& a, const Round& b) { return a.position < b.position; });
  }
  if (rounds.empty()) rounds.emplace_back();
  return rounds;
}

QueueRun run_of(const Lane& lane, std::vector<Round> rounds, const detail::LaneBars& bars) {
  QueueRun q{.lane = &lane, .rounds = std::move(rounds)};
  std::optional<std::uint64_t> indirect;
  for (const auto& b : bars.bars) {
    if (b.begin->position == indirect) continue;
    const auto view = detail::view(*b.begin);
    if (view.info && is<Nop>(*view.info)) continue;
    if (view.info && is<Indirect>(*view.info)) indirect = b.begin->position;
    if (!b.finished) ++q.unfinished;
    else q.packets.push_back({b.begin, view.info, role_of(view), {b.from, b.to}});
  }
  // A queue begins its packets in the order of their positions.
  for (auto& r : q.rounds) {
    const auto before = [](const Ran& p, std::uint64_t position) { return p.begin->position < position; };
    const auto first = std::lower_bound(q.packets.begin(), q.packets.end(), r.position, before);
    r.first = static_cast<std::size_t>(first - q.packets.begin());
  }
  return q;
}

/// The last round of each queue. If one has fewer packets, earlier ones precede it until the numbers are equal.
std::pair<std::size_t, std::size_t> last_rounds(const QueueRun& a, const QueueRun& b) {
  const std::pair last{a.rounds.size() - 1, b.rounds.size() - 1};
  auto [x, y] = last;
  while (a.left(x) != b.left(y)) {
    auto& fewer = a.left(x) < b.left(y) ? x : y;
    if (fewer-- == 0) return last;
  }
  return {x, y};
}

/// Every queue that ran a packet, in the order of the lanes.
std::vector<QueueRun> queues_of(const Trace& t) {
  const detail::Bars bars(t);
  std::vector<std::vector<const Event*>> doorbells(t.lanes.size());
  for (const auto& e : t.events)
    if (e.kind == Kind::doorbell) doorbells[e.lane.value].push_back(&e);
  const auto submitted = submissions(t);
  std::vector<QueueRun> queues;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    if (engine_of(t.lanes[i]).empty() || bars.lanes[i].bars.empty()) continue;
    queues.push_back(run_of(t.lanes[i], rounds_of(doorbells[i], submitted, bars.lanes[i]), bars.lanes[i]));
  }
  return queues;
}

using QueuePair = std::pair<const QueueRun*, const QueueRun*>;

/// Pairs queues as the header says. Either side is null if a queue has no counterpart.
std::vector<QueuePair> paired(const std::vector<QueueRun>& a, const std::vector<QueueRun>& b) {
  const auto same = [](const std::vector<QueueRun>& in, const Lane& lane) {
    const auto found = std::find_if(in.begin(), in.end(), [&](const QueueRun& q) { return *q.lane == lane; });
    return found == in.end() ? nullptr : &*found;
  };
  using Engine = std::pair<std::string_view, std::string_view>;
  std::map<Engine, std::vector<const QueueRun*>> free;
  for (const auto& q : b)
    if (!same(a, *q.lane)) free[{q.lane->group, engine_of(*q.lane)}].push_back(&q);
  std::map<Engine, std::size_t> used;
  std::vector<QueuePair> pairs;
  for (const auto& q : a) {
    const auto* other = same(b, *q.lane);
    if (!other) {
      const Engine engine{q.lane->group, engine_of(*q.lane)};
      if (const auto& all = free[engine]; used[engine] < all.size()) other = all[used[engine]++];
    }
    pairs.emplace_back(&q, other);
  }
  for (const auto& [engine, all] : free)
    for (auto i = used[engine]; i < all.size(); ++i) pairs.emplace_back(nullptr, all[i]);
  return pairs;
}

std::string shown(const Lane& lane) { return lane.group + " " + lane.name; }
std::string shown(const Ran& p) {
  return fmt::format("{} @{}", p.info ? p.info->name : "unknown packet", p.begin->position);
}

/// A compared queue: the packets that have a counterpart, in order.
struct Matched {
  const QueueRun *measured{}, *other{};
  const Round *measured_round{}, *other_round{};
  std::vector<std::pair<const Ran*, const Ran*>> packets{};
};

/// Packets [from, to) of a queue have no counterpart.
void tell_alone(const QueueRun& q, std::size_t from, std::size_t to, const NamedTrace& in, const NamedTrace& missing,
                std::vector<Diagnostic>& differences) {
  if (from == to) return;
  const auto which = to - from == 1 ? fmt::format("its packet {} has", shown(q.packets[from]))
                                    : fmt::format("{} of its packets, {} to {}, have", to - from,
                                                  shown(q.packets[from]), shown(q.packets[to - 1]));
  differences.push_back({.severity = Severity::warning,
                         .where = std::string(in.name),
                         .message = fmt::format("{}: {} no counterpart in {}", shown(*q.lane), which, missing.name)});
}

class Comparer {
 public:
  Comparer(const NamedTrace& a, const NamedTrace& b) : a_(a), b_(b) {}

  Result<Comparison, Diagnostic> compare() {
    const auto measured = queues_of(a_.trace), other = queues_of(b_.trace);
    for (const auto& [queues, in] : {std::pair{&measured, &a_}, {&other, &b_}})
      if (queues->empty())
        return Diagnostic{
            .where = std::string(in->name),
            .message = "no queue of this trace has run a packet",
            .hint = "record a trace with `sdma run --trace NAME.jsonl` or `sdma simulate --trace NAME.jsonl`"};
    for (const auto* in : {&a_, &b_})
      if (in->trace.lost != 0)
        differ(*in, fmt::format("{} events were lost during recording, so packets may be missing", in->trace.lost));
    for (const auto& [x, y] : paired(measured, other)) {
      if (!x) alone(*y, b_, a_);
      else if (!y) alone(*x, a_, b_);
      else match(*x, *y);
    }
    if (matched_.empty())
      return Diagnostic{.where = std::string(a_.name),
                        .message = fmt::format("no queue of this trace has run the same packets as one of {}", b_.name),
                        .hint = "compare traces of one schedule, with the same --set values and on the same GPUs"};
    find_origin();
    for (const auto& m : matched_) result_.queues.push_back(compared(m));
    for (const auto& q : result_.queues) {
      result_.run.measured = std::max(result_.run.measured, q.end.measured);
      result_.run.other = std::max(result_.run.other, q.end.other);
    }
    return std::move(result_);
  }

 private:
  void differ(const NamedTrace& in, std::string message) {
    result_.differences.push_back(
        {.severity = Severity::warning, .where = std::string(in.name), .message = std::move(message)});
  }
  void alone(const QueueRun& q, const NamedTrace& in, const NamedTrace& missing) {
    unfinished(q, in);
    differ(in, fmt::format("{} has no counterpart in {}", shown(*q.lane), missing.name));
  }
  void unfinished(const QueueRun& q, const NamedTrace& in) {
    if (q.unfinished != 0)
      differ(in, fmt::format("{}: {} of its packets began but did not end, so they are not compared", shown(*q.lane),
                             q.unfinished));
  }

  void match(const QueueRun& x, const QueueRun& y) {
    unfinished(x, a_);
    unfinished(y, b_);
    const auto [i, j] = last_rounds(x, y);
    const auto &a = x.packets, &b = y.packets;
    const auto from_a = x.rounds[i].first, from_b = y.rounds[j].first, least = std::min(x.left(i), y.left(j));
    std::size_t head = 0, tail = 0;
    while (head < least && a[from_a + head].info == b[from_b + head].info) ++head;
    while (head + tail < least && a[a.size() - 1 - tail].info == b[b.size() - 1 - tail].info) ++tail;
    tell_alone(x, from_a + head, a.size() - tail, a_, b_, result_.differences);
    tell_alone(y, from_b + head, b.size() - tail, b_, a_, result_.differences);
    if (head + tail == 0) return;
    auto& m = matched_.emplace_back(Matched{&x, &y, &x.rounds[i], &y.rounds[j]});
    for (std::size_t n = 0; n < head; ++n) m.packets.emplace_back(&a[from_a + n], &b[from_b + n]);
    for (auto n = tail; n > 0; --n) m.packets.emplace_back(&a[a.size() - n], &b[b.size() - n]);
  }

  /// The moments of one trace from which times could be counted.
  struct Moments {
    std::optional<std::uint64_t> trigger{}, doorbell{};
    std::uint64_t packet = kNever;
  };
  template <class RoundOf, class PacketOf> Moments moments(const Trace& t, RoundOf round_of, PacketOf packet_of) const {
    Moments m;
    std::uint64_t last_doorbell = 0, end = 0;
    for (const auto& q : matched_) {
      if (const auto& rung = round_of(q).doorbell) {
        m.doorbell = std::min(m.doorbell.value_or(kNever), *rung);
        last_doorbell = std::max(last_doorbell, *rung);
      }
      for (const auto& p : q.packets) {
        m.packet = std::min(m.packet, packet_of(p).time.from);
        end = std::max(end, packet_of(p).time.to);
      }
    }
    for (const auto& e : t.events)
      if (m.doorbell && !m.trigger && e.kind == Kind::signal && is_host(t.lanes[e.lane.value]) &&
          e.ns >= last_doorbell && e.ns < end)
        m.trigger = e.ns;
    return m;
  }
  void find_origin() {
    const auto x = moments(
        a_.trace, [](const Matched& m) -> const Round& { return *m.measured_round; },
        [](const auto& p) -> const Ran& { return *p.first; });
    const auto y = moments(
        b_.trace, [](const Matched& m) -> const Round& { return *m.other_round; },
        [](const auto& p) -> const Ran& { return *p.second; });
    const bool triggered = x.trigger && y.trigger, rung = x.doorbell && y.doorbell;
    result_.origin = triggered ? Origin::trigger : rung ? Origin::doorbell : Origin::packet;
    zero_a_ = triggered ? *x.trigger : rung ? *x.doorbell : x.packet;
    zero_b_ = triggered ? *y.trigger : rung ? *y.doorbell : y.packet;
  }

  static double since(std::uint64_t ns, std::uint64_t zero) {
    return ns >= zero ? static_cast<double>(ns - zero) : -static_cast<double>(zero - ns);
  }
  /// What one trace contributes to a queue's row.
  struct Half {
    double begin{}, end{};
    std::array<double, kQueuePhases> phases{};
  };
  template <class PacketOf> static Half half(const Matched& m, std::uint64_t zero, PacketOf packet_of) {
    // At each moment, count the running packets of each phase: the first phase of kOrder that has one gets the time.
    constexpr QueuePhase kOrder[] = {QueuePhase::copy, QueuePhase::sync, QueuePhase::wait};
    std::vector<std::pair<std::uint64_t, std::pair<QueuePhase, int>>> changes;
    Span all{kNever, 0};
    for (const auto& packet : m.packets) {
      const Ran& p = packet_of(packet);
      all = {std::min(all.from, p.time.from), std::max(all.to, p.time.to)};
      changes.push_back({p.time.from, {phase_of(p.role), 1}});
      changes.push_back({p.time.to, {phase_of(p.role), -1}});
    }
    std::sort(changes.begin(), changes.end());
    Half h{.begin = since(all.from, zero), .end = since(all.to, zero)};
    const auto phase = [&](QueuePhase p) -> double& { return h.phases[static_cast<std::size_t>(p)]; };
    phase(QueuePhase::schedule) = std::max(0.0, h.begin);
    std::array<int, kQueuePhases> running{};
    auto from = std::max(zero, all.from);
    for (const auto& [ns, change] : changes) {
      if (ns > from) {
        const auto* now = std::find_if(std::begin(kOrder), std::end(kOrder),
                                       [&](QueuePhase p) { return running[static_cast<std::size_t>(p)] > 0; });
        phase(now == std::end(kOrder) ? QueuePhase::rest : *now) += static_cast<double>(ns - from);
        from = ns;
      }
      running[static_cast<std::size_t>(change.first)] += change.second;
    }
    return h;
  }
  static QueuePhase phase_of(Role r) {
    switch (r) {
      case Role::data: return QueuePhase::copy;
      case Role::stamp:
      case Role::release:
      case Role::notify: return QueuePhase::sync;
      case Role::acquire: return QueuePhase::wait;
      case Role::none:
      case Role::control: break;
    }
    return QueuePhase::rest;
  }
  ComparedQueue compared(const Matched& m) const {
    const auto x = half(m, zero_a_, [](const auto& p) -> const Ran& { return *p.first; });
    const auto y = half(m, zero_b_, [](const auto& p) -> const Ran& { return *p.second; });
    ComparedQueue q{.measured = *m.measured->lane,
                    .other = *m.other->lane,
                    .packets = m.packets.size(),
                    .begin = {x.begin, y.begin},
                    .end = {x.end, y.end}};
    for (std::size_t i = 0; i < kQueuePhases; ++i) q.phases[i] = {x.phases[i], y.phases[i]};
    return q;
  }

  const NamedTrace &a_, &b_;
  std::vector<Matched> matched_{};
  std::uint64_t zero_a_{}, zero_b_{};
  Comparison result_{};
};

}  // namespace

std::optional<double> TimePair::error() const noexcept {
  if (measured == other) return 0;
  if (measured == 0) return {};
  return 100 * (other - measured) / std::abs(measured);
}

std::string_view name(Origin o) noexcept {
  constexpr std::string_view kNames[] = {"trigger", "doorbell", "packet"};
  return kNames[static_cast<std::size_t>(o)];
}

std::string_view name(QueuePhase p) noexcept {
  constexpr std::string_view kNames[kQueuePhases] = {"schedule", "wait", "copy", "sync", "rest"};
  return kNames[static_cast<std::size_t>(p)];
}

Result<Comparison, Diagnostic> compare(const NamedTrace& measured, const NamedTrace& other) {
  return Comparer(measured, other).compare();
}

}}}  // namespace sdma::v0_3::trace
