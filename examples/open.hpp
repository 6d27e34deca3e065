#pragma once
// A device by name, for programs that run on either.
//
//   auto d = example::open_device("soft", {.gpus = 8, .ordering = sdma::Ordering::rocr});
//   auto d = example::open_device("kfd");          // the kernel driver's node: this machine, or `sdma emulate`
//
// Any thread. Errors: a Diagnostic, also for an unknown name.
#include "sdma/device/kfd.hpp"
#include "sdma/device/soft.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace example {

using OpenedDevice = sdma::Result<std::unique_ptr<sdma::Device>, sdma::Diagnostic>;

/// `soft` applies to the software device only.
inline OpenedDevice open_device(std::string_view name, const sdma::SoftOptions& soft = {}) {
  const auto as_device = [](auto opened) -> OpenedDevice {
    if (!opened) return std::move(opened.error());
    return std::unique_ptr<sdma::Device>(std::move(*opened));
  };
  if (name == "soft") return as_device(sdma::SoftDevice::open(soft));
  if (name == "kfd") return as_device(sdma::KfdDevice::open());
  return sdma::Diagnostic{
      .where = "device", .message = "'" + std::string(name) + "' is not a device", .hint = "use soft or kfd"};
}

}  // namespace example
