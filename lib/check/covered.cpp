// SPDX-License-Identifier: MIT
// The contract of a proof: what its argument covers, entry by entry, and the search for things that it does not cover.
// It is asked for each agent, each place that one reaches, each packet and action, and each value that a thread makes.
// docs/check.md shows the table; tests/check/covered.cpp has a schedule for each entry, and tests/check/grammar.toml
// the entries that each word of the language asks for.
#include "../schedule/lifetimes.hpp"
#include "../schedule/link.hpp"
#include "../schedule/sums.hpp"
#include "reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::array kCovered{
    CoveredThing{"access alias", "buffers and signals that are aliases of other bytes"},
    CoveredThing{"access box", "a packet that touches rows of bytes with gaps between them"},
    CoveredThing{"access by-host", "bytes that a host thread loads, stores or compares"},
    CoveredThing{"access by-kernel", "bytes that a kernel loads or stores"},
    CoveredThing{"access by-network", "bytes that the network carries to another node"},
    CoveredThing{"access sum", "ranges that a kernel adds"},
    CoveredThing{"action add", "what a thread adds to a word, where it fits"},
    CoveredThing{"action compute", "the time that a kernel takes"},
    CoveredThing{"action expect", "bytes that a thread compares at a moment"},
    CoveredThing{"action load", "bytes that a thread loads"},
    CoveredThing{"action repeat", "rounds of a thread"},
    CoveredThing{"action rptr", "a wait for a queue's rptr"},
    CoveredThing{"action sample", "a thread reads a word"},
    CoveredThing{"action set", "what a thread stores to a word, where it fits"},
    CoveredThing{"action store", "bytes that a thread stores"},
    CoveredThing{"action submit", "a doorbell of each queue"},
    CoveredThing{"action wait", "what a thread waits for, where it fits its word"},
    CoveredThing{"agent engine", "queues that an engine executes"},
    CoveredThing{"agent host", "host threads that wait, set, add and submit"},
    CoveredThing{"agent kernel", "kernels at system scope"},
    CoveredThing{"agent kernel-agent-scope", "kernels of one GPU that wait, set and add at its scope"},
    CoveredThing{"agent network",
                 "queues that the network executes: words of one node in order, and all bytes before a word"},
    CoveredThing{"agent shared-queue", "threads that submit one queue"},
    CoveredThing{"engine shared", "queues that share an engine"},
    CoveredThing{"expect bytes", "bytes that must equal others, or what others held before the run"},
    CoveredThing{"expect sum", "bytes that must be a sum"},
    CoveredThing{"expect value", "the last value of a signal"},
    CoveredThing{"init poison", "a buffer whose first bytes are not known"},
    CoveredThing{"init random", "a buffer whose first bytes are not known, and differ from all others"},
    CoveredThing{"init zero", "a buffer that is zero at first"},
    CoveredThing{"lifetime alias",
                 "a part of a buffer that is allocated and freed on its own, as a block of a pool is"},
    CoveredThing{"lifetime alloc", "a buffer that a host thread allocates: all its uses are known to come later"},
    CoveredThing{"lifetime close", "a handle that is closed: all uses by other GPUs are complete by then"},
    CoveredThing{"lifetime export", "a handle by which other GPUs reach a buffer"},
    CoveredThing{"lifetime free", "a buffer that is freed: all its uses are complete by then"},
    CoveredThing{"lifetime map", "a mapping that a GPU is given later"},
    CoveredThing{"lifetime pinned",
                 "host memory that is mapped for a GPU; it is assumed to stay, also under XNACK (pinned=stays)"},
    CoveredThing{"lifetime unmap", "a mapping that is taken from a GPU: all its uses are complete by then"},
    CoveredThing{"packet atomic", "an atomic; the post entries cover its effect"},
    CoveredThing{"packet cond_exec", "a condition; it is proved only if its outcome never changes"},
    CoveredThing{"packet copy_broadcast", "one source, two destinations"},
    CoveredThing{"packet copy_linear", "consecutive bytes"},
    CoveredThing{"packet copy_subwindow", "rows and slices"},
    CoveredThing{"packet copy_swap", "both sides are read and written"},
    CoveredThing{"packet fence", "it posts a store"},
    CoveredThing{"packet fill", "one value"},
    CoveredThing{"packet hdp_flush", "no order rests on it"},
    CoveredThing{"packet nop", "no order rests on it, except with nop=drain"},
    CoveredThing{"packet poll_mem", "a poll; the wait entries cover its condition"},
    CoveredThing{"packet timestamp", "it stores 8 bytes after everything earlier"},
    CoveredThing{"packet trap", "no order rests on its interrupt"},
    CoveredThing{"packet write", "data, or a flag"},
    CoveredThing{"place host", "bytes in host memory"},
    CoveredThing{"place map", "a buffer that only some GPUs have mapped"},
    CoveredThing{"place node", "a machine of several nodes"},
    CoveredThing{"place own-vram", "bytes in the memory of the agent's GPU"},
    CoveredThing{"place peer-vram", "bytes in the memory of a GPU to which the agent's GPU has a link"},
    CoveredThing{"post add", "additions commute, and each is needed if the others do not suffice"},
    CoveredThing{"post flag", "a WRITE, FILL or copy of a known value to a word that something waits for"},
    CoveredThing{"post half-of-64", "4 bytes of a word of 8, while the high half keeps its initial value"},
    CoveredThing{"post halves-in-order", "4 bytes of a word of 8, if all posts to it are in order"},
    CoveredThing{"post inc", "an INC or DEC of a word that cannot reach its limit: an addition"},
    CoveredThing{"post max", "a MAX or MIN, if every satisfied wait stays satisfied"},
    CoveredThing{"post mixed", "stores and additions to one word: additions after its last store, or posts in order"},
    CoveredThing{"post or", "an OR whose bits no other agent sets: an addition"},
    CoveredThing{"post other-in-order", "any other atomic, if all posts to its word are in order"},
    CoveredThing{"post returning",
                 "a word of the sender's node that the network changes: perhaps after later words of the peer's node"},
    CoveredThing{"post store", "the value of a fence or a set replaces that of the word"},
    CoveredThing{"post swap", "a store, as by a fence; it commutes with nothing"},
    CoveredThing{"ring doorbell-each", "a doorbell for each packet that moves data"},
    CoveredThing{"ring full", "more submits than the ring holds at once"},
    CoveredThing{"ring pieces", "a submit that needs several doorbells"},
    CoveredThing{"round epoch", "values that depend on the epoch or the round"},
    CoveredThing{"round many", "a queue that is submitted more than once"},
    CoveredThing{"sample", "a value that a thread has read, where every change before it has been waited for"},
    CoveredThing{"sum any-order", "a sum whose order of additions is open"},
    CoveredThing{"sum bf16", "numbers of 16 bits, each addition rounded"},
    CoveredThing{"sum f32", "numbers of 32 bits, each addition rounded"},
    CoveredThing{"sum i32", "integers that wrap"},
    CoveredThing{"value sampled", "a value to which a sample is added, where the sum fits its word"},
    CoveredThing{"wait always", "a wait that every value satisfies"},
    CoveredThing{"wait eq", "a wait for one value"},
    CoveredThing{"wait ge", "a wait for a value or a larger one"},
    CoveredThing{"wait gt", "a wait for a larger value"},
    CoveredThing{"wait high-half-of-64", "a poll of the high 4 bytes of a word of 8"},
    CoveredThing{"wait le", "a wait for a value or a smaller one"},
    CoveredThing{"wait low-half-of-64", "a poll of the low 4 bytes of a word of 8"},
    CoveredThing{"wait lt", "a wait for a smaller value"},
    CoveredThing{"wait masked", "a poll that compares some bits, of a word without additions"},
    CoveredThing{"wait ne", "a wait for any other value"},
    CoveredThing{"wait rptr", "a wait until a queue has been read, in the thread that submits it; it orders nothing"},
    CoveredThing{"word 32", "a word of 4 bytes"},
    CoveredThing{"word 64", "a word of 8 bytes"},
    CoveredThing{"word in-host", "a word in host memory"},
    CoveredThing{"word in-own-vram", "a word in the memory of the agent's GPU"},
    CoveredThing{"word in-peer-vram", "a word in the memory of another GPU"},
};
static_assert(std::is_sorted(kCovered.begin(), kCovered.end(), [](auto& a, auto& b) { return a.id < b.id; }));

}  // namespace

