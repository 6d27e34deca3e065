#pragma once
// A ROCr that is older than the GPU that the node shows passes over it: version 5.2.3 knows no gfx942. It has a variable that
// makes it take the GPU for another; set here, before libhsakmt looks, and said on stderr.
namespace sdma::emulator {

/// At the first open of /dev/kfd. Does nothing if the variable is set, or the loaded ROCr knows the GPU, or there is none.
void override_old_runtime();

}  // namespace sdma::emulator
