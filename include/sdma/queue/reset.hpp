// SPDX-License-Identifier: MIT
#pragma once
// After the reset of an engine: what each of its queues has completed, what may be half done, and what to send again.
//
// Linux resets a whole SDMA engine when one of its queues hangs (KFD, from 6.15 or so, on gfx9.4 and later). It marks
// the queue that it found active, but all queues of the engine lose what they were executing. The driver repeats
// nothing. The runtime that owns the rings can, from the rings themselves.
//
//   ResetQueue q{.ring = {base, dwords}, .rptr = rptr, .wptr = wptr, .landed = seen, .not_landed = missing};
//   const ResetReport r = after_reset(q, [&](const ResetPacket& p) { log(p.position, p.fate, p.why); });
//   if (r.state == ResetReport::State::whole) return ok;              // nothing was lost
//   if (r.state == ResetReport::State::unknown) return fail(r.why);   // it is not known what was lost
//   Ring<> fresh{new_queue.memory()};                                 // of a new queue
//   if (auto sent = send_again(q, fresh); !sent) return sent.error();
//
//       landed                    rptr                       wptr
//   ------+------------------------+--------+------------------+----
//    done | consumed: may be       | at rptr:| not consumed, as |
//         | half done              | may be  | far as rptr says |
//
// Positions count bytes, as rptr and wptr do, and never wrap. What is known decides what happens with a packet:
//
//   packet                        may have been executed          cannot have been
//   copy, fill, write, stamp      again: the result is the same   again
//   fence, trap                   again: it stores the same       again
//   poll                          again, unless rptr is past it   again
//   atomic, semaphore, mem_incr   held: twice is not once         again
//   swap                          held: half of it may be done    again
//   copy whose source may have    held: the source is not what    again
//   been overwritten since        it was
//   cond_exec, indirect           held, with what it governs: it  again
//                                 is not known what it chose
//
// A held packet is not sent: its caller knows what the word should hold, stores that, or sends the packet after all.
// The roles and footprints are those of packets/footprint.hpp; a packet that is not described there is held.
//
// What can be known. A release (fence, atomic) lands after all that is before it, in order. So a completion that was
// seen proves everything before it done (`landed`), and a completion that is known to be missing proves that no later
// release has landed (`not_landed`): later atomics are then sent, not held. completions() finds both from the words of
// fences. rptr alone proves nothing done. It lags by a timer, so packets after it may have been executed, too, unless
// `rptr_exact` says that it is not the word in memory, but what the driver saved of the queue after the reset (debugfs'
// mqds: sdmax_rlcx_rb_rptr).
//
// What is not seen: memory that others have changed since. If a consumer has taken a copy's result and reused the
// buffer before its completion was seen, repeating the copy overwrites it.
//
// Nothing here changes a ring, except send_again, which publishes to the new one. Header-only; no allocation. The rings
// must not change meanwhile: call it once the driver has reported the reset. Its time is at most quadratic in the
// copies that may be half done, and bounded: after kMostResetPairs comparisons, copies are held.
//
// Errors: Errc::unknown if the state is `unknown`; Errc::too_large if the room is less than ResetReport::dwords; of
// send_again also what Ring::reserve returns.
#include "sdma/packets/catalogue.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/stream/reader.hpp"

#include <optional>