std::span<const CoveredThing> covered() noexcept { return kCovered; }

namespace check_detail {
namespace {

/// Asks the table for each thing in a schedule. What it does not have is named once.
class Contract {
 public:
  Contract(const Model& m, Reporter& r) : m_(m), r_(r) {}

  /// The things that it has asked for.
  std::vector<std::string> run() {
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) queue(q);
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a) steps(a);
    detail::each_action(m_.schedule, [&](const Schedule::Action& a) { ask(thing(a.kind), {}); });
    for (std::size_t i = 0; i < m_.schedule.signals.size(); ++i)
      if (m_.schedule.signals[i].at) ask("access alias", {});
    for (const auto& b : m_.schedule.buffers) {
      if (b.at) ask("access alias", {});
      if (!b.map.empty()) ask("place map", {});
      ask(b.init == Init::random ? "init random" : b.init == Init::zero ? "init zero" : "init poison", {});
    }
    if (m_.several_nodes()) ask("place node", {});
    for (const auto& e : m_.schedule.expectations) expectation(e);
    return {asked_.begin(), asked_.end()};
  }

 private:
  /// A kind without a case does not compile.
  static constexpr std::string_view thing(Schedule::Action::Kind k) noexcept {
    using Kind = Schedule::Action::Kind;
    switch (k) {
      case Kind::submit: return "action submit";
      case Kind::set: return "action set";
      case Kind::wait: return "action wait";
      case Kind::repeat: return "action repeat";
      case Kind::add: return "action add";
      case Kind::compute: return "action compute";
      case Kind::load: return "action load";
      case Kind::store: return "action store";
      case Kind::expect: return "action expect";
      case Kind::sample: return "action sample";
      case Kind::rptr: return "action rptr";
      case Kind::alloc: return "lifetime alloc";
      case Kind::free: return "lifetime free";
      case Kind::map: return "lifetime map";
      case Kind::unmap: return "lifetime unmap";
      case Kind::export_handle: return "lifetime export";
      case Kind::close_handle: return "lifetime close";
    }
    return "an action";
  }

