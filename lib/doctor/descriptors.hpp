#pragma once
// The descriptors of sDMA queues (MQDs) that the driver shows root in debugfs: the only place that names a queue's engine. Internal.
//
//   Process 4711 PASID 0x8001:
//     SDMA queue on device 3a26
//       00000000: 00000a1d f7fb1000 0000007f ...           eight dwords a line
//
// The positions in a descriptor are those of its last unmapping, so only the rest is taken.
#include "sdma/core/units.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace sdma::inline v0::doctor {

inline constexpr const char* kMqds = "/sys/kernel/debug/kfd/mqds";

struct QueueDescriptor {
  std::uint32_t gpu_id{};
  GpuVa ring{}, rptr{};
  std::uint64_t ring_bytes{};
  EngineId engine{};
  std::uint32_t slot{};
};
/// Those of one process. Descriptors that are cut short are left out.
std::vector<QueueDescriptor> sdma_descriptors(std::string_view mqds, int pid);

}  // namespace sdma::inline v0::doctor
