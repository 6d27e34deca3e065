// SPDX-License-Identifier: MIT
// The names and titles of hang classes, and the verdict of a diagnosis.
#include "sdma/doctor/diagnose.hpp"

#include <algorithm>
#include <array>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

struct ClassName {
  HangClass what;
  std::string_view name, title;
};
constexpr std::array<ClassName, kHangClasses> kClassNames{{
    {HangClass::healthy, "healthy", "nothing hangs"},
    {HangClass::unknown, "unknown", "too little is known"},
    {HangClass::never_written, "never-written", "a poll of a word that nothing writes"},
    {HangClass::wrong_value, "wrong-value", "a value that does not satisfy the wait"},
    {HangClass::wrong_half, "wrong-half", "the wrong half of a 64-bit word"},
    {HangClass::beyond_mask, "beyond-mask", "a condition that no value satisfies"},
    {HangClass::stale_epoch, "stale-epoch", "an epoch of another round"},
    {HangClass::cycle, "cycle", "queues that wait for each other"},
    {HangClass::one_engine, "one-engine", "a poll and its release on one engine"},
    {HangClass::doorbell_not_rung, "doorbell-not-rung", "a doorbell that was not rung"},
    {HangClass::wptr_not_stored, "wptr-not-stored", "a wptr that was not stored"},
    {HangClass::wptr_inside_packet, "wptr-inside-packet", "a wptr that lies inside a packet"},
    {HangClass::cut_by_wrap, "cut-by-wrap", "a packet across the end of the ring"},
    {HangClass::unknown_opcode, "unknown-opcode", "a dword that begins no packet"},
    {HangClass::header_overwritten, "header-overwritten", "a packet whose header was overwritten"},
    {HangClass::overrun, "overrun", "a ring that its producer overran"},
    {HangClass::full_ring, "full-ring", "a full ring whose producer waits for room"},
    {HangClass::fault, "fault", "an access that faults"},
    {HangClass::destroyed, "destroyed", "a queue that was destroyed under work"},
    {HangClass::no_such_engine, "no-such-engine", "an engine that does not exist"},
    {HangClass::poll_expired, "poll-expired", "a finite poll that expired"},
    {HangClass::no_mailbox, "no-mailbox", "a trap without its mailbox"},
    {HangClass::lost_wakeup, "lost-wakeup", "a lost wake-up"},
    {HangClass::wrong_word, "wrong-word", "a completion that went to another word"},
    {HangClass::no_atomics, "no-atomics", "an atomic over a link without atomics"},
    {HangClass::follows, "follows", "a wait for a queue that makes no progress"},
    {HangClass::unpublished, "unpublished", "a slot that was not published"},
}};
static_assert(kClassNames.back().what == static_cast<HangClass>(kHangClasses - 1));

const ClassName& of(HangClass c) noexcept {
  const auto i = static_cast<std::size_t>(c);
  return kClassNames[i < kClassNames.size() ? i : 1];
}

}  // namespace

std::string_view name(HangClass c) noexcept { return of(c).name; }
std::string_view title(HangClass c) noexcept { return of(c).title; }

std::string_view name(Basis b) noexcept {
  return b == Basis::seen ? "seen" : b == Basis::inferred ? "inferred" : "guessed";
}

std::string_view name(Release::By by) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"unknown", "nobody", "host", "packet"};
  const auto i = static_cast<std::size_t>(by);
  return kNames[i < kNames.size() ? i : 0];
}

std::string_view name(Verdict v) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"healthy", "undecided", "hung", "waits"};
  const auto i = static_cast<std::size_t>(v);
  return kNames[i < kNames.size() ? i : 1];
}

Verdict Diagnosis::verdict(const Finding& f) const noexcept {
  const auto* at = &f;
  for (std::size_t n = 0; n < findings.size() && at->what == HangClass::follows; ++n) {
    if (at->basis == Basis::guessed || !at->release.place) break;
    const auto next = std::find_if(findings.begin(), findings.end(),
                                   [&](const Finding& other) { return other.queue == at->release.place->queue; });
    if (next == findings.end()) break;
    at = &*next;
  }
  if (at->what == HangClass::healthy) return Verdict::healthy;
  // That it stands was seen, and only the reason is not known.
  if (at->what == HangClass::unknown && at->basis == Basis::seen) return Verdict::hung;
  if (at->what == HangClass::unknown || at->what == HangClass::follows || at->basis == Basis::guessed)
    return Verdict::undecided;
  return at->release.by == Release::By::host ? Verdict::waits : Verdict::hung;
}

Verdict Diagnosis::verdict() const noexcept {
  for (const auto v : {Verdict::hung, Verdict::undecided, Verdict::waits})
    if (std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return verdict(f) == v; })) return v;
  return Verdict::healthy;
}

}}}  // namespace sdma::v0_3::doctor
