// SPDX-License-Identifier: MIT
// The directories of processes, which change while the node runs:
//
//   /sys/devices/virtual/kfd/kfd/proc/PID/{pasid,vram_GPUID,sdma_GPUID,queues/,stats_GPUID/...}
//
// sdma_GPUID counts steps that made progress, not microseconds. The queues of a process are not shown here, but in
// debugfs (debugfs.cpp). The pasid is made up.
#include "processes.hpp"

#include "../../../kfd/abi.hpp"
#include "../../real.hpp"
#include "../arena.hpp"
#include "../shown.hpp"
#include "parts.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace sdma::emulator {
namespace {

constexpr std::string_view kProcesses = "/sys/devices/virtual/kfd/kfd/proc";

/// Calls fn with each name in a directory of the machine; stops, and returns true, once it returns true.
template <class Fn> bool any_name(const std::string& directory, Fn fn) {
  struct Close {
    void operator()(DIR* d) const noexcept { SDMA_REAL(closedir)(d); }
  };
  const std::unique_ptr<DIR, Close> d(SDMA_REAL(opendir)(directory.c_str()));
  while (const auto* e = d ? SDMA_REAL(readdir)(d.get()) : nullptr)
    if (e->d_name[0] != '.' && fn(std::string_view(e->d_name))) return true;
  return false;
}

std::string descriptors(std::uint64_t pid) { return fmt::format("/proc/{}/fd", pid); }

/// Calls fn with the path of each descriptor of an arena; stops, and returns true, once it returns true.
template <class Fn> bool any_arena(std::uint64_t pid, Fn fn) {
  const auto at = descriptors(pid);
  return any_name(at, [&](std::string_view fd) {
    char room[64];
    const auto link = fmt::format("{}/{}", at, fd);
    return memfd_name(link.c_str(), room) == kArenaName && fn(link);
  });
}

bool uses_node(std::uint64_t pid) {
  return any_arena(pid, [](const std::string&) { return true; });
}

template <class Fn> void each_process(Fn fn) {
  any_name("/proc", [&](std::string_view name) {
    if (const auto pid = parse_count(name)) fn(*pid);
    return false;
  });
}

using Seen = std::set<std::pair<ino_t, std::uint32_t>>;
/// Bytes of a process's objects on a GPU that are not in `seen`, to which they are added.
std::uint64_t bytes_of(std::uint64_t pid, std::uint32_t gpu, std::uint32_t flag, Seen& seen) {
  std::uint64_t sum = 0;
  const auto at = descriptors(pid);
  any_name(at, [&](std::string_view fd) {
    const auto o = object_of(fmt::format("{}/{}", at, fd).c_str());
    if (o && o->gpu == gpu && (o->flags & flag) != 0 && seen.emplace(o->inode, o->nonce).second) sum += o->bytes;
    return false;
  });
  return sum;
}

std::set<std::string> pids() {
  std::set<std::string> out;
  for (const auto pid : node_processes()) out.insert(std::to_string(pid));
  return out;
}

/// The argument of a file of a process: the process, and a GPU.
constexpr std::uint64_t kMostGpus = 256;
constexpr std::uint64_t argument_of(std::uint64_t pid, std::size_t gpu) { return pid * kMostGpus + gpu; }
std::string vram_of(std::uint64_t argument) {
  Seen none;
  return fmt::format("{}\n", bytes_of(argument / kMostGpus, argument % kMostGpus, kfd::kVram, none));
}

std::string activity_of(std::uint64_t argument) {
  return fmt::format("{}\n", shown_by(argument / kMostGpus).sdma_activity[argument % kMostGpus]);
}

using Entries = std::map<std::string, Entry, std::less<>>;

/// Adds what the directory of a process contains.
void add_process(Entries& all, std::uint64_t pid) {
  const auto at = fmt::format("{}/{}", kProcesses, pid);
  std::uint64_t inode = 0x5e00'0000'0000 + pid * kMostGpus;
  const auto device = tree().find(kProcesses)->device;
  const auto add = [&](const std::string& name, Entry e) {
    e.inode = inode++;
    e.device = device;
    const auto slash = name.rfind('/');
    const auto parent = slash == name.npos ? at : fmt::format("{}/{}", at, name.substr(0, slash));
    all[parent].children.insert(name.substr(slash == name.npos ? 0 : slash + 1));
    all[fmt::format("{}/{}", at, name)] = std::move(e);
  };
  const auto directory = [&](const std::string& name) { add(name, {.kind = Kind::directory}); };
  const auto text = [&](const std::string& name, std::string s) {
    add(name, {.kind = Kind::text, .text = std::move(s)});
  };
  all[at] = {.kind = Kind::directory, .inode = inode++, .device = device};
  text("pasid", fmt::format("{}\n", pasid_of(pid)));
  directory("queues");
  const auto& gpus = tree().node().gpus;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto id = gpus[g].gpu_id;
    add(fmt::format("vram_{}", id), {.kind = Kind::text, .live = vram_of, .argument = argument_of(pid, g)});
    add(fmt::format("sdma_{}", id), {.kind = Kind::text, .live = activity_of, .argument = argument_of(pid, g)});
    directory(fmt::format("stats_{}", id));
    text(fmt::format("stats_{}/evicted_ms", id), "0\n");
    text(fmt::format("stats_{}/cu_occupancy", id), "0\n");
  }
}

}  // namespace

