// SPDX-License-Identifier: MIT
#pragma once
// Opens a device by its name, for programs that run on any kind of device.
//
//   auto soft = open_device(DeviceKind::soft, {.soft = {.gpus = 8, .ordering = Ordering::rocr}});
//   auto kfd = open_device(DeviceKind::kfd);                 // the kernel driver's node, or that of `sdma emulate`
//   auto cuda = open_device(DeviceKind::cuda, {.gpus = 3});  // NVIDIA GPUs; three logical ones if there are fewer
//   auto rocr = open_device(DeviceKind::rocr);               // AMD GPUs in a process that HIP or ROCr owns
//
//   device_kind("cuda") == DeviceKind::cuda    name(DeviceKind::cuda) == "cuda"
//   for (const auto kind : kDeviceKinds) puts(name(kind).data());    // kDeviceNames lists them for people
//
// Any thread. Errors: the Diagnostic of the device that was asked for.
#include "sdma/device/cuda.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/device/rocr.hpp"
#include "sdma/device/soft.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// `soft`: a software node; `kfd`: the kernel driver; `cuda`: NVIDIA GPUs; `rocr`: the ROCr of a process that uses HIP.
enum class DeviceKind : std::uint8_t { soft, kfd, cuda, rocr };
/// All of them: whatever offers a choice of devices iterates over these.
inline constexpr DeviceKind kDeviceKinds[] = {DeviceKind::soft, DeviceKind::kfd, DeviceKind::cuda, DeviceKind::rocr};
inline constexpr std::string_view kDeviceNames = "soft, kfd, cuda or rocr";
std::string_view name(DeviceKind) noexcept;
std::optional<DeviceKind> device_kind(std::string_view name) noexcept;

/// Options for each kind of device; only those of the opened kind matter.
struct OpenOptions {
  /// CUDA: how many GPUs the program needs; if there are fewer, logical GPUs share them. 0: those that there are.
  std::uint32_t gpus = 0;
  SoftOptions soft{};  ///< for DeviceKind::soft
};
Result<std::unique_ptr<Device>, Diagnostic> open_device(DeviceKind, const OpenOptions& = {});

/// The kind of hardware that this process can use: kfd, else cuda; nothing if there is neither. Opens no device.
std::optional<DeviceKind> hardware();

/// True if this process runs under `sdma emulate`: the driver's node is software, and its times are those of CPUs.
bool emulated();

/// What a user should know before reading any time of this device, in one sentence; empty if there is nothing.
std::string caveat(const Device&);

}}  // namespace sdma::v0_3
