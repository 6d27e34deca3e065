// SPDX-License-Identifier: MIT
#include "driver.hpp"

#include <fmt/format.h>

namespace sdma::inline v0::detail::cuda {
namespace {

/// The version for cuGetProcAddress. The ABI of every function but the batches is that of 12.0.
constexpr int kAbi = 12000, kBatchAbi = 12080, kBatchAbiNow = 13000;

void* procedure(void* get, const char* symbol, int version) {
  using GetProcAddress = Status(const char* symbol, void** function, int version, std::uint64_t flags, int* found);
  void* at = nullptr;
  int found = 0;
  return reinterpret_cast<GetProcAddress*>(get)(symbol, &at, version, 0, &found) == kSuccess ? at : nullptr;
}

constexpr const char* kHint =
    "install NVIDIA's driver, version 525 or later (Debian: libcuda1), or give the library's path in "
    "CudaOptions::libcuda; without an NVIDIA GPU, use the software device";

}  // namespace

std::string_view Driver::name_of(Status s) const noexcept {
  const char* text = nullptr;
  return error_name && error_name(s, &text) == kSuccess && text ? text : "an unknown CUDA error";
}

std::string Driver::describe(Status s) const {
  const char* text = nullptr;
  if (!error_string || error_string(s, &text) != kSuccess || !text) return std::string(name_of(s));
  return fmt::format("{}: {}", name_of(s), text);
}

void* by_version(void* get, const char* symbol) { return procedure(get, symbol, kAbi); }

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

}  // namespace sdma::inline v0::detail::cuda
