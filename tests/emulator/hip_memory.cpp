// SPDX-License-Identifier: MIT
// HIP's fills, copies within a GPU and copies of rectangles and boxes, which are kernels for the most part: every byte
// is verified, at odd sizes and offsets, on each GPU. Run under `sdma emulate`.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
  Bytes v(bytes);
  for (auto& b : v) b = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

std::vector<int> gpus() {
  int n = 0;
  REQUIRE(hipGetDeviceCount(&n) == hipSuccess);
  REQUIRE(n >= 1);
  std::vector<int> all;
  for (int g = 0; g < n; ++g) all.push_back(g);
  return all;
}

/// Memory of a GPU with known contents, and what they should be.
struct Device {
  int gpu;
  std::uint8_t* p = nullptr;
  Bytes expected;

  Device(int g, std::size_t bytes, std::uint32_t seed) : gpu(g), expected(pattern(bytes, seed)) {
    REQUIRE(hipSetDevice(g) == hipSuccess);
    REQUIRE(hipMalloc(reinterpret_cast<void**>(&p), bytes) == hipSuccess);
    REQUIRE(hipMemcpy(p, expected.data(), bytes, hipMemcpyHostToDevice) == hipSuccess);
  }
  ~Device() { (void)hipFree(p); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  bool correct() const {
    Bytes back(expected.size());
    REQUIRE(hipSetDevice(gpu) == hipSuccess);
    REQUIRE(hipDeviceSynchronize() == hipSuccess);
    REQUIRE(hipMemcpy(back.data(), p, back.size(), hipMemcpyDeviceToHost) == hipSuccess);
    return back == expected;
  }
};

/// Waits for a call that may be asynchronous.
struct Stream {
  hipStream_t s{};
  Stream() { REQUIRE(hipStreamCreate(&s) == hipSuccess); }
  ~Stream() { (void)hipStreamDestroy(s); }
  void wait() const { REQUIRE(hipStreamSynchronize(s) == hipSuccess); }
};

}  // namespace

