// SPDX-License-Identifier: MIT
#pragma once
// Matrix products that keep every GPU of a collective busy, by
// cuBLAS or hipBLAS: what a collective has to share the GPU with.
//
//   auto p = Product::open(device, settings, watchdog);  // loads, fills matrices, measures the product alone
//   (*p)->begin();                                       // feeds the streams from a thread; waits for busy GPUs
//   ... rounds of a collective ...
//   auto rate = (*p)->end();                             // TFLOP/s of a GPU since begin; nothing runs any more
//
//   thread   gemm -> n | gemm -> n+1 | gemm -> n+2       at most three in flight per GPU; each is followed by a store
//   GPU                gemm .............. gemm ....     of its number to a word of the host, which the thread reads
//
// C = A^T B, bf16 with sums in fp32, on pseudo-random numbers, because constants would use less power than data does.
//
// The library loads and allocates before anything waits on a GPU. One thread calls. Errors: Diagnostics with the
// library's text. The watchdog bounds its calls.
#include "sdma/device/device.hpp"
#include "settings.hpp"
#include "watchdog.hpp"

#include <memory>

namespace collectives::perf {

class Product {
 public:
  static sdma::Result<std::unique_ptr<Product>, sdma::Diagnostic> open(sdma::Device&, const Settings&, Watchdog&);
  virtual ~Product() = default;

  /// TFLOP/s of a GPU without a collective, the mean over GPUs.
  virtual double alone() const = 0;
  virtual sdma::Result<void, sdma::Diagnostic> begin() = 0;
  virtual sdma::Result<double, sdma::Diagnostic> end() = 0;
};

}  // namespace collectives::perf
