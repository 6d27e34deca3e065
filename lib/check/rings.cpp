// SPDX-License-Identifier: MIT
// Finds submits that wait forever for room in their ring.
//
// A submit writes the queue's packets to its ring in pieces (schedule/link.hpp) and waits until each piece has room, as
// Bound::submit does. An engine frees the packets that it has read; it may not read a poll before the poll is
// satisfied. If that poll needs something that the same host thread does only after the submit, neither continues.
//
// The pass executes the schedule once more, now with rings of their real size. It runs only if the schedule has no
// deadlock with rings that are never full. One execution is enough if each queue has one thread: room in its ring is
// taken by that thread alone, and the other passes report each wait that another order could leave unsatisfied. If
// threads share a queue, the pass executes the schedule once per thread, and that thread yields to all others before
// each of its steps.
#include "../schedule/link.hpp"
#include "reporter.hpp"
#include "sdma/core/number.hpp"
#include "values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// A queue's ring. Positions count bytes and never go backwards.
struct RingUse {
  std::uint64_t bytes{}, written = 0;
  std::vector<detail::Linked::Piece> pieces;  ///< of each submit
  std::vector<std::uint64_t> at;              ///< where each piece of all submits begins
  std::uint32_t published = 0;                ///< items up to this position are in the ring, or were
  std::uint32_t owner = kNone;                ///< the thread or kernel in the middle of a submit
  std::vector<std::uint32_t> blocked;         ///< threads and kernels that wait for room, or for the owner
  std::size_t next() const noexcept { return at.size() % pieces.size(); }  ///< the piece that is written next
};

constexpr std::uint64_t bytes_of(const detail::Linked::Piece& p) noexcept {
  return (p.end - p.begin) * std::uint64_t{4};
}

/// A submit that never returns.
struct BlockedSubmit {
  std::uint32_t thread{}, queue{};
  Position poll{};                   ///< where the queue waits
  std::uint64_t unread{}, wanted{};  ///< bytes that the engine has not read; the least ring for them and the next piece
};

class RingReplay {
 public:
  /// `last`: the thread that yields; kNone: none does.
  RingReplay(const Model& m, std::uint32_t last)
      : m_(m),
        last_(last),
        cursors_(m.agents.size()),
        states_(m.agents.size(), Wait::none),
        values_(m),
        waiting_(m.words.size()),
        rings_(m.queue_count()) {
    for (std::uint32_t q = 0; q < m.queue_count(); ++q) {
      auto linked = detail::link_queue(
          m.schedule.queues[q], [](GpuVa va) { return va; }, [](const PacketView&, std::span<const std::uint32_t>) {});
      rings_[q].bytes = linked.ring_bytes;
      rings_[q].pieces = std::move(linked.pieces);
    }
    for (std::uint32_t a = m.queue_count(); a < m.agents.size(); ++a) ready_.push_back(a);
  }

  void run() {
    for (;;) {
      if (ready_.empty() && std::exchange(yielded_, false)) ready_.push_back(last_);
      if (ready_.empty()) return;
      const auto a = ready_.front();
      ready_.pop_front();
      if (a == last_ && !ready_.empty()) yielded_ = true;
      else m_.agents[a].kind == Agent::Kind::queue ? engine(a) : thread(a);
    }
  }

  std::vector<BlockedSubmit> blocked() const {
    std::vector<BlockedSubmit> all;
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      for (const auto a : rings_[q].blocked) {
        if (rings_[q].owner != kNone && rings_[q].owner != a) continue;
        const auto read = read_position(q);
        all.push_back({.thread = a,
                       .queue = q,
                       .poll = {q, m_.agents[q].steps[cursors_[q]].position},
                       .unread = rings_[q].written - read,
                       .wanted = end_of_next(q) - read});
      }
    return all;
  }
  Position at(std::uint32_t agent) const noexcept { return {agent, m_.agents[agent].steps[cursors_[agent]].position}; }

 private:
  enum class Wait : std::uint8_t { none, pending, satisfied };

