#pragma once
// A node as a value: its GPUs, its processors, the links between them, and which engine drives which link.
//
//   Topology node = *mi300x();                              // eight of them, fully connected, two sockets
//   EngineId e = *node.engine_for(GpuId{0}, GpuId{2});      // 12: the engine that the kernel driver recommends
//   std::string text = to_json(node);                       // *topology_from_json(text) == node
//
//   src\dst   0   1   2   3 ...        engines 0, 1    face the host (PCIe)
//      0      -  14  12   2            engines 2 to 15 face the xGMI links
//      1     14   -   2  10            8 queues an engine
//
// One engine sustains about the rate of one link, and any other than the recommended one is markedly slower, so a schedule
// asks `engine_for` and not its own arithmetic. The table is not symmetric: 0 to 2 is 12, 2 to 0 is 10.
//
// Plain values that allocate, nothing shared: one thread writes, or many read. Where they come from (a preset, a JSON file,
// the kernel's /sys) does not show. Errors: Diagnostic for JSON that is no node, Errc::bad_argument for a GPU that is none.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {

/// A processor socket or NUMA node of the host.
struct CpuNode {
  std::string name{};
  std::uint64_t memory_bytes{};  ///< 0: unknown
  friend bool operator==(const CpuNode&, const CpuNode&) = default;
};

struct Gpu {
  std::string name{};
  std::uint32_t gfx{};  ///< as the kernel counts: major * 10000 + minor * 100 + stepping; 90402 is gfx942
  std::uint64_t memory_bytes{};
  std::uint32_t host_engines{};  ///< the first ones: they face the host
  std::uint32_t xgmi_engines{};  ///< those behind them: they face other GPUs
  std::uint32_t queues_per_engine{};
  std::uint32_t engines() const noexcept { return host_engines + xgmi_engines; }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// One end of a link.
struct End {
  enum class Kind : std::uint8_t { cpu, gpu };
  Kind kind{};
  std::uint32_t index{};  ///< into Topology::cpus or Topology::gpus
  static constexpr End cpu(std::uint32_t i) noexcept { return {Kind::cpu, i}; }
  static constexpr End gpu(std::uint32_t i) noexcept { return {Kind::gpu, i}; }
  friend bool operator==(const End&, const End&) = default;
};

/// What a link is made of. The numbers are the kernel's, which knows more kinds than matter here.
enum class LinkType : std::uint8_t { other = 0, pcie = 2, xgmi = 11 };
constexpr std::string_view name(LinkType t) noexcept {
  return t == LinkType::pcie ? "pcie" : t == LinkType::xgmi ? "xgmi" : "other";
}

/// One direction of a connection.
struct Link {
  End from{}, to{};
  LinkType type = LinkType::other;
  std::uint32_t mb_per_s{};  ///< raw, this direction, in 10^6 bytes; 0: unknown
  bool atomics_64{};         ///< an engine of `from` can add to a word of `to`
  std::uint64_t
      engine_mask{};  ///< bit n: engine n of the GPU at `from` (of `to`, where `from` is a CPU) is recommended; 0: none
  friend bool operator==(const Link&, const Link&) = default;
};

/// Which way bytes go between a GPU and its host.
enum class HostDirection : std::uint8_t { to_host, from_host };

/// How an engine says that it is done.
enum class Completion : std::uint8_t { fence, atomic };

struct Topology {
  std::string name{};
  std::vector<CpuNode> cpus{};
  std::vector<Gpu> gpus{};
  std::vector<Link> links{};

  /// The direct link, null where there is none.
  const Link* link(End from, End to) const noexcept;
  /// The engine of `src` that copies to `dst`: the lowest that the link recommends, or, where it recommends none, the first
  /// xGMI engine. For src == dst, engine 0. bad_argument: no such GPU, or one without engines.
  Result<EngineId> engine_for(GpuId src, GpuId dst) const noexcept;
  /// The host-facing engine of `g` for one direction, so that both directions can run at once: 0 to the host, 1 from it.
  Result<EngineId> engine_for(GpuId g, HostDirection) const noexcept;

  /// What an engine of `by` may raise a word with that lies in `where`'s memory (nullopt: the host's): atomic if each link
  /// between them carries 64-bit atomics. Within a GPU it always is.
  Completion completion(GpuId by, std::optional<GpuId> where) const noexcept;

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// A node of `n` MI300X, each one partition (SPX), fully connected over xGMI: 1 to 8, the first n of a full node. GPUs 0 to 3
/// hang on one socket, 4 to 7 on the other; rates are the links' raw ones.
Result<Topology, Diagnostic> mi300x(std::uint32_t n = 8);

/// Indented JSON, one link a line.
std::string to_json(const Topology&);
/// The node that `text` describes; `file` is what errors call it. Refuses unknown keys and links to what is not there.
Result<Topology, Diagnostic> topology_from_json(std::string_view text, std::string_view file = "topology");

/// For people: GPUs, engines, links, and the recommended engine of each pair. Ends with a newline.
std::string to_table(const Topology&);

/// "gfx942" of 90402.
std::string gfx_name(std::uint32_t gfx);

}  // namespace v0
}  // namespace sdma
