// SPDX-License-Identifier: MIT
// Goes through every accessed byte in the order of one execution: tracks which access wrote it last and which have read
// it since, and checks that each new access is ordered after them.
//
// The execution obeys the clocks, so an access that comes before another in every execution also comes before it here.
// So it is enough to compare each access with the last write and with the reads since: if the byte has an unordered
// pair of accesses at all, one such comparison finds one.
#include "races.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

struct Cell {
  std::uint64_t end{};
  Ref writer{};
  std::vector<Ref> others{};  ///< reads, polls and atomics since then: the last one for each agent and mode
};

class Sweep {
 public:
  Sweep(const Model& m, Reporter& r) : m_(m), r_(r), next_(m.agents.size(), 1), step_(m.agents.size(), kNone) {}

  void run() {
    for (const auto& run : m_.runs)
      for (auto& p = next_[run.agent]; p <= run.until && compared_ <= m_.limits.compared(); ++p) visit(run.agent, p);
    report();
    if (compared_ > m_.limits.compared())
      r_.add({.rule = "not-all-accesses",
              .message = fmt::format("accesses overlap each other in part in more than {} ways: not all are compared",
                                     m_.limits.compared()),
              .hint = r_.larger_limit() + ", or smaller boxes"});
  }

 private:
  void visit(std::uint32_t agent, std::uint32_t position) {
    const auto& a = m_.agents[agent];
    auto& step = step_[agent];
    // A begin has the position of the packet before it.
    while (step + 1 < a.steps.size() && a.steps[step + 1].position <= position &&
           !(a.steps[step + 1].kind == Step::Kind::begin && a.steps[step + 1].position == position))
      ++step;
    const auto* item = m_.item_at(agent, position);
    agent_ = agent;
    position_ = position;
    what_ = item ? item->what : What::none;
    if (item) {
      if (item->touches == 0) return;
      // A poll reads its word with what its queue knew on arrival.
      auto from = what_ == What::poll && step != kNone && a.steps[step].position == position ? before(step) : step;
      if (what_ == What::indirect)
        while (from != kNone && from > 0 && a.steps[from].kind != Step::Kind::begin) --from;
      clock(agent, from);
      const auto& touches = m_.programs[agent].touches;
      for (auto i = item->touch; i < item->touch + item->touches; ++i) touch(touches[i]);
    } else if (step != kNone && a.steps[step].position == position) {
      const auto& s = a.steps[step];
      const bool polls = s.kind == Step::Kind::poll || s.kind == Step::Kind::sample;
      clock(agent, s.kind == Step::Kind::poll ? before(step) : step);
      if (s.kind == Step::Kind::touch) {
        for (const auto& t : m_.touches(m_.action(agent, s))) touch(t);
      } else if (s.sync) {
        const auto mode = polls ? Mode::poll : s.sync->op == Op::add ? Mode::modify : Mode::store;
        touch({s.sync->address, s.sync->address + s.sync->bytes, mode});
      }
    }
  }

  static std::uint32_t before(std::uint32_t step) noexcept { return step == 0 ? kNone : step - 1; }

  /// Sets what the accessing agent knows, about others and about its own queue.
  void clock(std::uint32_t agent, std::uint32_t step) {
    const auto& steps = m_.agents[agent].steps;
    row_ = m_.row(step == kNone ? kNone : steps[step].row);
    own_ = row_[agent];
    if (m_.agents[agent].kind != Agent::Kind::queue) return;
    // An indirect buffer may be read as soon as the doorbell rings (Q13).
    if (what_ != What::indirect) own_ = std::max(own_, m_.barrier(agent, position_));
    if (m_.profile.fence_full) {
      auto i = step;
      while (i != kNone && (steps[i].kind != Step::Kind::post || steps[i].position >= position_))
        i = i == 0 ? kNone : i - 1;
      if (i != kNone) own_ = std::max(own_, steps[i].position);
    }
  }