  void ask(std::string_view thing, Position at) {
    if (asked_.contains(thing)) return;
    asked_.emplace(thing);
    const auto& without = m_.options.without;
    const bool has = std::any_of(kCovered.begin(), kCovered.end(), [&](const auto& c) { return c.id == thing; });
    if (has && std::find(without.begin(), without.end(), thing) == without.end()) return;
    Finding f{.rule = "not-covered",
              .message = fmt::format("the argument of a proof does not cover '{}', so nothing is proved", thing),
              .hint = "docs/check.md lists what it covers"};
    if (at.position != 0) f.places = {at};
    r_.add(std::move(f));
  }

  void expectation(const Schedule::Expectation& e) {
    using Kind = Schedule::Expectation::Kind;
    if (e.kind == Kind::value) ask("expect value", {});
    if (e.kind == Kind::bytes) ask(e.sum ? "expect sum" : "expect bytes", {});
    if (e.sum) sum(e.sum, {});
  }
  void sum(const Schedule::Sum& s, Position here) {
    ask(fmt::format("sum {}", detail::name(s.type)), here);
    if (s.any_order) ask("sum any-order", here);
  }

  void queue(std::uint32_t q) {
    const auto& p = m_.programs[q];
    const auto& queue = m_.schedule.queues[q];
    ask(queue.network ? "agent network" : "agent engine", p.items.empty() ? Position{} : Position{q, 1});
    if (queue.doorbell_each) ask("ring doorbell-each", {q, 1});
    for (std::uint32_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      const Position here{q, i + 1};
      if (item.skipped || !item.info || item.info == &info_of<Indirect>())
        continue;  // packet_findings.cpp reports the last
      ask(fmt::format("packet {}", item.info->name), here);
      if (queue.network && item.moves()) ask("access by-network", here);
      if (item.moves())
        for (auto t = item.touch; t < item.touch + item.touches; ++t) place(queue.place, p.touches[t].begin, here);
      if (i < p.apart.size() && p.apart[i]) ask("post returning", here);
      if (item.touches > 2 && item.moves()) ask("access box", here);
    }
    if (m_.agents[q].submits > 1) ask("round many", {q, 1});
    if (m_.agents[q].shared) ask("agent shared-queue", {q, 1});
    if (!engines_.insert(p.engine).second) ask("engine shared", {q, 1});
    if (detail::too_large(queue) || m_.agents[q].submits == 0) return;
    const auto linked = detail::link_queue(
        queue, [](GpuVa va) { return va; }, [](const PacketView&, std::span<const std::uint32_t>) {});
    if (linked.pieces.size() > 1) ask("ring pieces", {q, 1});
    if (std::uint64_t{m_.agents[q].submits} * queue.dwords.size() * 4 >= linked.ring_bytes) ask("ring full", {q, 1});
  }

  /// Memory that an agent of this place accesses. What has no symbol is reported by packet_findings.cpp.
  void place(Place from, std::uint64_t address, Position here) {
    if (const auto p = m_.place_at(address))
      ask(p->is_host() ? "place host" : *p == from ? "place own-vram" : "place peer-vram", here);
  }

  Place home(std::uint32_t a) const {
    const auto& agent = m_.agents[a];
    return agent.kind == Agent::Kind::queue    ? m_.schedule.queues[a].place
           : agent.kind == Agent::Kind::kernel ? m_.schedule.kernels[agent.index].place
                                               : Place::host();
  }

