// SPDX-License-Identifier: MIT
// The stand-in for libcuda keeps the promises of tests/device/stand_in/README.md: devices, streams, and what blocks.
#include "cuda_stand_in.hpp"

#include <filesystem>
#include <iterator>
#include <set>

using namespace sdma;
using namespace sdma::test;
using cuda::Pointer;

namespace {

constexpr cuda::Status kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201, kInvalidHandle = 400;

}  // namespace

TEST_CASE("devices are as the settings say") {
  const StandIn cuda({{"SDMA_STAND_IN_GPUS", "3"}});
  int count = 0;
  REQUIRE(cuda->device_count(&count) == cuda::kSuccess);
  CHECK(count == 3);
  std::set<int> buses;
  for (int i = 0; i < 3; ++i) {
    cuda::DeviceOrdinal d = -1;
    REQUIRE(cuda->device(&d, i) == cuda::kSuccess);
    char name[64]{};
    CHECK(cuda->device_name(name, sizeof name, d) == cuda::kSuccess);
    CHECK(std::string(name) == "stand-in GPU");
    std::size_t bytes = 0;
    CHECK(cuda->device_memory(&bytes, d) == cuda::kSuccess);
    CHECK(bytes == std::size_t{80} << 30);
    const auto attribute = [&](int which) {
      int value = -1;
      CHECK(cuda->device_attribute(&value, which, d) == cuda::kSuccess);
      return value;
    };
    CHECK(attribute(cuda::kComputeMajor) == 9);
    CHECK(attribute(cuda::kComputeMinor) == 0);
    CHECK(attribute(cuda::kUnifiedAddressing) == 1);
    CHECK(attribute(cuda::kVirtualMemory) == 1);
    CHECK(attribute(cuda::kHostAtomics) == 0);
    buses.insert(attribute(cuda::kPciBus));
    for (const int what : {cuda::kPeerAccess, cuda::kPeerAtomics}) {
      int value = 0;
      CHECK(cuda->peer_attribute(&value, what, d, (d + 1) % 3) == cuda::kSuccess);
      CHECK(value == 1);
    }
  }
  CHECK(buses.size() == 3);
  cuda::DeviceOrdinal d = -1;
  CHECK(cuda->device(&d, 3) == kInvalidDevice);
  CHECK(cuda->name_of(cuda::kIllegalAddress) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(cuda->describe(cuda::kIllegalAddress) ==
        "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
  CHECK(cuda->name_of(12345) == "an unknown CUDA error");
}

TEST_CASE("cuInit comes first, and fails without a GPU") {
  int count = 0, version = 0;
  const StandIn cuda({}, false);
  CHECK(cuda->driver_version(&version) == cuda::kSuccess);
  CHECK(version == 13000);
  CHECK(cuda->device_count(&count) == kNotInitialized);
  CHECK(cuda->init(0) == cuda::kSuccess);
  CHECK(cuda->device_count(&count) == cuda::kSuccess);
  CHECK(count == 2);
  const StandIn none({{"SDMA_STAND_IN_GPUS", "0"}}, false);
  CHECK(none->init(0) == cuda::kNoDevice);
}

TEST_CASE("a context is per thread, and a call without one fails") {
  const StandIn cuda;
  cuda::Stream s{};
  CHECK(cuda->stream_create(&s, 0, 0) == kInvalidContext);
  CHECK(cuda->pop_context(nullptr) == kInvalidContext);
  const Gpu first(cuda), second(cuda, 1);
  auto* word = first.host<std::uint32_t>(1);
  s = second.stream();
  CHECK(cuda->write_value(s, address(word), 1, 0) == cuda::kSuccess);
  std::thread([&] { CHECK(cuda->stream_query(s) == kInvalidContext); }).join();
  CHECK(cuda->push_context(first.context) == cuda::kSuccess);
  CHECK(cuda->write_value(s, address(word), 2, 0) == kInvalidHandle);
  CHECK(cuda->wait_value(s, address(word), 2, 0) == kInvalidHandle);
  cuda::Context popped{};
  CHECK(cuda->pop_context(&popped) == cuda::kSuccess);
  CHECK(popped == first.context);
}

TEST_CASE("a released context takes its threads with it") {
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  const StandIn cuda;
  const auto before = threads();
  for (int i = 0; i < 3; ++i) {
    const Gpu gpu(cuda);
    auto* word = gpu.host<std::uint32_t>(1);
    std::vector<cuda::Stream> streams;
    for (int k = 0; k < 4; ++k)
      REQUIRE(cuda->wait_value(streams.emplace_back(gpu.stream()), address(word), k % 2 ? 1 : 0, 0) == cuda::kSuccess);
    CHECK(gpu.finish(streams[0]) == cuda::kSuccess);
    CHECK(cuda->stream_query(streams[1]) == cuda::kNotReady);
  }
  // One thread stays: it reads the words that streams wait for.
  for (const auto start = std::chrono::steady_clock::now();
       threads() > before + 1 && std::chrono::steady_clock::now() - start < kLong;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(threads() <= before + 1);
}
