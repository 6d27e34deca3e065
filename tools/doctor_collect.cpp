// SPDX-License-Identifier: MIT
#include "doctor_collect.hpp"

#include "archive.hpp"
#include "doctor_anonymous.hpp"
#include "doctor_bounded.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/version.hpp"
#include "sdma/doctor/attach.hpp"
#include "sdma/doctor/read.hpp"
#include "verb.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <map>
#include <system_error>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

/// Files, of whose path each part may be a pattern. PID: each process that uses a GPU.
struct Taken {
  std::string_view pattern;
  std::string_view member;  ///< where they are written, one after the other; "X/": each is a member below X
};
constexpr auto kTaken = std::to_array<Taken>({
    {"/sys/fs/pstore/*", "log/pstore/"},
    {"/sys/class/devcoredump/devcd*/data", "devcoredump/"},
    {"/sys/kernel/debug/kfd/mqds", "debugfs/"},
    {"/sys/kernel/debug/kfd/hqds", "debugfs/"},
    {"/sys/kernel/debug/kfd/rls", "debugfs/"},
    {"/sys/kernel/debug/dri/[0-9]/amdgpu_ring_sdma*", "debugfs/"},
    {"/sys/kernel/debug/dri/[0-9][0-9]/amdgpu_ring_sdma*", "debugfs/"},
    {"/sys/kernel/debug/dri/[0-9]/amdgpu_fence_info", "debugfs/"},
    {"/sys/kernel/debug/dri/[0-9][0-9]/amdgpu_fence_info", "debugfs/"},
    {"/sys/kernel/debug/dri/[0-9]/amdgpu_firmware_info", "versions.txt"},
    {"/sys/kernel/debug/dri/[0-9][0-9]/amdgpu_firmware_info", "versions.txt"},
    {"/sys/class/kfd/kfd/topology/generation_id", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/system_properties", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/gpu_id", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/name", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/properties", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/io_links/*/properties", "topology.txt"},
    {"/sys/class/kfd/kfd/topology/nodes/*/p2p_links/*/properties", "topology.txt"},
    {"/sys/class/kfd/kfd/proc/*/pasid", "topology.txt"},
    {"/sys/class/kfd/kfd/proc/*/sdma_*", "topology.txt"},
    {"/sys/class/kfd/kfd/proc/*/vram_*", "topology.txt"},
    {"/sys/class/kfd/kfd/proc/*/queues/*/*", "topology.txt"},
    {"/proc/sys/kernel/osrelease", "versions.txt"},
    {"/proc/sys/kernel/tainted", "versions.txt"},
    {"/proc/sys/kernel/dmesg_restrict", "versions.txt"},
    {"/etc/os-release", "versions.txt"},
    {"/opt/rocm*/.info/version*", "versions.txt"},
    {"/sys/module/amdgpu/version", "versions.txt"},
    {"/sys/module/amdgpu/srcversion", "versions.txt"},
    {"/sys/module/amdgpu/parameters/*", "versions.txt"},
    {"/sys/class/drm/card*/device/vbios_version", "versions.txt"},
    {"/sys/class/drm/card*/device/fw_version/*", "versions.txt"},
    {"/sys/class/drm/card*/device/current_link_speed", "versions.txt"},
    {"/sys/class/drm/card*/device/current_link_width", "versions.txt"},
    {"/sys/class/drm/card*/device/ras/*_err_count", "versions.txt"},
    {"/proc/PID/maps", "process/"},
    {"/proc/PID/status", "process/"},
    {"/proc/PID/task/*/status", "process/PID/threads.txt"},
    {"/proc/PID/task/*/syscall", "process/PID/threads.txt"},
    {"/proc/PID/task/*/wchan", "process/PID/threads.txt"},
    {"/proc/PID/task/*/stack", "process/PID/threads.txt"},
});

/// What is read, and where it is written.
struct Wanted {
  std::string path, member;
};

/// The files of a pattern, and the folders that could not be read.
class Finder {
 public:
  explicit Finder(std::vector<int> processes) : processes_(std::move(processes)) {}

  void find(const Taken& t) {
    constexpr std::string_view kPid = "PID";
    if (t.pattern.find(kPid) == t.pattern.npos) return find(t.pattern, std::string(t.member));
    for (const int pid : processes_) {
      auto pattern = std::string(t.pattern), member = std::string(t.member);
      for (auto* text : {&pattern, &member})
        if (const auto at = text->find(kPid); at != text->npos) text->replace(at, kPid.size(), std::to_string(pid));
      find(pattern, member);
    }
  }
  std::vector<Wanted> wanted{};
  std::map<std::string, std::string> unread{};  ///< path: why
  std::vector<std::string> none{};              ///< patterns without a file

 private:
  void find(std::string_view pattern, const std::string& member) {
    const auto before = wanted.size() + unread.size();
    below("", pattern.substr(1), member);
    if (wanted.size() + unread.size() == before) none.emplace_back(pattern);
  }
  void below(const std::string& folder, std::string_view pattern, const std::string& member) {
    const auto name = pattern.substr(0, pattern.find('/'));
    const auto rest = pattern.substr(std::min(name.size() + 1, pattern.size()));
    std::error_code e;
    if (name.find_first_of("*[") == name.npos) {
      const auto path = folder + "/" + std::string(name);
      const auto kind = fs::status(path, e);
      if (e && e != std::errc::no_such_file_or_directory) unread.emplace(path, e.message());
      else if (fs::exists(kind)) take(path, rest, member);
      return;
    }
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder, e), end; !e && at != end; at.increment(e))
      if (const auto n = at->path().filename().string(); ::fnmatch(std::string(name).c_str(), n.c_str(), 0) == 0)
        names.push_back(n);
    if (e) unread.emplace(folder, e.message());
    std::sort(names.begin(), names.end());
    for (const auto& n : names) take(folder + "/" + n, rest, member);
  }
  void take(const std::string& path, std::string_view rest, const std::string& member) {
    if (!rest.empty()) return below(path, rest, member);
    wanted.push_back({path, member.ends_with('/') ? member + member_of(path) : member});
  }
  /// "/sys/kernel/debug/dri/1/amdgpu_ring_sdma0": "dri/1/amdgpu_ring_sdma0"
  static std::string member_of(std::string_view path) {
    for (const std::string_view folder : {"/sys/fs/pstore/", "/sys/class/devcoredump/", "/sys/kernel/debug/", "/proc/"})
      if (path.starts_with(folder)) return std::string(path.substr(folder.size()));
    return std::string(path);
  }

  std::vector<int> processes_;
};

