// SPDX-License-Identifier: MIT
// Findings about the engines that queues run on: engines that a node does not have or that are dead, engines that serve
// other links than the packets use, and engines that queues of different directions share.
#include "../device/request.hpp"
#include "../schedule/link.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sdma::inline v0::check_detail {
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
  Placement(const Model& m, Reporter& r) : m_(m), s_(m.schedule), r_(r), node_(node_of(m.options)) {}

  void run() {
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) queue(q);
    for (const auto& [engine, queues] : on_) shared(engine.second, queues);
  }

 private:
  /// The flows of a queue, each with the position of the first packet that belongs to it.
  using Flows = std::map<PlacedFlow, std::uint32_t>;

  void queue(std::uint32_t q) {
    const auto& queue = s_.queues[q];
    // If no node is given, the numbers of GPUs and of a dump's engines may be those of a node that is not known.
    const auto known = [&](Place p) { return p.is_host() || p.index < node_.gpus.size(); };
    const bool numbers_known = !m_.options.open && known(queue.place) && known(queue.peer.value_or(queue.place));
    if (!m_.options.topology && !numbers_known) return;
    const auto engine = detail::engine_of(queue, node_);
    const auto refused =
        engine ? detail::refuse(QueueRequest{.gpu = GpuId{queue.place.index}, .engine = *engine}, node_)
               : std::optional(Diagnostic{.message = "the node has no engine for " + to_string(*queue.peer),
                                          .hint = "choose one: engine=0"});
    if (refused) return add({.rule = "engine-refused", .message = refused->message, .hint = refused->hint}, q, 1);
    auto flows = flows_of(q);
    if (!queue.peer) choice(q, *engine, flows);
    if (!flows.empty()) on_[{queue.place.index, engine->value}].emplace_back(q, std::move(flows));
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
        const auto home = find_symbol(s_, GpuVa{p.touches[t].begin});
        if (!home) continue;
        if (const auto place = detail::place_of(s_, *home); place != here)
          flows.try_emplace({place, p.touches[t].mode == Mode::write}, i + 1);
      }
    }
    return flows;
  }

  /// Does a link between the GPU and this place recommend the engine?
  bool recommends(Place gpu, Place other, EngineId e) const {
    return std::any_of(node_.links.begin(), node_.links.end(), [&](const Link& l) {
      const auto is = [&](const LinkEnd& end, Place p) {
        return p.is_host() ? end.kind == LinkEnd::Kind::cpu : end == LinkEnd::gpu(p.index);
      };
      // A link from a processor names engines of the GPU at its other end.
      const bool to = is(l.from, gpu) && is(l.to, other), from = other.is_host() && is(l.from, other) && is(l.to, gpu);
      return (to || from) && (l.engine_mask >> e.value & 1) != 0;
    });
  }

  /// The driver only recommends engines: all reach any memory, but others are slower, and runtimes refuse some.
  void choice(std::uint32_t q, EngineId e, const Flows& flows) {
    const auto here = s_.queues[q].place;
    const auto& gpu = node_.gpus[here.index];
    const auto hint = [&](Place peer) {
      return fmt::format("write peer={} instead of engine={}: it selects the engine that the node recommends",
                         to_string(peer), e.value);
    };
    if (e.value < gpu.host_engines && gpu.xgmi_engines > 0) {
      const auto peer = std::find_if(flows.begin(), flows.end(), [&](const auto& f) {
        return !f.first.place.is_host() && !recommends(here, f.first.place, e);
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
    if (places.size() != 1 || recommends(here, *places.begin(), e)) return;
    for (std::uint32_t g = 0; g < node_.gpus.size(); ++g)
      if (recommends(here, Place::gpu(g), e))
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
  const Topology node_;
  /// The queues that move bytes, by GPU and engine.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uint32_t, Flows>>> on_;
};

}  // namespace

Topology node_of(const CheckOptions& o) { return o.topology ? *o.topology : *mi300x(); }

void find_misplaced(const Model& m, Reporter& r) { Placement{m, r}.run(); }

}  // namespace sdma::inline v0::check_detail
