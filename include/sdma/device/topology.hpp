// SPDX-License-Identifier: MIT
#pragma once
// A node as a value: its GPUs, its processors, the links between them, and which engine drives which link.
//
//   Topology node = *mi300x();                              // eight GPUs, fully connected, two sockets
//   EngineId e = *node.engine_for(GpuId{0}, GpuId{2});      // 12: the engine that the kernel driver recommends
//   std::string text = to_json(node);                       // *topology_from_json(text) == node
//
//   src\dst   0   1   2   3 ...        engines 0, 1    face the host (PCIe)
//      0      -  14  12   2            engines 2 to 15 face the xGMI links
//      1     14   -   2  10            8 queues per engine
//
// One engine sustains about the rate of one link, and an engine other than the recommended one is markedly slower. So
// call `engine_for` and do not compute an engine yourself. The table is not symmetric: 0 to 2 is 12, 2 to 0 is 10.
// `engine_for` never returns a dead engine, and every device, `sdma simulate` and `sdma check` refuse a queue on one.
//
// Plain values that allocate and share nothing: one thread may write, or many may read. A Topology is the same whether
// it comes from a preset, a JSON file or the kernel's /sys. Errors: a Diagnostic if JSON does not describe a node,
// Errc::bad_argument if there is no such GPU.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/device/rate.hpp"
#include "sdma/packets/generation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A processor socket or NUMA node of the host.
struct CpuNode {
  std::string name{};            ///< the kernel's name of it; "host" if there is none
  std::uint64_t memory_bytes{};  ///< 0: unknown
  friend bool operator==(const CpuNode&, const CpuNode&) = default;
};

/// One GPU: its name, memory and engines.
struct Gpu {
  std::string name{};   ///< the product: "MI300X"
  std::uint32_t gfx{};  ///< as the kernel counts: major * 10000 + minor * 100 + stepping; 90402 is gfx942
  /// The generation of its sDMA engines; that of MI300X for a target that is not known.
  Generation generation() const noexcept { return generation_of_target(gfx).value_or(kDefaultGeneration); }
  std::uint64_t memory_bytes{};  ///< its VRAM; logical GPUs that share a chip (CUDA) each report all of it; 0: unknown
  std::uint32_t host_engines{};  ///< engines 0 to host_engines - 1 face the host
  std::uint32_t xgmi_engines{};  ///< the next engines face other GPUs
  std::uint32_t queues_per_engine{};  ///< how many queues an engine can serve at once; 0: unknown
  /// Bit n: engine n is dead. The driver counts and may recommend it, but nothing executes its queues: on some products
  /// several engine numbers share one engine, and only one of them works.
  std::uint64_t dead_engines{};
  /// The machine that it is in, from 0, if there are several: GPUs and hosts of different nodes share no memory.
  std::uint32_t node{};
  /// How many sDMA engines it has.
  std::uint32_t engines() const noexcept { return host_engines + xgmi_engines; }
  /// Bit n: the GPU has engine n, and it is not dead.
  std::uint64_t live_engines() const noexcept { return first(engines()) & ~dead_engines; }
  /// The live engines that face the host.
  std::uint64_t live_host_engines() const noexcept { return first(host_engines) & ~dead_engines; }
  /// A mask with bits 0 to n - 1; all 64 bits if n is larger.
  static constexpr std::uint64_t first(std::uint32_t n) noexcept {
    return n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
  }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// One end of a link.
struct LinkEnd {
  /// `cpu`: a processor with its memory; `gpu`: a GPU.
  enum class Kind : std::uint8_t { cpu, gpu };
  Kind kind{};            ///< which list `index` belongs to
  std::uint32_t index{};  ///< into Topology::cpus or Topology::gpus
  /// The end at the processor with this number.
  static constexpr LinkEnd cpu(std::uint32_t i) noexcept { return {Kind::cpu, i}; }
  /// The end at the GPU with this number.
  static constexpr LinkEnd gpu(std::uint32_t i) noexcept { return {Kind::gpu, i}; }
  friend bool operator==(const LinkEnd&, const LinkEnd&) = default;
};

/// "cpu0", "gpu3".
std::string to_string(LinkEnd);

/// The type of a link. The numbers are the kernel's; all types that are not listed here become `other`.
/// `pcie`: PCI Express; `xgmi`: AMD's direct link between GPUs, or between a GPU and a processor; `other`: also NVLink,
/// a switch, a NIC.
enum class LinkType : std::uint8_t { other = 0, pcie = 2, xgmi = 11 };
constexpr std::string_view name(LinkType t) noexcept {
  return t == LinkType::pcie ? "pcie" : t == LinkType::xgmi ? "xgmi" : "other";
}

/// The raw rate of one direction of a link of MI300X, xGMI or PCIe.
inline constexpr Rate kMi300xLink = Rate::gb_per_s(64);

/// One direction of a connection.
struct Link {
  LinkEnd from{}, to{};             ///< bytes go from `from` to `to`
  LinkType type = LinkType::other;  ///< PCIe, xGMI or other
  Rate rate{};                      ///< raw rate of this direction
  bool atomics_64{};                ///< an engine of `from` can add to a word of `to`
  /// Bit n: engine n of the GPU at `from` (of the GPU at `to`, if `from` is a CPU) is recommended. 0: none.
  std::uint64_t engine_mask{};
  std::vector<std::uint32_t>
      shares{};  ///< into Topology::shared: what this direction crosses together with other links
  friend bool operator==(const Link&, const Link&) = default;
};

/// What several links cross, such as one direction of a port to a switch, of a NIC, or of a PCIe switch. These links
/// share its rate. Copies of engines and messages of the network cross it alike.
struct SharedPath {
  std::string name{};  ///< as reports show it
  Rate rate{};         ///< as Link::rate; a file has to state it
  LinkType type =
      LinkType::other;         ///< which efficiency its rate has: pcie.efficiency, xgmi.efficiency or nic.efficiency
  std::uint32_t message_ns{};  ///< it takes one message of the network in so many ns, of any size; 0: no limit
  friend bool operator==(const SharedPath&, const SharedPath&) = default;
};

/// The direction in which bytes move between a GPU and its host.
/// `to_host`: the engine writes host memory; `from_host`: it reads host memory.
enum class HostDirection : std::uint8_t { to_host, from_host };

/// How an engine signals completion.
/// `fence`: a store, which any link carries; `atomic`: an addition, which not every link carries.
enum class Completion : std::uint8_t { fence, atomic };

struct Topology {
  std::string name{};                ///< of the node: "8 x MI300X"
  std::vector<CpuNode> cpus{};       ///< by number
  std::vector<Gpu> gpus{};           ///< by number
  std::vector<Link> links{};         ///< one for each direction of a connection
  std::vector<SharedPath> shared{};  ///< kernels do not list these: only files and layouts have them

