// SPDX-License-Identifier: MIT
// What the tree says about a GPU: the values that tree.txt has places for, and the files that change.
#include "../../../kfd/abi.hpp"
#include "parts.hpp"
#include "processes.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace sdma::emulator {

TreeGpu::TreeGpu(Tree& t, std::size_t i)
    : tree(t),
      index(i),
      gpu(t.node().gpus[i]),
      properties(t.node().topology.gpus[i]),
      product(product_like(properties.gfx)),
      slot(pci_address(gpu)),
      bus(slot.substr(0, 7)),
      device(fmt::format("/sys/devices/pci{}/{}", bus, slot)) {}

void TreeGpu::file(std::string_view name, std::string text) const {
  tree.add_text(fmt::format("{}/{}", device, name), std::move(text));
}
void TreeGpu::live(std::string_view name, std::string (*contents)(std::uint64_t)) const {
  tree.add_live(fmt::format("{}/{}", device, name), contents, index);
}

namespace {

std::string vram_used(std::uint64_t gpu) {
  const auto all = tree().node().topology.gpus[gpu].memory_bytes;
  return fmt::format("{}\n", std::min(all, bytes_in_use(static_cast<std::uint32_t>(gpu), kfd::kVram)));
}
std::string gtt_used(std::uint64_t gpu) {
  return fmt::format("{}\n", bytes_in_use(static_cast<std::uint32_t>(gpu), kfd::kGtt));
}

constexpr std::string_view kBlocks = "blocks of ";

/// The sections of tree.txt that a product has beside [gpu].
std::vector<std::string> sections_of(const Product& p) {
  std::vector<std::string> all;
  tree_texts().fill("products", FileValues(), [&](const detail::FileText& row) {
    if (row.path != gfx_name(p.gfx)) return;
    std::istringstream names(row.text.substr(0, row.text.find('\n')));
    for (std::string one; std::getline(names >> std::ws, one, ',');) all.push_back(one);
  });
  if (all.empty()) throw std::invalid_argument("tree.txt has no row for " + gfx_name(p.gfx));
  return all;
}

bool connected(const Topology& t, std::uint32_t a, std::uint32_t b) {
  const auto* l = t.link(LinkEnd::gpu(a), LinkEnd::gpu(b));
  return l && l->type == LinkType::xgmi;
}

void add_hive(const TreeGpu& g) {
  if (g.gpu.hive_id == 0) return;
  const auto& node = g.tree.node();
  const auto index = static_cast<std::uint32_t>(g.index);
  std::string links;
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) links += connected(node.topology, index, i) ? "01 " : "00 ";
  FileValues values;
  values("at", g.device)("hive", TreeGpu(g.tree, 0).device + "/xgmi_hive_info")("hive_id", g.gpu.hive_id);
  values("links", links)("number", g.index + 1);
  g.tree.fill("hive", values, g.device);
  g.tree.fill(g.index == 0 ? "first of a hive" : "other of a hive", values, g.device);
}

/// The blocks of a GPU: each row of its product is a number of instances.
void add_blocks(const TreeGpu& g, const std::string& section) {
  std::uint32_t all = 0;
  const auto add = [&](const detail::FileText& block) {
    std::istringstream row(block.text);
    std::uint32_t id = 0, major = 0, minor = 0, revision = 0, instances = 0, bases = 0;
    row >> id >> major >> minor >> revision >> instances;
    std::string lines;
    for (std::string base; row >> base; ++bases) lines += (lines.empty() ? "" : "\n") + base;
    for (std::uint32_t i = 0; i < instances; ++i, ++all)
      g.tree.fill("block",
                  FileValues()("at", g.device)("name", block.path)("id", id)("major", major)("minor", minor)(
                      "revision", revision)("instance", i)("bases", bases)("base_lines", lines),
                  g.device);
  };
  tree_texts().fill(section, FileValues()("engines", g.properties.engines())("dies", g.gpu.xcc), add);
  g.tree.fill("all blocks", FileValues()("instances", all), g.device);
}

}  // namespace

void add_gpu(const TreeGpu& g) {
  const auto& p = g.product;
  const auto host =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  auto values = pci_values(g);
  values("index", g.index)("minor", g.gpu.render_minor)("unique_id", g.gpu.unique_id)("name", g.properties.name);
  values("firmware", g.gpu.firmware)("sdma_firmware", g.gpu.sdma_firmware);
  values("line", p.kind == ProductKind::graphics ? "Radeon" : "Instinct");
  values("board", g.is_accelerator() || p.gfx == 90010 ? "oam" : "cem");
  values("vram_bytes", g.properties.memory_bytes);
  values("gtt_bytes", host / 2);  // the driver's default: half of the host's memory
  values("engine_mhz", p.engine_mhz)("memory_mhz", p.memory_mhz)("watts", p.watts)("temperature", kTemperature);
  values("space", " ");  // at the end of a line
  g.tree.fill("gpu", values, g.device);
  for (const auto& section : sections_of(p)) {
    if (section.starts_with(kBlocks)) add_blocks(g, section);
    else g.tree.fill(section, values, g.device);
  }
  g.tree.add(fmt::format("/dev/dri/card{}", g.index),
             {.kind = Kind::drm, .minor = static_cast<std::uint32_t>(g.index)});
  g.tree.add(fmt::format("/dev/dri/renderD{}", g.gpu.render_minor), {.kind = Kind::drm, .minor = g.gpu.render_minor});
  g.live("mem_info_vram_used", vram_used);
  g.live("mem_info_vis_vram_used", vram_used);
  g.live("mem_info_gtt_used", gtt_used);
  add_hive(g);
  add_metrics(g);
}

}  // namespace sdma::emulator
