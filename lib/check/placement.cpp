// SPDX-License-Identifier: MIT
// Findings about the engines that queues run on: engines that a node does not have or that are dead, engines that serve
// other links than the packets use, and engines that queues of different directions share.
#include "../device/request.hpp"
#include "../schedule/link.hpp"
#include "reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// Bytes that a queue moves between its GPU and another place.
struct PlacedFlow {
  Place place{};
  bool out = false;
  friend auto operator<=>(const PlacedFlow&, const PlacedFlow&) = default;
};
std::string direction_of(const PlacedFlow& f) { return (f.out ? "to " : "from ") + to_string(f.place); }

class Placement {
 public:
  Placement(const Model& m, Reporter& r) : m_(m), s_(m.schedule), r_(r), node_(m.node) {}

  void run() {
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) queue(q);
    for (const auto& [engine, queues] : on_) shared(engine.second, queues);
    for (auto a = m_.queue_count(); a < m_.agents.size(); ++a) kernel(a);
  }

 private:
  /// The flows of a queue, each with the position of the first packet that belongs to it.
  using Flows = std::map<PlacedFlow, std::uint32_t>;

  void queue(std::uint32_t q) {
    const auto& queue = s_.queues[q];
    // refused.cpp reports what the node does not have. In a dump, the numbers may be those of a node that is not known.
    if (m_.options.open && !m_.options.topology) return;
    if (!m_.exists(queue.place) || !m_.exists(queue.peer.value_or(queue.place))) return;
    if (queue.network) return;
    const auto engine = detail::engine_of(queue, m_.links, m_.gpus);
    if (!engine || detail::refuse(QueueRequest{.gpu = m_.gpu_of(queue.place), .engine = *engine}, node_)) return;
    links(q);
    auto flows = flows_of(q);
    if (!queue.peer) choice(q, *engine, flows);
    else foreign(q);
    if (!flows.empty()) on_[{queue.place.index, engine->value}].emplace_back(q, std::move(flows));
  }

  /// An engine reaches the memory of another GPU over a link, and adds to a word there if the link carries atomics.
  void links(std::uint32_t q) {
    const auto& p = m_.programs[q];
    const auto here = s_.queues[q].place;
    std::set<Place> apart;
    for (std::uint32_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      for (auto t = item.touch; t < item.touch + item.touches; ++t) {
        const auto home = find_symbol(s_, GpuVa{p.touches[t].begin});
        if (!home) continue;
        const auto place = detail::place_of(s_, *home);
        if (!linked(here, place)) {
          if (apart.insert(place).second)
            add({.rule = "no-link",
                 .message = fmt::format("{} has no link to {}: its engines do not reach {}", to_string(here),
                                        to_string(place), name_of(s_, *home)),
                 .hint = "forward the bytes through a GPU or a host that has a link to both"},
                q, i + 1);
        } else if (item.modifies && !carries_atomics(here, place)) {
          add(no_atomics(here, place), q, i + 1);
        }
      }
    }
  }
  bool linked(Place here, Place there) const {
    if (here == there || there.is_host() || !m_.exists(there)) return true;
    const auto a = m_.gpu_of(here), b = m_.gpu_of(there);
    return m_.links.link(a, b) || m_.links.link(b, a);
  }
  bool carries_atomics(Place here, Place there) const {
    if (here == there) return true;
    if (there.is_host() && !m_.profile.pcie_atomics) return false;
    if (!m_.exists(here) || !m_.exists(there)) return true;
    const auto gpu = m_.gpu_of(here);
    if (!there.is_host()) return node_.completion(gpu, m_.gpu_of(there)) == Completion::atomic;
    const auto [known, added] = to_host_.try_emplace(gpu.value);
    if (added) known->second = carries_atomics_to_host(gpu);
    return known->second;
  }
  /// If the node lists no link from the GPU to a processor, assume that atomics work.
  bool carries_atomics_to_host(GpuId gpu) const {
    const auto to_host = [&](const Link& l) {
      return l.from == LinkEnd::gpu(gpu.value) && l.to.kind == LinkEnd::Kind::cpu;
    };
    return std::none_of(node_.links.begin(), node_.links.end(), to_host) ||
           std::any_of(node_.links.begin(), node_.links.end(),
                       [&](const Link& l) { return to_host(l) && l.atomics_64; });
  }
  static Finding no_atomics(Place here, Place there) {
    return {.rule = "no-pcie-atomics",
            .message = there.is_host() ? "it cannot use atomics on host memory: its link does not complete them"
                                       : fmt::format("the link from {} to {} does not complete atomics",
                                                     to_string(here), to_string(there)),
            .hint = there.is_host() ? "use a fence to a separate signal, or put the counter in GPU memory"
                                    : "use a fence to a separate signal",
            .rests_on = {"X6"}};
  }

  /// A kernel accesses bytes and words over the same links.
  void kernel(std::uint32_t a) {
    if (m_.agents[a].kind != Agent::Kind::kernel) return;
    const auto here = s_.kernels[m_.agents[a].index].place;
    std::set<std::uint32_t> done;
    for (const auto& s : m_.agents[a].steps) {
      if (s.kind == Step::Kind::submit) {
        doorbell(a, s, here);
        continue;
      }
      if ((!s.sync && s.kind != Step::Kind::touch) || !done.insert(s.source).second) continue;
      std::vector<std::uint64_t> begins;
      if (s.sync) begins.push_back(s.sync->address);
      else
        for (const auto& t : m_.touches(m_.action(a, s))) begins.push_back(t.begin);
      for (const auto begin : begins)
        if (reach(a, s, here, begin)) break;
    }
  }
  /// A kernel rings the doorbell of another GPU's queue over the link, too. The network's are in the host's memory.
  void doorbell(std::uint32_t a, const Step& s, Place here) {
    const auto& queue = s_.queues[s.target];
    if (queue.network || linked(here, queue.place) || !rung_.insert({a, s.target}).second) return;
    r_.add({.rule = "no-link",
            .places = {{a, s.position}},
            .message = fmt::format("{}: {} has no link to {}: its kernels do not reach the doorbell of {}", r_.agent(a),
                                   to_string(here), to_string(queue.place), r_.agent(s.target)),
            .hint = "let a host thread submit the queue, or a kernel of " + to_string(queue.place)});
  }
  /// Reports that a step of a kernel does not reach these bytes, and whether it has.
  bool reach(std::uint32_t a, const Step& s, Place here, std::uint64_t begin) {
    const auto home = find_symbol(s_, GpuVa{begin});
    if (!home) return false;
    const auto place = detail::place_of(s_, *home);
    Finding f;
    if (!linked(here, place))
      f = {.rule = "no-link",
           .message = fmt::format("{} has no link to {}: its kernels do not reach {}", to_string(here),
                                  to_string(place), name_of(s_, *home)),
           .hint = "let a queue bring the bytes through a GPU or a host that has a link to both"};
    else if (s.sync && m_.action(a, s).kind == Schedule::Action::Kind::add && !carries_atomics(here, place))
      f = no_atomics(here, place);
    if (f.rule.empty()) return false;
    f.message = r_.agent(a) + ": " + f.message;
    f.places = {{a, s.position}};
    r_.add(std::move(f));
    return true;
  }

  void add(Finding f, std::uint32_t q, std::uint32_t position) {
    const auto name = r_.agent(q);
    f.message = name + ": " + f.message;
    if (m_.programs[q].items.empty()) f.where = m_.options.file + ": " + name;
    else f.places = {{q, position}};
    r_.add(std::move(f));
  }

  Flows flows_of(std::uint32_t q) const {
    Flows flows;
    const auto& p = m_.programs[q];
    const auto here = s_.queues[q].place;
    for (std::uint32_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      if (item.what != What::copy && item.what != What::write) continue;
      for (auto t = item.touch; t < item.touch + item.touches; ++t) {
        if (const auto place = m_.place_at(p.touches[t].begin); place && *place != here)
          flows.try_emplace({*place, p.touches[t].mode == Mode::write}, i + 1);
      }
    }
    return flows;
  }

  /// A copy between the host and another GPU crosses two links, and this GPU has no part in it.
  void foreign(std::uint32_t q) {
    const auto& p = m_.programs[q];
    const auto here = s_.queues[q].place;
    for (std::uint32_t i = 0; i < p.items.size(); ++i) {
      const auto& item = p.items[i];
      if (item.what != What::copy) continue;
      bool host = false, own = false;
      std::optional<Place> other;
      for (auto t = item.touch; t < item.touch + item.touches; ++t) {
        const auto place = m_.place_at(p.touches[t].begin);
        own = own || place == here;
        host = host || place == Place::host();
        if (place && !place->is_host()) other = place;
      }
      if (host && other && !own)
        return add({.rule = "engine-choice",
                    .message = fmt::format("copies between the host and {}, with an engine of {}", to_string(*other),
                                           to_string(here)),
                    .hint = "put the copy into a queue of " + to_string(*other)},
                   q, i + 1);
    }
  }

  /// The places at the other ends of the GPU's links that recommend the engine.
  std::vector<LinkEnd> recommended_for(Place gpu, EngineId e) const {
    const auto own = LinkEnd::gpu(m_.gpu_of(gpu).value);
    std::vector<LinkEnd> ends;
    for (const auto& l : node_.links) {
      if ((l.engine_mask >> e.value & 1) == 0) continue;
      if (l.from == own) ends.push_back(l.to);
      // A link from a processor names engines of the GPU at its other end.
      if (l.to == own && l.from.kind == LinkEnd::Kind::cpu) ends.push_back(l.from);
    }
    return ends;
  }
  bool among(const std::vector<LinkEnd>& ends, Place p) const {
    const auto gpu = p.is_host() ? LinkEnd{} : LinkEnd::gpu(m_.gpu_of(p).value);
    return std::any_of(ends.begin(), ends.end(),
                       [&](const LinkEnd& end) { return p.is_host() ? end.kind == LinkEnd::Kind::cpu : end == gpu; });
  }

  /// The driver only recommends engines: all reach any memory, but others are slower, and runtimes refuse some.
  void choice(std::uint32_t q, EngineId e, const Flows& flows) {
    const auto here = s_.queues[q].place;
    const auto& gpu = node_.gpus[m_.gpu_of(here).value];
    const auto recommended = recommended_for(here, e);
    const auto hint = [&](Place peer) {
      return fmt::format("write peer={} instead of engine={}: it selects the engine that the node recommends",
                         to_string(peer), e.value);
    };
    if (e.value < gpu.host_engines && gpu.xgmi_engines > 0) {
      const auto peer = std::find_if(flows.begin(), flows.end(), [&](const auto& f) {
        return !f.first.place.is_host() && !among(recommended, f.first.place);
      });
      if (peer != flows.end())
        add({.rule = "engine-choice",
             .message = fmt::format("copies {}, but engine {} faces the host", direction_of(peer->first), e.value),
             .hint = hint(peer->first.place)},
            q, peer->second);
      return;
    }
    // No engine is the right one for several places.
    std::set<Place> places;
    for (const auto& [flow, position] : flows) places.insert(flow.place);
    if (places.size() != 1 || among(recommended, *places.begin())) return;
    for (std::uint32_t g = 0; g < s_.gpus; ++g)
      if (m_.exists(Place::gpu(g)) && among(recommended, Place::gpu(g)))
        return add({.rule = "engine-choice",
                    .message = fmt::format("copies {}, but the node recommends engine {} for gpu{}",
                                           direction_of(flows.begin()->first), e.value, g),
                    .hint = hint(*places.begin())},
                   q, flows.begin()->second);
  }

  /// Two queues of one engine take turns, so flows that could use different links or directions do not overlap.
  void shared(std::uint32_t engine, const std::vector<std::pair<std::uint32_t, Flows>>& queues) {
    for (std::size_t i = 1; i < queues.size(); ++i) {
      const auto& [first, one] = queues.front();
      const auto& [second, other] = queues[i];
      for (const auto& [f, at] : one)
        for (const auto& [g, other_at] : other)
          if (f != g)
            return r_.add(
                {.rule = "shared-engine",
                 .places = {{first, at}, {second, other_at}},
                 .message = fmt::format("{} ({}) and {} ({}) share engine {}", r_.agent(first), direction_of(f),
                                        r_.agent(second), direction_of(g), engine),
                 .hint = "give each direction and each peer an engine of its own (towards the host peer=host, from it "
                         "from=host), unless the queues are never busy at the same time"});
    }
  }

  const Model& m_;
  const Schedule& s_;
  Reporter& r_;
  const Topology& node_;
  mutable std::map<std::uint32_t, bool> to_host_;           ///< by GPU: do atomics reach the host?
  std::set<std::pair<std::uint32_t, std::uint32_t>> rung_;  ///< by kernel and queue: doorbells out of reach
  /// The queues that move bytes, by GPU and engine.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uint32_t, Flows>>> on_;
};

}  // namespace

void find_misplaced(const Model& m, Reporter& r) { Placement{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
