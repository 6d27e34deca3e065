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

CudaLibrary::GetProcAddress CudaLibrary::get_proc_address() noexcept {
  void* library = dlopen(kLibcuda, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return library ? reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
}

Result<CudaLibrary, Diagnostic> CudaLibrary::load() {
  CudaLibrary c;
  if (auto d = c.lacking()) return *std::move(d);
  return c;
}

Symbol CudaLibrary::operator[](const char* symbol) {
  Symbol s;
  int found = 0;
  if (!find_ || find_(symbol, &s.at, kCudaAbi, 0, &found) != kSuccess || !s.at) lacking_ = symbol;
  return s;
}

std::optional<Diagnostic> CudaLibrary::lacking() const {
  if (!find_) return no_cuda(fmt::format("{} cannot be loaded", kLibcuda));
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
