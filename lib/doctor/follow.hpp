// SPDX-License-Identifier: MIT
#pragma once
// Follows one execution of all pending packets, from the positions of a snapshot. Internal.
//
//   Following f{snapshot, lines, waits};
//   f.freeze(2, StopWhy::fault);      // a queue that cannot execute anything
//   f.run();
//   f.stops[0]                        // where queue 0 ends, and why: at the end, at a poll that nothing satisfies, ...
//
// Every queue proceeds as far as it can. A poll of a word whose value is not known holds if the queue was found at it,
// and passes otherwise, after everything else has been tried.
#include "../engine/execute.hpp"
#include "followed_memory.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/packets/poll.hpp"

#include <algorithm>
#include <compare>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// A condition that a packet or a host thread waits for.
struct Wait {
  GpuVa va{};
  std::uint32_t bytes = 4;
  Compare func = Compare::eq;
  std::uint64_t reference{};
  std::uint64_t mask = ~std::uint64_t{0};
  bool finite = false;

  bool met(std::uint64_t value) const noexcept { return holds(value & mask, func, reference); }
  std::optional<bool> met(const Memory& m) const {
    const auto value = m.word(va.value, bytes);
    return value ? std::optional(met(*value)) : std::nullopt;
  }
};
/// What a packet waits for; nullopt: it does not wait for a word.
inline std::optional<Wait> wait_of(const PacketView& v) {
  if (v.is<PollMem>()) {
    const auto p = decode<PollMem>(v.dwords, *v.info);
    return Wait{
        .va = p.addr, .func = p.func, .reference = p.reference, .mask = p.mask, .finite = p.retry != PollMem{}.retry};
  }
  if (v.is<Atomic>()) {
    const auto p = decode<Atomic>(v.dwords, *v.info);
    if (!may_wait(p) || !compares(p.op)) return {};
    return Wait{.va = p.addr, .bytes = width(p.op), .func = Compare::eq, .reference = p.compare};
  }
  if (v.is<Semaphore>()) {
    const auto p = decode<Semaphore>(v.dwords, *v.info);
    if (may_wait(p)) return Wait{.va = p.addr, .bytes = 8, .func = Compare::ne};
  }
  return {};
}
inline Wait wait_of(const HostWait& h) {
  return {.va = h.signal,
          .bytes = h.bytes,
          .func = h.func,
          .reference = h.reference,
          .mask = h.bytes == 8 ? ~std::uint64_t{0} : 0xffffffff};
}

enum class StopWhy : std::uint8_t {
  end,           ///< everything that is known to be pending is executed
  waits,         ///< a poll whose condition is false
  waits_unread,  ///< a poll whose word could not be read
  no_packet,     ///< a dword that begins no packet, or a packet that is not for user queues
  cut_off,       ///< wptr lies inside the packet
  wraps,         ///< the packet crosses the end of the ring
  unmapped,      ///< the packet touches an address that is not mapped
  unrung,        ///< the doorbell was rung only up to here
  frozen,        ///< the queue cannot execute anything
};

struct Stop {
  StopWhy why = StopWhy::end;
  std::size_t packet{};  ///< index into Line::packets
};

/// A packet of a line.
struct Post {
  std::size_t queue{}, packet{};
  friend constexpr auto operator<=>(const Post&, const Post&) = default;
};

/// The dwords whose values matter: those that packets and hosts wait for, and those of conditions.
inline std::vector<std::uint64_t> dwords_of(const Snapshot& s, const std::vector<Line>& lines) {
  std::vector<std::uint64_t> out;
  // A 64-bit word has two halves, and a poll may wait for the wrong one.
  const auto add = [&](std::uint64_t va) {
    if (va % 4 != 0) out.push_back(va);
    out.push_back(va / 8 * 8);
    out.push_back(va / 8 * 8 + 4);
  };
  for (const auto& line : lines)
    for (const auto& p : line.packets) {
      if (const auto w = wait_of(p.view)) add(w->va.value);
      if (p.view.is<CondExec>()) add(decode<CondExec>(p.view.dwords, *p.view.info).addr.value);
    }
  for (const auto& w : s.waits) add(w.signal.value);
  return out;
}

