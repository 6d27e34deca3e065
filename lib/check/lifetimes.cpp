// SPDX-License-Identifier: MIT
// Finds uses of memory that is not there, or that the user may not reach: before it is allocated, mapped or exported,
// or after it is freed, unmapped or its handle is closed; and what threads do with lifetimes that makes no sense.
//
//   a life    of a buffer's bytes, of one GPU's mapping of them, of the handle by which other GPUs reach them
//   an event  an action of a host thread that begins or ends a life. Those of one life have to have one order
//   a use     a packet or an action; it needs all lives of the buffer that it names, and of those it is an alias of
//
//   events    alloc ------------------ free ------------------ alloc ...
//   uses             known to be after, and complete before            both by the clocks of order.cpp: on every order
#include "../schedule/lifetimes.hpp"

#include "edits.hpp"
#include "races.hpp"
#include "sdma/packets/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

using Do = Schedule::Action::Kind;

enum class LifeOf : std::uint8_t { memory, mapping, handle };
struct LifeEvent {
  Position at{};
  const Step* step{};
  Do what{};
  bool present{};  ///< after it
};
struct Life {
  LifeOf of{};
  std::size_t buffer{};
  Place gpu{};   ///< of a mapping
  bool first{};  ///< is it there before anything runs?
  std::vector<LifeEvent> events{};
};

/// What a packet or an action does with memory, and which lives that needs.
struct LifeUse {
  Mode mode{};
  std::vector<std::size_t> lives{};
  bool pinned = false;  ///< host memory that a thread maps for the GPU of the user
};

class Lifetimes {
 public:
  Lifetimes(const Model& m, Reporter& r) : m_(m), s_(m.schedule), r_(r), of_(detail::lifetimes(s_)) {}

