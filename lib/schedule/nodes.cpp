// SPDX-License-Identifier: MIT
// The rule other-node: what runs on one node of a machine with several reaches no memory and no doorbell of another.
//
// A GPU says which node it is in. A host thread, and a buffer or signal in host memory, is in the node of what it
// touches or what touches it: they are joined to sets, and a set has one node.
#include "link.hpp"
#include "refused.hpp"
#include "sdma/packets/footprint.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

class Nodes {
 public:
  /// `nodes`: that of each GPU.
  Nodes(const Schedule& s, std::span<const std::uint32_t> nodes) : s_(s), actors_(actors(s)) {
    const auto all = symbols(s_);
    for (const auto& l : all)
      numbers_.emplace(std::pair(l.signal, l.index), s_.gpus + actors_.size() + numbers_.size());
    set_.resize(s_.gpus + actors_.size() + all.size());
    std::iota(set_.begin(), set_.end(), 0);
    of_.resize(set_.size());
    std::copy(nodes.begin(), nodes.end(), of_.begin());
    for (std::size_t a = 0; a < actors_.size(); ++a)
      if (actors_[a].kernel()) join(s_.gpus + a, actors_[a].place.index);
    for (const auto& l : all)
      if (const auto p = place_of(s_, l); !p.is_host() && p.index < s_.gpus) join(number(l), p.index);
  }

  NodeMap run() && {
    NodeMap out;
    find();
    for (const auto& [symbol, n] : numbers_)
      if (const auto node = of_[root(n)]) out.symbols.emplace(symbol, *node);
    for (std::size_t a = 0; a < actors_.size(); ++a)
      if (const auto node = of_[root(s_.gpus + a)]) out.actors.emplace(a, *node);
    out.assumed = std::move(assumed_);
    out.refusals = std::move(out_);
    return out;
  }

 private:
  void find() {
    for (std::size_t q = 0; q < s_.queues.size(); ++q)
      if (s_.queues[q].network) sends(q);
    if (std::all_of(of_.begin(), of_.begin() + static_cast<std::ptrdiff_t>(s_.gpus),
                    [&](auto n) { return n == of_.front(); }))
      return;
    // What a thread submits says where it is, before the words that it waits for do.
    for (std::size_t a = 0; a < actors_.size(); ++a) actor(a, true);
    for (const bool network : {false, true}) {
      for (std::size_t q = 0; q < s_.queues.size(); ++q)
        if (s_.queues[q].network == network) queue(q);
      // Where a word of the host is that only the network sets follows from who waits for it.
      for (std::size_t a = 0; a < actors_.size() && !network; ++a) actor(a, false);
    }
  }

