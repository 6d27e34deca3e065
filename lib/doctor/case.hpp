// SPDX-License-Identifier: MIT
#pragma once
// What the parts of a diagnosis share: the snapshot, the followed
// execution, and how a finding is put into words. Internal.
#include "../sync/phrases.hpp"
#include "follow.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/stream/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {

using detail::compare_text;
using detail::number_text;

/// Up to where the engine of a queue was sent beyond the queue's own wptr: its doorbell, or, where nobody can read
/// that, rptr. nullopt: it was not.
inline std::optional<std::uint64_t> sent_beyond(const QueueSnapshot& q) {
  const auto& sent = q.doorbell ? q.doorbell : q.rptr;
  if (!q.wptr || q.positions_wrap || !sent || *sent <= *q.wptr) return {};
  return *sent;
}
/// Does the producer of `q` ring the doorbell of `other`? That engine was sent to the wptr of `q`, whose own engine was
/// not.
inline bool rings_doorbell_of(const QueueSnapshot& q, const QueueSnapshot& other) {
  const auto& reached = q.doorbell ? q.doorbell : q.rptr;
  return q.wptr && *q.wptr != 0 && reached && *reached < *q.wptr && sent_beyond(other) == *q.wptr;
}
constexpr auto kOwnDoorbell = "ring the doorbell of the queue whose wptr was stored: each queue has its own";

/// One line, cut at 160 characters.
inline std::string packet_text(const PacketView& v) {
  constexpr std::size_t kLongest = 160;
  std::string s;
  if (v.info && !v.whole()) s = fmt::format("{}, cut off after {} dwords", v.info->name, v.dwords.size());
  else if (!v.info) s = fmt::format("{:#x}, which begins no packet", v.dwords.front());
  else s = to_text(v);
  if (const auto comment = s.find("  #"); comment != s.npos) s.erase(comment);
  if (s.size() > kLongest) s.replace(kLongest, s.npos, "..");
  return s;
}

struct Case {
  const Snapshot& snapshot;
  const std::vector<Line>& lines;
  const Following& followed;

  const std::string& name(std::size_t queue) const { return snapshot.queues[queue].name; }
  const Packet& packet(const Post& p) const { return lines[p.queue].packets[p.packet]; }
  Place place(const Post& p) const {
    const auto& packet = this->packet(p);
    return {.queue = p.queue, .position = packet.position, .packet = packet_text(packet.view)};
  }
  /// "gpu 0 queue 2 at 0x40 (fence addr=... value=3)"
  std::string at(const Post& p) const {
    const auto& packet = this->packet(p);
    return fmt::format("{} at {:#x} ({}{})", name(p.queue), packet.position, packet_text(packet.view),
                       packet.inside ? ", in an indirect buffer" : "");
  }
  /// "gpu 0 memory", or "".
  std::string range_name(GpuVa va) const {
    const auto* r = range(va);
    return r ? r->name : std::string();
  }
  const Range* range(GpuVa va) const {
    for (const auto& r : snapshot.ranges)
      if (va - r.va < r.bytes) return &r;
    return nullptr;
  }
  bool watched() const noexcept { return snapshot.watched_ns > 0; }
  /// rptr changed while the queue was watched.
  bool moved(std::size_t queue) const noexcept {
    const auto& q = snapshot.queues[queue];
    return q.rptr_first && q.rptr && *q.rptr_first != *q.rptr;
  }
  bool same_engine(std::size_t a, std::size_t b) const {
    const auto &x = snapshot.queues[a], &y = snapshot.queues[b];
    return a != b && x.gpu && y.gpu && x.engine && y.engine && *x.gpu == *y.gpu && *x.engine == *y.engine;
  }
};

inline void say(Finding& f, Basis basis, std::string text, std::string rests_on = {}) {
  f.statements.push_back({std::move(text), basis, std::move(rests_on)});
}
/// Makes a wait that nothing satisfies a guess, if something that was not examined may satisfy it.
inline void doubt(const Case& c, Finding& f) {
  if (f.what == HangClass::beyond_mask) return;
  const auto lacks = [](const Line& l) { return l.incomplete || l.unread_buffer(); };
  const auto first = std::find_if(c.lines.begin(), c.lines.end(), lacks);
  const bool incomplete = first != c.lines.end();
  if (incomplete) {
    const auto more = std::count_if(first + 1, c.lines.end(), lacks);
    say(f, Basis::guessed,
        fmt::format("{}{} pending packets that the snapshot does not have; one of them may satisfy the wait.",
                    first->queue->name, more == 0 ? " has" : fmt::format(" and {} more have", more)),
        "the snapshot: packets are missing");
    f.to_do = "give the whole rings of these queues, as a dump or a running process has them; if nothing there does: " +
              f.to_do;
  }
  if (c.snapshot.others_run)
    say(f, Basis::guessed, "A queue that was not examined may be executing a kernel, and may satisfy the wait.",
        "the first pending packet of each such queue; once it waits or is complete, the reason is certain");
  if (incomplete || c.snapshot.others_run) f.basis = Basis::guessed;
}
/// Is it known what a COND_EXEC decides? Its word is, and no packet stores to it.
bool is_settled(const Case&, const Post& condition);
/// Makes a wait a guess, if packets that store to its word are executed before the wait only in some orders.
/// `self`: the packet that waits.
void doubt_order(const Case&, const Wait&, std::optional<Post> self, Finding&);
/// "0x7f0000001000 (gpu 0 memory)"
inline std::string word_text(const Case& c, GpuVa va) {
  const auto name = c.range_name(va);
  return name.empty() ? fmt::format("{:#x}", va.value) : fmt::format("{:#x} ({})", va.value, name);
}

