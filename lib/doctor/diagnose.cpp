// SPDX-License-Identifier: MIT
#include "sdma/doctor/diagnose.hpp"

#include "case.hpp"
#include "reset.hpp"
#include "sdma/packets/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// The slowest rate at which a copy is not suspected to hang, in bytes per nanosecond.
constexpr std::uint64_t kSlowest = 1;

bool is_waiting(StopWhy w) noexcept { return w == StopWhy::waits || w == StopWhy::waits_unread; }

class Diagnostician {
 public:
  explicit Diagnostician(const Snapshot& s)
      : s_(s), lines_(lines_of(s)), followed_(s, lines_), case_{s, lines_, followed_} {
    states_.resize(s.queues.size());
    for (auto& q : states_) q.reset();
  }

  Diagnosis take() {
    perhaps_.resize(lines_.size());
    for (std::size_t q = 0; q < lines_.size(); ++q) {
      for (auto i = lines_[q].last_read(); i < end_of_next(case_, q); ++i)
        if (may_wait(case_, q, i)) perhaps_[q].push_back(i);
      if (auto f = examine_state(lines_[q], case_.snapshot)) {
        states_[q] = std::move(f);
        followed_.freeze(q);
      } else if (const auto before = poll_before(case_, q)) {
        followed_.stops[q].packet = *before;
      }
    }
    followed_.run();
    helpers_.resize(lines_.size());
    for (std::size_t q = 0; q < lines_.size(); ++q)
      if (!states_[q] && is_waiting(followed_.stops[q].why)) {
        helpers_[q] = helpers_of(case_, *wait_of(packet(q)), Post{q, followed_.stops[q].packet});
      }
    for (std::size_t q = 0; q < lines_.size(); ++q) examine(q), add_timeout(case_, q, states_[q]);
    std::vector<Finding> findings;
    for (auto& f : states_)
      if (f) findings.push_back(std::move(*f));
    explain_hosts(case_, findings);
    return diagnosis_of(case_, std::move(findings));
  }

 private:
  static std::vector<Line> lines_of(const Snapshot& s) {
    std::vector<Line> out;
    for (std::size_t q = 0; q < s.queues.size(); ++q) out.push_back(read_line(s.queues[q], q, s));
    return out;
  }
  const PacketView& packet(std::size_t q) const { return lines_[q].packets[followed_.stops[q].packet].view; }
  bool moved(std::size_t q) const noexcept { return case_.moved(q); }

  /// Nothing is pending in `q`, which may still be at a packet that waits. Another queue that stands still shows it, if
  /// what that queue needs comes after the packet.
  bool is_needed(std::size_t q) const {
    const auto after = [&](const Post& p) { return p.queue == q && p.packet > followed_.stops[q].packet; };
    const auto needs = [&](std::size_t other) {
      const auto& posts = helpers_[other];
      if (posts.empty() || !std::all_of(posts.begin(), posts.end(), after)) return false;
      // Nothing else stores to the word: if the packet had been executed, its value would be there.
      const auto w = *wait_of(packet(other));
      for (auto at = w.va.value; at < w.va.value + w.bytes; at += 4)
        if (const auto all = followed_.posts.find(at); all != followed_.posts.end())
          if (!std::all_of(all->second.begin(), all->second.end(), after)) return false;
      return true;
    };
    for (std::size_t other = 0; other < lines_.size(); ++other)
      if (other != q && case_.watched() && lines_[other].pending() && !moved(other) && needs(other)) return true;
    return false;
  }
  /// So does one whose next packet satisfies the wait, and needs only the engine.
  bool needs_only_the_engine(const Post& p) const {
    return case_.watched() && lines_[p.queue].pending() && !followed_.waited[p.queue];
  }