TEST_CASE("fills of 1, 2 and 4 byte values, of any size and at any offset") {
  for (const int g : gpus()) {
    Device d(g, 6'000'011, 3);
    const Stream stream;
    int value = 1;
    for (const std::size_t at : {0u, 1u, 2u, 4u, 7u, 4096u})
      for (const std::size_t n : {1u, 2u, 3u, 5u, 64u, 1001u, 70'003u, 5'000'000u}) {
        INFO(g << " " << at << " " << n);
        // HIP 5.2.3 fills far more than that: it subtracts the bytes before a multiple of 16 from the length.
        if (at % 16 != 0 && n < 16) continue;
        ++value;
        if (n % 2 != 0) REQUIRE(hipMemset(d.p + at, value, n) == hipSuccess);
        else REQUIRE(hipMemsetAsync(d.p + at, value, n, stream.s) == hipSuccess);
        stream.wait();
        std::fill_n(d.expected.begin() + static_cast<std::ptrdiff_t>(at), n, static_cast<std::uint8_t>(value));
        if (n < 5'000'000 || at == 7) REQUIRE(d.correct());
      }
    const std::size_t at = 4100, n = 999;
    REQUIRE(hipMemsetD16(d.p + at, 0x1234, n) == hipSuccess);
    for (std::size_t i = 0; i < n; ++i) std::memcpy(&d.expected[at + 2 * i], "\x34\x12", 2);
    REQUIRE(hipMemsetD32(d.p + 16, 0x12345678, 77) == hipSuccess);
    for (std::size_t i = 0; i < 77; ++i) std::memcpy(&d.expected[16 + 4 * i], "\x78\x56\x34\x12", 4);
    REQUIRE(hipMemsetD8(d.p + 3, 0x5a, 5) == hipSuccess);
    std::fill_n(d.expected.begin() + 3, 5, 0x5a);
    REQUIRE(hipMemsetD32Async(d.p + 60'000, -2, 1, stream.s) == hipSuccess);
    std::memcpy(&d.expected[60'000], "\xfe\xff\xff\xff", 4);
    stream.wait();
    CHECK(d.correct());
  }
}

TEST_CASE("fills of rectangles and boxes") {
  for (const int g : gpus()) {
    Device d(g, 3'000'000, 4);
    const Stream stream;
    const auto expect = [&](std::size_t at, std::size_t pitch, std::size_t slice, std::size_t w, std::size_t h,
                            std::size_t depth, int v) {
      for (std::size_t z = 0; z < depth; ++z)
        for (std::size_t y = 0; y < h; ++y)
          std::fill_n(d.expected.begin() + static_cast<std::ptrdiff_t>(at + z * slice + y * pitch), w,
                      static_cast<std::uint8_t>(v));
    };
    REQUIRE(hipMemset2D(d.p, 512, 0x11, 256, 9) == hipSuccess);
    expect(0, 512, 0, 256, 9, 1, 0x11);
    REQUIRE(hipMemset2D(d.p + 9001, 333, 0x22, 77, 13) == hipSuccess);
    expect(9001, 333, 0, 77, 13, 1, 0x22);
    REQUIRE(hipMemset2DAsync(d.p + 100'000, 1000, 0x33, 999, 201, stream.s) == hipSuccess);
    stream.wait();
    expect(100'000, 1000, 0, 999, 201, 1, 0x33);
    REQUIRE(hipMemset3D({d.p + 500'000, 300, 123, 20}, 0x44, {123, 7, 5}) == hipSuccess);
    expect(500'000, 300, 300 * 20, 123, 7, 5, 0x44);
    REQUIRE(hipMemset3DAsync({d.p + 1'000'000, 256, 256, 8}, 0x55, {64, 8, 3}, stream.s) == hipSuccess);
    stream.wait();
    expect(1'000'000, 256, 256 * 8, 64, 8, 3, 0x55);
    CHECK(d.correct());
  }
}

TEST_CASE("copies within a GPU, of any size and at any offset") {
  for (const int g : gpus()) {
    Device a(g, 9'000'011, 5), b(g, 9'000'011, 6);
    const Stream stream;
    for (const std::size_t from : {0u, 1u, 4u, 16u})
      for (const std::size_t to : {0u, 3u, 16u})
        for (const std::size_t n : {1u, 3u, 4u, 17u, 4096u, 70'003u, 8'000'001u}) {
          INFO(g << " " << from << " " << to << " " << n);
          if (n % 2 != 0) REQUIRE(hipMemcpy(b.p + to, a.p + from, n, hipMemcpyDeviceToDevice) == hipSuccess);
          else REQUIRE(hipMemcpyAsync(b.p + to, a.p + from, n, hipMemcpyDeviceToDevice, stream.s) == hipSuccess);
          stream.wait();
          std::copy_n(a.expected.begin() + static_cast<std::ptrdiff_t>(from), n,
                      b.expected.begin() + static_cast<std::ptrdiff_t>(to));
          if (n < 8'000'000 || from + to == 4) REQUIRE(b.correct());
        }
    REQUIRE(hipMemcpyDtoD(b.p + 5, a.p + 11, 12'345) == hipSuccess);
    std::copy_n(a.expected.begin() + 11, 12'345, b.expected.begin() + 5);
    CHECK(b.correct());
    CHECK(a.correct());
  }
}

TEST_CASE("copies of rectangles and boxes, in all directions") {
  struct Box {
    std::size_t width, height, depth, src_pitch, dst_pitch, src_at, dst_at;
  };
  for (const int g : gpus())
    for (const auto& t : {Box{256, 10, 1, 512, 1024, 0, 0}, Box{77, 13, 1, 101, 333, 5, 9},
                          Box{64, 6, 3, 80, 96, 16, 32}, Box{33, 5, 4, 41, 50, 1, 2}})
      for (const auto kind : {hipMemcpyDeviceToDevice, hipMemcpyHostToDevice, hipMemcpyDeviceToHost}) {
        INFO(g << " " << t.width << " " << kind);
        Device a(g, 400'000, 7), b(g, 400'000, 8);
        const Stream stream;
        auto host = pattern(400'000, 9);
        const auto* src = kind == hipMemcpyHostToDevice ? host.data() : a.p;
        auto* dst = kind == hipMemcpyDeviceToHost ? host.data() : b.p;
        const auto& from = kind == hipMemcpyHostToDevice ? host : a.expected;
        auto to = kind == hipMemcpyDeviceToHost ? host : b.expected;
        const auto rows = t.height + 2;
        for (std::size_t z = 0; z < t.depth; ++z)
          for (std::size_t y = 0; y < t.height; ++y)
            std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(t.src_at + (z * rows + y) * t.src_pitch), t.width,
                        to.begin() + static_cast<std::ptrdiff_t>(t.dst_at + (z * rows + y) * t.dst_pitch));
        if (t.depth == 1 && t.width % 2 == 0) {
          REQUIRE(hipMemcpy2D(dst + t.dst_at, t.dst_pitch, src + t.src_at, t.src_pitch, t.width, t.height, kind) ==
                  hipSuccess);
        } else if (t.depth == 1) {
          REQUIRE(hipMemcpy2DAsync(dst + t.dst_at, t.dst_pitch, src + t.src_at, t.src_pitch, t.width, t.height, kind,
                                   stream.s) == hipSuccess);
        } else {
          hipMemcpy3DParms p{};
          p.srcPtr = {const_cast<std::uint8_t*>(src) + t.src_at, t.src_pitch, t.width, rows};
          p.dstPtr = {dst + t.dst_at, t.dst_pitch, t.width, rows};
          p.extent = {t.width, t.height, t.depth};
          p.kind = kind;
          REQUIRE(hipMemcpy3D(&p) == hipSuccess);
        }
        stream.wait();
        if (kind == hipMemcpyDeviceToHost) {
          CHECK(host == to);
        } else {
          b.expected = to;
          CHECK(b.correct());
        }
        CHECK(a.correct());
      }
}

TEST_CASE("copies between GPUs, filled by one and read back by the other") {
  const auto all = gpus();
  for (const int g : all) {
    const int other = all[(static_cast<std::size_t>(g) + 1) % all.size()];
    Device a(g, 1'000'003, 10), b(other, 1'000'003, 11);
    REQUIRE(hipSetDevice(g) == hipSuccess);
    REQUIRE(hipMemset(a.p + 1, 0x3c, 999'999) == hipSuccess);
    std::fill_n(a.expected.begin() + 1, 999'999, 0x3c);
    const Stream stream;
    REQUIRE(hipMemcpyPeerAsync(b.p + 3, other, a.p + 1, g, 777'777, stream.s) == hipSuccess);
    stream.wait();
    REQUIRE(hipMemcpyPeer(b.p + 800'000, other, a.p, g, 100'001) == hipSuccess);
    std::copy_n(a.expected.begin() + 1, 777'777, b.expected.begin() + 3);
    std::copy_n(a.expected.begin(), 100'001, b.expected.begin() + 800'000);
    CHECK(b.correct());
    CHECK(a.correct());
  }
}

TEST_CASE("a stream writes words, and waits for them") {
  for (const int g : gpus()) {
    REQUIRE(hipSetDevice(g) == hipSuccess);
    std::uint64_t* signal = nullptr;
    REQUIRE(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, hipMallocSignalMemory) == hipSuccess);
    __atomic_store_n(signal, 0, __ATOMIC_RELEASE);
    Device d(g, 4096, 12);
    const Stream a, b;
    REQUIRE(hipStreamWaitValue64(a.s, signal, 5, hipStreamWaitValueGte, ~0ull) == hipSuccess);
    REQUIRE(hipMemsetAsync(d.p, 0x77, 100, a.s) == hipSuccess);
    CHECK(hipStreamQuery(a.s) == hipErrorNotReady);
    REQUIRE(hipStreamWriteValue64(b.s, signal, 6, 0) == hipSuccess);
    a.wait();
    std::fill_n(d.expected.begin(), 100, 0x77);
    CHECK(d.correct());
    CHECK(__atomic_load_n(signal, __ATOMIC_ACQUIRE) == 6);
    REQUIRE(hipFree(signal) == hipSuccess);
  }
}
