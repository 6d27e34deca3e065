// SPDX-License-Identifier: MIT
#include "cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr const char* kLibcuda = "libcuda.so.1";
constexpr int kCudaAbi = 12000;  ///< of the functions, for cuGetProcAddress

Diagnostic no_cuda(std::string message) {
  return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
}

}  // namespace

Result<CudaLibrary, Diagnostic> CudaLibrary::load() {
  CudaLibrary c;
  void* library = dlopen(kLibcuda, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  c.find_ = library ? reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
  if (!c.find_) return no_cuda(fmt::format("{} cannot be loaded", kLibcuda));
  c.take(c.error_name, "cuGetErrorName");
  c.take(c.error_string, "cuGetErrorString");
  c.take(c.retain_context, "cuDevicePrimaryCtxRetain");
  c.take(c.push_context, "cuCtxPushCurrent");
  c.take(c.pop_context, "cuCtxPopCurrent");
  c.take(c.stream_create, "cuStreamCreateWithPriority");
  c.take(c.stream_query, "cuStreamQuery");
  c.take(c.wait_value, "cuStreamWaitValue32");
  c.take(c.write_value, "cuStreamWriteValue32");
  c.take(c.copy, "cuMemcpyAsync");
  if (auto d = c.lacking()) return *std::move(d);
  return c;
}

void* CudaLibrary::find(const char* symbol) {
  void* at = nullptr;
  int found = 0;
  if (find_(symbol, &at, kCudaAbi, 0, &found) != kSuccess || !at) lacking_ = symbol;
  return at;
}

std::optional<Diagnostic> CudaLibrary::lacking() const {
  if (!lacking_) return {};
  return no_cuda(fmt::format("{} has no function {}", kLibcuda, lacking_));
}

Result<void, Diagnostic> CudaLibrary::good(const char* call, Status s) const {
  if (s == kSuccess) return {};
  const char *code = nullptr, *text = nullptr;
  if (error_name(s, &code) != kSuccess || !code) return no_cuda(fmt::format("{}: error {}", call, s));
  if (error_string(s, &text) != kSuccess || !text) return no_cuda(fmt::format("{}: {}", call, code));
  return no_cuda(fmt::format("{}: {}: {}", call, code, text));
}

}  // namespace collectives::perf