  void thread(std::uint32_t a) {
    const auto& steps = m_.agents[a].steps;
    for (auto& at = cursors_[a]; at < steps.size(); ++at) {
      const auto& s = steps[at];
      if (s.kind == Step::Kind::poll && !passes(a, s)) return;
      if (s.posts()) post(s);
      if (s.kind == Step::Kind::submit && !submit(a, s.target)) return;
      if (a == last_ && !ready_.empty()) {
        ++at;
        yielded_ = true;
        return;
      }
    }
  }

  /// Executes what is published, up to a poll that is not satisfied.
  void engine(std::uint32_t q) {
    const auto& steps = m_.agents[q].steps;
    const auto before = cursors_[q];
    for (auto& at = cursors_[q]; at < steps.size() && steps[at].position <= rings_[q].published; ++at) {
      const auto& s = steps[at];
      if (s.kind == Step::Kind::poll && !passes(q, s)) break;
      if (s.posts()) post(s);
    }
    if (cursors_[q] != before) wake(rings_[q].blocked);
  }
  void wake(std::vector<std::uint32_t>& agents) {
    ready_.insert(ready_.end(), agents.begin(), agents.end());
    agents.clear();
  }

  bool passes(std::uint32_t a, const Step& s) {
    const auto w = s.sync->word;
    auto& state = states_[a];
    if (state == Wait::none && !s.assumed_satisfied && !values_.met(s)) {
      state = Wait::pending;
      waiting_[w].push_back(a);
    }
    if (state == Wait::pending) return false;
    state = Wait::none;
    return true;
  }
  void post(const Step& s) {
    const auto w = s.sync->word;
    values_.post(s);
    // A wait ends as soon as its word allows, whatever is stored later.
    std::erase_if(waiting_[w], [&](std::uint32_t a) {
      if (!values_.met(m_.agents[a].steps[cursors_[a]])) return false;
      states_[a] = Wait::satisfied;
      ready_.push_back(a);
      return true;
    });
  }

  /// Writes the pieces of a submit for which there is room. False if pieces are left, for the next call.
  bool submit(std::uint32_t a, std::uint32_t q) {
    auto& r = rings_[q];
    if (r.pieces.empty()) return true;
    if (r.owner != kNone && r.owner != a) return r.blocked.push_back(a), false;
    r.owner = a;
    do {
      engine(q);  // so that read_position is up to date
      const auto end = end_of_next(q);
      if (end - read_position(q) >= r.bytes) return r.blocked.push_back(a), false;
      const auto& piece = r.pieces[r.next()];
      r.at.push_back(end - bytes_of(piece));
      r.written = end;
      r.published += static_cast<std::uint32_t>(piece.packets);
    } while (r.next() != 0);
    ready_.push_back(q);
    r.owner = kNone;
    wake(r.blocked);
    return true;
  }

  /// Where the next piece would end. A piece does not cross the end of the ring.
  std::uint64_t end_of_next(std::uint32_t q) const noexcept {
    const auto& r = rings_[q];
    const auto bytes = bytes_of(r.pieces[r.next()]), offset = r.written % r.bytes;
    return r.written + (offset + bytes > r.bytes ? r.bytes - offset : 0) + bytes;
  }
  /// How far the engine has certainly read, after engine(q): up to the poll at which it waits, or everything.
  std::uint64_t read_position(std::uint32_t q) const noexcept {
    const auto& r = rings_[q];
    if (states_[q] != Wait::pending) return r.written;
    const auto& poll = m_.agents[q].steps[cursors_[q]];
    const auto& item = m_.programs[q].items[poll.source];
    auto piece = (poll.epoch - std::size_t{1}) * r.pieces.size();
    while (r.pieces[piece % r.pieces.size()].end <= item.dword) ++piece;
    return r.at[piece] + (item.dword - r.pieces[piece % r.pieces.size()].begin) * std::uint64_t{4};
  }

  const Model& m_;
  const std::uint32_t last_;
  bool yielded_ = false;  ///< `last_` is ready, but others go first
  std::vector<std::uint32_t> cursors_;
  std::vector<Wait> states_;  ///< of the wait at the cursor
  Values values_;
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::vector<RingUse> rings_;
  std::deque<std::uint32_t> ready_;
};

