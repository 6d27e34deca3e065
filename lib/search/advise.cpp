// SPDX-License-Identifier: MIT
// The rule for an all-gather beside a product of matrices: a formula for each variant, and the least of them.
#include "sdma/search/advise.hpp"

#include "routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::uint64_t kElementBytes = 2;  ///< bytes of bf16
constexpr std::uint32_t kMostPieces = 16;
constexpr std::uint32_t kMostAdvisedGpus = 8;  ///< the rule was judged up to here
constexpr std::array<std::string_view, std::size(kOverlapWays)> kWayNames{"none", "turns", "rows", "steps", "columns"};

/// What the rule has to know of a node: bytes/ns that each flow gets.
struct NodePaths {
  bool ring{};
  double alone{};     ///< of a link whose GPUs send nothing else
  double in_turns{};  ///< if each GPU sends to one peer at a time; on a ring to both neighbours
  double at_once{};   ///< if each GPU sends to all peers
  double flight{};    ///< of a word
};

/// The least rate that an edge gets if these carry bytes at the same time; nothing if one of them is not there.
std::optional<double> least_rate(const detail::Net& net,
                                 const std::vector<std::pair<std::uint32_t, std::uint32_t>>& all) {
  std::vector<const detail::NetEdge*> edges;
  std::vector<double> sharing(net.shared.size());
  for (const auto& ends : all) {
    const auto e = std::find_if(net.edges.begin(), net.edges.end(), [&](const auto& x) {
      return x.from == ends.first && x.to == ends.second && !x.network;
    });
    if (e == net.edges.end()) return {};
    edges.push_back(&*e);
    for (const auto s : e->shares) ++sharing[s];
  }
  auto least = std::numeric_limits<double>::infinity();
  for (const auto* e : edges) {
    least = std::min(least, e->rate);
    for (const auto s : e->shares) least = std::min(least, net.shared[s] / sharing[s]);
  }
  return least;
}

std::optional<NodePaths> paths_of(const MachineDescription& m, std::uint32_t gpus) {
  const auto net = detail::net_of(m, gpus);
  const auto least = [&](std::uint32_t first, std::uint32_t last) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (std::uint32_t g = 0; g < gpus; ++g)
      for (auto k = first; k <= last; ++k) all.emplace_back(g, (g + k) % gpus);
    return least_rate(net, all);
  };
  NodePaths out;
  for (const auto& e : net.edges) out.alone = out.alone > 0 ? std::min(out.alone, e.rate) : e.rate;
  for (const auto& l : m.topology.links)
    if (l.from.kind == LinkEnd::Kind::gpu && l.to.kind == LinkEnd::Kind::gpu)
      out.flight = std::max(out.flight, m[l.type == LinkType::other ? Cost::nic_flight : Cost::xgmi_flight]);
  if (const auto all = least(1, gpus - 1)) {
    out.at_once = *all;
    out.in_turns = std::numeric_limits<double>::infinity();
    for (std::uint32_t k = 1; k < gpus; ++k) out.in_turns = std::min(out.in_turns, *least(k, k));
    return out;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> neighbours;
  for (std::uint32_t g = 0; g < gpus; ++g) {
    neighbours.emplace_back(g, (g + 1) % gpus);
    neighbours.emplace_back((g + 1) % gpus, g);
  }
  const auto both = least_rate(net, neighbours);
  if (!both) return {};
  out.ring = true;
  out.in_turns = *both;
  return out;
}

/// When bytes come: the first that a product needs, and the last.
struct Arrivals {
  double first{}, last{};
};

class Advising {
 public:
  Advising(const GemmShape& shape, const GemmTimes& times, const MachineDescription& m, std::uint32_t gpus,
           const NodePaths& paths)
      : shape_(shape),
        times_(times),
        m_(m),
        gpus_(gpus),
        paths_(paths),
        own_rows_(shape.m / gpus),
        shard_(static_cast<double>(own_rows_ * shape.k * kElementBytes)) {}