  Finding& report(std::size_t q, HangClass what, Basis basis, std::string to_do = {}) {
    auto& f = states_[q];
    if (!f) f.emplace();
    f->what = what;
    f->basis = basis;
    f->queue = q;
    if (!to_do.empty()) f->to_do = std::move(to_do);
    if (!f->at && followed_.stops[q].packet < lines_[q].packets.size())
      f->at = case_.place({q, followed_.stops[q].packet});
    return *f;
  }

  void examine(std::size_t q) {
    if (states_[q] || moved(q)) return;
    const auto& line = lines_[q];
    if (!line.placed) return unplaced(q);
    switch (followed_.stops[q].why) {
      case StopWhy::no_packet:
      case StopWhy::cut_off:
      case StopWhy::wraps:
      case StopWhy::unmapped: states_[q] = explain_packet(case_, q); return;
      case StopWhy::unrung: return unrung(q);
      case StopWhy::waits:
      case StopWhy::waits_unread: return waits(q);
      case StopWhy::frozen: return;
      case StopWhy::end: break;
    }
    if (engine_is_held(q)) return;
    if (const auto i = line.unread_buffer()) return void(states_[q] = explain_unread(case_, {q, *i}));
    if (const auto i = unexamined(case_, q)) return void(states_[q] = explain_unexamined(case_, {q, *i}));
    if (const auto i = perhaps_skipped(q)) return undecided(q, *i);
    if (!line.pending()) return expired(q);
    if (line.incomplete || followed_.waited[q]) return;
    idle(q);
  }

  void unplaced(std::size_t q) {
    const auto& line = lines_[q];
    const bool placed = s_.queues[q].rptr && s_.queues[q].wptr;
    auto& f = report(q, HangClass::unknown, Basis::guessed,
                     placed && s_.queues[q].ring.empty()
                         ? "give the dwords of its ring: a core file of its process, or the process itself"
                         : "give the positions of the queue and the dwords of its ring (--rptr, --wptr)");
    say(f, Basis::seen, fmt::format("Nothing can be said about {}: {}.", s_.queues[q].name, line.contradiction),
        "the snapshot");
  }

  /// Nothing else waits, and a condition that was read may or may not have skipped a packet that does.
  std::optional<std::size_t> perhaps_skipped(std::size_t q) const {
    const auto& line = lines_[q];
    for (const auto i : perhaps_[q])
      if (followed_.skipped[q][i] &&
          (!line.pending() || followed_.condition_of({q, i}).value_or(line.head) < line.head))
        return i;
    return {};
  }
  void undecided(std::size_t q, std::size_t i) {
    auto& f = report(q, HangClass::unknown, Basis::guessed, "find out what the word of the condition was");
    f.at = case_.place({q, i});
    say(f, Basis::guessed, "The engine may be at this packet, unless the condition before it skips it.",
        "what the condition's word was when it was read");
  }

  /// The engine has executed what was rung, and wptr is ahead.
  void unrung(std::size_t q) {
    const auto& queue = s_.queues[q];
    auto& f =
        report(q, HangClass::doorbell_not_rung, Basis::seen,
               "ring the doorbell after each store of wptr: a doorbell that rings while the queue is unmapped is lost");
    say(f, Basis::seen,
        fmt::format(
            "wptr is {:#x}, but the doorbell was last rung with {:#x}: the engine does not know of the packets after "
            "that.",
            *queue.wptr, *queue.doorbell),
        fmt::format("the doorbell in the {}", name(queue.doorbell.from)));
    (void)rung_elsewhere(case_, q, f);
  }