/// Bytes that all submits of a queue write, without what they skip at the end of the ring.
std::uint64_t all_bytes(const Model& m, std::uint32_t q) noexcept {
  return std::uint64_t{m.agents[q].submits} * m.schedule.queues[q].dwords.size() * 4;
}

/// Can a ring be full, and do the rings have sizes and packets that can be linked?
bool worth_a_replay(const Model& m) {
  bool full = false;
  for (std::uint32_t q = 0; q < m.queue_count(); ++q) {
    const auto& queue = m.schedule.queues[q];
    if (!detail::is_ring_size(detail::ring_bytes(queue)) || detail::too_large(queue)) return false;
    full = full || all_bytes(m, q) >= detail::ring_bytes(queue);
  }
  return full && detail::submits_queues(m.schedule);
}

/// X2: can a poll hold an engine that another queue needs?
bool may_hold_engines(const Model& m) {
  if (m.profile.poll_yields) return false;
  std::set<std::uint64_t> engines;
  return std::any_of(m.programs.begin(), m.programs.end(),
                     [&](const Program& p) { return !engines.insert(p.engine).second; });
}

/// A ring that holds all submits of a queue; 0 if none can.
std::uint64_t enough(const Model& m, std::uint32_t q) {
  const auto bytes = std::bit_ceil(2 * all_bytes(m, q));
  return bytes > detail::kMaxRing ? 0 : bytes;
}
std::string larger_ring(const Model& m, std::uint32_t q) {
  const auto bytes = enough(m, q);
  return bytes == 0 ? "" : "declare a larger ring (ring=" + size_text(bytes) + " holds all submits), or ";
}
/// "ring=64K of gpu0.a": of each queue whose ring is too small.
std::string sizes(const Model& m) {
  std::string out;
  for (std::uint32_t q = 0; q < m.queue_count(); ++q)
    if (const auto& queue = m.schedule.queues[q]; all_bytes(m, q) >= detail::ring_bytes(queue))
      out += fmt::format("{}{} of {}", out.empty() ? "" : ", ",
                         enough(m, q) == 0 ? "fewer submits" : "ring=" + size_text(enough(m, q)),
                         detail::queue_name(queue));
  return out;
}

}  // namespace

void find_full_rings(const Model& m, Reporter& r) {
  if (!m.stuck.empty() || !worth_a_replay(m)) return;
  const auto shared = std::any_of(m.agents.begin(), m.agents.end(), [](const Agent& a) { return a.shared; });
  const auto first = m.queue_count(), threads = static_cast<std::uint32_t>(m.agents.size()) - first;
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;  // thread, queue
  if (shared || may_hold_engines(m))
    r.add({.rule = "not-all-rings",
           .message = shared ? "a ring may become full, and threads share a queue: not every order of their submits is "
                               "examined"
                             : "a ring may become full, and polls may hold engines that queues share: whether both "
                               "together block a submit is not examined",
           .hint = "declare rings that hold all submits: " + sizes(m)});
  for (std::uint32_t i = 0; i < (shared ? threads : 1); ++i) {
    RingReplay replay{m, shared ? first + i : kNone};
    replay.run();
    for (const auto& b : replay.blocked()) {
      if (!reported.insert({b.thread, b.queue}).second) continue;
      const auto dwords = detail::ring_bytes(m.schedule.queues[b.queue]) / 4;
      r.add({.rule = "ring-full",
             .places = {b.poll, replay.at(b.thread)},
             .message =
                 fmt::format("{} {} forever for room in the ring of {}: it has {} dwords, of which {} are not read, "
                             "and with the next packets it would need more than {}",
                             r.agent(b.thread), shared ? "may wait" : "waits", r.agent(b.queue), dwords, b.unread / 4,
                             b.wanted / 4),
             .hint = fmt::format("{}wait for earlier submits before this one: {} waits for something that happens only "
                                 "after this submit",
                                 larger_ring(m, b.queue), r.place(b.poll)),
             .notes = {"the engine waits here"}});
    }
  }
}

}}}  // namespace sdma::v0_3::check_detail
