// SPDX-License-Identifier: MIT
#include "sdma/device/topology.hpp"

#include "../core/append.hpp"
#include "gpus_text.hpp"
#include "link_index.hpp"
#include "product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace sdma { inline namespace v0_3 {
namespace {

// clang-format off
/// The engine that the kernel driver recommends for copies from row to column on a full node; 0: from a GPU to itself.
/// Public drivers and libraries have the same values for all 56 pairs.
constexpr std::uint8_t kRecommended[8][8] = {
    { 0, 14, 12,  2,  4,  8, 10,  6},
    {14,  0,  2, 10,  8,  4,  6, 12},
    {10,  2,  0, 12, 14,  6,  4,  8},
    { 2, 12, 10,  0,  6, 14,  8,  4},
    { 4,  8, 14,  6,  0, 10, 12,  2},
    { 8,  4,  6, 14, 12,  0,  2, 10},
    {10,  6,  4,  8, 12,  2,  0, 14},
    { 6, 12,  8,  4,  2, 10, 14,  0},
};
// clang-format on

Result<EngineId> lowest(std::uint64_t mask) noexcept {
  if (mask == 0) return Errc::bad_argument;
  return EngineId{static_cast<std::uint32_t>(std::countr_zero(mask))};
}

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::string engines_of(std::uint64_t mask) {
  std::string out;
  for (; mask != 0; mask &= mask - 1) detail::append(out, "{}{}", out.empty() ? "" : ",", std::countr_zero(mask));
  return out.empty() ? "-" : out;
}

void append_pairs(std::string& out, const Topology& t) {
  detail::append(out, "\nrecommended engine from a GPU (row) to a GPU (column) and to the host\n     ");
  for (std::size_t d = 0; d < t.gpus.size(); ++d) detail::append(out, "{:>5}", fmt::format("gpu{}", d));
  detail::append(out, "  host\n");
  for (std::uint32_t s = 0; s < t.gpus.size(); ++s) {
    detail::append(out, "{:<5}", fmt::format("gpu{}", s));
    for (std::uint32_t d = 0; d < t.gpus.size(); ++d) {
      const auto e = t.engine_for(GpuId{s}, GpuId{d});
      detail::append(out, "{:>5}", s == d ? "-" : e ? fmt::to_string(e->value) : "?");
    }
    const auto e = t.engine_for(GpuId{s}, HostDirection::to_host);
    detail::append(out, "{:>6}\n", e ? fmt::to_string(e->value) : "?");
  }
}

/// "64.0"; "?" if it is unknown.
std::string gb_text(Rate r) {
  const auto gb = r.gb_per_s();
  return gb ? fmt::format("{:.1f}", *gb) : "?";
}

void append_links(std::string& out, const Topology& t) {
  detail::append(out, "\n{:<5} {:<5} {:<5} {:>9}  {:<10} engines\n", "from", "to", "type", "GB/s", "atomics");
  for (const auto& l : t.links) {
    detail::append(out, "{:<5} {:<5} {:<5} {:>9}  {:<10} {}\n", to_string(l.from), to_string(l.to), name(l.type),
                   gb_text(l.rate), l.atomics_64 ? "64-bit" : "none", engines_of(l.engine_mask));
  }
  for (std::uint32_t s = 0; s < t.shared.size(); ++s)
    detail::append(out, "{}: {}{} GB/s{}, shared by {} links\n", t.shared[s].name,
                   t.shared[s].type == LinkType::other ? "" : fmt::format("{}, ", name(t.shared[s].type)),
                   gb_text(t.shared[s].rate),
                   t.shared[s].message_ns == 0 ? "" : fmt::format(", a message in {} ns", t.shared[s].message_ns),
                   std::count_if(t.links.begin(), t.links.end(), [&](const Link& l) {
                     return std::find(l.shares.begin(), l.shares.end(), s) != l.shares.end();
                   }));
}

}  // namespace

std::string to_string(LinkEnd e) { return fmt::format("{}{}", e.kind == LinkEnd::Kind::cpu ? "cpu" : "gpu", e.index); }

const Link* Topology::link(LinkEnd from, LinkEnd to) const noexcept {
  for (const auto& l : links)
    if (l.from == from && l.to == to) return &l;
  return nullptr;
}

Result<EngineId> detail::engine_over(const Topology& t, const Link* l, GpuId src, GpuId dst) noexcept {
  if (src.value >= t.gpus.size() || dst.value >= t.gpus.size()) return Errc::bad_argument;
  const auto& g = t.gpus[src.value];
  const auto live = g.live_engines(), xgmi = live & ~g.live_host_engines();
  if (src != dst && l && (l->engine_mask & live) != 0) return lowest(l->engine_mask & live);
  return lowest(src != dst && xgmi != 0 ? xgmi : live);
}

Result<EngineId> Topology::engine_for(GpuId src, GpuId dst) const noexcept {
  return detail::engine_over(*this, link(LinkEnd::gpu(src.value), LinkEnd::gpu(dst.value)), src, dst);
}

