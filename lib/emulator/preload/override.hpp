// SPDX-License-Identifier: MIT
#pragma once
// A ROCr that is older than the node's GPU ignores that GPU: version 5.2.3 does not support gfx942. A variable makes
// ROCr treat the GPU as another one. It is set here, before libhsakmt reads it, with a message on stderr. If no other
// GPU can take the place of the node's, there is only a message.
namespace sdma::emulator {

/// Call it at the first open of /dev/kfd. Does nothing if the variable
/// is set, if ROCr supports the GPU, or if no ROCr is loaded.
void override_old_runtime();

}  // namespace sdma::emulator
