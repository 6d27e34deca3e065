// SPDX-License-Identifier: MIT
#include "sdma/doctor/diagnose.hpp"

#include "case.hpp"
#include "sdma/packets/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::inline v0::doctor {
namespace {

/// How many packets around rptr a report shows.
constexpr std::size_t kBefore = 3, kAfter = 6;
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
    for (std::size_t q = 0; q < lines_.size(); ++q) {
      if (auto f = examine_state(lines_[q], case_.snapshot)) {
        states_[q] = std::move(f);
        followed_.freeze(q);
      } else if (const auto before = poll_before(q)) {
        followed_.stops[q].packet = *before;
      }
    }
    followed_.run();
    helpers_.resize(lines_.size());
    for (std::size_t q = 0; q < lines_.size(); ++q)
      if (!states_[q] && is_waiting(followed_.stops[q].why)) helpers_[q] = helpers_of(case_, *wait_of(packet(q)));
    for (std::size_t q = 0; q < lines_.size(); ++q) examine(q);
    for (auto& f : states_)
      if (f) d_.findings.push_back(std::move(*f));
    explain_hosts(case_, d_.findings);
    finish();
    return std::move(d_);
  }

 private:
  static std::vector<Line> lines_of(const Snapshot& s) {
    std::vector<Line> out;
    for (std::size_t q = 0; q < s.queues.size(); ++q) out.push_back(read_line(s.queues[q], q, s));
    return out;
  }
  const PacketView& packet(std::size_t q) const { return lines_[q].packets[followed_.stops[q].packet].view; }
  bool moved(std::size_t q) const noexcept { return case_.moved(q); }

  /// rptr may already be past a poll that waits.
  std::optional<std::size_t> poll_before(std::size_t q) const {
    const auto& line = lines_[q];
    if (!line.placed || moved(q)) return {};
    auto i = line.head;
    while (i > 0 && line.packets[i - 1].view.is<Nop>()) --i;
    if (i == 0) return {};
    const auto w = wait_of(line.packets[i - 1].view);
    if (!w || line.packets[i - 1].inside) return {};
    const auto met = w->met(followed_.now);
    if (!met || *met) return {};
    if (!line.pending() && !keeps_release(q, *w)) return {};
    // It was satisfied before, if a packet that was executed had stored the value: then the word has changed since.
    if (const auto found = followed_.posts.find(w->va.value); found != followed_.posts.end())
      for (const auto& p : found->second)
        if (case_.packet(p).consumed)
          if (const auto v = followed_.now.after(case_.packet(p).view, w->va.value); v && w->met(*v)) return {};
    return i - 1;
  }

  /// Nothing is pending in `q`. A poll that it has read last may still keep the engine, if another queue of the engine
  /// stands still at a packet that does not wait, and would satisfy the poll.
  bool keeps_release(std::size_t q, const Wait& w) const {
    if (!case_.watched()) return false;
    for (const auto& p : helpers_of(case_, w)) {
      const auto& other = lines_[p.queue];
      if (p.queue == q || !case_.same_engine(q, p.queue) || !other.pending() || moved(p.queue)) continue;
      const auto first = wait_of(other.packets[other.head].view);
      if (!first || first->met(followed_.now).value_or(false)) return true;
    }
    return false;
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
    if (!line.pending()) return expired(q);
    if (const auto i = unexamined(case_, q)) return void(states_[q] = explain_unexamined(case_, {q, *i}));
    if (line.incomplete || followed_.waited[q]) return;
    idle(q);
  }

  void unplaced(std::size_t q) {
    const auto& line = lines_[q];
    auto& f = report(q, HangClass::unknown, Basis::guessed,
                     "give the positions of the queue and the dwords of its ring (--rptr, --wptr)");
    say(f, Basis::seen, fmt::format("Nothing can be said about {}: {}.", s_.queues[q].name, line.contradiction),
        "the snapshot");
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
  }

  /// Nothing waits, and still the queue does not move.
  void idle(std::size_t q) {
    const auto& queue = s_.queues[q];
    const auto& line = lines_[q];
    const auto other = holder_of(q);
    if (other) {
      auto& f = report(q, HangClass::follows, case_.watched() ? Basis::inferred : Basis::guessed,
                       fmt::format("find out why {} hangs", case_.name(*other)));
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
    say(f, Basis::guessed,
        queue.engine
            ? "The doorbell was not rung or was lost; or another process occupies the engine."
            : "The doorbell was not rung or was lost; or another queue occupies the engine, which is not known.",
        "wptr is ahead of rptr; the doorbell itself cannot be read");
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
    if (helpers.empty()) doubt(case_, f);
    if (helpers.empty() || f.what == HangClass::beyond_mask) {
      late(q, f);
      states_[q] = std::move(f);
      return;
    }
    f.basis = Basis::inferred;
    f.what = HangClass::follows;
    // A queue other than this one that would help, and that does not wait itself, is the cause.
    const auto others = [&](auto is) {
      return std::find_if(helpers.begin(), helpers.end(), [&](const Post& p) { return p.queue != q && is(p); });
    };
    const auto stopped = others([&](const Post& p) { return !is_waiting(followed_.stops[p.queue].why); });
    const auto waiting = others([&](const Post&) { return true; });
    if (stopped != helpers.end()) {
      follow(f, *stopped);
    } else if (waiting == helpers.end()) {
      own(f, helpers.front());
    } else if (const auto loop = cycle_from(q); loop.empty()) {
      follow(f, *waiting);
    } else {
      cycle(f, loop);
    }
    late(q, f);
    states_[q] = std::move(f);
  }
  /// The poll is not at rptr.
  void late(std::size_t q, Finding& f) const {
    const auto& line = lines_[q];
    const auto stop = followed_.stops[q].packet;
    bool work = false;
    for (auto i = line.head; i < stop; ++i) work = work || !line.packets[i].view.is<Nop>();
    if (!work) return;
    say(f, Basis::inferred,
        fmt::format("rptr {:#x} is before this packet: it lags, or the engine is not there yet.", *s_.queues[q].rptr),
        "the packets between them do not wait");
    if (!case_.watched() && f.what != HangClass::beyond_mask && f.what != HangClass::cycle) f.basis = Basis::guessed;
  }

  void follow(Finding& f, const Post& helper) {
    f.release = {Release::By::packet, case_.place(helper)};
    say(f, Basis::inferred,
        fmt::format("{} would satisfy the wait, but its queue does not get there.", case_.at(helper)), "the rings");
    f.to_do = fmt::format("find out why {} hangs", case_.name(helper.queue));
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

  static int rank(const Finding& f) noexcept {
    if (f.what == HangClass::healthy) return 9;
    if (f.what == HangClass::unknown) return 8;
    return (f.what == HangClass::follows ? 4 : 0) + (f.basis == Basis::guessed ? 2 : 0) + (f.queue ? 0 : 1);
  }

  /// What follows from a guess is a guess.
  void weaken() {
    const auto guessed = [&](std::size_t q) {
      return std::any_of(d_.findings.begin(), d_.findings.end(),
                         [&](const Finding& f) { return f.queue == q && f.basis == Basis::guessed; });
    };
    for (bool any = true; any;) {
      any = false;
      for (auto& f : d_.findings) {
        if (f.what != HangClass::follows || f.basis == Basis::guessed || !f.release.place) continue;
        if (!guessed(f.release.place->queue)) continue;
        f.basis = Basis::guessed;
        any = true;
      }
    }
  }

  void finish() {
    weaken();
    for (std::size_t q = 0; q < lines_.size(); ++q) d_.queues.push_back(state_of(q));
    // The same hang is not reported twice: a thread that waits for a queue that hangs follows from it.
    std::stable_sort(d_.findings.begin(), d_.findings.end(),
                     [](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
    for (const auto& f : d_.findings) {
      if (!f.queue) continue;
      auto& what = d_.queues[*f.queue].what;
      if (what == HangClass::healthy) what = f.what;
    }
    if (d_.findings.empty()) {
      const bool examined = !lines_.empty() || s_.all_queues;
      Finding f{.what = examined ? HangClass::healthy : HangClass::unknown, .basis = Basis::inferred};
      if (examined) healthy(f);
      else say(f, Basis::seen, "No queue was examined.", "the snapshot, whose notes say what is missing");
      d_.findings.push_back(std::move(f));
    }
    d_.from = s_.from;
    d_.watched_ns = s_.watched_ns;
    d_.notes = s_.notes;
    for (std::size_t q = 0; q < lines_.size(); ++q)
      if (const auto i = unexamined(case_, q))
        d_.notes.push_back(fmt::format("{}: {}", case_.at({q, *i}), what_is_unknown(case_.packet({q, *i}).view)));
  }

  void healthy(Finding& f) const {
    std::size_t slow = 0, idle = 0, busy = 0;
    for (std::size_t q = 0; q < lines_.size(); ++q) ++(moved(q) ? slow : lines_[q].pending() ? busy : idle);
    if (slow > 0)
      say(f, Basis::seen,
          fmt::format("{} of {} queues moved while they were watched: they are slow, not hung.", slow, lines_.size()),
          "rptr at the first and the last look");
    if (busy > 0)
      say(f, Basis::inferred,
          fmt::format("{} of {} queues can execute everything that is pending.", busy, lines_.size()),
          "the packets and the words");
    if (idle > 0)
      say(f, Basis::seen,
          fmt::format("{} of {} queues have executed everything that was submitted.", idle, lines_.size()),
          "rptr and wptr");
    if (lines_.empty()) say(f, Basis::seen, "There are no sDMA queues.", "the snapshot");
  }

  QueueState state_of(std::size_t q) const {
    const auto& queue = s_.queues[q];
    const auto& line = lines_[q];
    QueueState out{.name = queue.name,
                   .gpu = queue.gpu,
                   .engine = queue.engine,
                   .rptr = queue.rptr,
                   .wptr = queue.wptr,
                   .doorbell = queue.doorbell,
                   .ring_bytes = line.bytes,
                   .what = HangClass::healthy,
                   .moved = moved(q)};
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
  static NearPacket near(const Packet& p, Part part) {
    return {part, p.position, (p.inside ? "ib: " : "") + packet_text(p.view)};
  }

  const Snapshot& s_;
  std::vector<Line> lines_;
  Following followed_;
  Case case_;
  std::vector<std::optional<Finding>> states_;
  std::vector<std::vector<Post>> helpers_;
  Diagnosis d_;
};

}  // namespace

Diagnosis diagnose(const Snapshot& s) { return Diagnostician{s}.take(); }

}  // namespace sdma::inline v0::doctor
