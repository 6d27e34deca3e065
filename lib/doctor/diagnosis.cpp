// SPDX-License-Identifier: MIT
// Makes a diagnosis of what was found about each queue: what follows from a guess, the order of findings, and the
// packets around rptr.
#include "case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// How many packets around rptr a report shows.
constexpr std::size_t kBefore = 3, kAfter = 6;

/// The first finding is one that decides the verdict. What was seen comes before what was inferred: the queue whose
/// packet faults before those that the driver stopped with it.
int rank(const Diagnosis& d, const Finding& f) noexcept {
  const auto v = d.verdict(f);
  const int worst = v == Verdict::hung ? 0 : v == Verdict::undecided ? 32 : 64;
  if (f.what == HangClass::unknown) return worst + 16;
  return worst + (f.what == HangClass::follows ? 8 : 0) + (f.basis == Basis::guessed ? 4 : 0) + (f.queue ? 0 : 2) +
         (f.basis == Basis::seen ? 0 : 1);
}

/// What follows from a guess is a guess, and so is a cycle of which one part is.
void weaken(Diagnosis& d) {
  const auto guessed = [&](std::size_t q) {
    return std::any_of(d.findings.begin(), d.findings.end(),
                       [&](const Finding& f) { return f.queue == q && f.basis == Basis::guessed; });
  };
  for (auto& f : d.findings)
    if (std::any_of(f.cycle.begin(), f.cycle.end(), [&](const Place& p) { return guessed(p.queue); }))
      f.basis = Basis::guessed;
  for (bool any = true; any;) {
    any = false;
    for (auto& f : d.findings) {
      if (f.what != HangClass::follows || f.basis == Basis::guessed || !f.release.place) continue;
      if (!guessed(f.release.place->queue)) continue;
      f.basis = Basis::guessed;
      any = true;
    }
  }
}

void healthy(const Case& c, Finding& f) {
  std::size_t slow = 0, idle = 0, busy = 0;
  for (std::size_t q = 0; q < c.lines.size(); ++q) ++(c.moved(q) ? slow : c.lines[q].pending() ? busy : idle);
  if (slow > 0)
    say(f, Basis::seen,
        fmt::format("{} of {} queues moved while they were watched: they are slow, not hung.", slow, c.lines.size()),
        "rptr at the first and the last look");
  if (busy > 0)
    say(f, Basis::inferred,
        fmt::format("{} of {} queues can execute everything that is pending.", busy, c.lines.size()),
        "the packets and the words");
  if (idle > 0)
    say(f, Basis::seen,
        fmt::format("{} of {} queues have read everything that was submitted, and what they read last does not wait.",
                    idle, c.lines.size()),
        "rptr, wptr and the packets");
  if (c.lines.empty()) say(f, Basis::seen, "There are no sDMA queues.", "the snapshot");
}

/// A log without a queue: what it says decides nothing, and is not hidden.
void no_queue(const Snapshot& s, Finding& f) {
  constexpr std::size_t kMost = 3;
  say(f, Basis::seen, "There is no queue in this input, so nothing is decided.",
      "the snapshot, whose notes say what is missing");
  for (std::size_t i = 0; i < std::min(kMost, s.page_faults.size()); ++i)
    say(f, Basis::seen,
        fmt::format("{} reports a page fault at {}.", s.page_faults[i].from, in_words(s.page_faults[i])),
        s.page_faults[i].from);
  f.to_do = "give the dump of a ring, a trace.jsonl or a gpucore file as well";
}

/// A GPU that has lost its memory: what its queues have done is doubtful, whatever is wrong with them.
void lost_memory(const Snapshot& s, Finding& first) {
  const auto lost = std::find_if(s.events.begin(), s.events.end(),
                                 [](const LogEvent& e) { return e.said.find("VRAM is lost") != std::string::npos; });
  if (lost == s.events.end()) return;
  auto text = fmt::format("{}{}{}: \"{}\". {}", lost->from, lost->origin.words.empty() ? "" : ", " + lost->origin.words,
                          lost->device.empty() ? "" : ", GPU " + lost->device, lost->said, lost->means);
  first.statements.insert(first.statements.begin(), {std::move(text), Basis::seen, lost->from});
}

NearPacket near(const Packet& p, Part part) {
  return {part, p.position, (p.inside ? "ib: " : "") + packet_text(p.view)};
}

QueueState state_of(const Case& c, std::size_t q) {
  const auto& queue = c.snapshot.queues[q];
  const auto& line = c.lines[q];
  QueueState out{.name = queue.name,
                 .gpu = queue.gpu,
                 .engine = queue.engine,
                 .rptr = queue.rptr,
                 .wptr = queue.wptr,
                 .doorbell = queue.doorbell,
                 .ring_bytes = line.bytes,
                 .what = HangClass::healthy,
                 .moved = c.moved(q),
                 .moved_bytes = c.moved(q) ? *queue.rptr - *queue.rptr_first : 0};
  const auto shown = [](const Packet& p) { return !p.view.is<Nop>(); };
  for (auto i = line.head; i < line.packets.size(); ++i) out.pending_packets += shown(line.packets[i]);
  std::vector<NearPacket> before;
  for (auto i = line.head; i-- > 0 && before.size() < kBefore;)
    if (shown(line.packets[i])) before.push_back(near(line.packets[i], Part::consumed));
  out.near.assign(before.rbegin(), before.rend());
  std::size_t after = 0;
  for (auto i = line.head; i < line.packets.size() && after < kAfter; ++i) {
    if (!shown(line.packets[i]) && i != line.head) continue;
    out.near.push_back(near(line.packets[i], i == line.head ? Part::at_rptr : Part::pending));
    ++after;
  }
  return out;
}

}  // namespace

Diagnosis diagnosis_of(const Case& c, std::vector<Finding> findings) {
  Diagnosis d;
  d.findings = std::move(findings);
  weaken(d);
  for (std::size_t q = 0; q < c.lines.size(); ++q) d.queues.push_back(state_of(c, q));
  // The same hang is not reported twice: a thread that waits for a queue that hangs follows from it.
  std::vector<std::pair<int, Finding>> ranked;
  for (const auto& f : d.findings) ranked.emplace_back(rank(d, f), f);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < ranked.size(); ++i) d.findings[i] = std::move(ranked[i].second);
  for (const auto& f : d.findings) {
    if (!f.queue) continue;
    auto& what = d.queues[*f.queue].what;
    if (what == HangClass::healthy) what = f.what;
  }
  if (d.findings.empty()) {
    const bool examined = !c.lines.empty() || c.snapshot.all_queues;
    Finding f{.what = examined ? HangClass::healthy : HangClass::unknown, .basis = Basis::inferred};
    if (examined) healthy(c, f);
    else no_queue(c.snapshot, f);
    d.findings.push_back(std::move(f));
  }
  lost_memory(c.snapshot, d.findings.front());
  d.from = c.snapshot.from;
  d.page_faults = c.snapshot.page_faults;
  d.events = c.snapshot.events;
  d.watched_ns = c.snapshot.watched_ns;
  d.notes = c.snapshot.notes;
  for (std::size_t q = 0; q < c.lines.size(); ++q)
    if (const auto i = unexamined(c, q))
      d.notes.push_back(fmt::format("{}: {}", c.at({q, *i}), what_is_unknown(c.packet({q, *i}).view)));
  return d;
}

}}}  // namespace sdma::v0_3::doctor
