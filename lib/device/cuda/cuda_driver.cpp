// SPDX-License-Identifier: MIT
#include "cuda_driver.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
namespace {

constexpr const char* kHint =
    "install NVIDIA's driver, version 525 or later (Debian: libcuda1), or give the library's path in "
    "CudaOptions::libcuda; without an NVIDIA GPU, use the software device";

}  // namespace

Result<const Driver*, Diagnostic> load_driver(const std::string& name) {
  return load_once<Driver>(name, kHint, [](Driver& d) -> std::string {
    if (!d.find.from()) return "does not export cuGetProcAddress_v2: it is older than CUDA 12.0";
    if (const auto* lacking = d.find.lacking())
      return fmt::format("lacks {}, so it is not a libcuda of CUDA 12.0 or later", lacking);
    if (d.driver_version(&d.version) != kSuccess) d.version = kAbi;
    const auto batch = [&](int version) { return Symbol{procedure(d.find.from(), "cuMemcpyBatchAsync", version)}; };
    if (d.version >= kBatchAbiNow) d.copy_batch_13_0 = batch(kBatchAbiNow);
    else if (d.version >= kBatchAbi) d.copy_batch_12_8 = batch(kBatchAbi);
    return "";
  });
}

}}}  // namespace sdma::v0_3::detail::cuda
