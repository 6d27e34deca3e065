// SPDX-License-Identifier: MIT
// The driver itself: its module, the device /dev/kfd, and the topology.
#include "../../node_options.hpp"
#include "../../real.hpp"
#include "parts.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

namespace sdma::emulator {

std::string machine_file(const std::string& path) {
  std::string out;
  const int fd = SDMA_REAL(open)(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return out;
}

void add_kfd(Tree& t) {
  constexpr std::string_view kDevice = "/sys/devices/virtual/kfd/kfd";
  for (auto& [path, text] : to_sysfs(t.node())) {
    const auto file = fmt::format("{}/topology/{}", kDevice, path);
    t.add_text(file, text);
    // Each node has these directories, which contain nothing: one hive connects all GPUs, and there are no counters.
    constexpr std::string_view kOfNode = "/gpu_id";
    if (!file.ends_with(kOfNode)) continue;
    for (const auto* empty : {"/p2p_links", "/perf"})
      t.add(file.substr(0, file.size() - kOfNode.size()) + empty, {.kind = Kind::directory});
  }
  t.add_text(fmt::format("{}/dev", kDevice), "510:0\n");
  t.add_text(fmt::format("{}/uevent", kDevice), "MAJOR=510\nMINOR=0\nDEVNAME=kfd\n");
  t.add_link(fmt::format("{}/subsystem", kDevice), "/sys/class/kfd");
  t.add_link("/sys/class/kfd/kfd", kDevice);
  t.add_link("/sys/dev/char/510:0", kDevice);
  t.add("/dev/kfd", {.kind = Kind::kfd});

  t.add_text("/proc/modules", machine_file("/proc/modules") + "amdgpu 16777216 0 - Live 0x0000000000000000\n");
  const std::string module = "/sys/module/amdgpu/";
  t.add_text(module + "initstate", "live\n");
  t.add_text(module + "refcnt", "0\n");
  t.add_text(module + "coresize", "16777216\n");
  t.add_text(module + "version", "6.12.0\n");
  t.add(module + "holders", {.kind = Kind::directory});
  t.add_text(module + "parameters/no_system_mem_limit", options().no_system_mem_limit ? "Y\n" : "N\n");
}

}  // namespace sdma::emulator
