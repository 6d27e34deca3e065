// SPDX-License-Identifier: MIT
#include "sdma/device/open.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace sdma { inline namespace v0_3 {

std::string_view name(DeviceKind k) noexcept {
  switch (k) {
    case DeviceKind::soft: return "soft";
    case DeviceKind::kfd: return "kfd";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::rocr: break;
  }
  return "rocr";
}

std::optional<DeviceKind> device_kind(std::string_view word) noexcept {
  for (const auto k : kDeviceKinds)
    if (name(k) == word) return k;
  return {};
}

Result<std::unique_ptr<Device>, Diagnostic> open_device(DeviceKind kind, const OpenOptions& o) {
  const auto as_device = [](auto opened) -> Result<std::unique_ptr<Device>, Diagnostic> {
    if (!opened) return std::move(opened.error());
    return std::unique_ptr<Device>(std::move(*opened));
  };
  switch (kind) {
    case DeviceKind::soft: return as_device(SoftDevice::open(o.soft));
    case DeviceKind::kfd: return as_device(KfdDevice::open());
    case DeviceKind::rocr: return as_device(RocrDevice::open());
    case DeviceKind::cuda: break;
  }
  auto d = CudaDevice::open();
  if (!d || (*d)->topology().gpus.size() >= o.gpus) return as_device(std::move(d));
  d->reset();
  return as_device(CudaDevice::open({.gpus = o.gpus}));
}

std::optional<DeviceKind> hardware() {
  if (KfdDevice::missing().empty()) return DeviceKind::kfd;
  if (CudaDevice::missing().empty()) return DeviceKind::cuda;
  return {};
}

bool emulated() { return std::getenv("SDMA_EMULATE_GPUS") != nullptr; }

std::string caveat(const Device& d) {
  const auto* cuda = dynamic_cast<const CudaDevice*>(&d);
  if (!cuda || cuda->physical_gpus() == cuda->topology().gpus.size()) return {};
  return fmt::format("{} logical GPUs share {} physical {}: results are right, but times mean nothing",
                     cuda->topology().gpus.size(), cuda->physical_gpus(), cuda->physical_gpus() == 1 ? "GPU" : "GPUs");
}

}}  // namespace sdma::v0_3
