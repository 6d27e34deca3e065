// SPDX-License-Identifier: MIT
#pragma once
// What the parts of a diagnosis share: the snapshot, the followed
// execution, and how a finding is put into words. Internal.
#include "../sync/phrases.hpp"
#include "follow.hpp"
#include "sdma/doctor/diagnose.hpp"

namespace sdma::inline v0::doctor {

using detail::compare_text;
using detail::number_text;

struct Case {
  const Snapshot& snapshot;
  const std::vector<Line>& lines;
  const Following& followed;

  const std::string& name(std::size_t queue) const { return snapshot.queues[queue].name; }
  const Packet& packet(const Post& p) const { return lines[p.queue].packets[p.packet]; }
  Place place(const Post&) const;
  /// "gpu 0 queue 2 at 0x40 (fence addr=... value=3)"
  std::string at(const Post&) const;
  /// "gpu 0 memory", or "".
  std::string range_name(GpuVa) const;
  const Range* range(GpuVa) const;
  bool watched() const noexcept { return snapshot.watched_ns > 0; }
  /// rptr changed while the queue was watched.
  bool moved(std::size_t queue) const noexcept {
    const auto& q = snapshot.queues[queue];
    return q.rptr_first && q.rptr && *q.rptr_first != *q.rptr;
  }
  bool same_engine(std::size_t a, std::size_t b) const;
};

void say(Finding&, Basis, std::string text, std::string rests_on = {});
/// Makes a wait that nothing satisfies a guess, if something that was not examined may satisfy it.
void doubt(const Case&, Finding&);
/// Is it known what a COND_EXEC decides? Its word is, and no packet stores to it.
bool is_settled(const Case&, const Post& condition);
/// Makes a wait a guess, if packets that store to its word are executed before the wait only in some orders.
void doubt_order(const Case&, const Wait&, Finding&);
/// One line, cut at 160 characters.
std::string packet_text(const PacketView&);
/// "0x7f0000001000 (gpu 0 memory)"
std::string word_text(const Case&, GpuVa);

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
/// Of such a packet: "what it reads and writes is not examined"
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
/// Findings about host threads.
void explain_hosts(const Case&, std::vector<Finding>&);
/// The class of a wait that no pending packet satisfies, with its statements. `queue`: the one that waits, or nullopt.
void explain_unmet(const Case&, const Wait&, std::optional<std::size_t> queue, Finding&);
/// The findings in order, with the state of each queue; if there are none, why that is.
Diagnosis diagnosis_of(const Case&, std::vector<Finding>);
/// A TRAP after the packet, in its queue, without a fence to a mailbox: the index of the TRAP. `traps`: is there any?
std::optional<std::size_t> trap_without_mailbox(const Line&, std::size_t after, bool& traps);

}  // namespace sdma::inline v0::doctor