inline bool is_inside(const Snapshot& s, GpuVa va) {
  return std::any_of(s.ranges.begin(), s.ranges.end(), [&](const Range& r) { return va - r.va < r.bytes; });
}

struct Following {
  Following(const Snapshot& s, const std::vector<Line>& all)
      : snapshot(s),
        lines(all),
        now(s, dwords_of(s, all)),
        at_first(now),
        stops(all.size()),
        starts(all.size()),
        skipped(all.size()),
        woken_by(all.size()),
        assumed(all.size()),
        waited(all.size()) {
    for (std::size_t q = 0; q < all.size(); ++q) {
      const auto& packets = all[q].packets;
      stops[q].packet = all[q].head;
      skipped[q].assign(packets.size(), false);
      for (std::size_t i = 0; i < packets.size(); ++i)
        for (const auto at : now.touches(packets[i].view)) posts[at].push_back({q, i});
      // What a condition skipped before is known only from what its word holds now.
      for (std::size_t i = 0; i < all[q].head; ++i)
        if (packets[i].view.is<CondExec>()) {
          const auto true_now = holds_now(packets[i].view);
          if (!true_now) skip(q, i, all[q].head);
          else if (!*true_now) skip(q, i, packets.size());
        }
    }
  }

  void freeze(std::size_t queue) { stops[queue].why = StopWhy::frozen; }
  void run() {
    for (std::size_t q = 0; q < lines.size(); ++q) {
      starts[q] = stops[q].packet;
      if (starts[q] >= lines[q].packets.size()) continue;
      if (const auto w = wait_of(lines[q].packets[starts[q]].view)) waited[q] = !w->met(now).value_or(false);
    }
    for (const auto& p : snapshot.posts)
      if (!p.happened) now.store(p.signal.value, p.value, 8);
    const auto round = [&](bool assume) {
      bool any = false;
      for (std::size_t q = 0; q < lines.size(); ++q) {
        any = advance(q, assume) || any;
        if (any && assume) return true;
      }
      return any;
    };
    // Each round executes a packet of some queue, or is the last one.
    while (round(false) || round(true)) {}
  }
  /// Has the packet been executed, before the snapshot or in the followed execution?
  bool executed(const Post& p) const { return p.packet < stops[p.queue].packet && !skipped[p.queue][p.packet]; }
  /// Can it be executed later?
  bool pending(const Post& p) const { return p.packet >= stops[p.queue].packet && !skipped[p.queue][p.packet]; }

  const Snapshot& snapshot;
  const std::vector<Line>& lines;
  Memory now;                         ///< what words hold; after run(), at the end of the execution
  const Memory at_first;              ///< what they held before it
  std::vector<Stop> stops{};          ///< one per queue; before run(), where it begins
  std::vector<std::size_t> starts{};  ///< where each queue began
  /// Packets that a condition skips. If rptr is past the condition: if its word makes it false now, or is not known.
  std::vector<std::vector<bool>> skipped{};
  std::vector<std::optional<Post>> woken_by{};  ///< the packet that satisfied the first poll of a queue
  std::vector<bool> assumed{};                  ///< a poll of a word that is not known was taken to be satisfied
  std::vector<bool> waited{};  ///< the packet at which a queue began waited for something that was false
  std::map<std::uint64_t, std::vector<Post>> posts{};  ///< all packets that store to a dword that matters, in order

  /// The COND_EXEC that decides whether a packet is executed.
  std::optional<std::size_t> condition_of(const Post& p) const {
    const auto& line = lines[p.queue];
    for (auto i = p.packet; i-- > 0;)
      if (line.packets[i].view.is<CondExec>() && after_condition(line, i) > p.packet) return i;
    return {};
  }
  /// Is the condition of a COND_EXEC true? nullopt: its word is not known.
  std::optional<bool> holds_now(const PacketView& condition) const {
    const auto c = decode<CondExec>(condition.dwords, *condition.info);
    const auto value = now.dword(c.addr.value);
    return value ? std::optional(*value == c.reference) : std::nullopt;
  }

