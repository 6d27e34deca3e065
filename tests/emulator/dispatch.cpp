// hipMemset, which is a kernel: it must not seem to work on a node without shaders.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include <cstdio>

int main() {
  void* p = nullptr;
  if (hipMalloc(&p, 1 << 20) != hipSuccess) return 3;
  if (hipMemset(p, 1, 1 << 20) != hipSuccess || hipDeviceSynchronize() != hipSuccess) return 2;
  std::puts("memset has completed");
  return 0;
}
