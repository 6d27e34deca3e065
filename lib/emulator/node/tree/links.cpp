// SPDX-License-Identifier: MIT
// What leads to a GPU: its DRM nodes, a primary and a render node, below the PCI device and in /dev; and xGMI, by which
// it is connected with other GPUs. The directory of the hive is below the first GPU, and the others link to it.
#include "parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::emulator {

void add_drm(const TreeGpu& g) {
  auto& t = g.tree;
  const struct {
    const char* kind;
    std::string name;
    std::uint32_t minor;
  } nodes[] = {{"card", fmt::format("card{}", g.index), static_cast<std::uint32_t>(g.index)},
               {"render", fmt::format("renderD{}", g.gpu.render_minor), g.gpu.render_minor}};
  for (const auto& n : nodes) {
    const auto at = fmt::format("{}/drm/{}", g.device, n.name);
    t.add_text(at + "/dev", fmt::format("226:{}\n", n.minor));
    t.add_text(at + "/uevent",
               fmt::format("MAJOR=226\nMINOR={}\nDEVNAME=dri/{}\nDEVTYPE=drm_minor\n", n.minor, n.name));
    t.add_link(at + "/device", g.device);
    t.add_link(at + "/subsystem", "/sys/class/drm");
    t.add_link("/sys/class/drm/" + n.name, at);
    t.add_link(fmt::format("/sys/dev/char/226:{}", n.minor), at);
    t.add("/dev/dri/" + n.name, {.kind = Kind::drm, .minor = n.minor});
    t.add_link(fmt::format("/dev/dri/by-path/pci-{}-{}", g.slot, n.kind), "/dev/dri/" + n.name);
  }
  if (g.index == 0) t.add_text("/sys/class/drm/version", "drm 1.1.0 20060810\n");
}

namespace {

bool connected(const Topology& t, std::size_t a, std::size_t b) {
  return std::any_of(t.links.begin(), t.links.end(), [&](const Link& l) {
    return l.type == LinkType::xgmi && l.from == LinkEnd::gpu(static_cast<std::uint32_t>(a)) &&
           l.to == LinkEnd::gpu(static_cast<std::uint32_t>(b));
  });
}

}  // namespace

void add_xgmi(const TreeGpu& g) {
  const auto& node = g.tree.node();
  g.file("xgmi_device_id", fmt::format("{}\n", g.gpu.unique_id));
  g.file("xgmi_physical_id", fmt::format("{}\n", g.index));
  if (g.gpu.hive_id == 0) return;
  g.file("xgmi_error", "0\n");
  std::string each;  // one link leads to each GPU, without a hop in between
  for (std::size_t i = 0; i < node.gpus.size(); ++i) each += connected(node.topology, g.index, i) ? "01 " : "00 ";
  g.file("xgmi_num_hops", each + "\n");
  g.file("xgmi_num_links", each + "\n");
  const auto hive = TreeGpu(g.tree, 0).device + "/xgmi_hive_info";
  if (g.index == 0) g.tree.add_text(hive + "/xgmi_hive_id", fmt::format("{}\n", g.gpu.hive_id));
  else g.tree.add_link(g.device + "/xgmi_hive_info", hive);
  g.tree.add_link(fmt::format("{}/node{}", hive, g.index + 1), g.device);
}

}  // namespace sdma::emulator
