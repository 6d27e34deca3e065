// SPDX-License-Identifier: MIT
#include "nvml.hpp"

#include "loaded_library.hpp"

#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

namespace {

using Status = int;
using Handle = struct HandleTag*;

struct Nvml {
  Status (*init)(){};
  Status (*handle)(const char* pci, Handle*){};
  Status (*energy)(Handle, unsigned long long* millijoules){};
  const char* (*error)(Status){};
};

class Counter final : public EnergyCounter {
 public:
  Counter(const Nvml& n, Handle h, std::string pci) : nvml_(n), handle_(h), pci_(std::move(pci)) {}

  Result<double, Diagnostic> joules() override {
    unsigned long long millijoules = 0;
    if (const auto s = nvml_.energy(handle_, &millijoules); s != 0)
      return Diagnostic{.where = "--energy",
                        .message = fmt::format("GPU {} shows no energy counter: {}", pci_, nvml_.error(s)),
                        .hint = "GPUs have one from Volta on; a virtual machine may hide it"};
    return static_cast<double>(millijoules) / 1e3;
  }

 private:
  Nvml nvml_;
  Handle handle_;
  std::string pci_;
};

}  // namespace

Result<EnergyCounters, Diagnostic> nvml_counters(const std::vector<std::string>& pci) {
  auto library = LoadedLibrary::load({.option = "--energy",
                                      .what = "NVML",
                                      .variable = "SDMA_NVML_LIBRARY",
                                      .names = {"libnvidia-ml.so.1"},
                                      .hint = "it comes with NVIDIA's driver: add its folder to LD_LIBRARY_PATH"});
  if (!library) return std::move(library.error());
  Nvml nvml;
  library->take(nvml.init, "nvmlInit_v2");
  library->take(nvml.handle, "nvmlDeviceGetHandleByPciBusId_v2");
  library->take(nvml.energy, "nvmlDeviceGetTotalEnergyConsumption");
  library->take(nvml.error, "nvmlErrorString");
  if (auto d = library->lacking()) return *d;
  if (const auto s = nvml.init(); s != 0)
    return Diagnostic{.where = "--energy",
                      .message = fmt::format("NVML cannot be initialised: {}", nvml.error(s)),
                      .hint = "nvidia-smi needs it, too: see whether that works"};
  EnergyCounters all;
  for (const auto& p : pci) {
    Handle h = nullptr;
    if (const auto s = nvml.handle(p.c_str(), &h); s != 0)
      return Diagnostic{.where = "--energy",
                        .message = fmt::format("NVML does not know GPU {}: {}", p, nvml.error(s)),
                        .hint = "nvidia-smi -L lists the GPUs that it knows"};
    all.push_back(std::make_unique<Counter>(nvml, h, p));
    if (auto j = all.back()->joules(); !j) return std::move(j.error());
  }
  return all;
}

}  // namespace collectives::perf
