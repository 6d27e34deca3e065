// SPDX-License-Identifier: MIT
// HIP's copies between host and GPUs, streams and events, every byte verified. Run under `sdma emulate`.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "support/catch.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::uint8_t> v(bytes);
  for (auto& b : v) b = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

struct Device {
  void* p = nullptr;
  explicit Device(std::size_t bytes) { REQUIRE(hipMalloc(&p, bytes) == hipSuccess); }
  ~Device() { (void)hipFree(p); }
};

}  // namespace

TEST_CASE("copies there and back, of any size") {
  int n = 0;
  REQUIRE(hipGetDeviceCount(&n) == hipSuccess);
  REQUIRE(n >= 1);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{3'000'001}, std::size_t{40'000'000}}) {
    const auto data = pattern(bytes, 5);
    std::vector<std::uint8_t> back(bytes);
    Device d(bytes);
    REQUIRE(hipMemcpy(d.p, data.data(), bytes, hipMemcpyHostToDevice) == hipSuccess);
    REQUIRE(hipMemcpy(back.data(), d.p, bytes, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(back == data);
  }
}

TEST_CASE("from memory that may only be read") {
  constexpr std::size_t kBytes = 5 << 20;
  auto* p =
      static_cast<std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto data = pattern(kBytes, 31);
  std::copy(data.begin(), data.end(), p);
  REQUIRE(::mprotect(p, kBytes, PROT_READ) == 0);
  std::vector<std::uint8_t> back(kBytes);
  Device d(kBytes);
  REQUIRE(hipMemcpy(d.p, p, kBytes, hipMemcpyHostToDevice) == hipSuccess);
  REQUIRE(hipMemcpy(back.data(), d.p, kBytes, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(back == data);
  ::munmap(p, kBytes);
}

TEST_CASE("streams and events") {
  constexpr std::size_t kBytes = 1 << 20;
  void *in = nullptr, *out = nullptr;
  REQUIRE(hipHostMalloc(&in, kBytes, 0) == hipSuccess);
  REQUIRE(hipHostMalloc(&out, kBytes, 0) == hipSuccess);
  const auto data = pattern(kBytes, 11);
  std::copy(data.begin(), data.end(), static_cast<std::uint8_t*>(in));
  Device d(kBytes);
  hipStream_t s{}, t{};
  hipEvent_t begin{}, end{};
  REQUIRE(hipStreamCreate(&s) == hipSuccess);
  REQUIRE(hipStreamCreate(&t) == hipSuccess);
  REQUIRE(hipEventCreate(&begin) == hipSuccess);
  REQUIRE(hipEventCreate(&end) == hipSuccess);
  REQUIRE(hipEventRecord(begin, s) == hipSuccess);
  REQUIRE(hipMemcpyAsync(d.p, in, kBytes, hipMemcpyHostToDevice, s) == hipSuccess);
  REQUIRE(hipEventRecord(end, s) == hipSuccess);
  REQUIRE(hipStreamWaitEvent(t, end, 0) == hipSuccess);
  REQUIRE(hipMemcpyAsync(out, d.p, kBytes, hipMemcpyDeviceToHost, t) == hipSuccess);
  REQUIRE(hipStreamSynchronize(t) == hipSuccess);
  CHECK(std::equal(data.begin(), data.end(), static_cast<std::uint8_t*>(out)));
  float ms = -1;
  REQUIRE(hipEventSynchronize(end) == hipSuccess);
  CHECK(hipEventElapsedTime(&ms, begin, end) == hipSuccess);
  CHECK(ms >= 0);
  REQUIRE(hipDeviceSynchronize() == hipSuccess);
  (void)hipEventDestroy(begin);
  (void)hipEventDestroy(end);
  (void)hipStreamDestroy(s);
  (void)hipStreamDestroy(t);
  (void)hipHostFree(in);
  (void)hipHostFree(out);
}

TEST_CASE("copies between GPUs") {
  int n = 0;
  REQUIRE(hipGetDeviceCount(&n) == hipSuccess);
  constexpr std::size_t kBytes = 2'000'001;
  const auto data = pattern(kBytes, 21);
  std::vector<std::uint8_t> back(kBytes);
  std::vector<void*> memory(static_cast<std::size_t>(n));
  for (int g = 0; g < n; ++g) {
    REQUIRE(hipSetDevice(g) == hipSuccess);
    REQUIRE(hipMalloc(&memory[static_cast<std::size_t>(g)], kBytes) == hipSuccess);
    for (int other = 0; other < n; ++other) {
      int can = 0;
      REQUIRE((other == g || hipDeviceCanAccessPeer(&can, g, other) == hipSuccess));
      if (can) (void)hipDeviceEnablePeerAccess(other, 0);
    }
  }
  REQUIRE(hipSetDevice(0) == hipSuccess);
  REQUIRE(hipMemcpy(memory[0], data.data(), kBytes, hipMemcpyHostToDevice) == hipSuccess);
  for (int g = 1; g < n; ++g)
    REQUIRE(hipMemcpyPeer(memory[static_cast<std::size_t>(g)], g, memory[static_cast<std::size_t>(g - 1)], g - 1,
                          kBytes) == hipSuccess);
  REQUIRE(hipSetDevice(n - 1) == hipSuccess);
  REQUIRE(hipMemcpy(back.data(), memory.back(), kBytes, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(back == data);
  // And around again, in a stream of the first.
  if (n > 1) {
    hipStream_t s{};
    REQUIRE(hipSetDevice(0) == hipSuccess);
    REQUIRE(hipMemcpy(memory[0], back.data() + 1, kBytes - 1, hipMemcpyHostToDevice) == hipSuccess);
    REQUIRE(hipStreamCreate(&s) == hipSuccess);
    REQUIRE(hipMemcpyPeerAsync(memory.back(), n - 1, memory[0], 0, kBytes - 1, s) == hipSuccess);
    REQUIRE(hipStreamSynchronize(s) == hipSuccess);
    REQUIRE(hipMemcpy(back.data(), memory.back(), kBytes - 1, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(std::equal(data.begin() + 1, data.end(), back.begin()));
    (void)hipStreamDestroy(s);
  }
  for (int g = 0; g < n; ++g) (void)hipFree(memory[static_cast<std::size_t>(g)]);
}