  /// Does an access see what a write before it has stored? What a kernel stores leaves its L2 with a release at system
  /// scope (C3), and what others store enters with an acquire (C4). Kernels of one GPU need neither; if each is a die,
  /// they need both, at the scope of their GPU (C5).
  bool visible(const Ref& a, const Ref& me) const {
    if (a.mode != Mode::write || a.agent == me.agent) return true;
    using Kind = Agent::Kind;
    const bool one_gpu = m_.on_one_gpu(a.agent, me.agent), dies = m_.profile.kernels_are_dies;
    const bool looks = m_.agents[me.agent].kind == Kind::kernel && me.mode == Mode::read;
    if (looks && !dies) r_.assumes("kernel=gpu");
    if (one_gpu && !dies) return true;
    if (m_.agents[a.agent].kind == Kind::kernel && m_.released(a.agent, a.position, one_gpu) > row_[a.agent])
      return false;
    if (!looks) return true;
    if (m_.profile.l2_probed && m_.agents[a.agent].kind == Kind::queue) return true;
    const auto* acquire = m_.acquired(me.agent, me.position, one_gpu);
    return acquire && landed(m_.row(acquire->row)[a.agent], m_.row(acquire->row), a);
  }

  /// C7: do an engine's or a kernel's loads from VRAM miss what the network has stored there?
  bool unflushed(const Ref& a, const Ref& me, std::uint64_t at) const {
    const auto network = [&](std::uint32_t agent) { return agent < m_.queue_count() && m_.programs[agent].network; };
    const bool looks = me.mode == Mode::read && !network(me.agent) && m_.agents[me.agent].kind != Agent::Kind::host;
    if (a.mode != Mode::write || !network(a.agent) || !looks || m_.place_at(at).value_or(Place::host()).is_host())
      return false;
    if (m_.profile.network_flushes) r_.assumes("network_data=flushed");
    return !m_.profile.network_flushes;
  }

  bool ordered(const Ref& a, Mode mode) const {
    const bool same = a.agent == agent_;
    if (same && m_.agents[agent_].kind != Agent::Kind::queue) return true;
    const auto* before = m_.item_at(a.agent, a.position);
    if (!same) return landed(row_[a.agent], row_, a);
    const auto& p = m_.profile;
    if (a.mode == Mode::poll || a.mode == Mode::condition) return true;
    const auto* item = m_.item_at(agent_, position_);
    if (before->moves() && item->moves()) {
      // A WRITE between two copies comes after the one and before the other.
      if (p.writes_ordered && m_.last_write(agent_, position_) >= a.position) return true;
      if (p.copies_in_order && before->what == What::copy && what_ == What::copy) return true;
    }
    if (landed(own_, row_, a)) return true;
    if (mode == Mode::poll) return p.poll_full;
    if (mode == Mode::condition) return p.cond_exec_ordered;
    if (what_ == What::post && before->what == What::post) return p.fences_ordered;
    if (before->what == What::write && !p.fence_covers_writes) return false;
    return what_ == What::post || what_ == What::stamp;
  }
  /// Has an access landed, if a row says `known` about its agent?
  bool landed(std::uint32_t known, const std::uint32_t* row, const Ref& a) const {
    if (a.mode == Mode::store || a.mode == Mode::modify)
      if (a.post && a.post->column != kNone) return known >= a.post->covered || m_.landed(row, a.agent, *a.post);
    return m_.landed(row, known, a.agent, a.position);
  }

  void touch(const Touch& t) {
    if (t.begin >= t.end || t.mode == Mode::constant) return;
    const bool posts = t.mode == Mode::store || t.mode == Mode::modify;
    const Ref me{agent_, position_, t.mode, posts ? m_.post_at(agent_, position_) : nullptr};
    const auto first = split(t.begin);
    const auto last = split(t.end);
    auto at = t.begin;
    auto c = first;
    bool uniform = true;
    // Gaps are memory that nothing has accessed yet.
    while (at < t.end) {
      if (c == last || c->first > at) {
        const auto end = c == cells_.end() ? t.end : std::min(t.end, c->first);
        c = cells_.emplace_hint(c, at, Cell{.end = end});
      }
      uniform = access(c->first, c->second, me) && uniform;
      at = c->second.end;
      ++c;
    }
    // A range that one access has written as a whole becomes one cell again.
    if ((t.mode == Mode::write || t.mode == Mode::store) && uniform) {
      auto whole = cells_.find(t.begin);
      whole->second.end = t.end;
      cells_.erase(std::next(whole), cells_.lower_bound(t.end));
    }
  }

