// SPDX-License-Identifier: MIT
#include "energy.hpp"

#include "loaded_library.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace collectives::perf {

using namespace sdma;

namespace {

namespace fs = std::filesystem;

struct Nvml {
  using Status = int;
  using Handle = struct HandleTag*;
  LoadedLibrary library;
  Status (*init)() = library["nvmlInit_v2"];
  Status (*handle)(const char* pci, Handle*) = library["nvmlDeviceGetHandleByPciBusId_v2"];
  Status (*energy)(Handle, unsigned long long* millijoules) = library["nvmlDeviceGetTotalEnergyConsumption"];
  const char* (*error)(Status) = library["nvmlErrorString"];
};

Diagnostic energy_refused(std::string message, std::string hint) {
  return {.where = "--energy", .message = std::move(message), .hint = std::move(hint)};
}

/// Microjoules, or microwatts.
Result<double, Diagnostic> millionths_in(const fs::path& path) {
  std::ifstream file(path);
  double v = 0;
  if (file >> v) return v * 1e-6;
  return Diagnostic{.where = path.string(), .message = "cannot be read", .hint = "see whether the driver still works"};
}

/// Sums power, each reading for the time since the one before.
EnergyCounter summed(fs::path path) {
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
std::optional<EnergyCounter> counter_in(const fs::path& monitor) {
  std::error_code error;
  if (const auto p = monitor / "energy1_input"; fs::exists(p, error)) return [p] { return millionths_in(p); };
  for (const auto* name : {"power1_average", "power1_input"})
    if (const auto p = monitor / name; fs::exists(p, error)) return summed(p);
  return {};
}

}  // namespace

Result<EnergyCounters, Diagnostic> nvml_counters(const std::vector<std::string>& pci) {
  const auto library =
      LoadedLibrary::load({.option = "--energy",
                           .what = "NVML",
                           .variable = "SDMA_NVML_LIBRARY",
                           .names = {"libnvidia-ml.so.1"},
                           .hint = "it comes with NVIDIA's driver: add its folder to LD_LIBRARY_PATH"});
  if (!library) return library.error();
  const Nvml nvml{*library};
  if (auto d = nvml.library.lacking()) return *d;
  if (const auto s = nvml.init(); s != 0)
    return energy_refused(fmt::format("NVML cannot be initialised: {}", nvml.error(s)),
                          "nvidia-smi needs it, too: see whether that works");
  EnergyCounters all;
  for (const auto& p : pci) {
    Nvml::Handle h = nullptr;
    if (const auto s = nvml.handle(p.c_str(), &h); s != 0)
      return energy_refused(fmt::format("NVML does not know GPU {}: {}", p, nvml.error(s)),
                            "nvidia-smi -L lists the GPUs that it knows");
    all.push_back([nvml, h, p]() -> Result<double, Diagnostic> {
      unsigned long long millijoules = 0;
      if (const auto s = nvml.energy(h, &millijoules); s != 0)
        return energy_refused(fmt::format("GPU {} shows no energy counter: {}", p, nvml.error(s)),
                              "GPUs have one from Volta on; a virtual machine may hide it");
      return static_cast<double>(millijoules) / 1e3;
    });
    if (auto j = all.back()(); !j) return std::move(j.error());
  }
  return all;
}

Result<EnergyCounters, Diagnostic> hwmon_counters(const std::vector<std::string>& pci, const std::string& root) {
  EnergyCounters all;
  for (const auto& p : pci) {
    const auto folder = fs::path(root) / p / "hwmon";
    std::error_code error;
    std::optional<EnergyCounter> counter;
    for (const auto& monitor : fs::directory_iterator(folder, error))
      if (!counter) counter = counter_in(monitor.path());
    if (!counter)
      return energy_refused(
          fmt::format("{}/*: none of energy1_input, power1_average and power1_input is there", folder.string()),
          "the amdgpu driver offers them; a container may hide them");
    if (auto j = (*counter)(); !j) return std::move(j.error());
    all.push_back(*std::move(counter));
  }
  return all;
}

}  // namespace collectives::perf
