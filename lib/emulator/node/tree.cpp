#include "tree.hpp"

#include "../options.hpp"
#include "../real.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>

namespace sdma::emulator {
namespace {

constexpr std::string_view kKfd = "/sys/devices/virtual/kfd", kClass = "/sys/class/kfd";

std::string machine_file(const char* path) {
  std::string out;
  const int fd = SDMA_REAL(open)(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return out;
}

/// NUMA nodes of this machine with processors. The tree lists them as CPUs, because programs bind memory to those.
std::uint32_t numa_nodes() {
  std::uint32_t n = 0;
  while (SDMA_REAL(access)(fmt::format("/sys/devices/system/node/node{}", n).c_str(), F_OK) == 0) ++n;
  return n == 0 ? 1 : n;
}

Topology shown() {
  const auto& o = options();
  auto t = *mi300x(o.gpus);
  const auto cpus = numa_nodes();
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  t.cpus.assign(cpus, {.name = "host", .memory_bytes = pages * 4096 / cpus});
  for (auto& g : t.gpus) {
    g.gfx = o.gfx;
    g.memory_bytes = o.vram_bytes;
    if (o.gfx == 90010) {
      g.name = "MI250X";
      g.xgmi_engines = 3;
    }
  }
  for (auto& l : t.links) {
    if (l.from.kind == LinkEnd::Kind::cpu) l.from.index %= cpus;
    if (l.to.kind == LinkEnd::Kind::cpu) l.to.index %= cpus;
    if (o.gfx == 90010) l.engine_mask = 0;
  }
  return t;
}

/// "/a/b" for "//a/./c/../b/".
std::string normal(std::string_view path) {
  auto out = std::filesystem::path(path).lexically_normal().string();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

}  // namespace

bool Tree::concerns(const char* path) noexcept {
  if (!path || path[0] != '/') return false;
  for (const char* prefix : {"/sys/", "/dev/kfd", "/dev/dri", "/proc/modules"})
    if (std::strncmp(path, prefix, std::strlen(prefix)) == 0) return true;
  return std::strstr(path, "/..") || std::strstr(path, "//") || std::strstr(path, "/./");
}

void Tree::add(std::string path, Entry e) {
  e.inode = 0x5d0a0000 + entries_.size();
  entries_.emplace(path, std::move(e));
  // Create a directory for each level below the directories of the machine.
  for (auto slash = path.rfind('/'); slash != path.npos && slash != 0; slash = path.rfind('/')) {
    const auto child = path.substr(slash + 1);
    path.resize(slash);
    static const std::set<std::string_view> kOfTheMachine = {
        "/dev",          "/proc",        "/sys/bus/pci/devices", "/sys/bus/pci/drivers",    "/sys/class",
        "/sys/dev/char", "/sys/devices", "/sys/devices/virtual", "/sys/devices/pci0000:00", "/sys/module"};
    if (kOfTheMachine.count(path) != 0) break;
    auto [it, fresh] =
        entries_.try_emplace(path, Entry{.kind = Kind::directory, .inode = 0x5d0a0000 + entries_.size()});
    it->second.children.insert(child);
    if (!fresh) break;
  }
}
void Tree::add_text(std::string path, std::string text) {
  add(std::move(path), {.kind = Kind::text, .text = std::move(text)});
}
void Tree::add_link(std::string from, std::string to) {
  add(std::move(from), {.kind = Kind::link, .text = std::move(to)});
}

/// A GPU as a PCI device with two DRM nodes, as libdrm reads them to distinguish devices.
void Tree::add_pci(std::size_t gpu) {
  const auto& g = node_.gpus[gpu];
  const auto slot =
      fmt::format("{:04x}:{:02x}:{:02x}.{}", g.domain, g.location_id >> 8, g.location_id >> 3 & 31, g.location_id & 7);
  const auto device = "/sys/devices/pci0000:00/" + slot;
  const auto file = [&](const char* name, std::string text) {
    add_text(fmt::format("{}/{}", device, name), std::move(text));
  };
  file("vendor", "0x1002\n");
  file("device", fmt::format("0x{:04x}\n", g.device_id));
  file("subsystem_vendor", "0x1002\n");
  file("subsystem_device", fmt::format("0x{:04x}\n", g.device_id));
  file("revision", "0x00\n");
  file("class", "0x120000\n");  // a processing accelerator
  file("numa_node", "0\n");
  file("unique_id", fmt::format("{:016x}\n", g.unique_id));
  file("uevent", fmt::format("DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:{:04X}\nPCI_SUBSYS_ID=1002:{:04X}\n"
                             "PCI_SLOT_NAME={}\n",
                             g.device_id, g.device_id, slot));
  add_link(device + "/subsystem", "/sys/bus/pci");
  add_link(device + "/driver", "/sys/bus/pci/drivers/amdgpu");
  add_link("/sys/bus/pci/drivers/amdgpu/" + slot, device);
  add_link("/sys/bus/pci/devices/" + slot, device);
  for (const auto& [name, minor] : {std::pair{fmt::format("card{}", gpu), static_cast<std::uint32_t>(gpu)},
                                    std::pair{fmt::format("renderD{}", g.render_minor), g.render_minor}}) {
    const auto at = fmt::format("{}/drm/{}", device, name);
    add_text(at + "/dev", fmt::format("226:{}\n", minor));
    add_text(at + "/uevent", fmt::format("MAJOR=226\nMINOR={}\nDEVNAME=dri/{}\nDEVTYPE=drm_minor\n", minor, name));
    add_link(at + "/device", device);
    add_link(at + "/subsystem", "/sys/class/drm");
    add_link("/sys/class/drm/" + name, at);
    add_link(fmt::format("/sys/dev/char/226:{}", minor), at);
    add("/dev/dri/" + name, {.kind = Kind::drm, .minor = minor});
  }
}

Tree::Tree() : node_(numbered(shown(), static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)))) {
  for (auto& [path, text] : to_sysfs(node_)) add_text(fmt::format("{}/kfd/topology/{}", kKfd, path), text);
  for (std::size_t g = 0; g < node_.gpus.size(); ++g) add_pci(g);
  add_text("/sys/class/drm/version", "drm 1.1.0 20060810\n");
  add_link(std::string(kClass), std::string(kKfd));
  add("/dev/kfd", {.kind = Kind::kfd});
  add_text("/proc/modules", machine_file("/proc/modules") + "amdgpu 16777216 0 - Live 0x0000000000000000\n");
  const std::string module = "/sys/module/amdgpu/";
  add_text(module + "initstate", "live\n");
  add_text(module + "refcnt", "0\n");
  add_text(module + "coresize", "16777216\n");
  add_text(module + "version", "6.12.0\n");
  add(module + "holders", {.kind = Kind::directory});
  add_text(module + "parameters/no_system_mem_limit", options().no_system_mem_limit ? "Y\n" : "N\n");
}

const Entry* Tree::find(std::string_view path, bool follow) const {
  auto at = normal(path);
  // Links of the tree point into the tree. Links of the machine are not followed.
  constexpr int kDeepest = 8;
  for (int depth = 0; depth < kDeepest; ++depth) {
    auto end = at.find('/', 1);
    bool moved = false;
    for (; !moved; end = at.find('/', end + 1)) {
      const bool last = end == at.npos;
      const auto it = entries_.find(std::string_view(at).substr(0, end));
      if (it != entries_.end() && it->second.kind == Kind::link && (!last || follow)) {
        at = normal(it->second.text + (last ? "" : at.substr(end)));
        moved = true;
      } else if (last) {
        return it == entries_.end() ? nullptr : &it->second;
      }
    }
  }
  return nullptr;
}

const Tree& tree() {
  static const auto* t = new Tree;  // never destroyed, like engine threads
  return *t;
}

}  // namespace sdma::emulator
