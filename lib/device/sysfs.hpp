// SPDX-License-Identifier: MIT
#pragma once
// Reads and writes the kernel's description of a node: the files under /sys/devices/virtual/kfd/kfd/topology.
//
//   auto files = *read_sysfs();                      // this machine's, or those of any directory with such a tree
//   SysfsNode node = *from_sysfs(files);             // node.topology, and what a driver needs to address each GPU
//   auto again = to_sysfs(node);                     // *from_sysfs(again) == node, links in the order of their sources
//
//   generation_id, system_properties
//   nodes/0/{gpu_id,name,properties,mem_banks/0/properties,io_links/0/properties}      a CPU: gpu_id is 0
//   nodes/1/{...,caches/0/properties}                                                  a GPU
//
// The files are a map from path to text, so that a tree can be kept in memory (a software node presents one that does
// not exist on disk), in a test, or in a bug report. Nodes with neither processors nor SIMDs (bridges, hidden GPUs) are
// skipped: `kfd_node` keeps the kernel's numbers, and the Topology numbers CPUs and GPUs from 0.
//
// Each direction of a link is one io_links or p2p_links entry at its source. Its rate is `max_bandwidth`; it carries
// 64-bit atomics if flag bit 3 is clear. The kernel has no name for a socket, and calls an MI300X "ip discovery", so
// the name of a GPU here comes from its device id.
//
// Any thread may call these functions. `read_sysfs` reads files; the others depend only on their arguments. All of them
// allocate. Errors: a Diagnostic that names the file.
#include "sdma/device/topology.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Maps a path relative to the topology directory to the file's content.
using SysfsFiles = std::map<std::string, std::string, std::less<>>;

struct SysfsNode {
  Topology topology{};                     ///< `shared` is empty: the kernel does not list it
  std::vector<SysfsGpu> gpus{};            ///< in the order of Topology::gpus
  std::vector<std::uint32_t> cpu_nodes{};  ///< N of nodes/N, in the order of Topology::cpus
  std::vector<std::uint32_t> cpu_cores{};  ///< the same order
  friend bool operator==(const SysfsNode&, const SysfsNode&) = default;
};

/// The PCI address of a GPU as the kernel writes it: "0000:c1:00.0".
std::string pci_address(const SysfsGpu&);

/// The tree of a node. Numbers that a SysfsNode does not hold (caches, clocks, wave limits) are those of the product
/// with the GPU's target (product.hpp), or of an MI300X if there is none.
SysfsFiles to_sysfs(const SysfsNode&);

/// The node that a software node presents for this topology: CPUs first, then GPUs, with made-up ids and minor numbers
/// that are always the same, and links in the order of their sources.
SysfsNode numbered(const Topology&, std::uint32_t cores_each_cpu = 1);

/// The node that the files describe.
Result<SysfsNode, Diagnostic> from_sysfs(const SysfsFiles&);

/// All files under `directory` that from_sysfs uses. An error if there is no such tree.
Result<SysfsFiles, Diagnostic> read_sysfs(std::string_view directory = kSysfsTopology);

}}  // namespace sdma::v0_3
