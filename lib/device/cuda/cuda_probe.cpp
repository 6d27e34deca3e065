// SPDX-License-Identifier: MIT
// What a CUDA device needs from this machine, and the node that it finds.
#include "../cuda_engines.hpp"
#include "../gpus_text.hpp"
#include "cuda_node.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
namespace {

CudaGpu describe(const PhysicalGpu& g, std::uint32_t physical) {
  std::array<char, 256> name{};
  (void)g.driver().device_name(name.data(), static_cast<int>(name.size()) - 1, g.ordinal());
  return {.physical = physical,
          .name = name.data(),
          .pci = fmt::format("{:04x}:{:02x}:{:02x}.0", g.attribute(kPciDomain), g.attribute(kPciBus),
                             g.attribute(kPciDevice)),
          .capability = static_cast<std::uint32_t>(g.attribute(kComputeMajor) * 10 + g.attribute(kComputeMinor)),
          .host_atomics = g.host_atomics()};
}

/// One link in each direction. Rates are not known to the driver: `sdma calibrate` measures them.
void connect(Topology& t, LinkEnd a, LinkEnd b, Link like) {
  like.from = a;
  like.to = b;
  t.links.push_back(like);
}

Topology topology_of(const std::vector<CudaGpu>& gpus, const std::vector<PhysicalGpu*>& physical) {
  Topology t;
  const auto pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  t.cpus.push_back(
      {.name = "host", .memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)});
  const auto of = [&](std::size_t g) -> const PhysicalGpu& { return *physical[g % physical.size()]; };
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    std::size_t bytes = 0;
    (void)of(g).driver().device_memory(&bytes, of(g).ordinal());
    t.gpus.push_back({.name = gpus[g].name,
                      .memory_bytes = bytes,
                      .host_engines = kHostEngines,
                      .xgmi_engines = kPeerEngines,
                      .queues_per_engine = kQueues});
  }
  const auto first = std::min(gpus.size(), physical.size());
  t.name = gpus_text({t.gpus.begin(), t.gpus.begin() + static_cast<std::ptrdiff_t>(first)});
  if (first < gpus.size()) t.name = fmt::format("{} GPUs on {}", gpus.size(), t.name);
  for (std::uint32_t g = 0; g < gpus.size(); ++g) {
    const Link pcie{.type = LinkType::pcie, .atomics_64 = gpus[g].host_atomics};
    connect(t, LinkEnd::gpu(g), LinkEnd::cpu(0), pcie);
    connect(t, LinkEnd::cpu(0), LinkEnd::gpu(g), pcie);
    for (std::uint32_t other = 0; other < gpus.size(); ++other) {
      if (other == g) continue;
      int atomics = 1;
      if (&of(g) != &of(other))
        (void)of(g).driver().peer_attribute(&atomics, kPeerAtomics, of(g).ordinal(), of(other).ordinal());
      const auto engine = kHostEngines + (other - (other > g)) % kPeerEngines;
      connect(t, LinkEnd::gpu(g), LinkEnd::gpu(other),
              {.atomics_64 = atomics != 0, .engine_mask = std::uint64_t{1} << engine});
    }
  }
  return t;
}

}  // namespace

Probe probe(const CudaOptions& o) {
  Probe p;
  if (o.gpus > 64)
    p.missing.push_back({.where = "CUDA device",
                         .message = fmt::format("a node cannot have {} GPUs", o.gpus),
                         .hint = "use at most 64"});
  if (o.scan_interval.count() < 0)
    p.missing.push_back(
        {.where = "CUDA device", .message = "scan_interval is negative", .hint = "use 0 to turn the scan off"});
  // The driver reads it once, when it is initialised. A value of the user's stays.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const auto d = load_driver(o.libcuda);
  if (!d) {
    p.missing.push_back(d.error());
    return p;
  }
  p.driver = *d;
  if (const auto s = p.driver->init(0); s != kSuccess) {
    p.missing.push_back({.where = o.libcuda,
                         .message = fmt::format("the driver cannot be initialised: {}", p.driver->describe(s)),
                         .hint = s == kNoDevice
                                     ? "this machine has no NVIDIA GPU, or this container was started without it "
                                       "(docker run --gpus all); without one, use the software device"
                                     : "nvidia-smi shows whether the kernel's driver is loaded and as new as libcuda"});
    return p;
  }
  if (const auto s = p.driver->device_count(&p.gpus); s != kSuccess || p.gpus == 0)
    p.missing.push_back({.where = o.libcuda,
                         .message = "the driver shows no GPU",
                         .hint = "CUDA_VISIBLE_DEVICES may hide it; nvidia-smi -L lists all"});
  return p;
}

Result<Node*, Diagnostic> Node::make(const CudaOptions& o, const Probe& found) {
  std::vector<PhysicalGpu*> physical;
  const auto wanted = o.gpus == 0 ? static_cast<std::uint32_t>(found.gpus) : o.gpus;
  for (int i = 0; i < found.gpus && static_cast<std::uint32_t>(i) < wanted; ++i) {
    const auto gpu = PhysicalGpu::get(*found.driver, i);
    if (!gpu) return gpu.error();
    physical.push_back(*gpu);
  }
  for (const auto* a : physical)
    for (const auto* b : physical) {
      int reach = 1;
      if (a != b) (void)found.driver->peer_attribute(&reach, kPeerAccess, a->ordinal(), b->ordinal());
      if (reach == 0)
        return Diagnostic{.where = fmt::format("CUDA GPU {}", a->ordinal()),
                          .message = fmt::format("cannot reach the memory of GPU {}", b->ordinal()),
                          .hint = "name GPUs that can reach each other in CUDA_VISIBLE_DEVICES (nvidia-smi topo -m)"};
    }
  std::vector<CudaGpu> gpus;
  for (std::uint32_t g = 0; g < wanted; ++g) {
    const auto i = g % static_cast<std::uint32_t>(physical.size());
    gpus.push_back(describe(*physical[i], i));
  }
  auto topology = topology_of(gpus, physical);
  return new Node(o, *found.driver, std::move(topology), std::move(gpus), std::move(physical));
}

}}}  // namespace sdma::v0_3::detail::cuda
