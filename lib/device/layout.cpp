// SPDX-License-Identifier: MIT
// Topologies by name: a product such as mi300x:8, a mesh, a ring, a switch, or several nodes.
#include "sdma/device/topology.hpp"

#include "../core/nearest.hpp"
#include "cuda_engines.hpp"
#include "partitions.hpp"
#include "product.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr Rate kMi355xLink = Rate::gb_per_s(76.8), kMi250xLinks = Rate::gb_per_s(200), kNic = Rate::gbit_per_s(400);
constexpr std::uint32_t kPerSocket = 4;

/// The products whose nodes are fully connected, and how they differ from the MI300X or MI355X that product.hpp lists.
struct Sibling {
  std::string_view name{};
  std::uint32_t gfx{}, memory_gib{};
  Rate link{};
  std::uint32_t xgmi_engines{};
  std::uint64_t dead{};
};
// MI308X: four engines serve the numbers 0 to 7, and nothing serves the odd ones (ROCm/mori #693).
constexpr Sibling kSiblings[] = {
    {"MI300X", 90402, 192, kMi300xLink, 14, 0}, {"MI308X", 90402, 192, kMi300xLink, 6, 0b1010'1010},
    {"MI325X", 90402, 256, kMi300xLink, 14, 0}, {"MI350X", 90500, 288, kMi355xLink, 14, 0},
    {"MI355X", 90500, 288, kMi355xLink, 14, 0},
};

std::string lower(std::string_view s) {
  std::string out;
  for (const auto c : s) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

Diagnostic refuse(std::string_view name, std::string why) {
  return {.where = "'" + std::string(name) + "'",
          .message = std::move(why),
          .hint = fmt::format("layouts are {}", fmt::join(kLayoutExamples, ", "))};
}

/// "8", "8x400G", "2x8", "2x8x400G": the counts, and the rate, if it is there. "3+2x400G": nodes; their sum is the
/// count.
struct Size {
  std::vector<std::uint32_t> counts{};
  std::optional<Rate> rate{};
  NodeSizes nodes{};
};
std::optional<Size> size_of(std::string_view text) {
  constexpr std::uint64_t kMostGbit = 100'000;
  Size out;
  while (true) {
    auto word = text.substr(0, text.find('x'));
    const auto last = word.size() == text.size();
    const auto rate = last && word.ends_with('G');
    if (rate) word.remove_suffix(1);
    if (!rate && out.counts.empty() && word.find('+') != word.npos) {
      std::string list(word);
      std::replace(list.begin(), list.end(), '+', ',');
      const auto nodes = parse_node_sizes(list);
      if (!nodes) return {};
      out.nodes = *nodes;
      out.counts.push_back(std::accumulate(nodes->sizes.begin(), nodes->sizes.end(), 0u));
    } else {
      const auto n = parse_count(word);
      if (!n || *n == 0 || *n > kMostGbit) return {};
      if (rate) out.rate = Rate::gbit_per_s(static_cast<std::uint32_t>(*n));
      else out.counts.push_back(static_cast<std::uint32_t>(*n));
    }
    if (last) return out;
    text.remove_prefix(word.size() + 1);
  }
}

class Builder {
 public:
  Builder(std::string_view name, std::uint32_t gpus) {
    const auto one = *mi300x(1);
    t_.name = std::string(name);
    t_.cpus.assign((gpus + kPerSocket - 1) / kPerSocket, one.cpus[0]);
    t_.gpus.assign(gpus, one.gpus[0]);
    for (std::uint32_t g = 0; g < gpus; ++g)
      for (auto l : one.links) {
        (l.from.kind == LinkEnd::Kind::gpu ? l.from : l.to).index = g;
        (l.from.kind == LinkEnd::Kind::cpu ? l.from : l.to).index = g / kPerSocket;
        t_.links.push_back(l);
      }
  }

  template <class Fn> void each_gpu(Fn fn) { std::for_each(t_.gpus.begin(), t_.gpus.end(), fn); }

  /// The next engine of `from` in turn serves `to`.
  void link(std::uint32_t from, std::uint32_t to, LinkType type, Rate rate, std::vector<std::uint32_t> shares = {}) {
    const auto& g = t_.gpus[from];
    next_.resize(t_.gpus.size());
    const auto engine = g.host_engines + next_[from]++ % g.xgmi_engines;
    t_.links.push_back({.from = LinkEnd::gpu(from),
                        .to = LinkEnd::gpu(to),
                        .type = type,
                        .rate = rate,
                        .atomics_64 = true,
                        .engine_mask = std::uint64_t{1} << engine,
                        .shares = std::move(shares)});
  }

  /// Both directions of a port of each GPU.
  void ports(std::string_view what, Rate rate) {
    first_port_ = static_cast<std::uint32_t>(t_.shared.size());
    for (std::uint32_t g = 0; g < t_.gpus.size(); ++g)
      for (const auto* direction : {"out", "in"})
        t_.shared.push_back({fmt::format("gpu{} {} {}", g, what, direction), rate});
  }
  std::vector<std::uint32_t> through(std::uint32_t from, std::uint32_t to) const {
    return {first_port_ + 2 * from, first_port_ + 2 * to + 1};
  }

  Topology take() { return std::move(t_); }

 private:
  Topology t_{};
  std::vector<std::uint32_t> next_{};
  std::uint32_t first_port_ = 0;
};

template <class Fn> void each_pair(std::uint32_t from, std::uint32_t to, Fn fn) {
  for (auto a = from; a < to; ++a)
    for (auto b = from; b < to; ++b)
      if (a != b) fn(a, b);
}

Topology mesh(std::string_view name, std::uint32_t n, Rate rate) {
  Builder b{name, n};
  each_pair(0, n, [&](auto from, auto to) { b.link(from, to, LinkType::xgmi, rate); });
  return b.take();
}

Topology ring(std::string_view name, std::uint32_t n, Rate rate) {
  Builder b{name, n};
  for (std::uint32_t g = 0; g < n; ++g) {
    b.link(g, (g + 1) % n, LinkType::xgmi, rate);
    if (n > 2) b.link(g, (g + n - 1) % n, LinkType::xgmi, rate);
  }
  return b.take();
}

Topology switched(std::string_view name, std::uint32_t n, Rate rate) {
  Builder b{name, n};
  b.ports("port", rate);
  each_pair(0, n, [&](auto from, auto to) { b.link(from, to, LinkType::other, rate, b.through(from, to)); });
  return b.take();
}

Topology nodes(std::string_view name, const NodeSizes& sizes, std::uint32_t gpus, Rate nic) {
  Builder b{name, gpus};
  for (std::uint32_t at = 0; at < gpus; at += sizes.size(sizes.of(at)))
    each_pair(at, at + sizes.size(sizes.of(at)),
              [&](auto from, auto to) { b.link(from, to, LinkType::xgmi, kMi300xLink); });
  b.each_gpu([&, n = 0u](Gpu& g) mutable { g.node = sizes.of(n++); });
  b.ports("NIC", nic);
  each_pair(0, gpus, [&](auto from, auto to) {
    if (sizes.of(from) != sizes.of(to)) b.link(from, to, LinkType::other, nic, b.through(from, to));
  });
  return b.take();
}

Result<Topology, Diagnostic> product(std::string_view name, std::uint32_t n) {
  if (name == "mi250x") {
    if (n > 2)
      return refuse("mi250x:" + std::to_string(n),
                    "a module of MI250X has two dies, and how modules are linked differs");
    auto t = node_of(*product_of(90010u), n);
    for (auto& l : t->links)
      if (l.type == LinkType::xgmi)
        l.rate = kMi250xLinks, l.engine_mask = 0;  // four links; the driver recommends no engine
    return t;
  }
  const auto s =
      std::find_if(std::begin(kSiblings), std::end(kSiblings), [&](auto& k) { return lower(k.name) == name; });
  if (s == std::end(kSiblings)) return refuse(fmt::format("{}:{}", name, n), "there is no such layout");
  if (n > 8) return refuse(fmt::format("{}:{}", name, n), "a node has at most 8 of them");
  auto p = *product_of(s->gfx);
  p.name = s->name;
  p.memory_gib = s->memory_gib;
  p.xgmi_engines = s->xgmi_engines;
  auto t = node_of(p, n);
  for (auto& g : t->gpus) g.dead_engines = s->dead;
  const auto engines = Gpu::first(p.host_engines + p.xgmi_engines);
  for (auto& l : t->links) {
    l.engine_mask &= engines;
    if (l.type == LinkType::xgmi) l.rate = s->link;
  }
  return t;
}

}  // namespace

bool names_layout(std::string_view s) noexcept {
  const auto colon = s.find(':');
  if (colon == s.npos || colon == 0 || colon + 1 == s.size()) return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return std::all_of(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(colon),
                     [&](char c) { return letter(c) || digit(c); }) &&
         digit(s[colon + 1]);
}

Result<Topology, Diagnostic> layout(std::string_view name) {
  const auto colon = name.find(':');
  const auto kind = name.substr(0, colon);
  const auto size = colon == name.npos ? std::nullopt : size_of(name.substr(colon + 1));
  const auto several = kind == "nodes";
  if (const auto why = detail::not_public(kind)) return refuse(name, std::string(*why));
  if (!size || size->counts.empty() || (size->nodes.grouped() && !several))
    return refuse(name, "this is not the name of a layout");
  const auto n = size->counts[0];
  const auto product_of_two = several && !size->nodes.grouped();
  if (size->counts.size() != (product_of_two ? 2u : 1u))
    return refuse(name, several ? "nodes need two numbers, of nodes and of GPUs in each, or the GPUs of each: 3+2"
                                : "this layout takes one number of GPUs");
  const auto all = std::uint64_t{n} * (product_of_two ? size->counts[1] : 1);
  if (all > kMostLaidOut) return refuse(name, fmt::format("{} are more than {} GPUs", all, kMostLaidOut));
  const auto link = size->rate.value_or(kMi300xLink), nic = size->rate.value_or(kNic);
  if (kind == "mesh") return mesh(name, n, link);
  if (kind == "ring") return ring(name, n, link);
  if (kind == "switch") return switched(name, n, nic);
  if (several) {
    const auto sizes = product_of_two ? NodeSizes{{size->counts[1]}} : size->nodes;
    return nodes(name, sizes, static_cast<std::uint32_t>(all), nic);
  }
  if (size->rate) return refuse(name, "a product's links have their own rate");
  if (const auto each = detail::partitions_of(kind)) {
    if (n > 8) return refuse(name, "a node has at most 8 MI300X, each of them divided");
    return detail::partitioned(name, n, *each);
  }
  return product(kind, n);
}

Topology cuda_layout(std::uint32_t gpus) {
  Builder b{"cuda", gpus};
  b.each_gpu([](Gpu& g) {
    g = {.name = "CUDA",
         .host_engines = detail::cuda::kHostEngines,
         .xgmi_engines = detail::cuda::kPeerEngines,
         .queues_per_engine = detail::cuda::kQueues};
  });
  each_pair(0, gpus, [&](auto from, auto to) { b.link(from, to, LinkType::other, Rate{}); });
  auto t = b.take();
  for (auto& l : t.links) l.rate = {};
  return t;
}

std::string layout_of(const Topology& t) {
  auto name = t.name;
  if (!names_layout(name) && !t.gpus.empty()) name = fmt::format("{}:{}", lower(t.gpus[0].name), t.gpus.size());
  if (!names_layout(name)) return {};
  const auto node = sdma::layout(name);
  return node && *node == t ? name : "";
}

std::string node_hint(std::string_view given, std::string_view command) {
  Nearest nearest{given.substr(0, given.find(':'))};
  for (const auto example : kLayoutExamples) nearest.offer(example.substr(0, example.find(':')));
  auto out = fmt::format("name a file such as {} prints, or a layout: mi300x:8, ring:8, switch:64x400G", command);
  for (const auto example : kLayoutExamples)
    if (!nearest.best().empty() && example.substr(0, example.find(':')) == nearest.best())
      out += fmt::format("; did you mean {}?", example);
  return out;
}

}}  // namespace sdma::v0_3