std::vector<std::uint64_t> node_processes() {
  std::vector<std::uint64_t> all;
  each_process([&](std::uint64_t pid) {
    if (uses_node(pid)) all.push_back(pid);
  });
  return all;
}

std::uint64_t pasid_of(std::uint64_t pid) noexcept {
  constexpr std::uint64_t kFirst = 0x8000;
  return kFirst + pid % kFirst;
}

Shown shown_by(std::uint64_t pid) {
  Shown shown;
  const int fd = open_arena(pid);
  if (fd < 0 || SDMA_REAL(pread)(fd, &shown, sizeof shown, kShownOffset) != sizeof shown) shown = {};
  if (fd >= 0) ::close(fd);
  return shown;
}

int open_arena(std::uint64_t pid) {
  int own = -1;
  any_arena(pid, [&](const std::string& link) {
    const int fd = SDMA_REAL(open)(link.c_str(), O_RDONLY | O_CLOEXEC);
    Shown shown;
    if (fd >= 0 && SDMA_REAL(pread)(fd, &shown, sizeof shown, kShownOffset) == sizeof shown && shown.pid == pid)
      own = fd;
    else if (fd >= 0) ::close(fd);
    return own >= 0;
  });
  return own;
}

std::vector<ino_t> arenas_of(std::uint64_t pid) {
  std::vector<ino_t> all;
  any_arena(pid, [&](const std::string& link) {
    struct stat s {};
    const bool read = SDMA_REAL(fstatat)(AT_FDCWD, link.c_str(), &s, 0) == 0;
    if (read && std::find(all.begin(), all.end(), s.st_ino) == all.end()) all.push_back(s.st_ino);
    return false;
  });
  return all;
}

std::uint64_t bytes_in_use(std::uint32_t gpu, std::uint32_t flag) {
  Seen seen;
  std::uint64_t sum = 0;
  each_process([&](std::uint64_t pid) { sum += bytes_of(pid, gpu, flag, seen); });
  return sum;
}

const Entry* find_process_entry(std::string_view path) {
  if (!path.starts_with(kProcesses) || path.size() <= kProcesses.size() || path[kProcesses.size()] != '/')
    return nullptr;
  const auto name = path.substr(kProcesses.size() + 1);
  const auto pid = parse_count(name.substr(0, name.find('/')));
  if (!pid || !uses_node(*pid)) return nullptr;
  static std::mutex mutex;
  static auto* entries = new Entries;  // never destroyed, like the tree
  const std::lock_guard lock(mutex);
  if (entries->find(path) == entries->end()) {
    Entries made;
    add_process(made, *pid);
    for (auto& e : made) entries->insert(std::move(e));
  }
  const auto it = entries->find(path);
  return it == entries->end() ? nullptr : &it->second;
}

void add_processes(Tree& t) { t.add(std::string(kProcesses), {.kind = Kind::directory, .live_children = pids}); }

}  // namespace sdma::emulator
