// SPDX-License-Identifier: MIT
#include "probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace sdma::inline v0::detail {
namespace {

/// "the group render", or its number if it has no name here.
std::string group_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return "the group that owns it";
  std::array<char, 4096> room{};
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrgid_r(s.st_gid, &entry, room.data(), room.size(), &found) == 0 && found)
    return fmt::format("the group {}", found->gr_name);
  return fmt::format("the group {}", s.st_gid);
}

void check_file(const std::string& path, std::vector<Diagnostic>& missing) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return missing.push_back(cannot_open(path, errno));
  ::close(fd);
}

constexpr bool is_gfx94x(std::uint32_t gfx) noexcept { return gfx / 100 == 904; }

/// The node with only the GPUs that `keep` selects, and without links to the others.
SysfsNode only(const SysfsNode& all, const std::vector<bool>& keep) {
  SysfsNode out{.cpu_nodes = all.cpu_nodes, .cpu_cores = all.cpu_cores};
  out.topology.name = all.topology.name;
  out.topology.cpus = all.topology.cpus;
  std::vector<std::uint32_t> now(keep.size());
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    now[i] = static_cast<std::uint32_t>(out.gpus.size());
    out.gpus.push_back(all.gpus[i]);
    out.topology.gpus.push_back(all.topology.gpus[i]);
  }
  const auto end = [&](LinkEnd e) -> std::optional<LinkEnd> {
    if (e.kind == LinkEnd::Kind::cpu) return e;
    if (!keep[e.index]) return {};
    return LinkEnd::gpu(now[e.index]);
  };
  for (auto l : all.topology.links) {
    const auto from = end(l.from), to = end(l.to);
    if (!from || !to) continue;
    l.from = *from;
    l.to = *to;
    out.topology.links.push_back(l);
  }
  return out;
}

/// libhsakmt numbers only the nodes that this user may read, in the kernel's order.
std::uint32_t readable_before(const SysfsFiles& files, std::uint32_t kfd_node) {
  std::uint32_t n = 0;
  for (std::uint32_t k = 0; k < kfd_node; ++k) n += files.count(fmt::format("nodes/{}/properties", k)) != 0;
  return n;
}

void read_node(const KfdOptions& o, Probe& p) {
  const auto files = read_sysfs(o.topology);
  if (!files) return p.missing.push_back(files.error());
  auto node = from_sysfs(*files);
  if (!node) return p.missing.push_back(node.error());
  std::vector<bool> keep;
  std::string others;
  for (const auto& g : node->topology.gpus) {
    keep.push_back(is_gfx94x(g.gfx) && g.engines() != 0);
    if (!keep.back()) others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", gfx_name(g.gfx), g.name);
  }
  p.node = only(*node, keep);
  if (p.node.gpus.empty())
    return p.missing.push_back(
        {.where = o.topology,
         .message = others.empty() ? "this node has no GPU, or none that this user may see"
                                   : fmt::format("no gfx94x GPU: this node has {}", others),
         .hint = "this library drives MI300X and MI300A; without one, use SoftDevice or sdma emulate -- PROGRAM"});
  if (p.node.cpu_nodes.empty())
    return p.missing.push_back(
        {.where = o.topology, .message = "this node has no CPU", .hint = "its topology is incomplete"});
  for (const auto& g : p.node.gpus) p.thunk_nodes.push_back(readable_before(*files, g.kfd_node));
  p.thunk_cpu = readable_before(*files, p.node.cpu_nodes.front());
}

}  // namespace

Diagnostic cannot_open(const std::string& path, int error) {
  const bool render = path.find("render") != path.npos;
  switch (error) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return {.where = path,
              .message =
                  "does not exist: the amdgpu driver is not loaded, or this container was started without the device",
              .hint =
                  "run modprobe amdgpu; start a container with --device=/dev/kfd --device=/dev/dri; without a GPU, use "
                  "SoftDevice or sdma emulate -- PROGRAM"};
    case EACCES:
    case EPERM:
      return {.where = path,
              .message = fmt::format("permission denied on {}", render ? "the render node" : "the driver"),
              .hint = fmt::format("it belongs to {}: run usermod -aG GROUP USER as root, then log in again; start a "
                                  "container with --group-add",
                                  group_of(path))};
  }
  return {.where = path,
          .message = fmt::format("cannot be opened: {}", std::strerror(error)),
          .hint = "the kernel's log (dmesg) may say more"};
}

std::vector<Diagnostic> refuse_version(std::uint32_t major, std::uint32_t minor) {
  if (major == kKfdMajor && minor >= kKfdMinor) return {};
  const bool old = major < kKfdMajor || (major == kKfdMajor && minor < kKfdMinor);
  return {{.where = "KFD",
           .message = fmt::format("interface version {}.{} is {}", major, minor,
                                  old ? "too old for gfx942" : "newer than this library supports"),
           .hint = fmt::format("use a kernel or ROCm's amdgpu-dkms with version {}.{} or a later {}.x", kKfdMajor,
                               kKfdMinor, kKfdMajor)}};
}

Probe probe(const KfdOptions& o) {
  Probe p;
  check_file(o.kfd, p.missing);
  read_node(o, p);
  for (const auto& g : p.node.gpus) check_file(fmt::format("{}{}", o.render, g.render_minor), p.missing);
  if (auto t = thunk::load_thunk(o.libhsakmt)) p.thunk = *t;
  else p.missing.push_back(t.error());
  return p;
}

}  // namespace sdma::inline v0::detail
