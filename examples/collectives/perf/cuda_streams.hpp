// SPDX-License-Identifier: MIT
#pragma once
// Streams of CUDA beside the CUDA device, in the contexts that it uses.
//
//   auto driver = cuda_driver(device, settings);         // after the device has been opened
//
// Only what these programs need of libcuda is declared here. The streams are created after the device's own, of which
// there is one for each connection of the driver, so they share connections with the first of those, which never wait
// at a poll. All memory is the device's.
//
// Thread-safety and errors: gpu_streams.hpp.
#include "gpu_streams.hpp"
#include "settings.hpp"

namespace collectives::perf {

/// For a CudaDevice, which must outlive it. Loads no library: the device has loaded libcuda.
sdma::Result<std::unique_ptr<StreamDriver>, sdma::Diagnostic> cuda_driver(sdma::Device&, const Settings&);

}  // namespace collectives::perf