Completion Topology::completion(GpuId by, std::optional<GpuId> where) const noexcept {
  if (where && *where == by) return Completion::atomic;
  bool any = false, all = true;
  for (const auto& l : links) {
    if (l.from != LinkEnd::gpu(by.value)) continue;
    if (where ? l.to != LinkEnd::gpu(where->value) : l.to.kind != LinkEnd::Kind::cpu) continue;
    any = true;
    all = all && l.atomics_64;
  }
  return any && all ? Completion::atomic : Completion::fence;
}

Result<EngineId> Topology::engine_for(GpuId g, HostDirection d) const noexcept {
  if (g.value >= gpus.size()) return Errc::bad_argument;
  const auto live = gpus[g.value].live_engines(), facing = gpus[g.value].live_host_engines();
  const auto second = facing & (facing - 1);
  if (d == HostDirection::from_host && second != 0) return lowest(second);
  return lowest(facing != 0 ? facing : live);
}

Result<Topology, Diagnostic> mi300x(std::uint32_t n) {
  if (n < 1 || n > 8)
    return Diagnostic{.where = "mi300x",
                      .message = fmt::format("a node can have 1 to 8 MI300X, not {}", n),
                      .hint = "describe another machine as JSON: topology_from_json"};
  Topology t{.name = fmt::format("{} x MI300X", n)};
  t.cpus.assign(n > 4 ? 2 : 1, CpuNode{.name = "host"});
  t.gpus.assign(n, Gpu{.name = "MI300X",
                       .gfx = 90402,
                       .memory_bytes = 192 * kGiB,
                       .host_engines = 2,
                       .xgmi_engines = 14,
                       .queues_per_engine = 8});
  for (std::uint32_t s = 0; s < n; ++s) {
    const Link host{.from = LinkEnd::gpu(s),
                    .to = LinkEnd::cpu(s / 4),
                    .type = LinkType::pcie,
                    .rate = kMi300xLink,
                    .atomics_64 = true,
                    .engine_mask = 0b11};
    auto back = host;
    std::swap(back.from, back.to);
    t.links.push_back(host);
    t.links.push_back(back);
    for (std::uint32_t d = 0; d < n; ++d) {
      if (d == s) continue;
      t.links.push_back({.from = LinkEnd::gpu(s),
                         .to = LinkEnd::gpu(d),
                         .type = LinkType::xgmi,
                         .rate = kMi300xLink,
                         .atomics_64 = true,
                         .engine_mask = std::uint64_t{1} << kRecommended[s][d]});
    }
  }
  return t;
}

Result<Topology, Diagnostic> node_of(const Product& p, std::uint32_t n) {
  auto made = mi300x(n);
  if (!made) return Diagnostic{.where = "node_of", .message = fmt::format("a node can have 1 to 8 GPUs, not {}", n)};
  auto& t = *made;
  t.name = fmt::format("{} x {}", n, p.name);
  t.gpus.assign(n, Gpu{.name = std::string(p.name),
                       .gfx = p.gfx,
                       .memory_bytes = p.memory_bytes(),
                       .host_engines = p.host_engines,
                       .xgmi_engines = p.xgmi_engines,
                       .queues_per_engine = p.queues_per_engine});
  if (p.xgmi_engines == 0) std::erase_if(t.links, [](const Link& l) { return l.type == LinkType::xgmi; });
  for (auto& l : t.links) {
    // The driver recommends engines only where each link has one.
    if (p.kind != ProductKind::accelerator) l.engine_mask = 0;
    if (l.type == LinkType::pcie) l.rate = Rate::mb_per_s(4000u << (p.pcie - 1));
  }
  return made;
}

std::string gfx_name(std::uint32_t gfx) {
  return fmt::format("gfx{}{:x}{:x}", gfx / 10000, gfx / 100 % 100, gfx % 100);
}

std::string to_table(const Topology& t) {
  std::string out = t.name.empty() ? "node\n" : t.name + "\n";
  for (std::size_t i = 0; i < t.cpus.size(); ++i) {
    detail::append(out, "cpu{:<3} {}", i, t.cpus[i].name);
    if (t.cpus[i].memory_bytes != 0) detail::append(out, "  {} GiB", t.cpus[i].memory_bytes / kGiB);
    out += '\n';
  }
  for (std::size_t i = 0; i < t.gpus.size(); ++i) {
    const auto& g = t.gpus[i];
    const auto known = [](std::uint64_t n) { return n == 0 ? "?" : fmt::to_string(n); };
    detail::append(out, "gpu{:<3} {}  {}  {} GiB  {} engines ({} host, {} xGMI), {} queues each{}\n", i, g.name,
                   gfx_name(g.gfx), g.memory_bytes == 0 ? "?" : fmt::to_string(g.memory_bytes / kGiB), g.engines(),
                   g.host_engines, g.xgmi_engines, known(g.queues_per_engine),
                   g.dead_engines == 0 ? "" : ", dead: " + engines_of(g.dead_engines));
  }
  append_pairs(out, t);
  append_links(out, t);
  return out;
}

std::string detail::gpus_text(const std::vector<Gpu>& gpus) {
  std::string out;
  for (auto g = gpus.begin(); g != gpus.end();) {
    const auto next = std::find_if(g, gpus.end(), [&](const Gpu& o) { return o.name != g->name; });
    append(out, "{}{} x {}", out.empty() ? "" : ", ", next - g, g->name);
    g = next;
  }
  return out;
}

}}  // namespace sdma::v0_3
