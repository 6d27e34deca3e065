// SPDX-License-Identifier: MIT
// Finds processes that use GPUs, and asks how much their sDMA queues have worked.
#include "sdma/doctor/attach.hpp"

#include "process.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

constexpr const char* kProcesses = "/sys/class/kfd/kfd/proc";
constexpr std::string_view kSoftwareNode = "/libsdma-emulator.so";

/// The names in a directory.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> all;
  std::error_code e;
  for (std::filesystem::directory_iterator at(directory, e), end; !e && at != end; at.increment(e))
    all.push_back(at->path().filename().string());
  return all;
}

bool is_below(int pid, int ancestor) {
  constexpr int kGenerations = 256;
  if (ancestor == 0) return true;
  for (int n = 0; n < kGenerations && pid > 1; ++n) {
    if (pid == ancestor) return true;
    pid = static_cast<int>(parse_count(status_of(pid, "PPid")).value_or(0));
  }
  return false;
}

}  // namespace

ProcessKind kind_of_process(int pid) {
  ProcessKind k;
  const auto folder = fmt::format("/proc/{}", pid);
  k.exists = pid > 0 && ::access(folder.c_str(), F_OK) == 0;
  std::error_code e;
  const auto look = [&](const std::string& file) {
    k.uses_gpu = k.uses_gpu || is_kfd(file);
    k.emulated = k.emulated || is_software_kfd(file);
  };
  for (std::filesystem::directory_iterator at(folder + "/fd", e), end; !e && at != end; at.increment(e)) {
    std::error_code closed;
    look(std::filesystem::read_symlink(at->path(), closed).string());
  }
  k.readable = k.exists && !e;
  for (const auto& m : mappings_of(pid)) look(m.file);
  const auto own = mappings_of(::getpid());
  k.this_emulated =
      std::any_of(own.begin(), own.end(), [](const Mapping& m) { return m.file.ends_with(kSoftwareNode); });
  return k;
}

std::vector<int> gpu_processes_below(int ancestor) {
  std::vector<int> all;
  for (const auto& name : names_in(kProcesses))
    if (const auto pid = parse_count(name); pid && is_below(static_cast<int>(*pid), ancestor))
      all.push_back(static_cast<int>(*pid));
  return all;
}

std::optional<std::uint64_t> sdma_activity(int pid) {
  constexpr std::string_view kPrefix = "sdma_";
  const auto directory = fmt::format("{}/{}", kProcesses, pid);
  std::optional<std::uint64_t> sum;
  for (const auto& name : names_in(directory)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto text = read_file(directory + "/" + name);
    const auto n = text ? parse_count(text->substr(0, text->find('\n'))) : std::nullopt;
    if (!n) return std::nullopt;
    sum = sum.value_or(0) + *n;
  }
  return sum;
}

}}}  // namespace sdma::v0_3::doctor
