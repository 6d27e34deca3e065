// SPDX-License-Identifier: MIT
// A kernel that is neither ROCr's nor HIP's: compiled at run time, it must not seem to work on a node without shaders.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr const char* kSource = "extern \"C\" __global__ void scale_by_two(int* p) { *p *= 2; }";

std::vector<char> compile() {
  hiprtcProgram program{};
  const char* options[] = {"--offload-arch=gfx90a"};
  std::vector<char> code;
  if (hiprtcCreateProgram(&program, kSource, "scale.hip", 0, nullptr, nullptr) != HIPRTC_SUCCESS) return code;
  std::size_t bytes = 0;
  if (hiprtcCompileProgram(program, 1, options) == HIPRTC_SUCCESS &&
      hiprtcGetCodeSize(program, &bytes) == HIPRTC_SUCCESS) {
    code.resize(bytes);
    (void)hiprtcGetCode(program, code.data());
  } else {
    hiprtcGetProgramLogSize(program, &bytes);
    std::string log(bytes, ' ');
    hiprtcGetProgramLog(program, log.data());
    std::fprintf(stderr, "%s\n", log.c_str());
  }
  (void)hiprtcDestroyProgram(&program);
  return code;
}

}  // namespace

int main() {
  void* p = nullptr;
  if (hipMalloc(&p, 4096) != hipSuccess) return 3;
  const auto code = compile();
  hipModule_t module{};
  hipFunction_t kernel{};
  if (code.empty() || hipModuleLoadData(&module, code.data()) != hipSuccess) return 4;
  if (hipModuleGetFunction(&kernel, module, "scale_by_two") != hipSuccess) return 5;
  int value = 21;
  if (hipMemcpy(p, &value, sizeof value, hipMemcpyHostToDevice) != hipSuccess) return 6;
  void* arguments[] = {&p};
  for (int i = 0; i < 3; ++i)
    if (hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) != hipSuccess) return 2;
  if (hipDeviceSynchronize() != hipSuccess) return 2;
  if (hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost) != hipSuccess) return 6;
  std::printf("the kernel has completed, and the value is %d\n", value);
  return 0;
}
