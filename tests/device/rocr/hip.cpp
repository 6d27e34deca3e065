// SPDX-License-Identifier: MIT
// Devices in a process that uses HIP, in both orders of opening. Each case has its own process: HIP starts once.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "sdma/device/kfd.hpp"
#include "sdma/device/rocr.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <vector>

using namespace sdma;

namespace {

constexpr std::uint32_t kBytes = 1 << 20;

std::unique_ptr<RocrDevice> over_rocr() {
  const char* library = std::getenv("SDMA_TEST_LIBHSA");
  auto d = RocrDevice::open({.libhsa = library ? library : ""});
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

/// HIP's copies: up, down, and what came back.
void hip_copies(int seed) {
  std::vector<std::uint8_t> data(kBytes), back(kBytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + std::size_t(seed));
  void* p = nullptr;
  REQUIRE(hipMalloc(&p, kBytes) == hipSuccess);
  REQUIRE(hipMemcpy(p, data.data(), kBytes, hipMemcpyHostToDevice) == hipSuccess);
  REQUIRE(hipMemcpy(back.data(), p, kBytes, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(back == data);
  REQUIRE(hipFree(p) == hipSuccess);
}

/// An engine copies `from` to `to`.
void copy(Device& d, GpuId gpu, GpuVa from, GpuVa to) {
  auto done = *d.create_signal();
  auto q = d.create_queue({.gpu = gpu});
  if (!q) FAIL(to_string(q.error()));
  Ring<> ring{q->memory()};
  REQUIRE(d.flush_host_writes(gpu) == Errc::ok);
  REQUIRE(ring.submit(CopyLinear{.src = from, .dst = to, .bytes = kBytes}, Fence{.addr = done->va, .value = 1}) ==
          Errc::ok);
  REQUIRE(wait(*done, Compare::eq, 1, Deadline::in(std::chrono::seconds(60)), ring));
  CHECK_FALSE(d.fault(*q));
}

/// HIP's memory of each GPU goes around all GPUs by engines, and back to HIP's pinned memory.
void engines_copy_hip_memory(RocrDevice& d) {
  int gpus = 0;
  REQUIRE(hipGetDeviceCount(&gpus) == hipSuccess);
  REQUIRE(static_cast<std::size_t>(gpus) == d.topology().gpus.size());
  std::uint8_t *in = nullptr, *out = nullptr;
  REQUIRE(hipHostMalloc(reinterpret_cast<void**>(&in), kBytes, 0) == hipSuccess);
  REQUIRE(hipHostMalloc(reinterpret_cast<void**>(&out), kBytes, 0) == hipSuccess);
  for (std::uint32_t i = 0; i < kBytes; ++i) in[i] = static_cast<std::uint8_t>(i * 13 + i / 777);
  std::vector<void*> pointers;
  {
    std::vector<Memory> parts;
    const auto adopt = [&](void* p) {
      auto m = d.adopt(p, kBytes);
      if (!m) FAIL(to_string(m.error()));
      parts.push_back(std::move(*m));
    };
    adopt(in);
    for (int g = 0; g < gpus; ++g) {
      REQUIRE(hipSetDevice(g) == hipSuccess);
      REQUIRE(hipMalloc(&pointers.emplace_back(), kBytes) == hipSuccess);
      adopt(pointers.back());
    }
    adopt(out);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      copy(d, GpuId{static_cast<std::uint32_t>(i) % static_cast<std::uint32_t>(gpus)}, parts[i].va(),
           parts[i + 1].va());
    const auto beyond = d.adopt(pointers[0], 2 * kBytes);
    REQUIRE_FALSE(beyond);
    CHECK(beyond.error().message.find("its allocation has") != std::string::npos);
  }
  CHECK(std::equal(in, in + kBytes, out));
  // The handles are gone, the memory is HIP's as before.
  std::vector<std::uint8_t> back(kBytes);
  for (auto* p : pointers) {
    REQUIRE(hipMemcpy(back.data(), p, kBytes, hipMemcpyDeviceToHost) == hipSuccess);
    CHECK(std::equal(back.begin(), back.end(), in));
    CHECK(hipFree(p) == hipSuccess);
  }
  CHECK(hipHostFree(in) == hipSuccess);
  CHECK(hipHostFree(out) == hipSuccess);
}

}  // namespace

TEST_CASE("HIP first, then the device", "[hip-first]") {
  hip_copies(1);
  auto d = over_rocr();
  hip_copies(2);
  engines_copy_hip_memory(*d);
  d.reset();
  hip_copies(3);
  engines_copy_hip_memory(*over_rocr());
}

TEST_CASE("the device first, then HIP", "[device-first]") {
  auto d = over_rocr();
  auto a = *d->allocate({.where = GpuId{0}, .bytes = kBytes}), b = *d->allocate({.bytes = kBytes});
  copy(*d, GpuId{0}, a.va(), b.va());
  hip_copies(1);
  engines_copy_hip_memory(*d);
  copy(*d, GpuId{0}, b.va(), a.va());
}

TEST_CASE("where both share libhsakmt, a KFD device works beside HIP", "[kfd]") {
  hip_copies(1);
  {
    auto d = KfdDevice::open();
    if (!d) FAIL(to_string(d.error()));
    auto a = *(*d)->allocate({.where = GpuId{0}, .bytes = kBytes}), b = *(*d)->allocate({.bytes = kBytes});
    copy(**d, GpuId{0}, a.va(), b.va());
    hip_copies(2);
  }
  hip_copies(3);
}
