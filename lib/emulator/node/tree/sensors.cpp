// SPDX-License-Identifier: MIT
// Clocks, power and temperatures; and how much memory a GPU has and uses. The GPU does not exist, so it is idle and
// consumes nothing: the lowest clock is current, voltage and power are 0, and all parts are as warm as a room. Limits
// and clock levels are those of the product; the lowest clocks are approximate.
#include "../../../kfd/abi.hpp"
#include "parts.hpp"
#include "processes.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <vector>

namespace sdma::emulator {

namespace {

std::string levels(const std::vector<std::uint32_t>& mhz) {
  std::string out;
  for (std::size_t i = 0; i < mhz.size(); ++i) out += fmt::format("{}: {}Mhz{}\n", i, mhz[i], i == 0 ? " *" : " ");
  return out;
}

}  // namespace

void add_power(const TreeGpu& g) {
  using Levels = std::vector<std::uint32_t>;
  const Levels sclk{500, g.product.engine_mhz};
  const Levels mclk = g.product.gfx == 90010   ? Levels{400, 700, 1200, 1600}
                      : g.product.gfx == 90402 ? Levels{900, 1100, 1200, 1300}
                                               : Levels{100, g.product.memory_mhz};
  g.file("pp_dpm_sclk", levels(sclk));
  g.file("pp_dpm_mclk", levels(mclk));
  g.file("pp_dpm_pcie", fmt::format("0: {}GT/s, x16 *\n", g.product.pcie == 3   ? "8.0"
                                                          : g.product.pcie == 4 ? "16.0"
                                                                                : "32.0"));
  g.file("power_dpm_state", "performance\n");
  g.file("power_dpm_force_performance_level", "auto\n");
  g.file("gpu_busy_percent", "0\n");
  g.file("mem_busy_percent", "0\n");

  const auto at = fmt::format("hwmon/hwmon{}", g.index);
  const auto file = [&](const char* name, std::string text) {
    g.file(fmt::format("{}/{}", at, name), std::move(text));
  };
  const auto temperature = [&](int channel, const char* label, std::uint32_t critical) {
    file(fmt::format("temp{}_input", channel).c_str(), fmt::format("{}\n", kTemperature * 1000));
    file(fmt::format("temp{}_label", channel).c_str(), fmt::format("{}\n", label));
    file(fmt::format("temp{}_crit", channel).c_str(), fmt::format("{}\n", critical));
  };
  constexpr std::uint32_t kCritical = 100'000, kCriticalMemory = 105'000;  // thousandths of a degree
  file("name", "amdgpu\n");
  if (!g.is_accelerator()) temperature(1, "edge", kCritical);
  temperature(2, "junction", kCritical);
  temperature(3, "mem", kCriticalMemory);
  // The driver has no voltage of gfx942, but version 5.2.3 of rocm-smi ends with an exception if a GPU has none.
  file("in0_input", "0\n");
  file("in0_label", "vddgfx\n");
  // The driver measures an average of older GPUs, and the present power of gfx942.
  file(g.is_accelerator() ? "power1_input" : "power1_average", "0\n");
  file("power1_label", "PPT\n");
  const auto watts = fmt::format("{}\n", std::uint64_t{g.product.watts} * 1'000'000);
  file("power1_cap", watts);
  file("power1_cap_default", watts);
  file("power1_cap_max", watts);
  file("power1_cap_min", "0\n");
  file("freq1_input", fmt::format("{}\n", std::uint64_t{sclk.front()} * 1'000'000));
  file("freq1_label", "sclk\n");
  file("freq2_input", fmt::format("{}\n", std::uint64_t{mclk.front()} * 1'000'000));
  file("freq2_label", "mclk\n");
  g.tree.add_link(fmt::format("{}/{}/device", g.device, at), g.device);
  g.tree.add_link(fmt::format("/sys/class/hwmon/hwmon{}", g.index), fmt::format("{}/{}", g.device, at));
}

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
