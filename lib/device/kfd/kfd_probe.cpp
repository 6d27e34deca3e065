// SPDX-License-Identifier: MIT
#include "kfd_probe.hpp"

#include "../rocr/hsa.hpp"
#include "../sysfs_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {
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

constexpr bool is_driven(std::uint32_t gfx) noexcept { return gfx / 100 == 904 || gfx == 90500; }

void read_node(const KfdOptions& o, Probe& p) {
  const auto files = read_sysfs(o.topology);
  if (!files) return p.missing.push_back(files.error());
  auto node = from_sysfs(*files);
  if (!node) return p.missing.push_back(node.error());
  std::vector<std::size_t> keep;
  std::string others;
  for (std::size_t i = 0; i < node->topology.gpus.size(); ++i) {
    const auto& g = node->topology.gpus[i];
    if (is_driven(g.gfx) && g.engines() != 0) keep.push_back(i);
    else others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", gfx_name(g.gfx), g.name);
  }
  p.node = only(*node, keep);
  if (p.node.gpus.empty())
    return p.missing.push_back(
        {.where = o.topology,
         .message = others.empty() ? "this node has no GPU, or none that this user may see"
                                   : fmt::format("no gfx94x or gfx950 GPU: this node has {}", others),
         .hint = "this device drives MI300 and MI350; RocrDevice drives any gfx9; without a GPU, use SoftDevice or "
                 "sdma emulate -- PROGRAM"});
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
  if (const auto rocr = rocr::loaded();
      p.thunk && !rocr.empty() && rocr::address(rocr, "hsaKmtOpenKFD") != reinterpret_cast<void*>(p.thunk->open))
    p.missing.push_back({.where = rocr,
                         .message =
                             "this process has a ROCr with a libhsakmt of its own, and the driver gives the GPUs "
                             "to one of the two",
                         .hint = "use RocrDevice (device/rocr.hpp, --device=rocr), which takes its queues from ROCr"});
  return p;
}

}}}  // namespace sdma::v0_3::detail
