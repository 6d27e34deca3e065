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
  for (auto& [path, text] : to_sysfs(t.node()))
    t.add_text(fmt::format("/sys/devices/virtual/kfd/kfd/topology/{}", path), text);
  for (const auto n : t.node().cpu_nodes) t.fill("kfd node", FileValues()("node", n));
  for (const auto& g : t.node().gpus) t.fill("kfd node", FileValues()("node", g.kfd_node));
  t.fill("kfd", FileValues()("no_system_mem_limit", options().no_system_mem_limit ? "Y" : "N"));
  t.add("/dev/kfd", {.kind = Kind::kfd});
  t.add_text("/proc/modules", machine_file("/proc/modules") + "amdgpu 16777216 0 - Live 0x0000000000000000\n");
}

}  // namespace sdma::emulator