  std::size_t number(const SymbolOffset& l) const { return numbers_.at({l.signal, l.index}); }
  std::size_t root(std::size_t i) {
    while (set_[i] != i) i = set_[i] = set_[set_[i]];
    return i;
  }
  /// False if the two are in different nodes.
  bool join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (of_[a] && of_[b] && of_[a] != of_[b]) return false;
    if (!of_[b]) of_[b] = of_[a];
    set_[a] = b;
    return true;
  }
  std::string node(std::size_t i) { return of_[root(i)] ? fmt::format("node {}", *of_[root(i)]) : "no node"; }

  /// Adds what is wrong if `who` is in another node than the memory at `va`. `does`: "writes".
  bool touches(std::size_t who, GpuVa va, std::string_view what, std::string_view does, Refusal r) {
    const auto l = find_symbol(s_, resolve(s_, va));
    if (l && join(who, number(*l))) return true;
    r.rule = "other-node";
    r.message =
        !l ? fmt::format("{} of {} {} {}, and which node has that is not known", what, node(who), does,
                         address_text(s_, va))
           : fmt::format("{} of {} {} {}, which is in {}", what, node(who), does, name_of(s_, *l), node(number(*l)));
    r.hint =
        "only a queue with network= reaches another node: it sends bytes, and then sets a word there; give each "
        "node words and a host thread of its own";
    out_.push_back(std::move(r));
    return false;
  }

  void queue(std::size_t q) {
    const auto& queue = s_.queues[q];
    const std::size_t here = queue.place.index, there = queue.network ? queue.peer->index : here;
    Refusal r{.queue = q, .where = "queue " + queue_name(queue)};
    if (queue.network && of_[root(here)] == of_[root(there)]) {
      r.rule = "other-node";
      r.message = fmt::format("the network leads to another node, but {} and {} are in {}", to_string(queue.place),
                              to_string(*queue.peer), node(here));
      r.hint = fmt::format("write peer={}: an engine copies inside a node", to_string(*queue.peer));
      return out_.push_back(std::move(r));
    }
    const auto* const what = queue.network ? "the network" : "an engine";
    bool ok = true;
    for (Reader reader{queue.dwords}; reader && ok;) {
      r.dword = reader.position_dwords();
      const auto v = reader.next();
      if (!v.whole() || v.info->fields_unknown) continue;
      visit(*v.info, v.dwords, [&](const auto& packet) {
        footprint(packet, [&](const Region& region) {
          const bool writes = allows(region.access, Access::write);
          // A completion may also be for the sender.
          const auto at = !writes || (role(packet) == Role::release && in(here, region.va)) ? here : there;
          if (queue.network && role(packet) == Role::release) assume(region.va);
          ok = ok && touches(at, region.va, what, writes ? "writes" : "reads", r);
        });
      });
    }
  }
  /// Is this known to be in the node of `who`?
  bool in(std::size_t who, GpuVa va) {
    const auto l = find_symbol(s_, resolve(s_, va));
    return l && of_[root(number(*l))] == of_[root(who)];
  }
  /// Notes a word that is in no node yet.
  void assume(GpuVa va) {
    const auto l = find_symbol(s_, resolve(s_, va));
    if (l && !of_[root(number(*l))]) assumed_.emplace(l->signal, l->index);
  }
  /// A thread of the host can pass on only a few of the packets that an engine executes.
  void sends(std::size_t q) {
    for (Reader r{s_.queues[q].dwords}; r;) {
      const auto dword = r.position_dwords();
      const auto v = r.next();
      const bool adds = v.is<Atomic>() && v.whole() && decode<Atomic>(v.dwords).op == AtomicOp::add_rtn_64;
      if (v.whole() && (v.is<CopyLinear>() || v.is<PollMem>() || v.is<Fence>() || adds)) continue;
      return out_.push_back(
          {.rule = "engine-refused",
           .queue = q,
           .dword = dword,
           .where = "queue " + queue_name(s_.queues[q]),
           .message = fmt::format("the network does not execute {}", v.info ? v.info->name : "this"),
           .hint = "a queue with network= has poll_mem, copy_linear, fence and atomic op=add_rtn_64"});
    }
  }

  void actor(std::size_t a, bool submits) {
    const auto me = s_.gpus + a;
    const auto* const what = actors_[a].kernel() ? "a kernel" : "a host thread";
    bool ok = true;
    each_action(*actors_[a].actions, [&](const Schedule::Action& action) {
      const Refusal r{.action = &action, .where = actors_[a].title()};
      const auto at = [&](GpuVa va, const char* does) { ok = ok && touches(me, va, what, does, r); };
      using Kind = Schedule::Action::Kind;
      if (submits) {
        for (const auto q : action.queues)
          if (ok && !join(me, s_.queues[q].place.index)) ok = refuse_submit(me, what, q, r);
        return;
      }
      if (action.signal != GpuVa{})
        at(action.signal, action.kind == Kind::wait     ? "waits for"
                          : action.kind == Kind::sample ? "reads"
                                                        : "stores to");
      if (action.buffer != GpuVa{}) at(action.buffer, "manages");
      if (action.range.bytes != 0) at(action.range.va, action.kind == Kind::store ? "writes" : "reads");
      if (action.right.bytes != 0 && !action.old) at(action.right.va, "reads");
      for (const auto& part : action.sum.parts)
        if (!action.old) at(part.va, "reads");
    });
  }
  bool refuse_submit(std::size_t who, std::string_view what, std::size_t q, Refusal r) {
    r.rule = "other-node";
    r.message = fmt::format("{} of {} submits {}, whose doorbell is in {}", what, node(who), queue_name(s_.queues[q]),
                            node(s_.queues[q].place.index));
    r.hint = "give each node a host thread that submits the queues of its GPUs";
    out_.push_back(std::move(r));
    return false;
  }

  const Schedule& s_;
  std::vector<Actor> actors_;
  std::map<std::pair<bool, std::size_t>, std::size_t> numbers_;  ///< of buffers and signals, after GPUs and actors
  std::vector<std::size_t> set_;
  std::vector<std::optional<std::uint32_t>> of_;  ///< of each set, by its root
  std::set<std::pair<bool, std::size_t>> assumed_;
  std::vector<Refusal> out_;
};

}  // namespace

std::vector<Refusal> across_nodes(const Schedule& s, const Topology& t, std::span<const GpuId> gpus) {
  // problems() reports places that do not exist.
  const auto gpu = [&](Place p) { return p.index < s.gpus; };
  const auto known = [&](const Schedule::Queue& q) { return gpu(q.place) && (!q.network || (q.peer && gpu(*q.peer))); };
  if (!std::all_of(s.queues.begin(), s.queues.end(), known) ||
      !std::all_of(s.kernels.begin(), s.kernels.end(), [&](auto& k) { return gpu(k.place); }))
    return {};
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t g = 0; g < s.gpus; ++g) nodes.push_back(t.gpus[(gpus.empty() ? GpuId{g} : gpus[g]).value].node);
  return map_nodes(s, nodes).refusals;
}

NodeMap map_nodes(const Schedule& s, const std::vector<std::uint32_t>& nodes) { return Nodes{s, nodes}.run(); }

}}}  // namespace sdma::v0_3::detail
