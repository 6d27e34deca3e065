// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda, for users of streams here: those of the CUDA device, and others that are found when needed.
//
//   auto cuda = CudaLibrary::load();                    // an error says what is missing
//   cuda->good("cuStreamQuery", cuda->stream_query(s))  // nothing, or what CUDA calls the error
//
// A struct of more calls derives from it, takes their initial values from `find`, and is loaded by load<Calls>().
// Plain values; any thread. Errors: Diagnostics with CUDA's text.
#include "device/cuda/cuda_driver.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace collectives::perf {

struct CudaLibrary : sdma::detail::cuda::Driver {
  using Status = sdma::detail::cuda::Status;
  using Pointer = sdma::detail::cuda::Pointer;
  using Context = sdma::detail::cuda::Context;
  using Stream = sdma::detail::cuda::Stream;
  static constexpr Status kSuccess = sdma::detail::cuda::kSuccess, kNotReady = sdma::detail::cuda::kNotReady;
  static constexpr unsigned kNonBlocking = sdma::detail::cuda::kNonBlocking,
                            kAtLeast = sdma::detail::cuda::kWaitGreaterOrEqual, kEqual = sdma::detail::cuda::kWaitEqual;

  CudaLibrary()
      : Driver{.library = sdma::detail::LoadedLibrary(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))} {}
  template <class Calls = CudaLibrary> static sdma::Result<Calls, sdma::Diagnostic> load() {
    Calls c;
    if (!c.find.from()) return refused("libcuda.so.1 cannot be loaded");
    if (c.find.lacking()) return refused(fmt::format("libcuda.so.1 has no function {}", c.find.lacking()));
    return c;
  }
  sdma::Result<void, sdma::Diagnostic> good(const char* call, Status s) const {
    if (s == kSuccess) return {};
    return refused(fmt::format("{}: {}", call, describe(s)));
  }

 private:
  static sdma::Diagnostic refused(std::string message) {
    return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
  }
};

}  // namespace collectives::perf