  void steps(std::uint32_t a) {
    const auto& agent = m_.agents[a];
    const bool queue = agent.kind == Agent::Kind::queue;
    if (!queue && !agent.steps.empty()) ask(agent.kind == Agent::Kind::host ? "agent host" : "agent kernel", {a, 1});
    std::vector<bool> done;  // by source: the rounds of an action are alike
    for (const auto& s : agent.steps) {
      if (s.source < done.size() && done[s.source]) continue;
      if (s.kind == Step::Kind::begin || s.kind == Step::Kind::submit || s.kind == Step::Kind::read) continue;
      if (s.source >= done.size()) done.resize(s.source + std::size_t{1});
      done[s.source] = true;
      const Position here{a, s.position};
      if (s.kind == Step::Kind::life) {
        lifetime(m_.action(a, s), here);
        continue;
      }
      if (s.kind == Step::Kind::touch) {
        ask(agent.kind == Agent::Kind::host ? "access by-host" : "access by-kernel", here);
        const auto& action = m_.action(a, s);
        for (const auto& t : m_.touches(action)) place(home(a), t.begin, here);
        if (action.sum && action.kind == Schedule::Action::Kind::store) ask("access sum", here);
        if (action.sum) sum(action.sum, here);
        continue;
      }
      if (!s.sync || s.sync->word == kNone) continue;
      if (agent.kind == Agent::Kind::kernel && !m_.action(a, s).system_scope) ask("agent kernel-agent-scope", here);
      const auto& w = m_.words[s.sync->word];
      if (const auto of = rptr_of(w.address)) {
        const auto& q = m_.agents[*of];
        const bool own = !q.shared && (q.steps.empty() || q.steps.front().target == a);
        ask(own ? "wait rptr" : "wait rptr of a queue that another thread submits", here);
        continue;
      }
      word(a, w, here);
      if (!queue && !m_.action(a, s).value.sample.empty() && s.kind != Step::Kind::sample) ask("value sampled", here);
      if (s.sync->value.factor != 0) ask("round epoch", here);
      if (s.kind == Step::Kind::sample) ask("sample", here);
      else if (s.kind == Step::Kind::poll) wait(s, w, here);
      else post(a, s, w, here);
    }
  }
  void lifetime(const Schedule::Action& a, Position here) {
    ask(fmt::format("lifetime {}", detail::lifetime_word(a.kind)), here);
    const auto& b = m_.schedule.buffers[find_symbol(m_.schedule, a.buffer)->index];
    if (b.at) ask("lifetime alias", here);
    if (a.kind == Schedule::Action::Kind::map && b.place.is_host()) ask("lifetime pinned", here);
  }
  void word(std::uint32_t a, const Word& w, Position here) {
    ask(w.bytes == 8 ? "word 64" : "word 32", here);
    const auto place = m_.place_at(w.address).value_or(Place::host());
    ask(place.is_host() ? "word in-host" : place == home(a) ? "word in-own-vram" : "word in-peer-vram", here);
  }
  void wait(const Step& s, const Word& w, Position here) {
    const auto& y = *s.sync;
    ask(fmt::format("wait {}", grammar::names<Compare>[static_cast<std::size_t>(y.func)].text), here);
    if (y.bytes == 4 && y.mask != ~0u) ask("wait masked", here);
    if (w.bytes == 8 && y.bytes == 4) ask(y.high ? "wait high-half-of-64" : "wait low-half-of-64", here);
  }
  void post(std::uint32_t a, const Step& s, const Word& w, Position here) {
    const auto* item = m_.item_at(a, s.position);
    if (s.kind == Step::Kind::flag) ask("post flag", here);
    else if (s.sync->op == Op::other)
      ask(w.in_order ? "post other-in-order" : w.monotone ? "post max" : s.whole ? "post or" : "post inc", here);
    else if (s.sync->op == Op::add) ask("post add", here);
    else if (s.sync->op == Op::store) ask(item && item->modifies ? "post swap" : "post store", here);
    if (s.sync->op != Op::other && (w.in_order || (w.adds && w.stores))) ask("post mixed", here);
    if (w.bytes == 8 && s.sync->bytes == 4) ask(w.in_order ? "post halves-in-order" : "post half-of-64", here);
  }

  const Model& m_;
  Reporter& r_;
  std::set<std::string, std::less<>> asked_;
  std::set<std::uint64_t> engines_;
};

}  // namespace

void find_not_covered(const Model& m, Reporter& r) { r.relies_on(Contract{m, r}.run()); }

}  // namespace check_detail
}}  // namespace sdma::v0_3
