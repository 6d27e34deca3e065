// SPDX-License-Identifier: MIT
#include "sysfs.hpp"

#include "../core/file_texts.hpp"
#include "../core/words.hpp"
#include "device/sysfs_files.hpp"
#include "gpus_text.hpp"
#include "product.hpp"
#include "properties.hpp"
#include "sdma/device/kfd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Properties, detail::FileValues;

constexpr std::uint32_t kNoAtomics64 = 1u << 3, kLinkEnabled = 1u << 0;
constexpr std::uint32_t kPublicVram = 1, kPrivateVram = 2, kSystemRam = 0;  // heap_type of a memory bank

std::string name_of(std::uint32_t device_id, std::string_view kernel_name, std::uint32_t gfx) {
  if (const auto known = product_name(device_id, kernel_name); !known.empty()) return std::string(known);
  return kernel_name.empty() ? gfx_name(gfx) : std::string(kernel_name);
}

/// The only line of a file.
std::string_view line_of(std::string_view s) noexcept { return detail::trimmed(detail::take_line(s)); }

class TreeWriter {
 public:
  explicit TreeWriter(const SysfsNode& n) : node_(n) {}

  SysfsFiles take() {
    fill("node", FileValues());
    for (std::uint32_t i = 0; i < node_.topology.cpus.size(); ++i) cpu_node(i);
    for (std::uint32_t i = 0; i < node_.topology.gpus.size(); ++i) gpu_node(i);
    return std::move(files_);
  }

 private:
  void fill(std::string_view section, const FileValues& values) {
    constexpr detail::FileTexts kTexts(detail::kSysfsFiles);
    kTexts.fill(section, values, [&](detail::FileText f) { files_[std::move(f.path)] = std::move(f.text); });
  }

  std::uint32_t number(LinkEnd e) const {
    return e.kind == LinkEnd::Kind::cpu ? node_.cpu_nodes[e.index] : node_.gpus[e.index].kfd_node;
  }

  std::uint32_t links(const std::string& at, LinkEnd from) {
    std::uint32_t n = 0;
    for (const auto& l : node_.topology.links) {
      if (l.from != from) continue;
      const auto mb_per_s = l.rate.mb_per_s().value_or(0);  // the kernel writes an unknown rate so
      fill("link",
           FileValues()("at", at)("index", n++)("type", static_cast<std::uint32_t>(l.type))("from", number(l.from))(
               "to", number(l.to))("weight", l.type == LinkType::xgmi ? 15u : 20u)("mb_per_s", mb_per_s)(
               "engine_mask", l.engine_mask)("flags", kLinkEnabled | (l.atomics_64 ? 0 : kNoAtomics64)));
    }
    return n;
  }

  /// How many caches there are.
  std::uint32_t caches(const std::string& at, const Product& p, const SysfsGpu& s) {
    const struct {
      std::uint32_t level, kib, count;
    } kinds[] = {{1, p.l1_kib, s.compute_units}, {2, p.l2_kib, std::max(s.xcc, 1u)}, {3, p.l3_kib, p.l3_kib != 0}};
    std::uint32_t n = 0;
    for (const auto& c : kinds)
      for (std::uint32_t i = 0; i < c.count; ++i)
        fill("cache",
             FileValues()("at", at)("index", n++)("first_processor", 0x80000000u + i)("level", c.level)("kib", c.kib));
    return n;
  }

  void memory(const std::string& at, std::uint32_t heap, std::uint64_t bytes, std::uint32_t bits, std::uint32_t mhz) {
    if (bytes != 0) fill("memory", FileValues()("at", at)("heap", heap)("bytes", bytes)("bits", bits)("mhz", mhz));
  }

  void cpu_node(std::uint32_t i) {
    const auto& c = node_.topology.cpus[i];
    const auto at = fmt::format("nodes/{}", node_.cpu_nodes[i]);
    memory(at, kSystemRam, c.memory_bytes, 0, 0);
    fill("cpu", FileValues()("at", at)("name", c.name == "host" ? "" : c.name)("cores", node_.cpu_cores[i])(
                    "banks", c.memory_bytes != 0 ? 1 : 0)("links", links(at, LinkEnd::cpu(i))));
  }

  void gpu_node(std::uint32_t i) {
    const auto& g = node_.topology.gpus[i];
    const auto& s = node_.gpus[i];
    const auto& p = product_like(g.gfx);
    const auto at = fmt::format("nodes/{}", s.kfd_node);
    memory(at, kPublicVram, g.memory_bytes, p.memory_bits, p.memory_mhz);
    fill("gpu",
         FileValues()("at", at)("gpu_id", s.gpu_id)("name", kernel_name(s.device_id, g.name))(
             "simds", s.compute_units * std::uint64_t{p.simds_per_unit()})("banks", g.memory_bytes != 0 ? 1 : 0)(
             "caches", caches(at, p, s))("links", links(at, LinkEnd::gpu(i)))("waves_per_simd", p.waves_per_simd)(
             "lanes", p.lanes)("arrays", p.shader_engines * p.arrays_each)("arrays_each", p.arrays_each)(
             "units_per_array", p.units_per_array())("simds_per_unit", p.simds_per_unit())("gfx", g.gfx)(
             "device_id", s.device_id)("location_id", s.location_id)("domain", s.domain)(
             "render_minor", s.render_minor)("hive_id", s.hive_id)("host_engines", g.host_engines)(
             "xgmi_engines", g.xgmi_engines)("queues_per_engine", g.queues_per_engine)("engine_mhz", p.engine_mhz)(
             "firmware", s.firmware)("sdma_firmware", s.sdma_firmware)("unique_id", s.unique_id)("xcc", s.xcc));
  }