  OverlapAdvice run() {
    const auto whole = product(shape_, false), own = product(own_part(1), false);
    out_.product_ns = whole;
    out_.gather_ns = arrival(OverlapWay::none, 1).last;
    std::vector<std::vector<std::int64_t>> lists;
    add(OverlapWay::none, 1, 0, whole);
    for (const auto way : {OverlapWay::turns, OverlapWay::rows, OverlapWay::steps, OverlapWay::columns}) {
      auto& list = lists.emplace_back();
      for (std::uint32_t pieces = 1; pieces <= kMostPieces; pieces *= 2) {
        const auto part = part_of(way, pieces);
        if (shape_.m % (std::uint64_t{gpus_} * pieces) != 0 || shape_.k % pieces != 0 || !times_.time(part)) break;
        const auto ns = product(part, way == OverlapWay::columns && pieces > 1);
        add(way, pieces, own, ns);
        list.push_back(without_load(ns, static_cast<double>(part.m * part.k * kElementBytes)));
      }
    }
    for (std::size_t i = 1; i < out_.variants.size(); ++i)
      if (out_.variants[i].ns < out_.pick().ns) out_.best = i;
    const auto number = [](auto v) { return fmt::format("{}", v); };
    const auto in_brackets = [](const auto& list) { return fmt::format("[{}]", fmt::join(list, ",")); };
    out_.settings = {{"N", number(gpus_)},
                     {"ring", paths_.ring ? "1" : "0"},
                     {"m", number(shape_.m)},
                     {"n", number(shape_.n)},
                     {"k", number(shape_.k)},
                     {"element", number(kElementBytes)},
                     {"whole_ns", number(without_load(whole, shard_ * (gpus_ - 1)))},
                     {"own_ns", number(std::llround(own))},
                     {"rows_ns", in_brackets(lists[1])},
                     {"step_ns", in_brackets(lists[2])},
                     {"columns_ns", in_brackets(lists[3])}};
    return std::move(out_);
  }

 private:
  double cost(Cost c) const { return m_[c]; }

  double product(const GemmShape& s, bool adds) {
    const auto t = *times_.time(s, adds);
    out_.beyond = out_.beyond || t.beyond;
    return t.ns;
  }
  /// A schedule's `load` has the bytes that a product reads of peers, so the params are what the product takes beyond.
  std::int64_t without_load(double ns, double bytes) const {
    return std::max<std::int64_t>(1, std::llround(ns - bytes / cost(Cost::hbm_rate)));
  }

  GemmShape own_part(std::uint32_t pieces) const { return {own_rows_ / pieces, shape_.n, shape_.k}; }
  /// What one product has: a piece of one peer, or of all.
  GemmShape part_of(OverlapWay way, std::uint32_t pieces) const {
    const auto others = own_rows_ * (gpus_ - 1);
    if (way == OverlapWay::columns) return {others, shape_.n, shape_.k / pieces};
    if (way == OverlapWay::steps) return {others / pieces, shape_.n, shape_.k};
    return own_part(pieces);
  }

  /// Until an engine has the first packet of the last of so many queues.
  double start(double queues, double packets) const {
    return queues * (packets * cost(Cost::host_build) + cost(Cost::host_submit) + cost(Cost::host_doorbell)) +
           3 * cost(Cost::pcie_flight) + cost(Cost::engine_fetch);
  }
  /// From a piece that has landed until its word is there.
  double word() const { return cost(Cost::engine_release) + paths_.flight; }
  /// A piece and its word, as far as they hold up the engine.
  double one(double bytes, double rate) const {
    return cost(Cost::engine_packet) + cost(Cost::engine_control) + bytes / rate + cost(Cost::engine_latency);
  }

