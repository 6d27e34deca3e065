// SPDX-License-Identifier: MIT
// After the reset of an engine: what each of its queues has completed, what may be half done, and what to send again.
#include "reset.hpp"

#include "case.hpp"
#include "sdma/queue/reset.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// Does a line say that queues of an engine were reset, and not the whole GPU?
bool of_queues(const LogEvent& e) noexcept {
  const std::string_view said = e.said;
  return (said.find("queue id ") != said.npos && said.find("is reset") != said.npos) ||
         said.find("Queues reset on process") != said.npos ||
         (said.find("reset succeeded") != said.npos && e.ring.starts_with("sdma"));
}

bool reset_by_fault(const QueueSnapshot& q) noexcept { return q.fault && q.fault.value.kind == FaultKind::reset; }

/// The queue that the log names, if its number is that of one queue.
const QueueSnapshot* named(const Snapshot& s, const LogEvent& e) noexcept {
  const QueueSnapshot* found = nullptr;
  for (const auto& q : s.queues)
    if (e.queue && q.id == *e.queue) {
      if (found) return nullptr;
      found = &q;
    }
  return found;
}

bool may_share_engine(const QueueSnapshot& a, const QueueSnapshot& b) noexcept {
  return (!a.gpu || !b.gpu || *a.gpu == *b.gpu) && (!a.engine || !b.engine || *a.engine == *b.engine);
}

/// What is known of a queue; what its snapshot does not have whole is left out.
ResetQueue known_of(const QueueSnapshot& q) {
  ResetQueue r{.generation = q.generation};
  const auto bytes = std::uint64_t{q.ring.size()} * 4;
  if (q.first == 0 && !q.part && (!q.ring_bytes || *q.ring_bytes == bytes)) r.ring = q.ring;
  if (q.positions_wrap) return r;  // it is not known how often
  if (q.rptr) r.rptr = *q.rptr;
  if (q.wptr) r.wptr = *q.wptr;
  // The state of the software node, or what the driver saved, is not the word that lags.
  r.rptr_exact = q.rptr.from == Source::node || q.rptr.from == Source::driver;
  return r;
}

AfterReset after(const Snapshot& s, std::size_t index) {
  const auto& q = s.queues[index];
  AfterReset a{.queue = index};
  const auto known = completions(known_of(q), [&](GpuVa va, std::uint32_t& word) {
    return read_memory(s, address_in(s, q.process, va), std::as_writable_bytes(std::span(&word, 1))) == Errc::ok;
  });
  const auto r = after_reset(known, [&](const ResetPacket& p) {
    if (p.fate == ResetFate::done || a.packets.size() == AfterReset::kMostPackets) return;
    a.packets.push_back({.position = p.position,
                         .fate = std::string(name(p.fate)),
                         .text = packet_text({.info = p.info, .dwords = p.dwords}),
                         .why = std::string(p.why)});
  });
  a.state = name(r.state);
  a.why = q.positions_wrap ? "its positions are offsets, so it is not known what was published" : std::string(r.why);
  a.from = r.from;
  a.done = r.done, a.repeat = r.repeat, a.send = r.send, a.held = r.held, a.dwords = r.dwords;
  return a;
}

}  // namespace

std::vector<AfterReset> after_resets(const Snapshot& s) {
  std::vector<bool> lost(s.queues.size(), s.after_reset);
  const auto engine_of = [&](const QueueSnapshot& of) {
    for (std::size_t i = 0; i < s.queues.size(); ++i) lost[i] = lost[i] || may_share_engine(of, s.queues[i]);
  };
  for (const auto& q : s.queues)
    if (reset_by_fault(q)) engine_of(q);
  for (const auto& e : s.events) {
    // Of which of several machines, or starts of one, a queue is, its dump does not say.
    if (!of_queues(e) || !e.origin.words.empty()) continue;
    if (const auto* const q = named(s, e)) engine_of(*q);
    else lost.assign(lost.size(), true);
  }
  std::vector<AfterReset> out;
  for (std::size_t i = 0; i < s.queues.size(); ++i)
    if (lost[i]) out.push_back(after(s, i));
  return out;
}

}}}  // namespace sdma::v0_3::doctor