  /// Checks an access against a cell and records it. True if the cell then holds nothing but this write.
  bool access(std::uint64_t begin, Cell& c, const Ref& me) {
    const auto against = [&](const Ref& other) {
      if (other.agent == kNone || (other.agent == me.agent && other.position == me.position)) return true;
      const auto rule = rule_broken_by(other, me);
      ++compared_;
      const bool good = ordered(other, me.mode);
      if (!good && !rule.empty() && !same_store(other, me)) note(rule, other, me, c, begin);
      if (good && !rule.empty() && !visible(other, me)) note("kernel-scope", other, me, c, begin);
      if (good && !rule.empty() && unflushed(other, me, begin)) note("network-unflushed", other, me, c, begin);
      return good;
    };
    const auto last = c.writer;
    const bool ordered_after_last = against(last);
    if (me.mode == Mode::write || me.mode == Mode::store) {
      // Either of two equal stores may be the last: later stores have to follow both.
      std::erase_if(c.others, [&](const Ref& o) { return against(o) || (o.mode != Mode::poll && !same_store(o, me)); });
      c.writer = me;
      if (!ordered_after_last && same_store(last, me)) c.others.push_back(last);
      return c.others.empty();
    }
    for (const auto& o : c.others)
      if (!rule_broken_by(o, me).empty()) against(o);
    // If an access is known to have landed, so are the earlier ones of its agent, except fences that land on their own.
    const bool apart = me.mode == Mode::modify && !m_.profile.fences_ordered;
    for (auto& o : c.others)
      if (o.agent == me.agent && o.mode == me.mode && !apart && same_algebra(o, me)) return o = me, false;
    c.others.push_back(me);
    return false;
  }

  /// The rule that two unordered accesses break; "" if they break none.
  std::string_view rule_broken_by(const Ref& one, const Ref& two) const {
    const auto &a = writes(one.mode) ? one : two, &b = writes(one.mode) ? two : one;
    if (!writes(a.mode)) return {};
    if (b.mode == Mode::condition) return "cond-exec-unordered";
    if (b.mode == Mode::poll) return a.mode == Mode::write ? "data-as-flag" : "";
    if (a.mode == Mode::write || b.mode == Mode::write || b.mode == Mode::read) return "race";
    return a.mode == Mode::modify && b.mode == Mode::modify && same_algebra(a, b) ? "" : "fence-race";
  }
  /// Do two atomics commute? Those of one kind and width do, except what depends on the first value.
  bool same_algebra(const Ref& a, const Ref& b) const {
    if (a.mode != Mode::modify || b.mode != Mode::modify) return true;
    const auto *one = a.post, *two = b.post;
    if (!one || !two) return false;
    const auto &x = *one->sync, &y = *two->sync;
    const auto& w = m_.words[x.word];
    if (one->op == Op::add && two->op == Op::add) return x.bytes == y.bytes || !w.in_order;
    return x.op == Op::other && y.op == Op::other && x.atomic == y.atomic && commutes(x.atomic);
  }
  /// Does the order of two such atomics make no difference?
  static bool commutes(AtomicOp op) noexcept {
    switch (plain(op)) {
      case AtomicOp::and_rtn_32:
      case AtomicOp::or_rtn_32:
      case AtomicOp::xor_rtn_32:
      case AtomicOp::smin_rtn_32:
      case AtomicOp::umin_rtn_32:
      case AtomicOp::smax_rtn_32:
      case AtomicOp::umax_rtn_32: return true;
      default: return false;
    }
  }

