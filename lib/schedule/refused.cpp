// SPDX-License-Identifier: MIT
#include "refused.hpp"

#include "../core/plural.hpp"
#include "../device/request.hpp"
#include "link.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

class Refusals {
 public:
  Refusals(const Schedule& s, const Topology& t, std::span<const GpuId> gpus, const GpuSet& elsewhere)
      : s_(s), node_(t), gpus_(gpus), elsewhere_(elsewhere) {}

  std::vector<Refusal> run() && {
    gpus();
    words();
    for (std::size_t q = 0; q < s_.queues.size(); ++q) queue(q), indirect(q);
    if (elsewhere_.none() && (out_.empty() || out_.front().rule != "no-such-gpu")) {
      auto across = across_nodes(s_, node_, gpus_);
      std::move(across.begin(), across.end(), std::back_inserter(out_));
    }
    return std::move(out_);
  }

 private:
  GpuId gpu(std::uint32_t g) const { return gpus_.empty() ? GpuId{g} : gpus_[g]; }
  bool is_elsewhere(std::uint32_t g) const { return g < elsewhere_.size() && elsewhere_[g]; }
  bool exists(Place p) const { return p.is_host() || (p.index < s_.gpus && gpu(p.index).value < node_.gpus.size()); }

  /// One refusal: the other GPUs have the same reason.
  void gpus() {
    if (!gpus_.empty() && gpus_.size() != s_.gpus) {
      out_.push_back({.rule = "no-such-gpu",
                      .where = "gpus",
                      .message = fmt::format("the schedule has {} GPUs; GPUs chosen: {}", s_.gpus, gpus_.size()),
                      .hint = "choose as many GPUs as the schedule has, or none"});
      gpus_ = {};
    }
    std::vector<GpuId> here;
    for (std::uint32_t g = 0; g < s_.gpus; ++g) {
      if (is_elsewhere(g)) continue;
      here.push_back(gpu(g));
      if (!exists(Place::gpu(g))) {
        out_.push_back({.rule = "no-such-gpu",
                        .where = fmt::format("gpu{}", g),
                        .message = fmt::format("this node has no GPU {}", gpu(g).value),
                        .hint = fmt::format("it has {}, numbered from 0", plural(node_.gpus.size(), "GPU"))});
        return;
      }
      if (std::count(here.begin(), here.end(), gpu(g)) > 1) {
        out_.push_back({.rule = "no-such-gpu",
                        .where = fmt::format("gpu{}", g),
                        .message = fmt::format("GPU {} is chosen for two GPUs of the schedule", gpu(g).value),
                        .hint = "choose each GPU once"});
        return;
      }
    }
  }

  void words() {
    for (const auto& l : symbols(s_)) {
      if (!l.signal || !at_of(s_, l)) continue;
      const auto va = resolve(s_, link_address(l));
      if (const auto bytes = bytes_of(s_, l); va.value % bytes != 0)
        out_.push_back(
            {.rule = "alignment",
             .where = title(s_, l),
             .message = fmt::format("a word of {} bytes has the unaligned address {}", bytes, address_text(s_, va)),
             .hint = "align it to its size: no processor loads or stores such a word in one piece"});
    }
  }

  void queue(std::size_t q) {
    const auto& queue = s_.queues[q];
    if (is_elsewhere(queue.place.index)) return;
    if (!exists(queue.place) || !exists(queue.peer.value_or(queue.place))) return;
    const auto refused = [&](std::string message, std::string hint) {
      out_.push_back({.rule = "engine-refused",
                      .queue = q,
                      .where = "queue " + queue_name(queue),
                      .message = std::move(message),
                      .hint = std::move(hint)});
    };
    if (queue.network) return;
    const auto engine = engine_of(queue, links_, gpus_);
    if (!engine) return refused("the node recommends no engine for " + to_string(*queue.peer), "choose one: engine=0");
    const QueueRequest request{.gpu = gpu(queue.place.index), .engine = *engine};
    if (const auto d = refuse(request, node_)) return refused(d->message, d->hint);
    const auto most = node_.gpus[request.gpu.value].queues_per_engine;
    if (most == 0)
      return refused(fmt::format("it is unknown how many queues an engine of gpu{} serves", request.gpu.value),
                     "write \"queues_per_engine\" into the node's file, where it is 0");
    if (const auto n = ++on_[{request.gpu.value, engine->value}]; n == most + 1)
      refused(fmt::format("engine {} of gpu{} serves at most {} at once", engine->value, request.gpu.value,
                          plural(most, "queue")),
              "put the queue on another engine, or merge it with another queue");
  }

  /// An INDIRECT ends at a multiple of 8 dwords in the ring, wherever the slots before its own have ended.
  void indirect(std::size_t q) {
    const auto& queue = s_.queues[q];
    std::vector<std::size_t> ends;
    for (Reader r{queue.dwords}; r;)
      if (r.next().is<Indirect>()) ends.push_back(r.position_dwords());
    if (ends.empty() || too_large(queue) || !is_ring_size(ring_bytes(queue))) return;
    const auto linked = link_queue(
        queue, [](GpuVa va) { return va; }, [](const PacketView&, std::span<const std::uint32_t>) {});
    const auto refused = [&](std::size_t ends_at, std::string message) {
      out_.push_back({.rule = "ib-alignment",
                      .queue = q,
                      .where = "queue " + queue_name(queue),
                      .message = std::move(message),
                      .hint = fmt::format("pad with nop packets before its end: {} dwords", (8 - ends_at % 8) % 8)});
    };
    for (const auto& p : linked.pieces)
      for (const auto end : ends)
        if (end > p.begin && end <= p.end && (end - p.begin) % 8 != 0)
          return refused(end - p.begin, fmt::format("an indirect packet ends at dword {} of what one doorbell "
                                                    "publishes, and not at a multiple of 8",
                                                    end - p.begin));
    for (const auto& p : linked.pieces)
      if (const auto n = p.end - p.begin; n % 8 != 0)
        return refused(n, fmt::format("one doorbell publishes {} dwords, so an indirect packet after them does not end "
                                      "at a multiple of 8",
                                      n));
  }

  const Schedule& s_;
  const Topology& node_;
  const LinkIndex links_{node_};
  std::span<const GpuId> gpus_;
  const GpuSet& elsewhere_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> on_;  ///< queues by GPU and engine
  std::vector<Refusal> out_;
};

}  // namespace

std::vector<Refusal> refused(const Schedule& s, const Topology& t, std::span<const GpuId> gpus,
                             const GpuSet& elsewhere) {
  return Refusals{s, t, gpus, elsewhere}.run();
}

}}}  // namespace sdma::v0_3::detail