  /// Nothing waits, and still the queue does not move.
  void idle(std::size_t q) {
    const auto& queue = s_.queues[q];
    const auto& line = lines_[q];
    if (explain_timeout_beside(case_, q, states_[q])) return;
    const auto other = holder_of(q);
    if (other) {
      auto& f = report(q, HangClass::follows, case_.watched() ? Basis::inferred : Basis::guessed,
                       fmt::format("find out why {} makes no progress", case_.name(*other)));
      say(f, Basis::inferred, fmt::format("{} hangs on the same engine.", case_.name(*other)),
          "the engines of the queues; whether a waiting poll yields its engine is not known (rule X2)");
      return;
    }
    std::uint64_t bytes = 0;
    for (auto i = line.head > 0 ? line.head - 1 : 0; i < std::min(line.head + 1, line.packets.size()); ++i)
      bytes += bytes_of(line.packets[i].view);
    const bool rung = queue.doorbell && *queue.doorbell >= *queue.wptr;
    if (!case_.watched() && rung) return;  // the engine executes it, or is about to
    if (case_.watched() && bytes * kSlowest > s_.watched_ns) {
      auto& f = report(q, HangClass::unknown, Basis::guessed, "watch the queue for longer");
      say(f, Basis::inferred, fmt::format("A copy of {:#x} bytes may still be in progress.", bytes),
          "a rate of 1 GB/s, which is slow");
      return;
    }
    if (rung) {
      auto& f = report(q, HangClass::unknown, Basis::guessed,
                       "look for a fault in the kernel's log, and for other queues on the engine");
      say(f, Basis::seen, "The doorbell was rung, no packet near rptr waits, and the queue does not move.",
          "doorbell, rptr and the packets");
      return;
    }
    const bool watched = case_.watched();
    // Whatever else holds the engine looks the same: a doorbell that nobody can read is a guess.
    auto& f = report(q, HangClass::doorbell_not_rung, Basis::guessed,
                     "ring the doorbell after each store of wptr, and check that it belongs to this queue");
    say(f, Basis::inferred,
        *queue.rptr == 0 ? "The engine has never read the queue, and its first packet does not wait."
                         : "No packet at or after rptr waits for anything that is false.",
        "the packets and the words");
    if (rung_elsewhere(case_, q, f)) return;
    say(f, Basis::guessed,
        fmt::format("The doorbell was not rung or was lost; or {}; or the queue is suspended (percentage 0), and on no "
                    "engine.",
                    queue.engine ? "another process occupies the engine"
                                 : "another queue occupies the engine, which is not known"),
        "wptr is ahead of rptr; neither the doorbell nor the percentage can be read");
    if (!watched)
      say(f, Basis::guessed, "Or the queue is only slow: the snapshot shows one moment.", "nothing; watch the queue");
  }
  static std::uint64_t bytes_of(const PacketView& v) {
    std::uint64_t n = 0;
    if (v.whole() && role(*v.info, v.dwords) == Role::data)
      footprint(*v.info, v.dwords, [&](const Region& r) { n = std::max(n, r.bytes * r.rows * r.slices); });
    return n;
  }
  /// Another queue of the same engine that waits, perhaps for a packet of this one.
  std::optional<std::size_t> holder_of(std::size_t q) const {
    for (std::size_t other = 0; other < lines_.size(); ++other) {
      if (!case_.same_engine(q, other)) continue;
      const auto& by = followed_.woken_by[other];
      if (is_waiting(followed_.stops[other].why)) return other;
      if (followed_.waited[other] && !moved(other) && by && by->queue == q) return other;
    }
    return {};
  }

  /// A finite poll just before rptr, in a queue that has executed everything.
  void expired(std::size_t q) {
    const auto& line = lines_[q];
    if (line.head == 0 || s_.waits.empty()) return;
    for (auto i = line.head; i-- > 0 && line.head - i <= 16;) {
      const auto w = wait_of(line.packets[i].view);
      if (!w || !w->finite) continue;
      const auto met = w->met(followed_.now);
      if (!met || *met) return;
      auto& f = report(q, HangClass::poll_expired, Basis::guessed,
                       "let polls retry forever (retry=forever), and put the deadline on the host's wait");
      f.at = case_.place({q, i});
      say(f, Basis::guessed,
          fmt::format("{} has a finite number of retries, and its condition is false: it may have given up.",
                      case_.at({q, i})),
          "memory; or the word has changed since");
      return;
    }
  }

