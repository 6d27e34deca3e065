// SPDX-License-Identifier: MIT
// How much memory a GPU has, and how much of it the processes on this machine use.
#include "../../../kfd/abi.hpp"
#include "parts.hpp"
#include "processes.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>

namespace sdma::emulator {
namespace {

std::string vram_used(std::uint64_t gpu) {
  const auto all = tree().node().topology.gpus[gpu].memory_bytes;
  return fmt::format("{}\n", std::min(all, bytes_in_use(static_cast<std::uint32_t>(gpu), kfd::kVram)));
}
std::string gtt_used(std::uint64_t gpu) {
  return fmt::format("{}\n", bytes_in_use(static_cast<std::uint32_t>(gpu), kfd::kGtt));
}

}  // namespace

void add_memory(const TreeGpu& g) {
  const auto vram = fmt::format("{}\n", g.properties.memory_bytes);
  const auto host =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  g.file("mem_info_vram_total", vram);
  g.file("mem_info_vis_vram_total", vram);
  g.file("mem_info_gtt_total", fmt::format("{}\n", host / 2));  // the driver's default: half of the host's memory
  g.live("mem_info_vram_used", vram_used);
  g.live("mem_info_vis_vram_used", vram_used);
  g.live("mem_info_gtt_used", gtt_used);
  g.file("mem_info_vram_vendor", "unknown\n");
}

}  // namespace sdma::emulator
