// SPDX-License-Identifier: MIT
// What people do without sdma: copies by the CUDA runtime, and gather kernels. measure.py compiles and loads it:
//   nvcc -O2 -shared -Xcompiler -fPIC -arch=native hand.cu -o libhand.so
// hand_store measures, for programs by hand and for sdma alike.
// Lists are arrays of addresses: on the host for copies, on the GPU for kernels. Errors: the runtime's, as a number.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// Each block of threads takes every gridDim.x-th block of bytes.
__global__ void gather_blocks(char* const* dst, const char* const* src, size_t bytes, size_t count) {
  for (size_t k = blockIdx.x; k < count; k += gridDim.x) {
    const auto* const s = reinterpret_cast<const int4*>(src[k]);
    auto* const d = reinterpret_cast<int4*>(dst[k]);
    for (size_t i = threadIdx.x; i < bytes / sizeof(int4); i += blockDim.x) d[i] = s[i];
  }
}

}  // namespace

extern "C" int hand_each(void** dst, void** src, size_t count, size_t bytes, cudaStream_t stream) {
  for (size_t i = 0; i < count; ++i)
    if (const auto e = cudaMemcpyAsync(dst[i], src[i], bytes, cudaMemcpyHostToDevice, stream)) return e;
  return 0;
}

/// At most `most` copies in a batch.
extern "C" int hand_batch(void** dst, void** src, size_t count, size_t bytes, size_t most, cudaStream_t stream) {
  cudaMemcpyAttributes how{};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  how.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  std::vector<size_t> sizes(std::min(most, count), bytes);
  size_t first = 0;
  for (size_t i = 0; i < count; i += most) {
    const size_t n = std::min(most, count - i);
#if CUDART_VERSION >= 13000
    const auto e = cudaMemcpyBatchAsync(dst + i, (const void**)src + i, sizes.data(), n, &how, &first, 1, stream);
#else
    size_t failed = 0;
    const auto e = cudaMemcpyBatchAsync(dst + i, src + i, sizes.data(), n, &how, &first, 1, &failed, stream);
#endif
    if (e) return e;
  }
  return 0;
}

/// `blocks` of the grid; 0: one for each copy.
extern "C" int hand_gather(void* dst, void* src, size_t count, size_t bytes, unsigned blocks, cudaStream_t stream) {
  gather_blocks<<<blocks ? blocks : static_cast<unsigned>(count), blocks ? 1024 : 256, 0, stream>>>(
      static_cast<char**>(dst), static_cast<const char**>(src), bytes, count);
  return cudaGetLastError();
}

/// A copy of 4 bytes to the host.
extern "C" int hand_read(void* dst, void* src, cudaStream_t stream) {
  return cudaMemcpyAsync(dst, src, 4, cudaMemcpyDeviceToHost, stream);
}

static double took;  // us, of the last hand_store

/// Stores `value` to `word`, and waits until the word at `seen` is not 0, for 5 s at most.
extern "C" int hand_store(void* seen, std::uint64_t word, std::uint32_t value) {
  using Clock = std::chrono::steady_clock;
  const auto at = [](void* p) { return static_cast<std::atomic<std::uint32_t>*>(p); };
  const auto begin = Clock::now();
  at(reinterpret_cast<void*>(word))->store(value, std::memory_order_release);
  auto now = begin;
  while (at(seen)->load(std::memory_order_acquire) == 0 && now - begin < std::chrono::seconds(5)) now = Clock::now();
  took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  return 0;
}
extern "C" double hand_took() { return took; }