class Collector {
 public:
  explicit Collector(const CollectOptions& o) : o_(o) {}

  int run() {
    auto processes = doctor::gpu_processes_below(0);
    std::erase(processes, ::getpid());
    if (o_.anonymous) names_ = names_of_machine();
    Finder all(processes);
    for (const auto& t : kTaken) all.find(t);
    take_log();
    for (const auto& [path, why] : all.unread) lines_.push_back(fmt::format("not read: {}: {}", path, why));
    for (const auto& pattern : all.none) lines_.push_back(fmt::format("none: {}", pattern));
    std::vector<std::string> paths;
    for (const auto& w : all.wanted) paths.push_back(w.path);
    auto read = read_bounded(paths, {.each = kEach, .all = kAll, .file_bytes = kFileBytes, .bytes = kBytes});
    for (std::size_t i = 0; i < read.size(); ++i) take(all.wanted[i], std::move(read[i]));
    return save();
  }

 private:
  static constexpr std::chrono::seconds kEach{3}, kAll{20};
  static constexpr std::uint64_t kFileBytes = std::uint64_t{128} << 20, kBytes = std::uint64_t{512} << 20;

  void take_log() {
    const auto log = doctor::kernel_log();
    if (!log) {
      lines_.push_back(fmt::format("not read: the kernel's log: {}; {}", log.error().message, log.error().hint));
      return;
    }
    std::size_t left = 0;
    add("log/kernel.txt", o_.anonymous ? names_.log(*log, left) : *log);
    lines_.push_back(fmt::format("the kernel's log: {} bytes", log->size()));
    if (left > 0)
      lines_.push_back(fmt::format("left out (--anonymous): {} lines of the log that name no driver of GPUs", left));
  }
  void take(const Wanted& w, FileRead r) {
    if (!r.why.empty()) lines_.push_back(fmt::format("not read: {}: {}", w.path, r.why));
    if (!r.why.empty() && r.bytes.empty()) return;
    lines_.push_back(fmt::format("{}: {} bytes", w.path, r.bytes.size()));
    if (o_.anonymous) r.bytes = names_.file(w.path, std::move(r.bytes));
    const bool alone = w.member.find(".txt") == w.member.npos;
    add(w.member, alone ? std::move(r.bytes) : fmt::format("==> {} <==\n{}\n", w.path, r.bytes));
  }
  void add(const std::string& member, std::string text) {
    const auto [at, added] = index_.try_emplace(member, members_.size());
    if (added) members_.push_back({.name = member, .bytes = std::move(text)});
    else members_[at->second].bytes += text;
  }
  int save() {
    const auto now = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
    std::string text = fmt::format("{} of version {}, {}, as {}{}\n", kCollectedFirst, version().string, now,
                                   ::geteuid() == 0 ? "root" : "a user", o_.anonymous ? ", --anonymous" : "");
    for (const auto& l : lines_) text += (o_.anonymous ? names_.words(l) : l) + "\n";
    members_.insert(members_.begin(), {.name = kCollectedName, .bytes = std::move(text)});
    if (auto saved = save_archive(o_.path, members_); !saved) return report(saved.error()), kInput;
    std::uint64_t bytes = 0;
    for (const auto& m : members_) bytes += m.bytes.size();
    std::string out = fmt::format("{}: {} files of {} bytes\n", o_.path, members_.size(), bytes);
    for (const auto& l : lines_)
      if (l.starts_with("not read: ") || l.starts_with("left out")) out += l + "\n";
    return write_text("-", std::move(out));
  }

  const CollectOptions& o_;
  AnonymousNames names_{};
  std::vector<Member> members_{};
  std::map<std::string, std::size_t> index_{};
  std::vector<std::string> lines_{};  // of collected.txt
};

}  // namespace

int collect(const CollectOptions& o) { return Collector{o}.run(); }

}  // namespace sdma::tool
