// SPDX-License-Identifier: MIT
// Goes through every accessed byte in the order of one execution: tracks which access wrote it last and which have read
// it since, and checks that each new access is ordered after them.
//
// The execution obeys the clocks, so an access that comes before another in every execution also comes before it here.
// So it is enough to compare each access with the last write and with the reads since: if the byte has an unordered
// pair of accesses at all, one such comparison finds one.
#include "edits.hpp"
#include "report.hpp"

#include <algorithm>

namespace sdma::inline v0::check_detail {
namespace {

struct Ref {
  std::uint32_t agent = kNone, position = 0;
  Mode mode{};
  const Step* post = nullptr;  ///< of Mode::store and Mode::modify
};
struct Cell {
  std::uint64_t end{};
  Ref writer{};
  std::vector<Ref> others{};  ///< reads, polls and atomics since then: the last one for each agent and mode
};

bool writes(Mode m) noexcept { return m == Mode::write || m == Mode::store || m == Mode::modify; }

/// The rule that two unordered accesses break; "" if they break none.
std::string_view rule_broken_by(Mode a, Mode b) noexcept {
  if (!writes(a)) std::swap(a, b);
  if (!writes(a)) return {};
  if (b == Mode::condition || a == Mode::condition) return "cond-exec-unordered";
  if (b == Mode::poll) return a == Mode::write ? "data-as-flag" : "";
  const bool signals = a != Mode::write && (b == Mode::store || b == Mode::modify);
  if (signals) return a == Mode::modify && b == Mode::modify ? "" : "fence-race";
  return "race";
}

class Sweep {
 public:
  Sweep(const Model& m, Reporter& r) : m_(m), r_(r), next_(m.agents.size(), 1), step_(m.agents.size(), kNone) {}

