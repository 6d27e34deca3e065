// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda, for users of streams here: those of the CUDA device, and others that are found when needed.
//
//   auto cuda = CudaLibrary::load();                    // an error says what is missing
//   cuda->good("cuStreamQuery", cuda->stream_query(s))  // nothing, or what CUDA calls the error
//   Status (*launch)(..) = cuda->find["cuGraphLaunch"]; // another function
//   if (auto d = cuda->lacking()) return *d;
//
// Plain values; any thread. Errors: Diagnostics with CUDA's text.
#include "device/cuda/driver.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <optional>

namespace collectives::perf {

struct CudaLibrary : sdma::detail::cuda::Driver {
  using Status = sdma::detail::cuda::Status;
  using Pointer = sdma::detail::cuda::Pointer;
  using Context = sdma::detail::cuda::Context;
  using Stream = sdma::detail::cuda::Stream;
  static constexpr Status kSuccess = sdma::detail::cuda::kSuccess, kNotReady = sdma::detail::cuda::kNotReady;
  static constexpr unsigned kNonBlocking = sdma::detail::cuda::kNonBlocking,
                            kAtLeast = sdma::detail::cuda::kWaitGreaterOrEqual, kEqual = sdma::detail::cuda::kWaitEqual;

  CudaLibrary();
  static sdma::Result<CudaLibrary, sdma::Diagnostic> load();
  /// That the library cannot be loaded, or the first function that was not found.
  std::optional<sdma::Diagnostic> lacking() const;
  sdma::Result<void, sdma::Diagnostic> good(const char* call, Status) const;
};

}  // namespace collectives::perf