  /// The first poll was satisfied by a queue of the same engine, which the poll may occupy.
  bool engine_is_held(std::size_t q) {
    const auto start = followed_.starts[q];
    if (start >= lines_[q].packets.size()) return false;
    auto by = followed_.woken_by[q];
    for (std::size_t n = 0; by && n < lines_.size(); ++n) {
      if (by->queue == q || moved(by->queue)) return false;
      if (case_.same_engine(q, by->queue)) {
        if (!lines_[q].pending() && !needs_only_the_engine(*by)) return false;
        const Post here{q, start};
        auto& f = report(q, HangClass::one_engine, case_.watched() ? Basis::inferred : Basis::guessed,
                         "put the packet that a poll waits for into a queue of another engine");
        f.at = case_.place(here);
        f.release = {Release::By::packet, case_.place(*by)};
        const auto& queue = s_.queues[q];
        say(f, Basis::seen,
            fmt::format("{} would satisfy the poll, and its queue is on the same engine, {}.", case_.at(*by),
                        queue.engine.value.value),
            fmt::format("the engines of the queues, from the {}", name(queue.engine.from)));
        say(f, Basis::inferred, "Whether a waiting poll yields its engine to other queues is not known.", "rule X2");
        if (!case_.watched())
          say(f, Basis::guessed, "Or the other queue is only slow: the snapshot shows one moment.",
              "nothing; watch the queues");
        return true;
      }
      by = followed_.woken_by[by->queue];
    }
    return false;
  }

