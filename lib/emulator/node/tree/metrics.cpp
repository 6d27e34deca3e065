// SPDX-License-Identifier: MIT
// gpu_metrics: the driver's binary table of sensors, version 1.5 for gfx942 and gfx950, and 1.3 for the others.
// Versions of librocm_smi64 before 6 abort if they read a table later than 1.3, so such a program gets 1.3.
//
// All bits of a field are set where the driver has no value, as it does itself. Known are the clocks that tick, the
// width and speed of the link, that nothing is busy or throttled, and that nothing consumes power. The junction and the
// memory are as warm as a room.
#include "parts.hpp"

#include "../../../engine/execute.hpp"

#include <link.h>
#include <chrono>
#include <cstring>

namespace sdma::emulator {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Header {
  u16 bytes;
  u8 format, content;
};

struct Metrics13 {
  Header header;
  u16 edge_temperature, temperature[2], regulator_temperatures[3], gfx_activity, memory_activity, media_activity,
      socket_power;
  u64 energy, host_ns;
  u16 average_clocks[7], current_clocks[7];
  u32 throttled;
  u16 fan, pcie_lanes, pcie_speed, padding;
  u32 gfx_activity_sum, memory_activity_sum;
  u16 memory_temperature[4];
  u64 firmware_ticks;
  u16 voltage[3], padding_1;
  u64 throttled_by;
};
static_assert(sizeof(Metrics13) == 120);

struct Metrics15 {
  Header header;
  u16 temperature[2], regulator_temperature, socket_power, gfx_activity, memory_activity, video_activity[4],
      jpeg_activity[32];
  u64 energy, host_ns;
  u32 throttled, gfx_clock_locked;
  u16 pcie_lanes, pcie_speed, xgmi_lanes, xgmi_speed;
  u32 gfx_activity_sum, memory_activity_sum;
  u64 pcie_bytes_sum, pcie_bytes, pcie_recoveries, pcie_replays, pcie_replay_overflows;
  u32 pcie_naks_sent, pcie_naks_received;
  u64 xgmi_read[8], xgmi_written[8], firmware_ticks;
  u16 gfx_clock[8], soc_clock[4], video_clock[4], decoder_clock[4], memory_clock, padding;
};
static_assert(sizeof(Metrics15) == 360);

constexpr u16 kNotAvailable = 0xffff;

/// Whether this process has loaded a librocm_smi64 that knows tables up to 1.3 only.
bool old_reader() {
  bool old = false;
  ::dl_iterate_phdr(
      [](dl_phdr_info* i, std::size_t, void* found) {
        constexpr std::string_view kName = "librocm_smi64.so.";
        const std::string_view path = i->dlpi_name ? i->dlpi_name : "";
        const auto at = path.find(kName);
        if (at == path.npos) return 0;
        const auto version = path.substr(at + kName.size());
        *static_cast<bool*>(found) = !version.empty() && version[0] >= '0' && version[0] < '6';
        return 1;
      },
      &old);
  return old;
}

/// `other_temperatures`: of the edge and of each stack of memory, which the driver reports for GPUs before gfx94x.
template <class Metrics> std::string table(u8 content, u16 pcie_speed, u16 other_temperatures = kNotAvailable) {
  Metrics m;
  std::memset(&m, 0xff, sizeof m);
  m.header = {.bytes = sizeof m, .format = 1, .content = content};
  m.socket_power = m.gfx_activity = m.memory_activity = 0;
  m.gfx_activity_sum = m.memory_activity_sum = 0;
  for (auto& t : m.temperature) t = kTemperature;
  if constexpr (requires { m.edge_temperature; }) {
    m.edge_temperature = other_temperatures;
    for (auto& t : m.memory_temperature) t = other_temperatures;
  }
  m.energy = 0;
  m.throttled = 0;
  m.pcie_lanes = 16;
  m.pcie_speed = pcie_speed;
  m.host_ns = static_cast<u64>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
  m.firmware_ticks = host_ticks();
  return {reinterpret_cast<const char*>(&m), sizeof m};
}

}  // namespace

void add_metrics(const TreeGpu& g) {
  // Speeds are in units of 0.1 GT/s.
  if (g.is_accelerator())
    g.live("gpu_metrics", [](u64) { return old_reader() ? table<Metrics13>(3, 320) : table<Metrics15>(5, 320); });
  else if (g.product.pcie == 3) g.live("gpu_metrics", [](u64) { return table<Metrics13>(3, 80, kTemperature); });
  else g.live("gpu_metrics", [](u64) { return table<Metrics13>(3, 160, kTemperature); });
}

}  // namespace sdma::emulator
