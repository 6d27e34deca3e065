// SPDX-License-Identifier: MIT
#include "process.hpp"

#include "../core/maps.hpp"
#include "../core/words.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using detail::maps_line, detail::take_line, detail::take_word, detail::whole_number;

constexpr std::string_view kKfd = "/dev/kfd", kSoftwareKfd = "/memfd:sdma-kfd", kRender = "/dev/dri/";
/// In the file of a software node, memory begins behind doorbells and registers.
constexpr std::uint64_t kSoftwareMemory = std::uint64_t{64} << 32;
constexpr const char* kSoftwareRender = "/dev/dri/ of a software node";

std::string proc_file(int pid, std::string_view name) {
  auto text = read_file(fmt::format("/proc/{}/{}", pid, name));
  return text ? std::move(*text) : std::string();
}

Range range_of(const Mapping& m) {
  Range r{.va = GpuVa{m.begin}, .bytes = m.end - m.begin, .object = m.object, .offset = m.offset};
  if (is_kfd(m.file)) {
    r.kind = Range::Kind::doorbell;
    r.name = "doorbells";
  } else if (m.file.starts_with(kRender)) {
    r.name = "memory of the driver";
  } else if (m.file.empty()) {
    r.kind = Range::Kind::host;
    r.name = m.readable ? "memory of the program" : "a reserved range";
  } else {
    r.kind = Range::Kind::host;
    r.name = m.file.starts_with('[') ? m.file : std::filesystem::path(m.file).filename().string();
  }
  return r;
}

}  // namespace

bool is_software_kfd(const std::string& file) noexcept { return file.starts_with(kSoftwareKfd); }
bool is_kfd(const std::string& file) noexcept { return file.starts_with(kKfd) || is_software_kfd(file); }

std::vector<Mapping> mappings_of(int pid) {
  std::vector<Mapping> all;
  const auto text = proc_file(pid, "maps");
  for (std::string_view rest = text; !rest.empty();) {
    const auto m = maps_line(take_line(rest));
    if (!m) continue;
    std::string file(m->path);
    if (is_software_kfd(file) && m->offset >= kSoftwareMemory) file = kSoftwareRender;
    all.push_back({.begin = m->from,
                   .end = m->to,
                   .readable = m->readable(),
                   .shared = m->shared(),
                   .file = std::move(file),
                   .object = m->shared() ? fmt::format("{} {}", m->device, m->inode) : "",
                   .offset = m->offset,
                   .executable = m->executable()});
  }
  return all;
}

std::vector<Range> ranges_of(const std::vector<Mapping>& mappings) {
  std::vector<Range> all;
  for (const auto& m : mappings) all.push_back(range_of(m));
  return all;
}

ProcessMemory::ProcessMemory(int pid, const std::vector<Mapping>& mappings)
    : fd_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC)) {
  std::copy_if(mappings.begin(), mappings.end(), std::back_inserter(doorbells_),
               [](const Mapping& m) { return is_kfd(m.file); });
}

ProcessMemory::~ProcessMemory() {
  if (fd_ >= 0) ::close(fd_);
}

Errc ProcessMemory::read(GpuVa va, std::span<std::byte> out) const noexcept {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 47;
  if (fd_ < 0 || va.value >= kEnd || out.size() > kEnd - va.value) return Errc::unmapped;
  for (const auto& d : doorbells_)
    if (va.value < d.end && va.value + out.size() > d.begin) return Errc::unmapped;
  for (std::size_t have = 0; have < out.size();) {
    const auto n = ::pread(fd_, out.data() + have, out.size() - have, static_cast<off_t>(va.value + have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Errc::unmapped;
    have += static_cast<std::size_t>(n);
  }
  return Errc::ok;
}

std::string status_of(int pid, std::string_view name) {
  const auto text = "\n" + proc_file(pid, "status");
  const auto line = fmt::format("\n{}:", name);
  const auto at = text.find(line);
  if (at == text.npos) return {};
  const auto begin = text.find_first_not_of(" \t", at + line.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::optional<double> start_of(int pid) {
  const auto text = proc_file(pid, "stat");
  // The name, in parentheses, may have blanks. After it, the start is the 20th word, in ticks since the boot.
  std::string_view rest = std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size()));
  std::string_view word;
  for (int i = 0; i < 20; ++i) word = take_word(rest);
  const auto ticks = whole_number<std::uint64_t>(word);
  if (!ticks) return std::nullopt;
  // The log's clock stands while the machine sleeps.
  timespec all{}, awake{};
  ::clock_gettime(CLOCK_BOOTTIME, &all);
  ::clock_gettime(CLOCK_MONOTONIC, &awake);
  const auto slept = static_cast<double>(all.tv_sec - awake.tv_sec) + 1;
  return static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)) - slept;
}

int tracer_of(int pid) { return static_cast<int>(parse_count(status_of(pid, "TracerPid")).value_or(0)); }

}}}  // namespace sdma::v0_3::doctor
