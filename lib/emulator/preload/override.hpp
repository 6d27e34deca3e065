// SPDX-License-Identifier: MIT
#pragma once
// Makes a ROCr that is older than the node's GPU treat that GPU as another one. Such a ROCr would ignore the GPU:
// version 5.2.3 does not support gfx942. The variable for that is set here, before libhsakmt reads it, with a message
// on stderr. If no other GPU can take the place of the node's, there is only a message.
#include "../node_options.hpp"
#include "../rocr.hpp"
#include "sdma/device/topology.hpp"

#include <cstdio>
#include <cstdlib>

namespace sdma::emulator {

/// Call it at the first open of /dev/kfd. Does nothing if the variable
/// is set, if ROCr supports the GPU, or if no ROCr is loaded.
inline void override_old_runtime() {
  constexpr const char* kVariable = "HSA_OVERRIDE_GFX_VERSION";
  if (std::getenv(kVariable)) return;
  const auto gpu = gfx_name(options().gfx);
  const auto rocr = search_rocr(std::as_bytes(std::span(gpu)));
  if (!rocr.file || rocr.found) return;
  // gfx94x and gfx950 take what a runtime sends to gfx90a. Nothing is known to take the place of the others.
  if (options().gfx / 10000 != 9) {
    std::fprintf(stderr, "sdma emulator: %s does not support %s, so it does not show the GPU\n", rocr.file,
                 gpu.c_str());
    return;
  }
  ::setenv(kVariable, "9.0.10", 0);
  std::fprintf(stderr, "sdma emulator: %s does not support %s: %s=9.0.10 is set, so it treats the GPU as gfx90a\n",
               rocr.file, gpu.c_str(), kVariable);
}

}  // namespace sdma::emulator
