// SPDX-License-Identifier: MIT
// libdrm_amdgpu, as far as a KFD device calls it, on a driver that gives neither the rate of a GPU's clock nor versions
// of firmware.
#include <cstdint>

extern "C" {

int amdgpu_device_initialize(int, std::uint32_t* major, std::uint32_t* minor, void** device) {
  static int any;
  *major = 3, *minor = 61, *device = &any;
  return 0;
}
int amdgpu_device_deinitialize(void*) { return 0; }
int amdgpu_query_gpu_info(void*, void*) { return 0; }
int amdgpu_query_firmware_version(void*, unsigned, unsigned, unsigned, std::uint32_t*, std::uint32_t*) { return 0; }

}  // extern "C"