  /// The direct link; null if there is none.
  const Link* link(LinkEnd from, LinkEnd to) const noexcept;
  /// The engine of `src` for copies to `dst`: the lowest live engine that the link recommends, or the first live xGMI
  /// engine if it recommends none. For src == dst, the first live engine. bad_argument: there is no such GPU, or it has
  /// no live engine.
  Result<EngineId> engine_for(GpuId src, GpuId dst) const noexcept;
  /// The host-facing engine of `g` for one direction, so that both directions can run at once: the first live one to
  /// the host (0), the next from it (1). If only one is live, it serves both directions.
  Result<EngineId> engine_for(GpuId g, HostDirection) const noexcept;

  /// How an engine of `by` can signal a word in the memory of `where` (nullopt: the host's): with an atomic if every
  /// link between them carries 64-bit atomics, otherwise with a fence. Within one GPU, atomics always work.
  Completion completion(GpuId by, std::optional<GpuId> where) const noexcept;

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// What a driver needs to know about a GPU, in addition to the Topology. Same order as Topology::gpus.
struct SysfsGpu {
  std::uint32_t kfd_node{};       ///< N of nodes/N
  std::uint32_t gpu_id{};         ///< identifies it in ioctls; never 0
  std::uint32_t render_minor{};   ///< of /dev/dri/renderD
  std::uint32_t device_id{};      ///< PCI
  std::uint32_t location_id{};    ///< PCI bus << 8 | device << 3 | function
  std::uint32_t domain{};         ///< PCI
  std::uint64_t unique_id{};      ///< the number that the driver reports for this one chip; 0: none
  std::uint64_t hive_id{};        ///< equal for GPUs that xGMI connects; 0: none
  std::uint32_t xcc{};            ///< compute dies of this partition
  std::uint32_t compute_units{};  ///< how many this partition has; 0: unknown
  std::uint32_t firmware{};       ///< version of the command processor's firmware
  std::uint32_t sdma_firmware{};  ///< version of the sDMA engines' firmware
  friend bool operator==(const SysfsGpu&, const SysfsGpu&) = default;
};

/// The directory in which the kernel lists the topology.
inline constexpr std::string_view kSysfsTopology = "/sys/devices/virtual/kfd/kfd/topology";
/// A node of `n` MI300X, the first n of a full node: 1 to 8, each one partition (SPX), fully connected over xGMI. GPUs
/// 0 to 3 are on one socket, 4 to 7 on the other; rates are the links' raw rates.
Result<Topology, Diagnostic> mi300x(std::uint32_t n = 8);

/// The most GPUs of a built layout: as many as a schedule can have.
inline constexpr std::uint32_t kMostLaidOut = 1024;

/// A layout of each kind.
inline constexpr std::string_view kLayoutExamples[] = {"mi300x:8", "mi308x:8",      "mi325x:8",      "mi350x:8",
                                                       "mi355x:8", "mi250x:2",      "cpx:8",         "mesh:16",
                                                       "ring:8",   "switch:8x400G", "nodes:2x8x400G"};

/// Could this be the name of a layout, rather than that of a file? True for "word:digits...".
bool names_layout(std::string_view) noexcept;

/// A node by its name: a product, or a layout of links that exists only in simulations. Errors name those that there
/// are.
///
///   mi300x:8             a product's own node, 1 to 8 GPUs: mi300x, mi308x,
///                        mi325x, mi350x, mi355x; or mi250x, one module of two dies
///   cpx:8                eight MI300X in CPX: 8 partitions per GPU, of two engines each; also qpx:8 (4, of four)
///                        and dpx:8 (2, of eight). Partition p of GPU g is number g * partitions + p
///   mesh:16              a link from each GPU to each other
///   ring:8               a link to the next and to the previous GPU
///   switch:8x400G        a port of 400 Gbit/s a GPU into one switch: whatever enters or leaves a GPU shares its port
///   nodes:2x8            two nodes, each a mesh of 8 (Gpu::node); each GPU has a NIC of 400 Gbit/s, which
///                        reaches all GPUs of the other node: only queues of the network use it (docs/nodes.md)
///   nodes:2x8x200G       the same with other NICs
///   nodes:3+2            nodes that differ: of three GPUs, and of two; nodes:3+2x200G
///
///   mesh:16x100G         the raw rate of the links of a mesh or a ring, in
///                        Gbit/s; the default is MI300X's: 512, which is 64 GB/s
///
/// The GPUs of built layouts are MI300X, so the parameters of share/machines/mi300x.json apply. With more peers than
/// engines, peers share engines in turn. Two GPUs without a link cannot exchange bytes directly: a schedule for ring:8
/// forwards them itself. The GPUs of a node share one host. Switches and NICs are links of type `other`; the parameters
/// nic.flight_ns and nic.efficiency say what they cost.
Result<Topology, Diagnostic> layout(std::string_view name);
/// NVIDIA GPUs as a CudaDevice presents them (cuda.hpp): six engines of five queues on each, and a link between all
/// pairs. Rates and memory are not known. For checks without the device: a machine may have fewer links or atomics.
Topology cuda_layout(std::uint32_t gpus);
/// The name of the layout that this topology is; empty if it is none, or one that was changed.
std::string layout_of(const Topology&);
/// What to write in place of `given`, which is neither a layout nor a file. `command` prints such files.
std::string node_hint(std::string_view given, std::string_view command);
/// Indented JSON, one link per line.
std::string to_json(const Topology&);
/// The node that `text` describes. `file`: the name of the text in errors. Refuses unknown keys, and links whose ends
/// do not exist.
Result<Topology, Diagnostic> topology_from_json(std::string_view text, std::string_view file = "topology");

/// For people: GPUs, engines, links, and the recommended engine of each pair. Ends with a newline.
std::string to_table(const Topology&);

/// "gfx942" for 90402.
std::string gfx_name(std::uint32_t gfx);

}}  // namespace sdma::v0_3