  const SysfsNode& node_;
  SysfsFiles files_;
};

class TreeReader {
 public:
  explicit TreeReader(const SysfsFiles& f) : files_(f) {}

  Result<SysfsNode, Diagnostic> take() {
    for (const auto n : numbers())
      if (auto d = one(n)) return std::move(*d);
    if (ends_.empty()) return Diagnostic{.where = "topology", .message = "there is no node in the tree", .hint = kHint};
    for (const auto& [n, from] : ends_) {
      links(n, from, "io_links", "io_links_count");
      links(n, from, "p2p_links", "p2p_links_count");
    }
    node_.topology.name = detail::gpus_text(node_.topology.gpus);
    return std::move(node_);
  }

 private:
  static constexpr const char* kHint = "check that the amdgpu driver is loaded and supports these GPUs";

  /// The numbers of all nodes that could be read. A node that this user may not see leaves a gap and does not end the
  /// list.
  std::set<std::uint32_t> numbers() const {
    std::set<std::uint32_t> out;
    constexpr std::string_view kBefore = "nodes/", kBehind = "/properties";
    for (const auto& [path, text] : files_) {
      const std::string_view p(path);
      if (!p.starts_with(kBefore) || !p.ends_with(kBehind)) continue;
      const auto between = p.substr(kBefore.size(), p.size() - kBefore.size() - kBehind.size());
      if (const auto n = detail::whole_number<std::uint32_t>(between)) out.insert(*n);
    }
    return out;
  }

  const std::string* file(const std::string& path) const {
    const auto it = files_.find(path);
    return it == files_.end() ? nullptr : &it->second;
  }

  std::uint64_t memory(const std::string& at, std::uint64_t banks) const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < banks; ++i)
      if (const auto* text = file(fmt::format("{}/mem_banks/{}/properties", at, i))) {
        const Properties p(*text);
        const auto heap = p["heap_type"];
        if (heap == kSystemRam || heap == kPublicVram || heap == kPrivateVram) sum += p["size_in_bytes"];
      }
    return sum;
  }

  std::optional<Diagnostic> one(std::uint32_t n) {
    const auto at = fmt::format("nodes/{}", n);
    const Properties p(*file(at + "/properties"));
    const auto* id = file(at + "/gpu_id");
    if (!id) return Diagnostic{.where = at + "/gpu_id", .message = "the file is missing", .hint = kHint};
    const auto* name_file = file(at + "/name");
    const auto name = name_file ? line_of(*name_file) : std::string_view();
    const auto gpu_id = detail::whole_number<std::uint32_t>(line_of(*id));
    if (!gpu_id)
      return Diagnostic{.where = at + "/gpu_id", .message = fmt::format("'{}' is not a number", line_of(*id))};
    auto& t = node_.topology;
    if (*gpu_id != 0 && p["simd_count"] != 0) {
      ends_.emplace_back(n, LinkEnd::gpu(static_cast<std::uint32_t>(t.gpus.size())));
      t.gpus.push_back({.name = name_of(p.u32("device_id"), name, p.u32("gfx_target_version")),
                        .gfx = p.u32("gfx_target_version"),
                        .memory_bytes = memory(at, p["mem_banks_count"]),
                        .host_engines = p.u32("num_sdma_engines"),
                        .xgmi_engines = p.u32("num_sdma_xgmi_engines"),
                        .queues_per_engine = p.u32("num_sdma_queues_per_engine")});
      const auto simds = p["simd_per_cu"];
      node_.gpus.push_back({.kfd_node = n,
                            .gpu_id = *gpu_id,
                            .render_minor = p.u32("drm_render_minor"),
                            .device_id = p.u32("device_id"),
                            .location_id = p.u32("location_id"),
                            .domain = p.u32("domain"),
                            .unique_id = p["unique_id"],
                            .hive_id = p["hive_id"],
                            .xcc = p.u32("num_xcc"),
                            .compute_units = simds == 0 ? 0 : static_cast<std::uint32_t>(p["simd_count"] / simds),
                            .firmware = p.u32("fw_version"),
                            .sdma_firmware = p.u32("sdma_fw_version")});
    } else if (p["cpu_cores_count"] != 0) {
      ends_.emplace_back(n, LinkEnd::cpu(static_cast<std::uint32_t>(t.cpus.size())));
      t.cpus.push_back(
          {.name = name.empty() ? "host" : std::string(name), .memory_bytes = memory(at, p["mem_banks_count"])});
      node_.cpu_nodes.push_back(n);
      node_.cpu_cores.push_back(p.u32("cpu_cores_count"));
    }
    return std::nullopt;
  }

  const LinkEnd* end_of(std::uint64_t n) const {
    for (const auto& [number, e] : ends_)
      if (number == n) return &e;
    return nullptr;
  }

  void links(std::uint32_t n, LinkEnd from, std::string_view folder, std::string_view count) {
    const Properties counts(*file(fmt::format("nodes/{}/properties", n)));
    for (std::uint64_t i = 0; i < counts[count]; ++i) {
      const auto* text = file(fmt::format("nodes/{}/{}/{}/properties", n, folder, i));
      if (!text) continue;
      const Properties p(*text);
      const auto* to = end_of(p["node_to"]);
      if (!to || node_.topology.link(from, *to)) continue;
      const auto type = p["type"];
      node_.topology.links.push_back({.from = from,
                                      .to = *to,
                                      .type = type == 2    ? LinkType::pcie
                                              : type == 11 ? LinkType::xgmi
                                                           : LinkType::other,
                                      .rate = Rate::mb_per_s(p.u32("max_bandwidth")),
                                      .atomics_64 = p.has("flags") && (p["flags"] & kNoAtomics64) == 0,
                                      .engine_mask = p["recommended_sdma_engine_id_mask"]});
    }
  }

  const SysfsFiles& files_;
  SysfsNode node_;
  std::vector<std::pair<std::uint32_t, LinkEnd>> ends_;
};

}  // namespace

