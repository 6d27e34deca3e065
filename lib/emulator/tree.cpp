#include "tree.hpp"

#include "options.hpp"
#include "real.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstring>
#include <vector>

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

/// NUMA nodes of this machine with processors; programs bind memory to what the tree calls a CPU.
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
    if (l.from.kind == End::Kind::cpu) l.from.index %= cpus;
    if (l.to.kind == End::Kind::cpu) l.to.index %= cpus;
    if (o.gfx == 90010) l.engine_mask = 0;
  }
  return t;
}

}  // namespace

std::string normal(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.push_back(part);
    else if (!parts.empty()) parts.pop_back();
  }
  std::string out;
  for (auto p : parts) out.append("/").append(p);
  return out.empty() ? "/" : out;
}

bool Tree::concerns(const char* path) noexcept {
  if (!path || path[0] != '/') return false;
  for (const char* prefix : {"/sys/", "/dev/kfd", "/dev/dri", "/proc/modules"})
    if (std::strncmp(path, prefix, std::strlen(prefix)) == 0) return true;
  return std::strstr(path, "/..") || std::strstr(path, "//") || std::strstr(path, "/./");
}

Entry& Tree::add(std::string path, Entry e) {
  e.inode = 0x5d0a0000 + entries_.size();
  auto& at = entries_.emplace(path, std::move(e)).first->second;
  // A directory for each level below the folders that the machine itself has.
  for (auto slash = path.rfind('/'); slash != path.npos && slash != 0; slash = path.rfind('/')) {
    const auto child = path.substr(slash + 1);
    path.resize(slash);
    if (path == "/sys/devices/virtual" || path == "/sys/class" || path == "/sys/module" || path == "/dev" ||
        path == "/proc")
      break;
    auto [it, fresh] =
        entries_.try_emplace(path, Entry{.kind = Kind::directory, .inode = 0x5d0a0000 + entries_.size()});
    it->second.children.insert(child);
    if (!fresh) break;
  }
  return at;
}

Tree::Tree() : node_(numbered(shown(), static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)))) {
  for (auto& [path, text] : to_sysfs(node_))
    add(fmt::format("{}/kfd/topology/{}", kKfd, path), {.kind = Kind::text, .text = text});
  for (const auto& g : node_.gpus)
    add(fmt::format("/dev/dri/renderD{}", g.render_minor), {.kind = Kind::render, .minor = g.render_minor});
  add("/dev/kfd", {.kind = Kind::kfd});
  add("/proc/modules",
      {.kind = Kind::text, .text = machine_file("/proc/modules") + "amdgpu 16777216 0 - Live 0x0000000000000000\n"});
  const std::string module = "/sys/module/amdgpu/";
  add(module + "initstate", {.kind = Kind::text, .text = "live\n"});
  add(module + "refcnt", {.kind = Kind::text, .text = "0\n"});
  add(module + "coresize", {.kind = Kind::text, .text = "16777216\n"});
  add(module + "version", {.kind = Kind::text, .text = "6.12.0\n"});
  add(module + "holders", {.kind = Kind::directory});
}

const Entry* Tree::find(std::string_view path) const {
  auto at = normal(path);
  if (at.starts_with(kClass) && (at.size() == kClass.size() || at[kClass.size()] == '/'))
    at.replace(0, kClass.size(), kKfd);
  const auto it = entries_.find(at);
  return it == entries_.end() ? nullptr : &it->second;
}

const Tree& tree() {
  static const auto* t = new Tree;  // never destroyed, as engine threads
  return *t;
}

}  // namespace sdma::emulator