namespace sdma { inline namespace v0_3 {

/// What is known of one queue of the engine. Leave out what is not known: nothing is assumed in its place.
struct ResetQueue {
  std::span<const std::uint32_t> ring{};       ///< the whole ring; empty: it cannot be read
  Generation generation = kDefaultGeneration;  ///< of the engine
  std::optional<std::uint64_t> rptr{};         ///< what the engine has consumed
  std::optional<std::uint64_t> wptr{};         ///< what was published
  /// The end of a packet: everything before it is complete, because a completion at or after it was seen.
  std::optional<std::uint64_t> landed{};
  /// The position of a release whose word shows that it has not landed.
  std::optional<std::uint64_t> not_landed{};
  bool rptr_exact = false;  ///< rptr was saved by the driver after the reset, and does not lag
};

/// What happens with a packet.
enum class ResetFate : std::uint8_t {
  done,    ///< complete, or a poll that was met: not sent again
  repeat,  ///< may be half done, or done: sent again, with the same result
  send,    ///< was not executed: sent again
  held,    ///< may have been executed, and to execute it again is not the same: not sent again; the caller decides
};
/// "done", "repeat", ...
constexpr std::string_view name(ResetFate f) noexcept {
  return f == ResetFate::done ? "done" : f == ResetFate::repeat ? "repeat" : f == ResetFate::send ? "send" : "held";
}

/// A packet from `landed` on. It refers to the ring.
struct ResetPacket {
  std::uint64_t position{};                 ///< of its first byte
  std::span<const std::uint32_t> dwords{};  ///< the whole packet
  const PacketInfo* info{};                 ///< an entry of the generation's catalogue
  ResetFate fate = ResetFate::held;         ///< what happens with it
  std::string_view why{};                   ///< why, in one clause
};

/// What is known of a queue, and how much of it is sent again.
struct ResetReport {
  /// The state of the whole queue.
  enum class State : std::uint8_t {
    unknown,  ///< too little is known, or it contradicts itself: `why`. The queue is not whole
    whole,    ///< everything that was published is complete
    again,    ///< all that is not complete can be sent again
    decide,   ///< the same, but for the packets that are held
  };
  State state = State::unknown;                  ///< what is known
  std::string_view why{};                        ///< of `unknown`: what is missing or wrong, in one sentence
  std::uint64_t from{};                          ///< everything before this position is complete
  std::uint64_t begun{};                         ///< packets that begin at or after this position have not begun
  std::size_t done{}, repeat{}, send{}, held{};  ///< how many packets of each fate there are, without NOPs
  std::size_t dwords{};                          ///< of those that are sent again
};
/// "unknown", "whole", ...
constexpr std::string_view name(ResetReport::State s) noexcept {
  using enum ResetReport::State;
  return s == whole ? "whole" : s == again ? "again" : s == decide ? "decide" : "unknown";
}

/// At most so many copies are compared with each other.
inline constexpr std::size_t kMostResetPairs = std::size_t{1} << 24;

namespace detail {

/// Packets of a ring from one position to another, as the engine takes them.
class ResetWalk {
 public:
  ResetWalk(const ResetQueue& q, std::uint64_t from) noexcept : queue_(q), at_(from) {}

  std::uint64_t position() const noexcept { return at_; }
  bool more() const noexcept { return at_ < *queue_.wptr; }
  /// The next packet; without `info` if none begins here, if it ends after wptr or the ring, or if its length is not
  /// certain: then there is no next.
  ResetPacket next() noexcept {
    const auto dwords = queue_.ring.size();
    const auto offset = static_cast<std::size_t>(at_ / 4 % dwords);
    const auto left = static_cast<std::size_t>((*queue_.wptr - at_) / 4);
    const auto rest = queue_.ring.subspan(offset, left < dwords - offset ? left : dwords - offset);
    ResetPacket p{.position = at_, .dwords = rest.first(1)};
    const auto v = Reader{rest, catalogue(queue_.generation)}.next();
    // Where a packet ends whose length sources dispute, the next one may begin, or not.
    if (!v.whole() || v.info->doubt) return p;
    p.info = v.info;
    p.dwords = v.dwords;
    at_ += v.dwords.size() * 4;
    return p;
  }