  void waits(std::size_t q) {
    if (followed_.stops[q].packet != followed_.starts[q] && engine_is_held(q)) return;
    auto& helpers = helpers_[q];
    // A queue that makes progress will satisfy it.
    if (std::any_of(helpers.begin(), helpers.end(), [&](const Post& p) { return moved(p.queue); })) return;
    auto f = explain_wait(case_, q, helpers);
    if (helpers.empty() || f.what == HangClass::beyond_mask) return conclude(q, std::move(f));
    f.basis = Basis::inferred;
    f.what = HangClass::follows;
    // A queue other than this one that would help, and that does not wait itself, is the cause.
    const auto others = [&](auto is) {
      return std::find_if(helpers.begin(), helpers.end(), [&](const Post& p) { return p.queue != q && is(p); });
    };
    const auto stopped = others([&](const Post& p) { return !is_waiting(followed_.stops[p.queue].why); });
    const auto waiting = others([&](const Post&) { return true; });
    const auto outside = others([&](const Post& p) { return ends_elsewhere(p.queue); });
    if (stopped != helpers.end()) {
      follow(f, *stopped);
    } else if (waiting == helpers.end()) {
      own(f, helpers.front());
    } else if (outside != helpers.end()) {
      follow(f, *outside);
    } else if (const auto loop = cycle_from(q); loop.empty()) {
      follow(f, *waiting);
    } else {
      cycle(f, loop);
    }
    if (followed_.stops[q].why == StopWhy::waits_unread) f.basis = Basis::guessed;
    conclude(q, std::move(f));
  }
  /// The queue waits for one outside every cycle: its wait may end, whatever becomes of the cycle.
  bool ends_elsewhere(std::size_t q) const {
    std::vector<bool> seen(lines_.size());
    std::vector<std::size_t> open{q};
    seen[q] = true;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (helpers_[open[i]].empty()) return true;
      for (const auto& p : helpers_[open[i]])
        if (!seen[p.queue]) seen[p.queue] = true, open.push_back(p.queue);
    }
    return false;
  }
  /// What else may be the case.
  void conclude(std::size_t q, Finding f) {
    doubt(case_, f);
    doubt_order(case_, *wait_of(packet(q)), Post{q, followed_.stops[q].packet}, f);
    late(q, f);
    still_moves(*wait_of(packet(q)), f);
    states_[q] = std::move(f);
  }
  /// Another writer is at work, so the wait may still end.
  void still_moves(const Wait& w, Finding& f) const {
    for (const auto& m : s_.moving) {
      if (m.va != w.va || f.what == HangClass::beyond_mask) continue;
      say(f, Basis::seen,
          fmt::format("The word changed at {} of {} looks while it was watched, from {} to {}.", m.changes, m.looks,
                      number_text(m.first), number_text(m.last)),
          "memory");
      say(f, Basis::guessed, "What stores to it may still satisfy the wait.", "who stores to the word");
      f.basis = Basis::guessed;
    }
  }
  /// The poll is not at rptr.
  void late(std::size_t q, Finding& f) const {
    const auto& line = lines_[q];
    const auto stop = followed_.stops[q].packet;
    if (const auto condition = followed_.condition_of({q, stop});
        condition && (stop < line.head || !is_settled(case_, {q, *condition}))) {
      say(f, Basis::guessed,
          fmt::format("{} may have skipped this packet: what the condition has read is not known.",
                      case_.at({q, *condition})),
          "the condition's word when it is read");
      f.basis = Basis::guessed;
    }
    const bool never = f.what == HangClass::beyond_mask;
    if (!line.pending() && !never) {
      const bool needed = is_needed(q), known = needed || (s_.stalls && s_.queues.size() == 1);
      say(f, known ? Basis::inferred : Basis::guessed,
          fmt::format("rptr {:#x} is past this packet. {}", *s_.queues[q].rptr,
                      needed  ? "It is not complete: another queue waits for what comes after it."
                      : known ? "It is not complete: nothing else can be what stalls."
                              : "It may be complete: then its word has changed since, and the queue is idle."),
          needed  ? "the rings and the words"
          : known ? "the statement that the queue stalls"
                  : "a recording, or a word to which a packet after it stores: what was read is not what was executed");
      if (!known) f.basis = Basis::guessed;
    } else if (stop < line.head && !never && (!case_.watched() || waits_at_rptr(case_, q))) {
      say(f, Basis::guessed,
          fmt::format("rptr {:#x} is past this packet, which may be complete: then its word has changed since.",
                      *s_.queues[q].rptr),
          waits_at_rptr(case_, q) ? "a recording, which shows whether this packet or the one at rptr was begun last"
                                  : "nothing; watch the queue, or say for how long it stood still");
      f.basis = Basis::guessed;
    }
    for (const auto i : perhaps_[q]) {
      if (i == stop) continue;
      say(f, Basis::guessed, fmt::format("Or the engine is at {}.", case_.at({q, i})),
          "its word, which is not known or has changed");
      f.basis = Basis::guessed;
    }
    if (const auto i = line.unread_buffer(); i && *i < stop) {
      say(f, Basis::guessed,
          "Or the engine is still in an indirect buffer before it, which the snapshot does not have.",
          "the contents of that buffer");
      f.basis = Basis::guessed;
    }
    bool work = false, waits = false;
    for (auto i = line.head; i < stop; ++i) {
      // In a single moment, an engine may be at a NOP.
      work = work || !line.packets[i].view.is<Nop>() || !case_.watched();
      waits = waits || wait_of(line.packets[i].view);
    }
    if (!work) return;
    say(f, Basis::inferred,
        fmt::format("rptr {:#x} is before this packet: it lags, or the engine is not there yet.", *s_.queues[q].rptr),
        "the packets between them do not wait");
    if (followed_.assumed[q]) {
      say(f, Basis::guessed, "Or the engine waits between them, for a word that is not known.",
          "the words of those packets");
      f.basis = Basis::guessed;
    }
    // A queue that hangs once it is there need not be there yet.
    const bool hangs = f.what == HangClass::cycle || (never && !waits);
    if (case_.watched() || hangs) return;
    say(f, Basis::guessed, "The snapshot shows one moment: the engine may be at any of them.",
        "nothing; watch the queue, or say for how long it stood still");
    f.basis = Basis::guessed;
  }

  void follow(Finding& f, const Post& helper) {
    f.release = {Release::By::packet, case_.place(helper)};
    say(f, Basis::inferred,
        fmt::format("{} would satisfy the wait, but its queue does not get there.", case_.at(helper)), "the rings");
    f.to_do = fmt::format("find out why {} makes no progress", case_.name(helper.queue));
  }
  void own(Finding& f, const Post& helper) {
    f.what = HangClass::one_engine;
    f.release = {Release::By::packet, case_.place(helper)};
    say(f, Basis::inferred,
        fmt::format("Only {} satisfies the poll, and it comes after the poll in the same queue.", case_.at(helper)),
        "the packets in the rings, and rule Q6: a poll holds back everything after it");
    f.to_do = "move the fence or atomic before the poll, or to a queue of another engine";
  }

  /// The queues that wait for each other, beginning with `q`; empty if `q` is not in such a cycle.
  std::vector<Post> cycle_from(std::size_t q) const {
    // Breadth first, so that the cycle is the shortest one.
    std::vector<std::optional<Post>> came(lines_.size());  // the helper in this queue, and who needs it
    std::vector<std::size_t> needs(lines_.size()), open{q};
    for (std::size_t i = 0; i < open.size(); ++i)
      for (const auto& p : helpers_[open[i]]) {
        if (p.queue == open[i] || came[p.queue]) continue;
        came[p.queue] = p;
        needs[p.queue] = open[i];
        if (p.queue != q) {
          open.push_back(p.queue);
          continue;
        }
        std::vector<Post> path{p};
        for (auto at = needs[q]; at != q; at = needs[at]) path.push_back(*came[at]);
        std::reverse(path.begin(), path.end());
        return path;
      }
    return {};
  }

  /// `loop`: the helper of each queue in turn, the last one in the queue of `f`.
  void cycle(Finding& f, const std::vector<Post>& loop) {
    const auto q = *f.queue;
    f.what = HangClass::cycle;
    f.release = {Release::By::packet, case_.place(loop.front())};
    auto waiter = q;
    for (const auto& helper : loop) {
      f.cycle.push_back(case_.place({waiter, followed_.stops[waiter].packet}));
      say(f, Basis::inferred,
          fmt::format("{} waits for {}, which comes after the packet at which {} stalls.",
                      case_.at({waiter, followed_.stops[waiter].packet}), case_.at(helper), case_.name(helper.queue)),
          "the rings");
      waiter = helper.queue;
    }
    f.to_do = "let one of the queues post before it waits, or give a word an initial value that satisfies its poll";
    // The cycle is reported once, by its first queue.
    const bool first = std::all_of(loop.begin(), loop.end(), [&](const Post& p) { return p.queue >= q; });
    if (first) return;
    f.what = HangClass::follows;
    f.cycle.clear();
    f.statements.clear();
    say(f, Basis::inferred,
        fmt::format("It is part of the cycle of {}.",
                    case_.name(std::min_element(loop.begin(), loop.end(),
                                                [](const Post& a, const Post& b) { return a.queue < b.queue; })
                                   ->queue)),
        "the rings");
  }

  const Snapshot& s_;
  std::vector<Line> lines_;
  Following followed_;
  Case case_;
  std::vector<std::optional<Finding>> states_;
  std::vector<std::vector<std::size_t>> perhaps_;  ///< the packets that rptr has passed and that may still wait
  std::vector<std::vector<Post>> helpers_;
};

}  // namespace

Diagnosis diagnose(const Snapshot& s) {
  auto d = Diagnostician{s}.take();
  d.after_reset = after_resets(s);
  return d;
}

}}}  // namespace sdma::v0_3::doctor
