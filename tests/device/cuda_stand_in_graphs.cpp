// SPDX-License-Identifier: MIT
// The stand-in for libcuda: streams that are captured, and graphs that are launched again and again.
#include "cuda_stand_in.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

constexpr int kThreadLocal = 1;
using stand_in::kCaptureInvalidated, stand_in::kCaptureUnsupported, stand_in::kInvalidHandle, stand_in::kNotCapturing;

}  // namespace

TEST_CASE("a captured stream keeps its commands, and each launch does them") {
  const StandIn cuda({{"SDMA_STAND_IN_SEED", "3"}});
  const Gpu gpu(cuda);
  const auto s = gpu.stream(), other = gpu.stream();
  auto* words = gpu.host<std::uint32_t>(2);
  StandIn::Graph graph{};
  StandIn::GraphExec ready{};
  REQUIRE(cuda.end_capture(s, &graph) == kNotCapturing);
  REQUIRE(cuda.begin_capture(s, kThreadLocal) == cuda::kSuccess);
  CHECK(cuda.begin_capture(s, kThreadLocal) == cuda::kInvalidValue);
  REQUIRE(cuda->write_value(s, address(&words[0]), 1, 0) == cuda::kSuccess);
  REQUIRE(cuda->write_value(s, address(&words[1]), 2, 0) == cuda::kSuccess);
  CHECK(cuda->stream_query(s) == kCaptureUnsupported);
  CHECK(cuda->stream_query(other) == cuda::kSuccess);
  REQUIRE(cuda.end_capture(s, &graph) == cuda::kSuccess);
  CHECK(cuda->stream_query(s) == cuda::kSuccess);
  CHECK(load(&words[1]) == 0);

  REQUIRE(cuda.instantiate(&ready, graph, 0) == cuda::kSuccess);
  // What was made of a graph outlives it, and runs on any stream.
  CHECK(cuda.destroy_graph(graph) == cuda::kSuccess);
  CHECK(cuda.destroy_graph(graph) == cuda::kInvalidValue);
  StandIn::GraphExec none{};
  CHECK(cuda.instantiate(&none, graph, 0) == cuda::kInvalidValue);
  for (const auto stream : {s, other}) {
    store(&words[0], 0);
    store(&words[1], 0);
    REQUIRE(cuda.launch_graph(ready, stream) == cuda::kSuccess);
    CHECK(gpu.finish(stream) == cuda::kSuccess);
    CHECK(load(&words[0]) == 1);
    CHECK(load(&words[1]) == 2);
  }
  CHECK(cuda.destroy_exec(ready) == cuda::kSuccess);
  CHECK(cuda.launch_graph(ready, s) == cuda::kInvalidValue);
}

TEST_CASE("replays wait each time, and a graph is one command of its stream") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  auto* words = gpu.host<std::uint32_t>(2);
  REQUIRE(cuda.begin_capture(s, kThreadLocal) == cuda::kSuccess);
  for (std::uint32_t i = 0; i < 700; ++i) {
    REQUIRE(cuda->wait_value(s, address(&words[0]), 2 * i + 1, cuda::kWaitEqual) == cuda::kSuccess);
    REQUIRE(cuda->write_value(s, address(&words[1]), 2 * i + 2, 0) == cuda::kSuccess);
  }
  StandIn::Graph graph{};
  StandIn::GraphExec ready{};
  REQUIRE(cuda.end_capture(s, &graph) == cuda::kSuccess);
  REQUIRE(cuda.instantiate(&ready, graph, 0) == cuda::kSuccess);
  for (int launch = 0; launch < 3; ++launch) REQUIRE(cuda.launch_graph(ready, s) == cuda::kSuccess);
  for (int launch = 0; launch < 3; ++launch)
    for (std::uint32_t i = 0; i < 700; ++i) {
      if (i % 100 == 0) CHECK(cuda->stream_query(s) == cuda::kNotReady);
      store(&words[0], 2 * i + 1);
      while (load(&words[1]) != 2 * i + 2) std::this_thread::yield();
    }
  CHECK(gpu.finish(s) == cuda::kSuccess);
}

TEST_CASE("a call that blocks cannot be captured") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  auto* pinned = gpu.host<std::byte>(128);
  REQUIRE(cuda.begin_capture(s, kThreadLocal) == cuda::kSuccess);
  CHECK(cuda->copy(address(pinned), address(pinned + 64), 64, s) == kCaptureUnsupported);
  CHECK(cuda->write_value(s, address(pinned), 1, 0) == kCaptureInvalidated);
  StandIn::Graph graph{};
  CHECK(cuda.end_capture(s, &graph) == kCaptureInvalidated);
  CHECK(graph == nullptr);
  // The stream is as before.
  CHECK(cuda->write_value(s, address(pinned), 1, 0) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(cuda.begin_capture(nullptr, kThreadLocal) == kInvalidHandle);
  CHECK(cuda.begin_capture(s, 3) == cuda::kInvalidValue);
}

TEST_CASE("what the driver refuses: batches of copies on the legacy stream and in a capture, 256 words in a call") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  const auto memory = gpu.memory(Gpu::kPage);
  auto* words = gpu.host<std::uint32_t>(4);
  const auto batch = [&](cuda::Stream on) {
    const cuda::Pointer dst[] = {memory, memory + 8}, src[] = {address(words), address(words) + 4};
    const std::size_t bytes[] = {4, 4}, from = 0;
    const cuda::BatchAttributes a;
    return cuda->copy_batch_13_0(dst, src, bytes, 2, &a, &from, 1, on);
  };
  CHECK(batch(nullptr) == cuda::kInvalidValue);
  CHECK(batch(stand_in::abi::kLegacyStream) == cuda::kInvalidValue);
  CHECK(batch(s) == cuda::kSuccess);
  REQUIRE(cuda.begin_capture(s, kThreadLocal) == cuda::kSuccess);
  CHECK(batch(s) == kCaptureUnsupported);
  CHECK(cuda->write_value(s, address(&words[2]), 5, 0) == cuda::kSuccess);
  StandIn::Graph graph{};
  CHECK(cuda.end_capture(s, &graph) == cuda::kSuccess);
  CHECK(graph != nullptr);

  std::vector<stand_in::abi::WordOperation> all(256);
  for (auto& o : all) o = {.operation = stand_in::abi::kWriteOperation, .address = address(&words[3]), .value = 9};
  CHECK(cuda.batch_of_words(s, 256, all.data(), 0) == cuda::kInvalidValue);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(load(&words[3]) == 0);
  CHECK(cuda.batch_of_words(s, 255, all.data(), 0) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(load(&words[3]) == 9);
}