  void run() {
    if (std::none_of(of_.begin(), of_.end(), [](const auto& l) { return l.any(); })) return;
    begin_lives();
    for (const auto& l : lives_) history(l);
    executed_.assign(m_.agents.size(), 0);
    for (const auto& run : m_.runs) executed_[run.agent] = std::max(executed_[run.agent], run.until);
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a)
      if (m_.agents[a].kind == Agent::Kind::queue) queue(a);
      else thread(a);
    at_the_end();
    words();
  }

 private:
  using Key = std::tuple<LifeOf, std::size_t, Place>;
  void life(LifeOf of, std::size_t buffer, Place gpu, bool first) {
    by_key_[{of, buffer, gpu}] = lives_.size();
    lives_.push_back({of, buffer, gpu, first});
  }
  void begin_lives() {
    for (std::size_t b = 0; b < of_.size(); ++b) {
      const auto& l = of_[b];
      if (l.allocated || l.freed) life(LifeOf::memory, b, {}, !l.allocated);
      const auto mapped = detail::mapped_at_first(s_.buffers[b], l);
      for (std::uint32_t g = 0; g < s_.gpus; ++g)
        if (l.mapped.test(g) || l.unmapped.test(g))
          life(LifeOf::mapping, b, Place::gpu(g), !l.allocated && mapped.test(g));
      if (l.exported) life(LifeOf::handle, b, {}, false);
    }
    struct Happened {
      std::uint32_t agent;
      const Step* step;
    };
    std::vector<Happened> all;
    for (auto a = m_.queue_count(); a < m_.agents.size(); ++a)
      for (const auto& s : m_.agents[a].steps)
        if (s.kind == Step::Kind::life && s.time != kNone) all.push_back({a, &s});
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.step->time < b.step->time; });
    for (const auto& h : all) add(h.agent, *h.step);
  }
  void add(std::uint32_t agent, const Step& s) {
    const auto& a = m_.action(agent, s);
    const auto buffer = find_symbol(s_, a.buffer)->index;
    const auto to = [&](Life& l, bool present) { l.events.push_back({{agent, s.position}, &s, a.kind, present}); };
    for (auto& l : lives_) {
      if (l.buffer != buffer) continue;
      const bool all = a.kind == Do::alloc || a.kind == Do::free;
      if (l.of == LifeOf::memory && all) to(l, a.kind == Do::alloc);
      if (l.of == LifeOf::mapping && (a.kind == Do::map || a.kind == Do::unmap) && a.gpu == l.gpu)
        to(l, a.kind == Do::map);
      if (l.of == LifeOf::mapping && all)
        to(l, a.kind == Do::alloc && detail::mapped_at_first(s_.buffers[buffer], of_[buffer]).test(l.gpu.index));
      if (l.of == LifeOf::handle && (a.kind == Do::export_handle || a.kind == Do::close_handle))
        to(l, a.kind == Do::export_handle);
      if (l.of == LifeOf::handle && a.kind == Do::free) to(l, false);
    }
  }

  // Order.
  bool before(const LifeEvent& e, std::uint32_t agent, std::uint32_t position, const std::uint32_t* row) const {
    return e.at.agent == agent ? e.at.position < position : row[e.at.agent] >= e.at.position;
  }
  /// Does a kernel keep what it stores there in its L2? What it posts at system scope goes through.
  bool kept(const Ref& use) const {
    if (m_.agents[use.agent].kind != Agent::Kind::kernel || !writes(use.mode)) return false;
    return use.mode == Mode::write || !m_.action(use.agent, *m_.step_at(use.agent, use.position)).system_scope;
  }
  /// Has a use ended before this event? What a kernel keeps leaves its L2 with a release at system scope (C3).
  bool over(const Ref& use, const LifeEvent& e) const {
    if (use.agent == e.at.agent) return use.position < e.at.position;
    const auto* row = m_.row(e.step->row);
    if (use.post && use.post->column != kNone) return m_.landed(row, use.agent, *use.post);
    if (kept(use) && m_.released(use.agent, use.position) > row[use.agent]) return false;
    return m_.landed(row, row[use.agent], use.agent, use.position);
  }

  /// The events of a life, one after the other.
  void history(const Life& l) {
    bool present = l.first;
    const LifeEvent* last = nullptr;
    for (const auto& e : l.events) {
      if (last && !before(*last, e.at.agent, e.at.position, m_.row(e.step->row))) return unordered(l, *last, e);
      if (const auto wrong = contradiction(l, e, present); !wrong.empty()) {
        Finding f{.rule = "bad-lifetime", .message = r_.agent(e.at.agent) + " " + does(l, e) + ", " + wrong};
        if (last) f.places = {last->at};
        f.places.push_back(e.at);
        f.hint = l.of == LifeOf::handle && e.what == Do::free
                     ? "close the handle first, once every GPU that uses it is done"
                     : "remove it, or give the buffer a life that begins before it";
        report(std::move(f));
        return;
      }
      present = e.present;
      last = &e;
    }
  }
  std::string contradiction(const Life& l, const LifeEvent& e, bool present) const {
    if (e.what == Do::alloc && l.of == LifeOf::memory && present) return "which is there already";
    if (e.what == Do::free && l.of == LifeOf::memory && !present) return "which is not there";
    if (e.what == Do::unmap && !present) return "which has not mapped it";
    if (e.what == Do::export_handle && present) return "which has a handle already";
    if (e.what == Do::close_handle && !present) return "which is not open";
    if (e.what == Do::free && l.of == LifeOf::handle && present) return "whose handle is still open";
    return {};
  }
  void unordered(const Life& l, const LifeEvent& a, const LifeEvent& b) {
    auto p = edge(m_, r_, a.at, b.at);
    report({.rule = "bad-lifetime",
            .places = {a.at, b.at},
            .message = fmt::format("{} {}, {} {}, and nothing orders the two", r_.agent(a.at.agent), does(l, a),
                                   r_.agent(b.at.agent), does(l, b)),
            .hint = std::move(p.hint),
            .rests_on = {"X3"},
            .edit = std::move(p.edit)});
  }

  // Uses.
  void need(LifeUse& u, GpuVa va, Mode mode, Place user, bool memory_only = false) const {
    const auto all = detail::buffers_of(s_, va);
    const auto add = [&](LifeOf of, std::size_t buffer, Place gpu) {
      const auto at = by_key_.find({of, buffer, gpu});
      if (at == by_key_.end() || std::find(u.lives.begin(), u.lives.end(), at->second) != u.lives.end()) return;
      if (u.lives.empty() || writes(mode)) u.mode = mode;
      u.lives.push_back(at->second);
    };
    for (const auto b : all) add(LifeOf::memory, b, {});
    if (all.empty() || memory_only || user.is_host()) return;
    add(LifeOf::mapping, all.back(), user);
    const auto home = s_.buffers[all.back()].place;
    if (home != user) add(LifeOf::handle, all.back(), {});
    u.pinned = u.pinned || (home.is_host() && of_[all.back()].mapped.test(user.index));
  }

  void queue(std::uint32_t q) {
    const auto& p = m_.programs[q];
    std::vector<LifeUse> uses(p.items.size());
    // A host thread executes a network queue.
    const auto user = s_.queues[q].network ? Place::host() : s_.queues[q].place;
    for (std::size_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      if (item.skipped || item.touches == 0) continue;
      const auto view = Reader{std::span(s_.queues[q].dwords).subspan(item.dword)}.next();
      const auto first = p.touches[item.touch].mode;
      visit(*view.info, view.dwords, [&](const auto& packet) {
        footprint(packet, [&](const Region& region) {
          const auto data = region.access == Access::read ? Mode::read : Mode::write;
          need(uses[i], region.va, item.moves() && !item.flag() ? data : first, user);
        });
      });
    }
    const auto& steps = m_.agents[q].steps;
    std::size_t next = 0;  // the first step that comes after the position
    for (std::uint32_t at = 1; at <= executed_[q]; ++at) {
      while (next < steps.size() && steps[next].position <= at &&
             !(steps[next].kind == Step::Kind::begin && steps[next].position == at))
        ++next;
      const auto& u = uses[(at - 1) % p.items.size()];
      if (u.lives.empty() && !u.pinned) continue;
      const auto& item = *m_.item_at(q, at);
      auto from = next;
      if (item.what == What::poll && from > 0 && steps[from - 1].position == at) --from;
      // An indirect buffer may be read as soon as the doorbell rings (Q13).
      if (item.what == What::indirect)
        while (from > 0 && steps[from - 1].kind != Step::Kind::begin) --from;
      const bool posts = u.mode == Mode::store || u.mode == Mode::modify;
      examine({q, at, u.mode, posts ? m_.post_at(q, at) : nullptr}, u, m_.row(from == 0 ? kNone : steps[from - 1].row));
    }
  }

  void thread(std::uint32_t a) {
    const auto& agent = m_.agents[a];
    const auto user = agent.kind == Agent::Kind::kernel ? s_.kernels[agent.index].place : Place::host();
    for (std::uint32_t i = 0; i < agent.steps.size(); ++i) {
      const auto& s = agent.steps[i];
      if (s.time == kNone || s.kind == Step::Kind::submit) continue;
      const auto& action = m_.action(a, s);
      LifeUse u;
      if (s.kind == Step::Kind::life) {
        // What it is about is in the history of its own life.
        const bool own = action.kind == Do::alloc || action.kind == Do::free;
        need(u, action.buffer, Mode::condition, user, true);
        if (own) std::erase(u.lives, by_key_.at({LifeOf::memory, find_symbol(s_, action.buffer)->index, Place{}}));
      } else if (s.kind == Step::Kind::touch) {
        if (action.kind == Do::store) need(u, action.range.va, Mode::write, user);
        else need(u, action.range.va, Mode::read, user);
        for (const auto& part : action.sum.parts)
          if (!action.old) need(u, part.va, Mode::read, user);
        if (action.right.bytes != 0 && !action.old) need(u, action.right.va, Mode::read, user);
      } else if (action.kind != Do::rptr) {
        need(u, action.signal, s.posts() ? Mode::store : Mode::poll, user);
      }
      const auto* row = s.kind == Step::Kind::poll ? m_.row_before(a, i) : m_.row(s.row);
      examine({a, s.position, u.mode, nullptr}, u, row);
    }
  }

  void examine(const Ref& use, const LifeUse& u, const std::uint32_t* row) {
    if (u.pinned && !m_.profile.pinned_stays)
      report({.rule = "pinned-range",
              .places = {{use.agent, use.position}},
              .message = r_.agent(use.agent) +
                         " uses host memory that a thread has mapped: under XNACK, the driver may "
                         "unmap the range meanwhile",
              .hint = "copy through memory that the runtime allocates, or assume that the range stays: pinned=stays"});
    for (const auto i : u.lives) examine(use, lives_[i], row);
  }
  void examine(const Ref& use, const Life& l, const std::uint32_t* row) {
    const auto known = std::partition_point(
        l.events.begin(), l.events.end(), [&](const LifeEvent& e) { return before(e, use.agent, use.position, row); });
    const bool present = known == l.events.begin() ? l.first : std::prev(known)->present;
    const auto next = std::find_if(known, l.events.end(), [&](const LifeEvent& e) { return e.present != present; });
    const bool unordered = next != l.events.end() && !over(use, *next);
    const auto who = r_.agent(use.agent), what = thing(l);
    const auto verb = [&](bool sure) { return sure ? verbs(use).is : "may " + verbs(use).may; };
    if (present) {
      if (!unordered) return;
      auto p = edge(m_, r_, {use.agent, use.position}, next->at);
      return report({.rule = "use-after-free",
                     .places = {{use.agent, use.position}, next->at},
                     .message = fmt::format("{} may {} before {} has {} it", r_.agent(next->at.agent),
                                            does(l, *next, true), who, verbs(use).has),
                     .hint = std::move(p.hint),
                     .rests_on = {verbs(use).polls ? "E4" : "X3"},
                     .edit = std::move(p.edit)});
    }
    if (unordered || known == l.events.begin()) {
      if (next == l.events.end()) return;
      auto p = unordered ? edge(m_, r_, next->at, {use.agent, use.position}) : Proposal{};
      return report({.rule = "use-before-alloc",
                     .places = {next->at, {use.agent, use.position}},
                     .message = fmt::format("{} {} {} before {} {}", who, verb(!unordered), what,
                                            r_.agent(next->at.agent), does(l, *next)),
                     .hint = unordered ? std::move(p.hint) : "move it after " + r_.place(next->at),
                     .rests_on = {"X3"},
                     .edit = std::move(p.edit)});
    }
    // What took it away: the first event after which it has not come back.
    auto end = std::prev(known);
    while (end != l.events.begin() && !std::prev(end)->present) --end;
    const auto& gone = *end;
    report(
        {.rule = "use-after-free",
         .places = {gone.at, {use.agent, use.position}},
         .message = fmt::format("{} {} {} after {} {}", who, verb(true), what, r_.agent(gone.at.agent), does(l, gone)),
         .hint = "move " + r_.place(gone.at) + " after the wait for what " + r_.place({use.agent, use.position}) +
                 " does"});
  }

  /// Final expectations read memory, too.
  void at_the_end() {
    for (const auto& e : s_.expectations) {
      if (e.kind == Schedule::Expectation::Kind::finding) continue;
      LifeUse u;
      need(u, e.left.va, Mode::read, Place::host());
      if (!e.old && e.right.bytes != 0) need(u, e.right.va, Mode::read, Place::host());
      for (const auto& p : e.sum.parts)
        if (!e.old) need(u, p.va, Mode::read, Place::host());
      for (const auto i : u.lives) {
        const auto& l = lives_[i];
        if (l.events.empty() || l.events.back().present) continue;
        const auto& gone = l.events.back();
        r_.add({.rule = "use-after-free",
                .places = {gone.at},
                .message = fmt::format("'{}' reads {} at the end, after {} {}", to_text(s_, e), thing(l),
                                       r_.agent(gone.at.agent), does(l, gone)),
                .hint = "compare in the thread, before the free, or free it later"});
      }
    }
  }

  /// A word begins again with each allocation of its buffer, which the words of the model do not.
  void words() {
    for (const auto& l : lives_) {
      const auto allocs = std::count_if(l.events.begin(), l.events.end(), [](auto& e) { return e.what == Do::alloc; });
      const auto& b = s_.buffers[l.buffer];
      if (l.of != LifeOf::memory || b.at || allocs < 2) continue;
      const auto begin = link_buffer(l.buffer).value;
      for (const auto& w : m_.words)
        if (w.address - begin < b.bytes)
          report(
              {.rule = "unknown-value",
               .places = {l.events.back().at},
               .message = r_.word(w) + " is in " + thing(l) +
                          ", which is allocated more than once: the values that it begins with again are not followed",
               .hint = "put the signal into memory that is allocated once"});
    }
  }

  // Text.
  std::string thing(const Life& l) const { return name_of(s_, link_buffer(l.buffer)); }
  /// "frees gpu0.b"; `bare`: "free gpu0.b".
  std::string does(const Life& l, const LifeEvent& e, bool bare = false) const {
    const auto name = thing(l), s = std::string(bare ? "" : "s");
    switch (e.what) {
      case Do::alloc: return "allocate" + s + " " + name;
      case Do::free: return "free" + s + " " + name;
      case Do::map: return "map" + s + " " + name + " for " + to_string(l.gpu);
      case Do::unmap: return "unmap" + s + " " + name + " for " + to_string(l.gpu);
      case Do::export_handle: return "export" + s + " " + name;
      default: return "close" + s + " the handle of " + name;
    }
  }
  struct Verbs {
    std::string is, may, has;
    bool polls = false;
  };
  Verbs verbs(const Ref& use) const {
    if (use.mode == Mode::read) return {"reads", "read", "read"};
    if (use.mode == Mode::write) return {"writes", "write", "written"};
    if (use.mode == Mode::poll) return {"polls", "poll", "polled", true};
    if (use.mode == Mode::condition) return {"uses", "use", "used"};
    if (use.mode == Mode::constant) return {"tests", "test", "tested"};
    return {"stores to", "store to", "stored to", true};
  }

  /// Once for the same lines, in whatever round.
  void report(Finding f) {
    std::vector<std::uint64_t> key;
    for (const auto p : f.places) {
      const auto* item = m_.item_at(p.agent, p.position);
      const auto* step = m_.step_at(p.agent, p.position);
      key.push_back(std::uint64_t{p.agent} << 32 | (item ? item->dword : step ? step->source : 0));
    }
    if (known_.insert({std::string(f.rule), std::move(key)}).second) r_.add(std::move(f));
  }

  const Model& m_;
  const Schedule& s_;
  Reporter& r_;
  const std::vector<detail::Lifetime> of_;
  std::vector<Life> lives_;
  std::map<Key, std::size_t> by_key_;
  std::vector<std::uint32_t> executed_;  ///< by agent: until which position
  std::set<std::pair<std::string, std::vector<std::uint64_t>>> known_;
};

}  // namespace

void find_in_lifetimes(const Model& m, Reporter& r) { Lifetimes{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