std::string pci_address(const SysfsGpu& g) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", g.domain, g.location_id >> 8, g.location_id >> 3 & 31,
                     g.location_id & 7);
}

SysfsFiles to_sysfs(const SysfsNode& n) { return TreeWriter(n).take(); }

Result<SysfsNode, Diagnostic> from_sysfs(const SysfsFiles& files) { return TreeReader(files).take(); }

SysfsNode numbered(const Topology& t, std::uint32_t cores_each_cpu) {
  SysfsNode n{.topology = t};
  std::stable_sort(n.topology.links.begin(), n.topology.links.end(), [](const Link& a, const Link& b) {
    return std::pair(a.from.kind, a.from.index) < std::pair(b.from.kind, b.from.index);
  });
  for (std::uint32_t i = 0; i < t.cpus.size(); ++i) n.cpu_nodes.push_back(i);
  n.cpu_cores.assign(t.cpus.size(), cores_each_cpu);
  for (std::uint32_t i = 0; i < t.gpus.size(); ++i) {
    const auto& p = product_like(t.gpus[i].gfx);
    n.gpus.push_back({.kfd_node = static_cast<std::uint32_t>(t.cpus.size()) + i,
                      .gpu_id = 0x4d01 + i * 0x101,
                      .render_minor = 128 + i,
                      .device_id = p.device_id,
                      .location_id = (0x10 + i * 8) << 8,
                      .unique_id = 0x5d0a'0000'0000'0001u + i,
                      .hive_id = t.gpus.size() > 1 && p.xgmi_engines != 0 ? 0x5d0a'0000'0000'0100u : 0,
                      .xcc = p.dies,
                      .compute_units = p.compute_units,
                      .firmware = p.firmware,
                      .sdma_firmware = p.sdma_firmware});
  }
  return n;
}

Result<Topology, Diagnostic> kfd_topology() {
  const auto files = read_sysfs();
  if (!files) return files.error();
  auto node = from_sysfs(*files);
  if (!node) return node.error();
  return std::move(node->topology);
}

Result<SysfsFiles, Diagnostic> read_sysfs(std::string_view directory) {
  namespace fs = std::filesystem;
  constexpr std::string_view kNames[] = {"generation_id", "system_properties", "gpu_id", "name", "properties"};
  SysfsFiles out;
  std::error_code failed;
  const fs::path root(directory);
  for (fs::recursive_directory_iterator it(root, failed), end; !failed && it != end; it.increment(failed)) {
    const auto name = it->path().filename().string();
    if (name == "caches") {  // hundreds per GPU, and nothing here uses them
      it.disable_recursion_pending();
      continue;
    }
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) continue;
    std::ifstream in(it->path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    // The kernel does not let a user read the properties of a GPU that the user may not use: skip only that GPU.
    if (in) out.emplace(it->path().lexically_relative(root).generic_string(), std::move(text).str());
  }
  if (failed || out.count("nodes/0/properties") == 0)
    return Diagnostic{.where = std::string(directory),
                      .message = failed ? "cannot read the tree: " + failed.message() : "there is no node in the tree",
                      .hint = "without a GPU, sdma emulate -- PROGRAM runs a program on a software node"};
  return out;
}

}}  // namespace sdma::v0_3
