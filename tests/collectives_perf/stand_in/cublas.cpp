// SPDX-License-Identifier: MIT
// A libcublas.so.13 for machines without one: a product is a memset of its result on the stand-in for libcuda.
//
// As cuBLAS does, it loads what it needs with the first product, which blocks
// while a stream waits. It refuses more than three products in flight.
//
//   SDMA_STAND_IN_CUBLAS_FAIL=40      the 40th product returns an error
//   SDMA_STAND_IN_CUBLAS_FAIL_MS=300  every product fails from 300 ms after the first on
#include "cuda.hpp"

#include <atomic>
#include <chrono>

namespace {

using namespace stand_in;

constexpr int kSuccess = 0, kInvalidValue = 7, kExecutionFailed = 13;
constexpr std::uint32_t kMostInFlight = 3;
struct Handle {
  abi::Stream stream = nullptr;
  bool loaded = false;
  std::uint32_t issued = 0;
  std::uint32_t* finished = nullptr;  ///< written by the stream
};
std::atomic<long> products = 0;

}  // namespace

STAND_IN_EXPORT int cublasCreate_v2(Handle** out) {
  static Handle all[64];
  static std::atomic<std::size_t> next = 0;
  *out = &all[next++];
  void* word = nullptr;
  const auto code =
      cuda_call<abi::Status(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&word, 4096, abi::kPortable);
  (*out)->finished = static_cast<std::uint32_t*>(word);
  return code == abi::kSuccess ? kSuccess : kExecutionFailed;
}
STAND_IN_EXPORT int cublasSetStream_v2(Handle* h, abi::Stream s) {
  h->stream = s;
  return kSuccess;
}
STAND_IN_EXPORT int cublasGemmEx(Handle* h, int a, int b, int m, int n, int k, const void* alpha, const void*,
                                 int type_a, int, const void*, int type_b, int, const void* beta, void* c, int type_c,
                                 int, int compute, int algorithm) {
  using Clock = std::chrono::steady_clock;
  static const auto first = Clock::now();
  const auto limit = setting("SDMA_STAND_IN_CUBLAS_FAIL_MS", 0);
  if (limit != 0 && Clock::now() - first > std::chrono::milliseconds(limit)) return kExecutionFailed;
  if (++products == setting("SDMA_STAND_IN_CUBLAS_FAIL", 0)) return kExecutionFailed;
  if (a != 1 || b != 0 || m != n || n != k || type_a != 14 || type_b != 14 || type_c != 14 || compute != 68 ||
      algorithm != -1 || *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return kInvalidValue;
  abi::Module module = nullptr;
  if (!h->loaded &&
      cuda_call<abi::Status(abi::Module*, const void*)>("cuModuleLoadData")(&module, ".version 8.0\n") != 0)
    return kExecutionFailed;
  h->loaded = true;
  static const auto set =
      cuda_call<abi::Status(abi::Pointer, unsigned char, std::size_t, abi::Stream)>("cuMemsetD8Async");
  static const auto write =
      cuda_call<abi::Status(abi::Stream, abi::Pointer, std::uint32_t, unsigned)>("cuStreamWriteValue32");
  const auto finished = std::atomic_ref<std::uint32_t>(*h->finished).load();
  if (++h->issued - finished > kMostInFlight) return kExecutionFailed;
  const auto bytes = static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * 2;
  const bool done = set(reinterpret_cast<abi::Pointer>(c), 0x3c, bytes, h->stream) == abi::kSuccess &&
                    write(h->stream, reinterpret_cast<abi::Pointer>(h->finished), h->issued, 0) == abi::kSuccess;
  return done ? kSuccess : kExecutionFailed;
}
STAND_IN_EXPORT const char* cublasGetStatusString(int s) {
  return s == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_INVALID_VALUE";
}