 private:
  /// Returns whether the queue executed a packet. With `assume`, one poll of an unknown word passes.
  bool advance(std::size_t q, bool assume) {
    auto& stop = stops[q];
    if (stop.why == StopWhy::frozen) return false;
    const auto& line = lines[q];
    const auto before = stop.packet;
    for (stop.why = StopWhy::end; stop.packet < line.packets.size(); ++stop.packet) {
      const auto i = stop.packet;
      const auto& p = line.packets[i];
      if (skipped[q][i]) continue;
      if (const auto why = refuses(line, i)) {
        stop.why = *why;
        break;
      }
      if (const auto w = wait_of(p.view)) {
        const auto met = w->met(now);
        const bool found_here = i == starts[q];
        if (!met && !found_here && assume) {
          assume = false;
          assumed[q] = true;
        } else if (!met || !*met) {
          stop.why = met ? StopWhy::waits : StopWhy::waits_unread;
          break;
        }
        if (i == starts[q] && !woken_by[q])
          if (const auto by = last_.find(w->va.value); by != last_.end()) woken_by[q] = by->second;
      }
      if (p.view.is<CondExec>() && !holds_now(p.view).value_or(true)) {
        stop.packet = skip(q, i, line.packets.size()) - 1;
        continue;
      }
      const auto touched = now.touches(p.view);
      now.post(p.view, touched);
      for (const auto at : touched) last_[at] = {q, i};
    }
    return stop.packet != before;
  }
  std::optional<StopWhy> refuses(const Line& line, std::size_t i) const {
    const auto& p = line.packets[i];
    if (const auto& rung = line.queue->doorbell; rung && !p.consumed && p.position >= *rung) return StopWhy::unrung;
    if (p.view.info && p.view.info->doubt)
      return p.view.info->privilege == Privilege::kernel ? std::optional(StopWhy::no_packet) : std::nullopt;
    if (p.view.cut_off) return p.wraps && line.incomplete ? StopWhy::wraps : StopWhy::cut_off;
    if (!p.view.info || p.view.info->foreign || p.view.info->privilege == Privilege::kernel) return StopWhy::no_packet;
    if (p.wraps) return StopWhy::wraps;
    if (!snapshot.ranges_complete || p.view.info->fields_unknown) return {};
    bool outside = false;
    footprint(*p.view.info, p.view.dwords, [&](const Region& r) {
      if (r.bytes != 0 && r.rows != 0 && r.slices != 0)
        outside = outside || !is_inside(snapshot, r.va) || (r.rows == 1 && !is_inside(snapshot, r.va + (r.bytes - 1)));
    });
    return outside ? std::optional(StopWhy::unmapped) : std::nullopt;
  }
  /// The first packet that a false condition at `i` does not skip. An indirect buffer counts as its INDIRECT alone.
  std::size_t after_condition(const Line& line, std::size_t i) const {
    const auto& v = line.packets[i].view;
    const bool inside = line.packets[i].inside;
    auto left = static_cast<std::size_t>(sdma::skipped(*v.info, v.dwords));
    for (++i; i < line.packets.size(); ++i) {
      const auto& p = line.packets[i];
      if (inside && !p.inside) break;
      if (p.inside && !inside) continue;
      if (left == 0) break;
      left -= std::min(left, p.view.dwords.size());
    }
    return i;
  }
  std::size_t skip(std::size_t q, std::size_t i, std::size_t end) {
    const auto after = std::min(end, after_condition(lines[q], i));
    for (auto k = i + 1; k < after; ++k) skipped[q][k] = true;
    return after;
  }

  std::map<std::uint64_t, Post> last_;
};

}}}  // namespace sdma::v0_3::doctor
