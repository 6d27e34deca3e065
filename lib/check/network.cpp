// SPDX-License-Identifier: MIT
// What is known about the queues that the network executes (docs/nodes.md), and the rules that are theirs alone.
//
//   copy A -> B of the peer's node        a word of the peer's node changes when B has the bytes: the peer's thread
//   fence  gpu8.arrived                   stores both. Words there change in the order of the queue
//   fence  host.sent                      a word of the sender's node comes back from the peer: later than everything
//   fence  gpu8.arrived                   before it in the queue, and perhaps later than what comes after it, too
//
// An addition by the network is one of the peer's host thread. In VRAM it goes over the bus, where no engine's atomic
// waits for it (X6), so no other agent may change such a word.
#include "../schedule/refused.hpp"
#include "reporter.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// Is this queue submitted more than once? More than one submit, or one in a repeat, may be.
bool again(const Schedule& s, std::size_t queue) {
  std::size_t found = 0;
  const auto count = [&](const auto& self, const std::vector<Schedule::Action>& all, std::size_t times) -> void {
    for (const auto& a : all) {
      if (a.kind == Schedule::Action::Kind::submit)
        found += times * static_cast<std::size_t>(std::count(a.queues.begin(), a.queues.end(), queue));
      if (a.rounds != 0) self(self, a.body, a.rounds > 1 ? 2 : times);
    }
  };
  for (const auto& a : detail::actors(s)) count(count, *a.actions, 1);
  return found > 1;
}

}  // namespace

/// Finds the posts that come back to the sender's node and may land after a post that follows them.
void Model::read_network() {
  if (!network_) return;
  const auto& all = schedule.queues;
  if (!std::all_of(all.begin(), all.end(),
                   [&](const auto& q) { return exists(q.place) && (!q.peer || exists(*q.peer)); }))
    return;  // reported by refused.cpp
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t g = 0; g < schedule.gpus; ++g)
    nodes.push_back(exists(Place::gpu(g)) ? node.gpus[gpu_of(Place::gpu(g)).value].node : 0);
  const auto at = detail::map_nodes(schedule, nodes);
  for (std::size_t q = 0; q < programs.size(); ++q) {
    if (!all[q].network || !all[q].peer) continue;
    auto& p = programs[q];
    const auto own = nodes[all[q].place.index], peers = nodes[all[q].peer->index];
    const auto in = [&](const Item& i, std::uint32_t n) {
      const auto home = find_symbol(schedule, GpuVa{i.sync.address});
      if (!home || at.assumed.count({home->signal, home->index}) != 0) return false;
      const auto known = at.symbols.find({home->signal, home->index});
      return known != at.symbols.end() && known->second == n;
    };
    const auto posts = [&](const Item& i) { return i.what == What::post && i.sync.word != kNone; };
    // What is not certain to be in the one node may be in the other.
    const auto goes = [&](const Item& i) { return posts(i) && !in(i, own); };
    const auto returns = [&](const Item& i) { return posts(i) && !in(i, peers); };
    bool later = again(schedule, q) && std::any_of(p.items.begin(), p.items.end(), goes);
    std::vector<bool> apart(p.items.size());
    for (auto i = p.items.size(); i-- > 0;) {
      apart[i] = returns(p.items[i]) && later;
      later = later || goes(p.items[i]);
    }
    if (std::find(apart.begin(), apart.end(), true) == apart.end()) continue;
    p.apart = std::move(apart);
    for (const auto& i : p.items) p.returns.push_back(posts(i) && in(i, own));
  }
}

/// Words in VRAM to which the network adds, and which another agent changes, too.
void find_in_network(const Model& m, Reporter& r) {
  if (m.profile.host_link_xgmi) return;
  for (std::uint32_t q = 0; q < m.queue_count(); ++q) {
    const auto& p = m.programs[q];
    if (!p.network) continue;
    for (std::uint32_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      if (item.what != What::post || item.sync.op != Op::add || item.sync.word == kNone) continue;
      const auto& w = m.words[item.sync.word];
      const auto place = m.place_at(w.address);
      if (!place || place->is_host()) continue;
      // Nothing says that one thread serves two queues: a word of the sender's node is changed by the thread of each
      // sender, and one of the peer's node by as many threads as its network has.
      const auto other = std::find_if(w.chains.begin(), w.chains.end(), [&](const Chain& c) { return c.agent != q; });
      if (other == w.chains.end()) continue;
      r.add({.rule = "host-vram",
             .places = {{other->agent, m.post(*other, 0).position}, {q, i + 1}},
             .message = r.agent(q) + " adds to " + r.word(w) + " as a thread of the host does, over the bus of " +
                        to_string(*place) + ": an addition of " + r.agent(other->agent) +
                        " at the same time may be lost",
             .hint = "give the network a word of its own, or put the word in host memory",
             .rests_on = {"X6", "C8"}});
    }
  }
}

}}}  // namespace sdma::v0_3::check_detail
