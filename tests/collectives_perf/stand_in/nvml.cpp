// SPDX-License-Identifier: MIT
// A libnvidia-ml.so.1 for machines without an NVIDIA GPU: energy counters of GPUs that use 100 W each.
//
// GPUs are those of the stand-in for libcuda, by their PCI addresses: bus 0x10 and up.
//
//   SDMA_STAND_IN_NVML_ENERGY=0    GPUs have no counter
//   SDMA_STAND_IN_NVML_TICK_MS=20  how often a counter changes
//   SDMA_STAND_IN_NVML_BUSY=300    watts from the time on at which the idle power has been measured: 1.2 s
//                                  after nvmlInit
#include "cuda.hpp"

#include <chrono>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6;
constexpr double kIdleWatts = 100, kIdleSeconds = 1.2;
Clock::time_point begun;
int gpus[64];

}  // namespace

STAND_IN_EXPORT int nvmlInit_v2() {
  begun = Clock::now();
  return kSuccess;
}
STAND_IN_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, int** out) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(pci, "%4x:%2x:%2x.0", &domain, &bus, &device) != 3) return kInvalidArgument;
  const auto gpu = static_cast<long>(bus) - 0x10;
  if (domain != 0 || device != 0 || gpu < 0 || gpu >= stand_in::setting("SDMA_STAND_IN_GPUS", 2)) return kNotFound;
  *out = &gpus[gpu];
  return kSuccess;
}
STAND_IN_EXPORT int nvmlDeviceGetTotalEnergyConsumption(int*, unsigned long long* millijoules) {
  if (stand_in::setting("SDMA_STAND_IN_NVML_ENERGY", 1) == 0) return kNotSupported;
  const std::chrono::milliseconds tick{stand_in::setting("SDMA_STAND_IN_NVML_TICK_MS", 20)};
  const auto t = std::chrono::duration<double>(tick * ((Clock::now() - begun) / tick)).count();
  const auto busy = static_cast<double>(stand_in::setting("SDMA_STAND_IN_NVML_BUSY", 100));
  const auto joules = t < kIdleSeconds ? t * kIdleWatts : kIdleSeconds * kIdleWatts + (t - kIdleSeconds) * busy;
  *millijoules = static_cast<unsigned long long>(joules * 1e3);
  return kSuccess;
}
STAND_IN_EXPORT const char* nvmlErrorString(int s) { return s == kNotSupported ? "Not Supported" : "Not Found"; }
