// SPDX-License-Identifier: MIT
#include "partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// The sDMA engines of one MI300X, and how many of a partition's share the driver keeps for PCIe; the rest face xGMI.
constexpr std::uint32_t kEngines = 16, kForPcie = 2, kQueues = 8, kPerSocket = 4;

struct Mode {
  std::string_view name;
  std::uint32_t partitions;
};
constexpr Mode kModes[] = {{"dpx", 2}, {"qpx", 4}, {"cpx", 8}};

struct NotPublic {
  std::string_view name, why;
};
constexpr NotPublic kNotPublic[] = {
    {"nps4",
     "how fast an engine reaches another quarter of the memory is not public, and a layout would have to say it"},
    {"mi300a", "which sDMA engines the driver shows for MI300A is not public"},
    {"mi308xcpx", "how the engines of MI308X are divided between partitions is not public"},
};

/// Adds a path of this rate, and returns its number.
std::uint32_t path(Topology& t, std::string name, LinkType type) {
  t.shared.push_back({.name = std::move(name), .rate = kMi300xLink, .type = type});
  return static_cast<std::uint32_t>(t.shared.size() - 1);
}

}  // namespace

std::optional<std::uint32_t> partitions_of(std::string_view mode) noexcept {
  for (const auto& m : kModes)
    if (m.name == mode) return m.partitions;
  return {};
}

std::optional<std::string_view> not_public(std::string_view name) noexcept {
  for (const auto& n : kNotPublic)
    if (n.name == name) return n.why;
  return {};
}

Topology partitioned(std::string_view name, std::uint32_t gpus, std::uint32_t each) {
  const auto host = std::min(kEngines / each, kForPcie), xgmi = kEngines / each - host;
  const auto facing_host = Gpu::first(host), facing_gpus = Gpu::first(host + xgmi) & ~facing_host;
  Topology t{.name = std::string(name)};
  t.cpus.assign((gpus + kPerSocket - 1) / kPerSocket, CpuNode{.name = "host"});
  t.gpus.assign(
      std::size_t{gpus} * each,
      Gpu{.name = "MI300X", .gfx = 90402, .host_engines = host, .xgmi_engines = xgmi, .queues_per_engine = kQueues});
  for (std::uint32_t g = 0; g < gpus; ++g) {
    const auto up = path(t, fmt::format("MI300X {} PCIe up", g), LinkType::pcie);
    const auto down = path(t, fmt::format("MI300X {} PCIe down", g), LinkType::pcie);
    for (std::uint32_t p = 0; p < each; ++p) {
      const Link to_host{.from = LinkEnd::gpu(g * each + p),
                         .to = LinkEnd::cpu(g / kPerSocket),
                         .type = LinkType::pcie,
                         .rate = kMi300xLink,
                         .atomics_64 = true,
                         .engine_mask = facing_host,
                         .shares = {up}};
      auto from_host = to_host;
      std::swap(from_host.from, from_host.to);
      from_host.shares = {down};
      t.links.push_back(to_host);
      t.links.push_back(from_host);
    }
  }
  for (std::uint32_t a = 0; a < gpus; ++a)
    for (std::uint32_t b = 0; b < gpus; ++b) {
      // Partitions of one GPU reach each other at a rate that no source states.
      const bool inside = a == b;
      const auto shares = inside ? std::vector<std::uint32_t>{}
                                 : std::vector{path(t, fmt::format("MI300X {}->{} xGMI", a, b), LinkType::xgmi)};
      for (std::uint32_t p = 0; p < each; ++p)
        for (std::uint32_t q = 0; q < each; ++q)
          if (!inside || p != q)
            t.links.push_back({.from = LinkEnd::gpu(a * each + p),
                               .to = LinkEnd::gpu(b * each + q),
                               .type = inside ? LinkType::other : LinkType::xgmi,
                               .rate = inside ? Rate{} : kMi300xLink,
                               .atomics_64 = true,
                               .engine_mask = facing_gpus,
                               .shares = shares});
    }
  return t;
}

}}}  // namespace sdma::v0_3::detail