 private:
  const ResetQueue& queue_;
  std::uint64_t at_;
};

/// Why nothing can be said, or "".
inline std::string_view why_unknown(const ResetQueue& q) noexcept {
  const auto bytes = std::uint64_t{q.ring.size()} * 4;
  if (q.ring.empty()) return "the ring cannot be read";
  if ((q.ring.size() & (q.ring.size() - 1)) != 0) return "the size of the ring is not a power of two";
  if (!described(q.generation)) return "the generation has no description";
  if (!q.wptr) return "wptr is not known: what was published is not known";
  if (!q.rptr) return "rptr is not known: what was consumed is not known";
  if (*q.rptr > *q.wptr) return "rptr is ahead of wptr";
  if (*q.wptr - *q.rptr > bytes) return "rptr lags wptr by more than the ring";
  if ((*q.rptr | *q.wptr) % 4 != 0) return "a position is not a multiple of 4";
  if (!q.landed) {
    if (*q.wptr > bytes)
      return "no completion was seen, and the ring has wrapped: the last packets before rptr are lost";
    return "";
  }
  if (*q.landed % 4 != 0 || *q.landed > *q.wptr) return "the completion that was seen lies after wptr";
  if (*q.wptr - *q.landed > bytes) return "the completion that was seen is older than the ring";
  if (q.not_landed && *q.not_landed < *q.landed) return "a completion is missing that lies before one that was seen";
  return "";
}

/// How much of a packet can be repeated.
struct ResetEffects {
  bool changes = false;          ///< what it stores depends on what it overwrites
  std::array<Region, 4> read{};  ///< what it reads, as far as there is room
  std::size_t reads = 0;
};
inline bool reset_meet(const Region& a, const Region& b) noexcept {
  return hull(a) != 0 && hull(b) != 0 && a.va.value < end_of(b).value && b.va.value < end_of(a).value;
}
inline ResetEffects reset_effects(const ResetPacket& p) noexcept {
  ResetEffects e;
  footprint(*p.info, p.dwords, [&](const Region& r) {
    if (r.access == Access::read_write) e.changes = true;
    else if (r.access == Access::read && e.reads < e.read.size()) e.read[e.reads++] = r;
    else if (r.access == Access::read) e.changes = true;  // more than is remembered
  });
  footprint(*p.info, p.dwords, [&](const Region& r) {
    for (std::size_t i = 0; i < e.reads; ++i)
      if (r.access != Access::read && reset_meet(r, e.read[i])) e.changes = true;
  });
  return e;
}

/// May a packet from `later` to `begun` have overwritten what these effects read? True after kMostResetPairs of them.
inline bool overwritten(const ResetEffects& e, ResetWalk later, std::uint64_t begun, std::size_t& pairs) noexcept {
  bool met = false;
  while (e.reads != 0 && !met && later.more() && later.position() < begun) {
    const auto p = later.next();
    if (!p.info) return false;  // it is reported where the walk reaches it
    met = ++pairs > kMostResetPairs;
    footprint(*p.info, p.dwords, [&](const Region& r) {
      for (std::size_t i = 0; i < e.reads; ++i)
        if (r.access != Access::read && reset_meet(r, e.read[i])) met = true;
    });
  }
  return met;
}

}  // namespace detail

/// Classifies the packets from `landed` to wptr, and calls `each(const ResetPacket&)` for each, in their order, but not
/// for NOPs. If the state is `unknown`, `each` has seen only what could be read.
template <class Each> ResetReport after_reset(const ResetQueue& q, Each&& each) noexcept {
  ResetReport r{.why = detail::why_unknown(q)};
  if (!r.why.empty()) return r;
  r.from = q.landed.value_or(0);
  // A packet at rptr may have been begun; without an exact rptr, any may have been.
  r.begun = *q.wptr;
  if (q.rptr_exact) {
    r.begun = *q.rptr > r.from ? *q.rptr : r.from;
    detail::ResetWalk at{q, r.begun};
    if (at.more() && at.next().info) r.begun = at.position();
  }
  std::size_t pairs = 0;
  std::uint64_t governed = 0;  // the end of what a condition in doubt decides
  detail::ResetWalk walk{q, r.from};
  while (walk.more()) {
    auto p = walk.next();
    if (!p.info) {
      r.why =
          "before wptr lies a dword that begins no packet, or a packet that is cut off or whose length is not certain";
      return r;
    }
    const auto end = walk.position();
    const auto kind = role(*p.info, p.dwords);
    const bool begun = p.position < r.begun;
    // While a poll waits, rptr may be before or after it: only a packet after it shows that it was met.
    const bool passed = end < *q.rptr;
    // No release at or after a missing one has landed.
    const bool late = q.not_landed && p.position >= *q.not_landed;
    const auto decided = [&](ResetFate f, std::string_view why) {
      p.fate = f;
      p.why = why;
    };
    if (is<Nop>(*p.info)) continue;
    if (!p.info->typed) decided(ResetFate::held, "its effects are not described");
    else if (p.position < governed) decided(ResetFate::held, "a condition before it may have skipped it");
    else if (!begun) decided(ResetFate::send, "it has not begun");
    else if (kind == Role::control) {
      decided(ResetFate::held, "it is not known what it chose");
      governed = end + std::uint64_t{4} * skipped(*p.info, p.dwords);
    } else {
      const auto effects = detail::reset_effects(p);
      if (kind == Role::acquire && passed) decided(ResetFate::done, "the engine has passed it, so it was met");
      else if (kind == Role::release && late) decided(ResetFate::send, "a completion before it is missing");
      else if (effects.changes) decided(ResetFate::held, "to execute it twice is not the same as once");
      else decided(ResetFate::repeat, "it may be half done, and its result does not depend on that");
      if (p.fate == ResetFate::repeat && kind == Role::data && detail::overwritten(effects, walk, r.begun, pairs))
        decided(ResetFate::held, "its source may have been overwritten since");
    }
    if (p.fate == ResetFate::done) ++r.done;
    else if (p.fate == ResetFate::repeat) ++r.repeat;
    else if (p.fate == ResetFate::send) ++r.send;
    else ++r.held;
    if (p.fate == ResetFate::repeat || p.fate == ResetFate::send) r.dwords += p.dwords.size();
    each(static_cast<const ResetPacket&>(p));
  }
  r.state = r.held != 0                ? ResetReport::State::decide
            : r.repeat + r.send != 0   ? ResetReport::State::again
            : q.landed || *q.wptr == 0 ? ResetReport::State::whole
                                       : ResetReport::State::unknown;
  if (r.state == ResetReport::State::unknown) r.why = "no completion was seen";
  return r;
}
/// The same, without a call for each packet.
inline ResetReport after_reset(const ResetQueue& q) noexcept {
  return after_reset(q, [](const ResetPacket&) {});
}

/// Writes what is sent again, in its order, for a new ring. `also(const ResetPacket&)` says whether a held packet is
/// sent after all. The number of dwords written. Errors: unknown, too_large: then `out` may be written in part.
template <class Also>
Result<std::size_t> rebuild(const ResetQueue& q, std::span<std::uint32_t> out, Also&& also) noexcept {
  std::size_t n = 0;
  bool fits = true;
  const auto r = after_reset(q, [&](const ResetPacket& p) {
    if (p.fate == ResetFate::done || (p.fate == ResetFate::held && !also(p))) return;
    fits = fits && p.dwords.size() <= out.size() - n;
    if (!fits) return;
    for (const auto d : p.dwords) out[n++] = d;
  });
  if (r.state == ResetReport::State::unknown) return Errc::unknown;
  if (!fits) return Errc::too_large;
  return n;
}
inline Result<std::size_t> rebuild(const ResetQueue& q, std::span<std::uint32_t> out) noexcept {
  return rebuild(q, out, [](const ResetPacket&) { return false; });
}

/// Publishes what is sent again to the ring of a new queue, as one submission: a ring of the same size has room for all
/// of it while it is empty. The number of dwords; 0: there was nothing to send.
template <Producers K, class Order>
[[nodiscard]] Result<std::size_t> send_again(const ResetQueue& q, Ring<K, Order>& ring) noexcept {
  const auto r = after_reset(q);
  if (r.state == ResetReport::State::unknown) return Errc::unknown;
  if (r.dwords == 0) return std::size_t{0};
  auto slot = ring.reserve(r.dwords);
  if (!slot) return slot.error();
  const auto n = rebuild(q, slot->dwords);
  ring.publish(*slot, n ? *n : 0);
  return n;
}

/// Sets `landed` and `not_landed` from the words of fences: `load(GpuVa, std::uint32_t&)` loads a word, and is false if
/// it cannot. The packets must be known from `landed`, or from the ring's begin if it has not wrapped, to wptr.
///
/// A word that holds a fence's value says that this fence has landed: so words must be epochs, values that only their
/// fences store, and no two fences the same. If a word holds the value of none of its fences, the first has not landed.
/// A word that `load` cannot load says nothing.
template <class Load> ResetQueue completions(ResetQueue q, Load&& load) noexcept {
  if (!detail::why_unknown(q).empty()) return q;
  const auto from = q.landed.value_or(0);
  std::optional<std::uint64_t> landed, missing;
  for (detail::ResetWalk walk{q, from}; walk.more();) {
    const auto p = walk.next();
    if (!p.info) return q;
    if (!p.info->typed || !is<Fence>(*p.info)) continue;
    const auto fence = decode<Fence>(p.dwords, *p.info);
    std::uint32_t word = 0;
    if (load(fence.addr, word) && word == fence.value) landed = walk.position();
  }
  const auto known = landed.value_or(from);
  for (detail::ResetWalk walk{q, known}; walk.more() && !missing;) {
    const auto p = walk.next();
    if (!p.info) return q;
    if (!p.info->typed || !is<Fence>(*p.info)) continue;
    const auto fence = decode<Fence>(p.dwords, *p.info);
    std::uint32_t word = 0;
    if (load(fence.addr, word) && word != fence.value) missing = p.position;
  }
  if (landed) q.landed = landed;
  if (missing) q.not_landed = missing;
  return q;
}

}}  // namespace sdma::v0_3
