// SPDX-License-Identifier: MIT
// How xGMI connects the GPUs. The directory of the hive is below the first GPU, and the others link to it.
#include "parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::emulator {
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