  Arrivals arrival(OverlapWay way, std::uint32_t pieces) const {
    constexpr double kPacketsOfPiece = 2;
    const auto bytes = shard_ / pieces;
    if (paths_.ring) return on_a_ring(way, pieces, bytes);
    if (way == OverlapWay::turns) {
      const auto count = static_cast<double>(pieces) * (gpus_ - 1);
      const auto begin = start(1, kPacketsOfPiece * count), each = one(bytes, paths_.in_turns);
      return {begin + each + word(), begin + count * each + word()};
    }
    // While one queue waits until its piece has landed, others have what they share.
    const auto each = one(bytes, paths_.at_once);
    const auto gap = std::max(bytes / paths_.at_once, one(bytes, paths_.alone));
    const auto first = start(gpus_ - 1, kPacketsOfPiece * pieces) + each + word();
    return {first, first + (pieces - 1) * gap};
  }
  Arrivals on_a_ring(OverlapWay way, std::uint32_t pieces, double bytes) const {
    constexpr double kPacketsOfPiece = 2;
    const double hops = gpus_ / 2, p = pieces;
    const auto begin = start(2, kPacketsOfPiece * p * hops), each = one(bytes, paths_.in_turns);
    // A GPU polls for a piece that it passes on. The poll is late, unless the GPU has had others to send meanwhile.
    const auto passed = each + word() + cost(Cost::engine_poll) + cost(Cost::engine_control);
    if (way == OverlapWay::turns && pieces > 1)
      return {begin + each + word(),
              begin + p * each + (hops - 1) * std::max(p * (each + cost(Cost::engine_control)), passed) + word()};
    const auto step = each + (hops - 1) * passed;
    const auto each_peer = way == OverlapWay::turns || way == OverlapWay::rows;
    return {begin + (each_peer ? each : step) + word(), begin + p * step + word()};
  }

  void add(OverlapWay way, std::uint32_t pieces, double own, double product_ns) {
    const auto at = arrival(way, pieces);
    const bool each_peer = way == OverlapWay::turns || way == OverlapWay::rows;
    const double waits = paths_.ring && !each_peer ? 2 : 1;
    const auto each = product_ns + waits * cost(Cost::kernel_poll);
    const double count = static_cast<double>(pieces) * (each_peer ? gpus_ - 1 : 1);
    // Products that cannot begin before the last bytes are there.
    double tail = 1;
    if (each_peer && paths_.ring) tail = gpus_ % 2 == 0 ? 1 : 2;
    else if (way == OverlapWay::rows) tail = gpus_ - 1;
    out_.variants.push_back(
        {way, pieces, std::max({own + count * each, at.first + count * each, at.last + tail * each})});
  }

  const GemmShape shape_;
  const GemmTimes& times_;
  const MachineDescription& m_;
  const std::uint32_t gpus_;
  const NodePaths paths_;
  const std::uint64_t own_rows_;
  const double shard_;
  OverlapAdvice out_{};
};

std::string shape_text(const GemmShape& s) { return fmt::format("{}x{}x{}", s.m, s.n, s.k); }

}  // namespace

std::string_view name(OverlapWay way) noexcept { return kWayNames[static_cast<std::size_t>(way)]; }

Result<OverlapAdvice, Diagnostic> advise(const GemmShape& shape, const GemmTimes& times, const MachineDescription& m) {
  const auto gpus = static_cast<std::uint32_t>(m.topology.gpus.size());
  if (gpus < 2 || gpus > kMostAdvisedGpus)
    return Diagnostic{
        .where = m.name,
        .message = fmt::format("the rule is for 2 to {} GPUs, and the machine has {}", kMostAdvisedGpus, gpus),
        .hint = "sdma explore share/sdma/overlap/all_gather_gemm.sdma searches"};
  if (shape.m % gpus != 0)
    return Diagnostic{.where = shape_text(shape),
                      .message = fmt::format("{} rows are not equal parts of {} GPUs", shape.m, gpus),
                      .hint = "m is the number of rows of all GPUs together"};
  if (const GemmShape own{shape.m / gpus, shape.n, shape.k}; !times.time(own))
    return Diagnostic{
        .where = shape_text(shape),
        .message = fmt::format("the part of one GPU, {}, is below the table of products, which begins at {}x{}x{}",
                               shape_text(own), times.grid[0].front(), times.grid[1].front(), times.grid[2].front()),
        .hint = "nothing says what a smaller product takes; --gemm-times takes a table that has it"};
  const auto paths = paths_of(m, gpus);
  if (!paths)
    return Diagnostic{
        .where = m.name,
        .message = "the rule is for one node in which each GPU has a link to each other one, or that is a ring",
        .hint = "these links need rates; sdma explore --synthesize all_gather makes a schedule for any node"};
  return Advising(shape, times, m, gpus, *paths).run();
}

}}  // namespace sdma::v0_3
