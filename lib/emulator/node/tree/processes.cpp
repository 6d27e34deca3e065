// SPDX-License-Identifier: MIT
// The directories of processes, which change while the node runs:
//
//   /sys/devices/virtual/kfd/kfd/proc/PID/{pasid,vram_GPUID,sdma_GPUID,queues/,stats_GPUID/...}
//   /proc/PID/fd/N       a descriptor of a device is a link to it
//   /proc/PID/fdinfo/N   of a DRM node: the driver's keys, which monitors add up. drm-engine-dma counts steps, too
//
// sdma_GPUID counts steps that made progress, not microseconds. The queues of a process are not shown here, but in
// debugfs (debugfs.cpp). The pasid is made up.
//
// And what the driver would have written to the kernel's log: the VM faults of the processes that use a node now.
#include "processes.hpp"

#include "../../../kfd/abi.hpp"
#include "../../real.hpp"
#include "../arena.hpp"
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
#include <optional>
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

/// Bytes that a process has allocated on a GPU.
std::uint64_t bytes_of(std::uint64_t pid, std::uint64_t gpu, std::uint32_t flag) {
  const auto shown = shown_by(pid);
  return (flag & kfd::kVram) != 0 ? shown.vram[gpu] : shown.gtt[gpu];
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
  return fmt::format("{}\n", bytes_of(argument / kMostGpus, argument % kMostGpus, kfd::kVram));
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

/// A descriptor of a process, as its path in /proc names it.
struct ProcFd {
  std::string pid{}, fd{};
  bool info{};
};
std::optional<ProcFd> proc_fd(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return std::nullopt;
  path.remove_prefix(kProc.size());
  const auto end = path.find('/'), last = path.rfind('/');
  if (end == path.npos || last == end) return std::nullopt;
  const auto pid = path.substr(0, end), kind = path.substr(end + 1, last - end - 1), fd = path.substr(last + 1);
  if ((kind != "fd" && kind != "fdinfo") || (pid != "self" && !parse_count(pid)) || !parse_count(fd))
    return std::nullopt;
  return ProcFd{.pid = std::string(pid), .fd = std::string(fd), .info = kind == "fdinfo"};
}

/// The position of a descriptor of a device, which says which one it is; nullopt for any other.
std::optional<std::uint64_t> tag_of(const ProcFd& at, std::string* info = nullptr) {
  char room[64];
  if (memfd_name(fmt::format("/proc/{}/fd/{}", at.pid, at.fd).c_str(), room) != kArenaName) return std::nullopt;
  const auto text = machine_file(fmt::format("/proc/{}/fdinfo/{}", at.pid, at.fd));
  unsigned long long tag = 0;
  if (std::sscanf(text.c_str(), "pos: %llu", &tag) != 1 || (tag & kTag) == 0) return std::nullopt;
  if (info) *info = text.substr(std::min(text.find('\n') + 1, text.size()));
  return tag;
}

/// `argument`: process and descriptor. Of /dev/kfd, and of one that is closed by now, what the machine says.
std::string fdinfo(std::uint64_t argument) {
  const auto pid = argument >> 32, fd = std::uint64_t{static_cast<std::uint32_t>(argument)};
  std::string rest;
  const auto tag = tag_of({.pid = std::to_string(pid), .fd = std::to_string(fd)}, &rest);
  if (!tag) return machine_file(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
  auto text = "pos:\t0\n" + rest;
  const Descriptor d{.tag = *tag};
  const auto& gpus = tree().node().gpus;
  const auto first = gpus.front().render_minor, minor = minor_of(d), g = minor < first ? minor : minor - first;
  if (!is_drm(d) || g >= gpus.size()) return text;
  const auto shown = shown_by(pid);
  return text + fmt::format(
                    "drm-driver:\tamdgpu\ndrm-client-id:\t{}\ndrm-pdev:\t{}\npasid:\t{}\n"
                    "drm-memory-vram:\t{} KiB\ndrm-memory-gtt: \t{} KiB\ndrm-memory-cpu: \t0 KiB\n"
                    "drm-engine-dma:\t{} ns\n",
                    serial_of(d), pci_address(gpus[g]), pasid_of(pid), bytes_of(pid, g, kfd::kVram) / 1024,
                    bytes_of(pid, g, kfd::kGtt) / 1024, shown.sdma_activity[g]);
}

/// The entry of a descriptor of a device. It never changes: another device at the same path is another entry.
const Entry* find_descriptor(std::string_view path) {
  const auto at = proc_fd(path);
  const auto tag = at ? tag_of(*at) : std::nullopt;
  if (!tag) return nullptr;
  const Descriptor d{.tag = *tag};
  const auto pid = at->pid == "self" ? static_cast<std::uint64_t>(::getpid()) : *parse_count(at->pid);
  static std::mutex mutex;
  static auto* entries = new std::map<std::pair<std::string, std::uint64_t>, Entry>;
  const std::lock_guard lock(mutex);
  auto [it, fresh] =
      entries->try_emplace({fmt::format("/proc/{}/{}/{}", pid, at->info ? "fdinfo" : "fd", at->fd), *tag});
  auto& e = it->second;
  if (!fresh) return &e;
  e.inode = 0x5f00'0000'0000 + entries->size();
  if (at->info) {
    e.kind = Kind::text;
    e.live = fdinfo;
    e.argument = pid << 32 | *parse_count(at->fd);
  } else {
    e.kind = Kind::link;
    const auto minor = minor_of(d);
    const bool render = minor >= tree().node().gpus.front().render_minor;
    e.text = is_dmabuf(d) ? "/dmabuf:"
             : is_drm(d)  ? fmt::format("/dev/dri/{}{}", render ? "renderD" : "card", minor)
                          : "/dev/kfd";
  }
  return &e;
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
  std::uint64_t sum = 0;
  for (const auto pid : node_processes()) sum += bytes_of(pid, gpu, flag);
  return sum;
}

const Entry* find_process_entry(std::string_view path) {
  if (const auto* e = find_descriptor(path)) return e;
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

namespace {

constexpr int kError = 3;  // the priority

/// "trainer": what the kernel calls a process.
std::string comm_of(std::uint64_t pid) {
  auto name = machine_file(fmt::format("/proc/{}/comm", pid));
  return name.substr(0, name.find('\n'));
}

std::string lines_of(const ShownFault& f, const SysfsGpu& gpu, std::uint64_t pid) {
  const auto head =
      fmt::format("<{}>[{:5}.{:06}] amdgpu {}: amdgpu: ", kError, f.us / 1'000'000, f.us % 1'000'000, pci_address(gpu));
  const auto name = comm_of(pid);
  return fmt::format(
      "{0}[mmhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:{1})\n"
      "{0} Process {2} pid {3} thread {2} pid {3}\n"
      "{0}  in page starting at address {4:#018x} from IH client 0x12 (VMC)\n",
      head, pasid_of(pid), name, pid, f.page);
}

}  // namespace

std::string kernel_log() {
  std::vector<std::pair<std::uint64_t, std::string>> all;
  const auto& gpus = tree().node().gpus;
  for (const auto pid : node_processes()) {
    const auto shown = shown_by(pid);
    for (std::size_t g = 0; g < std::min(gpus.size(), shown.faults.size()); ++g)
      if (const auto& f = shown.faults[g]; f.us != 0) all.emplace_back(f.us, lines_of(f, gpus[g], pid));
  }
  std::sort(all.begin(), all.end());
  std::string text;
  for (const auto& [us, lines] : all) text += lines;
  return text;
}

}  // namespace sdma::emulator
