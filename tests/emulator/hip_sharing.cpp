// SPDX-License-Identifier: MIT
// What HIP shares: registered and managed memory of the program, graphs that are launched again, and memory and events
// of another process. Run under `sdma emulate`.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "child.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;

#define GOOD(call) REQUIRE((call) == hipSuccess)

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
  Bytes v(bytes);
  for (auto& b : v) b = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

std::uint8_t* device_memory(std::size_t bytes) {
  void* p = nullptr;
  GOOD(hipMalloc(&p, bytes));
  return static_cast<std::uint8_t*>(p);
}

struct Shared {
  hipIpcMemHandle_t memory;
  hipIpcEventHandle_t event;
  int gpu;
};
constexpr std::size_t kShared = 100'000;

}  // namespace

TEST_CASE("memory of the program is registered at an odd address, once") {
  constexpr std::size_t kBytes = 1'000'003;
  const auto data = pattern(kBytes, 1);
  Bytes room(kBytes + 64);
  auto* p = room.data() + 13;
  auto* d = device_memory(kBytes);
  GOOD(hipHostRegister(p, kBytes, hipHostRegisterDefault));
  std::memcpy(p, data.data(), kBytes);
  GOOD(hipMemcpyAsync(d, p, kBytes, hipMemcpyHostToDevice, nullptr));
  GOOD(hipDeviceSynchronize());
  std::memset(p, 0, kBytes);
  GOOD(hipMemcpyAsync(p, d, kBytes, hipMemcpyDeviceToHost, nullptr));
  GOOD(hipDeviceSynchronize());
  CHECK(std::memcmp(p, data.data(), kBytes) == 0);
  CHECK(room[12] == 0);
  CHECK(room[13 + kBytes] == 0);
  GOOD(hipHostUnregister(p));
  CHECK(hipHostUnregister(p) != hipSuccess);
  (void)hipGetLastError();
  GOOD(hipFree(d));
}

TEST_CASE("free memory follows allocations, and more than all of it is refused") {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  std::size_t before = 0, after = 0, all = 0;
  GOOD(hipMemGetInfo(&before, &all));
  auto* p = device_memory(kGiB);
  GOOD(hipMemGetInfo(&after, &all));
  CHECK(before - after >= kGiB);
  CHECK(before - after < kGiB + kGiB / 16);
  GOOD(hipFree(p));
  void* none = nullptr;
  CHECK(hipMalloc(&none, 2 * all) == hipErrorOutOfMemory);
  (void)hipGetLastError();
}

TEST_CASE("managed memory is the host's and the GPU's") {
  constexpr std::size_t kBytes = 300'001;
  const auto data = pattern(kBytes, 2);
  void* managed = nullptr;
  GOOD(hipMallocManaged(&managed, kBytes));
  auto* d = device_memory(kBytes);
  std::memcpy(managed, data.data(), kBytes);
  GOOD(hipMemcpy(d, managed, kBytes, hipMemcpyDefault));
  GOOD(hipMemset(managed, 0, kBytes));
  GOOD(hipDeviceSynchronize());
  const Bytes zeros(kBytes);
  CHECK(std::memcmp(managed, zeros.data(), kBytes) == 0);
  GOOD(hipMemcpy(managed, d, kBytes, hipMemcpyDefault));
  CHECK(std::memcmp(managed, data.data(), kBytes) == 0);
  GOOD(hipFree(managed));
  GOOD(hipFree(d));
}

TEST_CASE("a graph of copies and a fill is launched again with other contents") {
  constexpr std::size_t kBytes = 100'003;
  void *in = nullptr, *out = nullptr;
  GOOD(hipHostMalloc(&in, kBytes, 0));
  GOOD(hipHostMalloc(&out, kBytes, 0));
  auto *a = device_memory(kBytes), *b = device_memory(kBytes);
  hipStream_t s{};
  hipGraph_t graph{};
  hipGraphExec_t ready{};
  GOOD(hipStreamCreate(&s));
  GOOD(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
  GOOD(hipMemcpyAsync(a, in, kBytes, hipMemcpyHostToDevice, s));
  GOOD(hipMemcpyAsync(b, a, kBytes, hipMemcpyDeviceToDevice, s));
  GOOD(hipMemsetAsync(b + 104, 0x42, 56, s));
  GOOD(hipMemcpyAsync(out, b, kBytes, hipMemcpyDeviceToHost, s));
  GOOD(hipStreamEndCapture(s, &graph));
  GOOD(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  for (std::uint32_t round = 0; round < 5; ++round) {
    auto expected = pattern(kBytes, round);
    std::memcpy(in, expected.data(), kBytes);
    std::memset(out, 0, kBytes);
    GOOD(hipGraphLaunch(ready, s));
    GOOD(hipStreamSynchronize(s));
    std::fill_n(expected.begin() + 104, 56, std::uint8_t{0x42});
    REQUIRE(std::memcmp(out, expected.data(), kBytes) == 0);
  }
  GOOD(hipGraphExecDestroy(ready));
  GOOD(hipGraphDestroy(graph));
  GOOD(hipStreamDestroy(s));
  for (auto* p : {a, b}) GOOD(hipFree(p));
  for (auto* p : {in, out}) GOOD(hipHostFree(p));
}

TEST_CASE("(process) opens memory and an event", "[.]") {
  const auto s = receive<Shared>(Child::kLink);
  GOOD(hipSetDevice(s.gpu));
  void* p = nullptr;
  GOOD(hipIpcOpenMemHandle(&p, s.memory, hipIpcMemLazyEnablePeerAccess));
  hipEvent_t e{};
  GOOD(hipIpcOpenEventHandle(&e, s.event));
  GOOD(hipEventSynchronize(e));
  GOOD(hipEventDestroy(e));
  Bytes seen(kShared);
  GOOD(hipMemcpy(seen.data(), p, kShared, hipMemcpyDeviceToHost));
  CHECK(seen == pattern(kShared, 9));
  const auto mine = pattern(kShared, 10);
  GOOD(hipMemcpy(p, mine.data(), kShared, hipMemcpyHostToDevice));
  GOOD(hipIpcCloseMemHandle(p));
}

TEST_CASE("another process waits for an event, reads memory and writes it") {
  int gpus = 0;
  GOOD(hipGetDeviceCount(&gpus));
  for (int g = 0; g < gpus && g < 2; ++g) {
    Shared s{};
    s.gpu = g;
    GOOD(hipSetDevice(g));
    auto* p = device_memory(kShared);
    const auto data = pattern(kShared, 9);
    GOOD(hipMemcpy(p, data.data(), kShared, hipMemcpyHostToDevice));
    hipEvent_t e{};
    GOOD(hipEventCreateWithFlags(&e, hipEventDisableTiming | hipEventInterprocess));
    GOOD(hipIpcGetMemHandle(&s.memory, p));
    GOOD(hipIpcGetEventHandle(&s.event, e));
    GOOD(hipEventRecord(e, nullptr));
    Child child("(process) opens memory and an event");
    send(child.link(), s);
    CHECK(child.status() == 0);
    Bytes back(kShared);
    GOOD(hipMemcpy(back.data(), p, kShared, hipMemcpyDeviceToHost));
    CHECK(back == pattern(kShared, 10));
    GOOD(hipEventDestroy(e));
    GOOD(hipFree(p));
  }
}
