// SPDX-License-Identifier: MIT
// The DRM nodes of a GPU: a primary and a render node, below the PCI device and in /dev.
#include "parts.hpp"

#include <fmt/format.h>

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

}  // namespace sdma::emulator
