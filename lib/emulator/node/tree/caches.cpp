// SPDX-License-Identifier: MIT
// The caches of the machine's processors, where the machine's /sys lacks them, as that of some virtual machines does.
// libhsakmt refuses a node whose processors have no such directory. Sizes are those that the C library knows; what it
// does not know is 0.
#include "../../real.hpp"
#include "parts.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace sdma::emulator {
namespace {

struct Cache {
  unsigned level;
  const char* type;
  int bytes, ways, line;  ///< names for sysconf
  bool shared;            ///< by all processors of a NUMA node
};
constexpr Cache kCaches[] = {
    {1, "Data", _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_ASSOC, _SC_LEVEL1_DCACHE_LINESIZE, false},
    {1, "Instruction", _SC_LEVEL1_ICACHE_SIZE, _SC_LEVEL1_ICACHE_ASSOC, _SC_LEVEL1_ICACHE_LINESIZE, false},
    {2, "Unified", _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_ASSOC, _SC_LEVEL2_CACHE_LINESIZE, false},
    {3, "Unified", _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL3_CACHE_ASSOC, _SC_LEVEL3_CACHE_LINESIZE, true},
};

/// What sysconf knows; 0 if it knows nothing.
std::uint64_t known(int name) {
  const auto value = ::sysconf(name);
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

void add_processor(Tree& tree, const std::string& node, std::uint32_t processor) {
  unsigned index = 0;
  for (const auto& c : kCaches) {
    const auto at = fmt::format("{}/cpu{}/cache/index{}", node, processor, index++);
    const auto bytes = known(c.bytes), ways = known(c.ways), line = known(c.line);
    tree.fill("cache",
              FileValues()("level", c.level)("type", c.type)("kib", bytes / 1024)("line_bytes", line)("ways", ways)(
                  "sets", ways * line == 0 ? 0 : bytes / (ways * line)),
              at);
    tree.add_text(at + "/shared_cpu_list", c.shared ? machine_file(node + "/cpulist") : fmt::format("{}\n", processor));
    tree.add_text(at + "/shared_cpu_map", c.shared ? machine_file(node + "/cpumap") : processor_mask(processor, 1));
  }
}

}  // namespace

void add_caches(Tree& tree) {
  const auto exists = [](const std::string& path) { return SDMA_REAL(access)(path.c_str(), F_OK) == 0; };
  const auto processors = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF));
  for (std::uint32_t n = 0;; ++n) {
    const auto node = fmt::format("/sys/devices/system/node/node{}", n);
    if (!exists(node)) return;
    for (std::uint32_t p = 0; p < processors; ++p) {
      const auto processor = fmt::format("{}/cpu{}", node, p);
      if (exists(processor) && !exists(processor + "/cache")) add_processor(tree, node, p);
    }
  }
}

}  // namespace sdma::emulator