  /// Do both store the same value to a word that nothing adds to? Then it does not matter which is the last.
  bool same_store(const Ref& a, const Ref& b) const {
    if (a.agent == kNone || a.mode != Mode::store || b.mode != Mode::store) return false;
    const auto *one = a.post, *two = b.post;
    return one && two && one->sync->word == two->sync->word && one->sync->bytes == two->sync->bytes &&
           one->value == two->value && !m_.words[one->sync->word].adds && !m_.words[one->sync->word].in_order;
  }

  using Cells = std::map<std::uint64_t, Cell>;
  /// Splits a cell that spans `at`, and returns the first cell at or after `at`.
  Cells::iterator split(std::uint64_t at) {
    auto next = cells_.lower_bound(at);
    if (next == cells_.begin()) return next;
    auto before = std::prev(next);
    if (before->second.end <= at) return next;
    auto rest = before->second;
    before->second.end = at;
    return cells_.emplace_hint(next, at, std::move(rest));
  }

  /// Records a race. The same two packets, in this round or in others, make one finding.
  void note(std::string_view rule, const Ref& a, const Ref& b, const Cell& c, std::uint64_t begin) {
    const auto source = [&](const Ref& r) {
      const auto* item = m_.item_at(r.agent, r.position);
      const auto* step = m_.step_at(r.agent, r.position);
      return item ? item->dword : step ? step->source : 0;
    };
    const std::array<std::uint64_t, 3> key{std::uint64_t{a.agent} << 32 | source(a),
                                           std::uint64_t{b.agent} << 32 | source(b),
                                           static_cast<std::uint64_t>(rule.front())};
    const auto [at, added] = known_.try_emplace(key, races_.size());
    if (added) {
      const bool seen = a.mode == Mode::write && b.mode == Mode::read && a.agent != b.agent && saw_earlier(a, begin);
      races_.push_back({rule, a, b, begin, c.end, a.mode == Mode::read && c.writer.agent != kNone, seen});
      return;
    }
    auto& race = races_[at->second];
    if (race.a.position == a.position && race.b.position == b.position && race.end == begin) race.end = c.end;
    else ++race.more;
  }

  /// Is the present access ordered after a write of this byte by the line of `later`, in an earlier round of a loop, or
  /// after an earlier copy of its queue?
  bool saw_earlier(const Ref& later, std::uint64_t at) const {
    const auto line = r_.line({later.agent, later.position});
    if (line == 0 || later.agent >= m_.queue_count()) return false;
    // Only a queue's line stands for several packets, and only in a loop.
    const bool loop = r_.own_line({later.agent, later.position}) == 0;
    const auto copies = [](const Item& i) { return i.what == What::copy && i.info != &info_of<Fill>(); };
    const bool message = copies(*m_.item_at(later.agent, later.position));
    const auto& touches = m_.programs[later.agent].touches;
    const auto epoch = m_.epoch_at(later.agent, later.position);
    for (auto p = later.position - 1; p > 0 && m_.epoch_at(later.agent, p) == epoch; --p) {
      const auto* item = m_.item_at(later.agent, p);
      if (!(message && copies(*item)) && !(loop && r_.line({later.agent, p}) == line)) continue;
      for (auto t = item->touch; t < item->touch + item->touches; ++t)
        if (touches[t].mode == Mode::write && touches[t].begin <= at && at < touches[t].end &&
            landed(row_[later.agent], row_, {later.agent, p, Mode::write}))
          return true;
    }
    return false;
  }

  void report() {
    // A credit orders other accesses, too, so it is proposed first.
    std::stable_partition(races_.begin(), races_.end(), [](const Race& r) { return r.seen_earlier; });
    for (const auto& r : races_)
      if (r_.admit(std::string(r.rule))) describe(m_, r_, r);
  }

  const Model& m_;
  Reporter& r_;
  Cells cells_;
  std::vector<std::uint32_t> next_, step_;
  std::uint32_t agent_ = 0, position_ = 0, own_ = 0;
  std::size_t compared_ = 0;
  What what_{};
  const std::uint32_t* row_{};
  std::vector<Race> races_;
  std::map<std::array<std::uint64_t, 3>, std::size_t> known_;
};

}  // namespace

void find_races(Model& m, Reporter& r) { Sweep{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
