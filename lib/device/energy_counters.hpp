// SPDX-License-Identifier: MIT
#pragma once
// Energy counters of GPUs, which are found by their PCI addresses.
//
//   auto counters = nvml_counters("--energy", {"0000:06:00.0", "0000:07:00.0"});       // or hwmon_counters
//   const auto joules = counters->front()();
//
// NVIDIA: NVML (libnvidia-ml.so.1), which is loaded when it is asked for. CUDA_VISIBLE_DEVICES renumbers CUDA's GPUs
// but not NVML's. AMD: files of the kernel's hardware monitor:
//
//   /sys/bus/pci/devices/0000:06:00.0/hwmon/hwmon3/energy1_input     microjoules
//                                                  power1_average    microwatts, or power1_input: summed over time
//
// One thread. Errors: a Diagnostic, at the option that asks for the counters, if the library is missing or a GPU has no
// counter; at the file, if that cannot be read.
#include "requested_library.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The joules of a GPU since any moment, which never fall.
using EnergyCounter = std::function<Result<double, Diagnostic>()>;
using EnergyCounters = std::vector<EnergyCounter>;

struct Nvml {
  using Status = int;
  using Handle = struct HandleTag*;
  RequestedLibrary library;
  Status (*init)() = library["nvmlInit_v2"];
  Status (*handle)(const char* pci, Handle*) = library["nvmlDeviceGetHandleByPciBusId_v2"];
  Status (*energy)(Handle, unsigned long long* millijoules) = library["nvmlDeviceGetTotalEnergyConsumption"];
  const char* (*error)(Status) = library["nvmlErrorString"];
};

/// Microjoules, or microwatts.
inline Result<double, Diagnostic> millionths_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  double v = 0;
  if (file >> v) return v * 1e-6;
  return Diagnostic{.where = path.string(), .message = "cannot be read", .hint = "see whether the driver still works"};
}

/// Sums power, each reading for the time since the one before.
inline EnergyCounter summed(std::filesystem::path path) {
  using Clock = std::chrono::steady_clock;
  return [path = std::move(path), joules = 0.0, last = Clock::now()]() mutable -> Result<double, Diagnostic> {
    const auto watts = millionths_in(path);
    if (!watts) return watts.error();
    const auto now = Clock::now();
    joules += *watts * std::chrono::duration<double>(now - std::exchange(last, now)).count();
    return joules;
  };
}

/// Nothing if this monitor has none.
inline std::optional<EnergyCounter> counter_in(const std::filesystem::path& monitor) {
  std::error_code error;
  if (const auto p = monitor / "energy1_input"; std::filesystem::exists(p, error))
    return [p] { return millionths_in(p); };
  for (const auto* name : {"power1_average", "power1_input"})
    if (const auto p = monitor / name; std::filesystem::exists(p, error)) return summed(p);
  return {};
}

inline Result<EnergyCounters, Diagnostic> nvml_counters(const std::string& option,
                                                        const std::vector<std::string>& pci) {
  const auto library =
      RequestedLibrary::load({.option = option,
                              .what = "NVML",
                              .variable = "SDMA_NVML_LIBRARY",
                              .names = {"libnvidia-ml.so.1"},
                              .hint = "it comes with NVIDIA's driver: add its folder to LD_LIBRARY_PATH"});
  if (!library) return library.error();
  const Nvml nvml{*library};
  if (auto d = nvml.library.lacking()) return *d;
  if (const auto s = nvml.init(); s != 0)
    return Diagnostic{.where = option,
                      .message = fmt::format("NVML cannot be initialised: {}", nvml.error(s)),
                      .hint = "nvidia-smi needs it, too: see whether that works"};
  EnergyCounters all;
  for (const auto& p : pci) {
    Nvml::Handle h = nullptr;
    if (const auto s = nvml.handle(p.c_str(), &h); s != 0)
      return Diagnostic{.where = option,
                        .message = fmt::format("NVML does not know GPU {}: {}", p, nvml.error(s)),
                        .hint = "nvidia-smi -L lists the GPUs that it knows"};
    all.push_back([nvml, h, p, option]() -> Result<double, Diagnostic> {
      unsigned long long millijoules = 0;
      if (const auto s = nvml.energy(h, &millijoules); s != 0)
        return Diagnostic{.where = option,
                          .message = fmt::format("GPU {} shows no energy counter: {}", p, nvml.error(s)),
                          .hint = "GPUs have one from Volta on; a virtual machine may hide it"};
      return static_cast<double>(millijoules) / 1e3;
    });
    if (auto j = all.back()(); !j) return std::move(j.error());
  }
  return all;
}

/// `root` replaces the folder of the devices in tests.
inline Result<EnergyCounters, Diagnostic> hwmon_counters(const std::string& option, const std::vector<std::string>& pci,
                                                         const std::string& root = "/sys/bus/pci/devices") {
  EnergyCounters all;
  for (const auto& p : pci) {
    const auto folder = std::filesystem::path(root) / p / "hwmon";
    std::error_code error;
    std::optional<EnergyCounter> counter;
    for (const auto& monitor : std::filesystem::directory_iterator(folder, error))
      if (!counter) counter = counter_in(monitor.path());
    if (!counter)
      return Diagnostic{.where = option,
                        .message = fmt::format("{}/*: none of energy1_input, power1_average and power1_input is there",
                                               folder.string()),
                        .hint = "the amdgpu driver offers them; a container may hide them"};
    if (auto j = (*counter)(); !j) return std::move(j.error());
    all.push_back(*std::move(counter));
  }
  return all;
}

}}}  // namespace sdma::v0_3::detail