/// What packet `i`, which rptr has passed, may still wait for: its condition is false, or is not known.
std::optional<Wait> may_wait(const Case&, std::size_t queue, std::size_t i);
/// rptr may already be past a packet that waits: the last one that was read, or one of its indirect buffer.
std::optional<std::size_t> poll_before(const Case&, std::size_t queue);
/// After the first pending packet, apart from NOPs, and its indirect buffer: the engine may be anywhere in both.
std::size_t end_of_next(const Case&, std::size_t queue);
/// The first pending packet, apart from NOPs, waits too.
bool waits_at_rptr(const Case&, std::size_t queue);

/// What is wrong with a queue before anything is executed: a fault, a destroyed queue, positions, a doorbell.
std::optional<Finding> examine_state(const Line&, const Snapshot&);
/// Why the engine does not proceed at a packet that it cannot execute.
Finding explain_packet(const Case&, std::size_t queue);
/// The first pending packet that was followed although it is not known what it does, or whether it waits.
std::optional<std::size_t> unexamined(const Case&, std::size_t queue);
/// What is not known about such a packet: "what it reads and writes is not examined"
std::string what_is_unknown(const PacketView&);
/// Nothing that was examined holds the queue up, but there is this packet.
Finding explain_unexamined(const Case&, const Post&);
/// Nothing that was examined holds the queue up, but it may be in an indirect buffer that was not.
Finding explain_unread(const Case&, const Post&);
/// Why the poll of a queue is not satisfied. `helpers`: packets that would satisfy it, and that are not executed.
Finding explain_wait(const Case&, std::size_t queue, const std::vector<Post>& helpers);
/// The packets that store to a part of the word, in the order of queues and packets.
std::vector<Post> posts_of(const Case&, const Wait&);
/// Packets that are not executed, and that would satisfy the wait or may do so. `self`: the packet that waits.
std::vector<Post> helpers_of(const Case&, const Wait&, std::optional<Post> self = {});
/// Can packets that are pending satisfy the wait, in whatever order engines execute them? Not those that come after
/// `self`, the packet that waits. True also if there are too many orders, or if what a packet stores is not known.
bool may_be_satisfied(const Case&, const Wait&, std::optional<Post> self);
/// A completion that satisfies the wait, and that went to a word for which nothing waits. Returns whether there is one.
bool explain_other_word(const Case&, const Wait&, Finding&);
/// A fence that satisfies the wait, and that the count of a NOP covers. Returns whether there is one.
bool explain_covered(const Case&, const Wait&, Finding&);
/// The driver has waited for this ring and given up: it hangs, whatever else is known.
void add_timeout(const Case&, std::size_t queue, std::optional<Finding>&);
/// A ring of a file that says that a ring timed out. If it is another one, too little is known about this one.
bool explain_timeout_beside(const Case&, std::size_t queue, std::optional<Finding>&);
/// The doorbell that the producer rings is that of another queue. Returns whether there is such a queue.
inline bool rung_elsewhere(const Case& c, std::size_t queue, Finding& f) {
  const auto& all = c.snapshot.queues;
  const auto& q = all[queue];
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const QueueSnapshot& o) { return &o != &q && rings_doorbell_of(q, o); });
  if (other == all.end()) return false;
  say(f, Basis::inferred,
      fmt::format(
          "The engine of {} was sent to {:#x}, which is this wptr, and not that queue's: the producer rings the "
          "doorbell of {}.",
          other->name, *q.wptr, other->name),
      "the positions of both queues");
  f.to_do = kOwnDoorbell;
  return true;
}
/// Findings about host threads.
void explain_hosts(const Case&, std::vector<Finding>&);
/// The class of a wait that no pending packet satisfies, with its statements. `queue`: the one that waits, or nullopt.
void explain_unmet(const Case&, const Wait&, std::optional<std::size_t> queue, Finding&);
/// The findings in order, with the state of each queue; if there are none, why that is.
Diagnosis diagnosis_of(const Case&, std::vector<Finding>);
/// A TRAP after the packet, in its queue, without a fence to a mailbox: the index of the TRAP. `traps`: is there any?
std::optional<std::size_t> trap_without_mailbox(const Line&, std::size_t after, bool& traps);

}}}  // namespace sdma::v0_3::doctor