  void run() {
    for (const auto& run : m_.runs)
      for (auto& p = next_[run.agent]; p <= run.until && compared_ <= m_.limits.compared(); ++p) visit(run.agent, p);
    report();
    if (compared_ > m_.limits.compared())
      r_.add({.rule = "not-all-accesses",
              .message = "too many accesses overlap each other in part: not all of them are compared",
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
        const auto& action = m_.action(agent, s);
        const auto begin = m_.canonical(action.range.va);
        const bool stores = action.kind == Schedule::Action::Kind::store;
        for (const auto& part : action.sum.parts) {
          const auto at = m_.canonical(part.va);
          if (!action.old) touch({at, at + part.bytes, Mode::read});
        }
        touch({begin, begin + action.range.bytes, stores ? Mode::write : Mode::read});
        const auto right = m_.canonical(action.right.va);
        if (!action.old) touch({right, right + action.right.bytes, Mode::read});
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
  /// scope (C3), and what others store enters with an acquire (C4). Kernels of one GPU need neither.
  bool visible(const Ref& a, const Ref& me) const {
    if (a.mode != Mode::write || a.agent == me.agent || m_.on_one_gpu(a.agent, me.agent)) return true;
    using Kind = Agent::Kind;
    if (m_.agents[a.agent].kind == Kind::kernel && m_.released(a.agent, a.position) > row_[a.agent]) return false;
    if (m_.agents[me.agent].kind != Kind::kernel || me.mode != Mode::read) return true;
    if (m_.profile.l2_probed && m_.agents[a.agent].kind == Kind::queue) return true;
    const auto* acquire = m_.acquired(me.agent, me.position);
    return acquire && landed(m_.row(acquire->row)[a.agent], m_.row(acquire->row), a);
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
    if (t.begin >= t.end) return;
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

  std::string_view rule_broken_by(const Ref& a, const Ref& b) const {
    const auto rule = check_detail::rule_broken_by(a.mode, b.mode);
    return rule.empty() && a.mode == Mode::modify && b.mode == Mode::modify && !same_algebra(a, b) ? "fence-race"
                                                                                                   : rule;
  }
  /// Of two atomics: do they commute? Those of one kind and width do, except what depends on the first value.
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
    switch (static_cast<AtomicOp>(static_cast<unsigned>(op) % 32)) {
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

  struct Race {
    std::string_view rule;
    Ref a, b;
    std::uint64_t begin, end;
    bool reads_written;  ///< `a` reads bytes that have been written
    bool seen_earlier;   ///< `b` reads, and is ordered after an earlier write of these bytes by the agent of `a`
    std::size_t more = 0;
  };
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

  /// Is the present access ordered after a write of this byte by the line of `later`, in an earlier round of a loop?
  bool saw_earlier(const Ref& later, std::uint64_t at) const {
    const auto line = r_.line({later.agent, later.position});
    // Only a queue's line stands for several packets, and only in a loop.
    if (line == 0 || later.agent >= m_.queue_count() || r_.own_line({later.agent, later.position}) != 0) return false;
    const auto& touches = m_.programs[later.agent].touches;
    const auto epoch = m_.epoch_at(later.agent, later.position);
    for (auto p = later.position - 1; p > 0 && m_.epoch_at(later.agent, p) == epoch; --p) {
      const auto* item = m_.item_at(later.agent, p);
      for (auto t = item->touch; t < item->touch + item->touches; ++t)
        if (touches[t].mode == Mode::write && touches[t].begin <= at && at < touches[t].end &&
            r_.line({later.agent, p}) == line && landed(row_[later.agent], row_, {later.agent, p, Mode::write}))
          return true;
    }
    return false;
  }

  void report() {
    // A credit orders other accesses, too, so it is proposed first.
    std::stable_partition(races_.begin(), races_.end(), [](const Race& r) { return r.seen_earlier; });
    for (const auto& r : races_)
      if (r_.admit(std::string(r.rule))) describe(r);
  }

  std::string describe_access(const Ref& r, std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t from = begin, to = end;
    if (const auto* item = m_.item_at(r.agent, r.position)) {
      const auto& touches = m_.programs[r.agent].touches;
      for (auto i = item->touch; i < item->touch + item->touches; ++i)
        if (touches[i].mode == r.mode && touches[i].begin <= begin && begin < touches[i].end)
          from = touches[i].begin, to = touches[i].end;
    } else if (const auto* step = m_.step_at(r.agent, r.position); step && step->kind == Step::Kind::touch) {
      const auto& action = m_.action(r.agent, *step);
      auto ranges = action.sum.parts;
      if (r.mode == Mode::write) ranges.clear();
      ranges.insert(ranges.end(), {action.right, action.range});
      for (const auto& range : ranges)
        if (const auto at = m_.canonical(range.va); at <= begin && begin - at < range.bytes) {
          from = at, to = at + range.bytes;
          break;
        }
    }
    // In the order of Mode.
    constexpr std::string_view kVerbs[] = {"reads ", "writes ", "waits for ", "stores ", "modifies ", "tests "};
    return std::string(kVerbs[static_cast<std::size_t>(r.mode)]) + r_.range(from, to);
  }

  /// Has this host thread submitted the packet before its own access?
  bool submitted_before(const Ref& host, const Ref& packet) const {
    const Step* begin = nullptr;
    for (const auto& s : m_.agents[packet.agent].steps) {
      if (s.position > packet.position) break;
      if (s.kind == Step::Kind::begin) begin = &s;
    }
    return begin && begin->target == host.agent && begin->target_position < host.position;
  }

  /// Given two unordered accesses: was the one that came second here meant to be first? Earlier rounds are meant to
  /// come first, and so is a queue whose rptr something waits for. If the bytes have contents, a packet is meant to
  /// come before what the thread that has submitted it does later. An access that reads bytes that nothing has written
  /// yet is meant to read what the other writes. Otherwise the order in the file decides.
  bool swapped(const Race& race) const {
    if (race.rule == "kernel-scope") return false;
    const auto &a = race.a, &b = race.b;
    if (a.agent == b.agent) return false;
    const auto queue = [&](const Ref& r) { return m_.agents[r.agent].kind == Agent::Kind::queue; };
    const auto one = m_.round_at(a.agent, a.position), two = m_.round_at(b.agent, b.position);
    if (race.rule == "race" && one != 0 && two != 0 && one != two) return one > two;
    if (race.rule == "race" && queue(a) != queue(b) && filled(race.begin)) {
      if (queue(b) && submitted_before(a, b)) return true;
      if (queue(a) && submitted_before(b, a)) return false;
    }
    if (race.rule == "race" && race.seen_earlier) return true;
    if (race.rule == "race" && read(a.agent) != read(b.agent)) return read(b.agent);
    if (race.rule == "race" && writes(a.mode) != writes(b.mode)) return !writes(a.mode) && !race.reads_written;
    return a.agent > b.agent && queue(a);
  }
  /// Has something waited for the rptr of this queue, as for a completion?
  bool read(std::uint32_t agent) const { return agent < m_.queue_count() && m_.programs[agent].rptr; }
  /// Does the byte have defined contents before anything runs?
  bool filled(std::uint64_t at) const {
    const auto l = find_symbol(m_.schedule, GpuVa{at});
    return l && !l->signal && m_.schedule.buffers[l->index].init != Init::poison;
  }

  void describe(const Race& race) {
    auto a = race.a, b = race.b;
    if (swapped(race)) std::swap(a, b);
    const Position first{a.agent, a.position}, second{b.agent, b.position};
    const auto bytes = r_.range(race.begin, race.end);
    Finding f{.rule = race.rule, .places = {first, second}, .overlap = bytes};
    f.notes = {describe_access(a, race.begin, race.end), describe_access(b, race.begin, race.end)};
    const auto one = r_.agent(a.agent), two = r_.agent(b.agent);
    const auto who = a.agent == b.agent ? r_.place(second) + " of " + two : two;
    const auto other = a.agent == b.agent ? r_.place(first) : one;
    if (race.rule == "race") {
      if (!writes(b.mode)) f.message = who + " may read " + bytes + " before " + other + " has written it";
      else if (!writes(a.mode)) f.message = who + " may overwrite " + bytes + " before " + other + " has read it";
      else f.message = other + " and " + who + " write " + bytes + ", and either may be last";
    } else if (race.rule == "kernel-scope") {
      const bool stays = m_.agents[a.agent].kind == Agent::Kind::kernel && m_.released(a.agent, a.position) == kNone;
      f.message = stays || m_.agents[b.agent].kind != Agent::Kind::kernel
                      ? who + " accesses " + bytes + ", but " + other +
                            " has not released it at system scope: the data may still be in an L2"
                      : who + " reads " + bytes + " without an acquire at system scope: an L2 may hold old data";
      f.hint = stays
                   ? "put buffer_wbl2 sc1 and s_waitcnt vmcnt(0) before the store that announces it, or end the kernel"
                   : "put buffer_inv sc0 sc1 after the wait, or launch the kernel after the wait";
    } else if (race.rule == "data-as-flag") {
      const auto& data = a.mode == Mode::poll ? b : a;
      const auto& poll = a.mode == Mode::poll ? a : b;
      f.message = r_.agent(poll.agent) + " waits for " + bytes + ", which " + r_.agent(data.agent) + " stores as data";
      f.hint =
          "store the flag with a fence or atomic: it waits for all earlier packets of its queue, and a data store does "
          "not";
    } else if (race.rule == "fence-race") {
      f.message = one + " and " + two + " store to " + bytes + ", and either may be last";
      f.hint = "give each its own signal, or let both add to one signal with atomic op=add_rtn_64";
    } else {
      f.message = r_.agent(b.agent) + " may read " + bytes + " before or after it is written";
      f.hint = "put a fence to the word and a poll_mem on it before the cond_exec, which may read early";
    }
    f.more.push_back(
        "overlap " + bytes +
        (race.rule == "kernel-scope" ? "" : "; nothing orders " + r_.place(first) + " before " + r_.place(second)));
    if (read(first.agent))
      f.more.push_back("the rptr of " + r_.agent(first.agent) +
                       " says which packets have been read, and never that one is complete (H8)");
    if (race.more > 0)
      f.more.push_back("and " + std::to_string(race.more) + " more between the same two, in other ranges or rounds");
    f.rests_on = rests_on(a, b);
    if (f.hint.empty()) {
      auto proposal = edge(m_, r_, first, second);
      f.hint = std::move(proposal.hint), f.edit = std::move(proposal.edit);
      if (race.seen_earlier && !f.edit)
        f.hint = "a credit is missing: " + one + " has to say that it has read the bytes; " + f.hint;
    }
    if (race.rule == "race" && a.agent != b.agent && !writes(b.mode) && filled(race.begin))
      f.hint += " (if " + r_.place(second) + " is meant to read the old contents, order them the other way round)";
    r_.store(std::move(f));
  }

  std::vector<std::string_view> rests_on(const Ref& a, const Ref& b) const {
    if (a.mode == Mode::poll || b.mode == Mode::poll) return {"Q16"};
    if (a.mode == Mode::condition || b.mode == Mode::condition) return {"Q12"};
    if (a.agent == b.agent) {
      const auto* one = m_.item_at(a.agent, a.position);
      const auto* two = m_.item_at(b.agent, b.position);
      if (!one || !two) return {"Q1"};
      if (two->what == What::indirect) return {"Q13"};
      if (one->what == What::stamp) return {"Q10"};
      std::vector<std::string_view> ids{one->what == What::write || two->what == What::write ? "Q2" : "Q1"};
      const auto* fence = m_.next_post(a.agent, a.position);
      if (one->what == What::post) ids = {"Q5"};
      else if (fence && fence->position < b.position) ids.push_back("Q5");
      return ids;
    }
    const auto queue = [&](const Ref& r) { return r.agent < m_.queue_count(); };
    if (queue(a) && queue(b) && m_.programs[a.agent].engine == m_.programs[b.agent].engine) return {"X1", "X3"};
    if (!queue(a) && m_.agents[a.agent].kind == Agent::Kind::kernel) return {"C3"};
    if (!queue(b) && m_.agents[b.agent].kind == Agent::Kind::kernel) return {"C4"};
    if (rule_broken_by(a, b) == "fence-race") return {"X6", "X3"};
    return {"X3"};
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

}  // namespace sdma::inline v0::check_detail
