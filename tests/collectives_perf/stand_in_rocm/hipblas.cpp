// SPDX-License-Identifier: MIT
// A libhipblas.so.2 for machines without one: a product is a copy to its
// result, by HIP. It has both forms of the product, and the old one refuses.
#include "setting.hpp"

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <map>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 3, kExecutionFailed = 6;
struct Handle {
  hipStream_t stream = nullptr;
  std::map<std::size_t, void*> zeros{};  ///< by size
};

}  // namespace

STAND_IN_EXPORT int hipblasCreate(Handle** out) {
  *out = new Handle;
  return kSuccess;
}
STAND_IN_EXPORT int hipblasSetStream(Handle* h, hipStream_t s) {
  h->stream = s;
  return kSuccess;
}
STAND_IN_EXPORT int hipblasGemmEx_v2(Handle* h, int a, int b, int m, int n, int k, const void* alpha, const void*,
                                     int type_a, int, const void*, int type_b, int, const void* beta, void* c,
                                     int type_c, int, int compute, int algorithm) {
  if (a != 112 || b != 111 || m != n || n != k || type_a != 14 || type_b != 14 || type_c != 14 || compute != 2 ||
      algorithm != 160 || *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return kInvalidValue;
  const auto bytes = static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * 2;
  auto*& zeros = h->zeros[bytes];
  if (!zeros && hipHostMalloc(&zeros, bytes, hipHostMallocPortable) != hipSuccess) return kExecutionFailed;
  return hipMemcpyAsync(c, zeros, bytes, hipMemcpyDefault, h->stream) == hipSuccess ? kSuccess : kExecutionFailed;
}
STAND_IN_EXPORT int hipblasGemmEx(Handle*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                                  int, int, const void*, void*, int, int, int, int) {
  return kInvalidValue;
}
STAND_IN_EXPORT const char* hipblasStatusToString(int s) {
  return s == kExecutionFailed ? "HIPBLAS_STATUS_EXECUTION_FAILED" : "HIPBLAS_STATUS_INVALID_VALUE";
}
