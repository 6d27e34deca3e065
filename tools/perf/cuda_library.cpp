// SPDX-License-Identifier: MIT
#include "cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr const char* kLibcuda = "libcuda.so.1";

Diagnostic no_cuda(std::string message) {
  return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
}

}  // namespace

CudaLibrary::CudaLibrary()
    : Driver{.library = detail::LoadedLibrary(dlopen(kLibcuda, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))} {}

Result<CudaLibrary, Diagnostic> CudaLibrary::load() {
  CudaLibrary c;
  if (auto d = c.lacking()) return *std::move(d);
  return c;
}

std::optional<Diagnostic> CudaLibrary::lacking() const {
  if (!find.from()) return no_cuda(fmt::format("{} cannot be loaded", kLibcuda));
  if (!find.lacking()) return {};
  return no_cuda(fmt::format("{} has no function {}", kLibcuda, find.lacking()));
}

Result<void, Diagnostic> CudaLibrary::good(const char* call, Status s) const {
  if (s == kSuccess) return {};
  return no_cuda(fmt::format("{}: {}", call, describe(s)));
}

}  // namespace collectives::perf
