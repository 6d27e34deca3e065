// SPDX-License-Identifier: MIT
// The stand-in for libcuda: streams, what they wait for and write, and what blocks its caller.
#include "cuda_stand_in.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using cuda::Pointer;

namespace {

constexpr cuda::Status kInvalidPtx = 218, kInvalidHandle = 400;
constexpr std::size_t kRoom = 1020;
constexpr std::uint32_t kGo = 1;

/// The stream waits until *gate is kGo.
void hold(const Gpu& gpu, cuda::Stream s, std::uint32_t* gate) {
  REQUIRE(gpu.driver->wait_value(s, address(gate), kGo, cuda::kWaitEqual) == cuda::kSuccess);
}

}  // namespace

TEST_CASE("a stream writes after all before it, and a query tells when it is finished") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  auto* words = gpu.host<std::uint32_t>(4);
  const auto memory = gpu.memory(Gpu::kPage);
  CHECK(cuda->stream_query(s) == cuda::kSuccess);
  hold(gpu, s, &words[0]);
  words[1] = 42;
  CHECK(cuda->copy(memory, address(&words[1]), 4, s) == cuda::kSuccess);
  CHECK(cuda->copy(address(&words[2]), memory, 4, s) == cuda::kSuccess);
  CHECK(cuda->write_value(s, address(&words[3]), 7, 0) == cuda::kSuccess);
  std::this_thread::sleep_for(5ms);
  CHECK(cuda->stream_query(s) == cuda::kNotReady);
  CHECK(load(&words[3]) == 0);
  store(&words[0], kGo);
  while (load(&words[3]) != 7) std::this_thread::yield();
  CHECK(words[2] == 42);
  CHECK(gpu.finish(s) == cuda::kSuccess);
}

TEST_CASE("waits: at least is cyclic, equal is not") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  auto* word = gpu.host<std::uint32_t>(1);
  const auto met = [&](std::uint32_t now, std::uint32_t value, unsigned flags) {
    const auto s = gpu.stream();
    store(word, now);
    REQUIRE(cuda->wait_value(s, address(word), value, flags) == cuda::kSuccess);
    CHECK(gpu.finish(s) == cuda::kSuccess);
  };
  const auto unmet = [&](std::uint32_t now, std::uint32_t value, unsigned flags) {
    const auto s = gpu.stream();
    store(word, now);
    REQUIRE(cuda->wait_value(s, address(word), value, flags) == cuda::kSuccess);
    std::this_thread::sleep_for(3ms);
    CHECK(cuda->stream_query(s) == cuda::kNotReady);
    store(word, value);
    CHECK(gpu.finish(s) == cuda::kSuccess);
  };
  met(5, 5, cuda::kWaitGreaterOrEqual);
  met(6, 5, cuda::kWaitGreaterOrEqual);
  unmet(4, 5, cuda::kWaitGreaterOrEqual);
  met(1, 0xffff'fff0, cuda::kWaitGreaterOrEqual);
  unmet(0xffff'fff0, 1, cuda::kWaitGreaterOrEqual);
  met(5, 5, cuda::kWaitEqual);
  unmet(6, 5, cuda::kWaitEqual);
  const auto s = gpu.stream();
  CHECK(cuda->wait_value(s, address(word) + 2, 0, cuda::kWaitEqual) == cuda::kInvalidValue);
  CHECK(cuda->wait_value(s, address(word), 0, 7) == cuda::kInvalidValue);
}

TEST_CASE("a word in a GPU's memory passes a value from stream to stream") {
  const StandIn cuda;
  const Gpu gpu(cuda), peer(cuda, 1);
  const auto memory = gpu.memory(Gpu::kPage, {1});
  const auto to = peer.stream();
  REQUIRE(cuda->wait_value(to, memory, 3, cuda::kWaitGreaterOrEqual) == cuda::kSuccess);
  (void)cuda->push_context(gpu.context);
  const auto from = gpu.stream();
  CHECK(cuda->stream_query(to) == cuda::kNotReady);
  REQUIRE(cuda->write_value(from, memory, 3, 0) == cuda::kSuccess);
  CHECK(gpu.finish(from) == cuda::kSuccess);
  CHECK(peer.finish(to) == cuda::kSuccess);
  (void)cuda->pop_context(nullptr);
}

TEST_CASE("a stream holds 1,020 unfinished commands") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  auto* words = gpu.host<std::uint32_t>(2);
  hold(gpu, s, &words[0]);
  for (std::size_t i = 1; i < kRoom; ++i)
    REQUIRE(cuda->write_value(s, address(&words[1]), std::uint32_t(i), 0) == cuda::kSuccess);
  const Blocked one_more(gpu, [&] { return cuda->write_value(s, address(&words[1]), 5000, 0); });
  CHECK(one_more.blocks());
  store(&words[0], kGo);
  CHECK(one_more.code() == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(load(&words[1]) == 5000);
}

TEST_CASE("streams that share a connection hold each other up") {
  constexpr int kConnections = 4;
  const StandIn cuda({{"CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kConnections)}});
  const Gpu gpu(cuda);
  auto* words = gpu.host<std::uint32_t>(8);
  std::vector<cuda::Stream> streams;
  for (int i = 0; i < 2 * kConnections; ++i) streams.push_back(gpu.stream());
  hold(gpu, streams[0], &words[0]);
  for (std::size_t i = 1; i < streams.size(); ++i)
    REQUIRE(cuda->write_value(streams[i], address(&words[i]), 1, 0) == cuda::kSuccess);
  for (std::size_t i = 1; i < streams.size(); ++i)
    if (i != kConnections) CHECK(gpu.finish(streams[i]) == cuda::kSuccess);
  std::this_thread::sleep_for(5ms);
  CHECK(cuda->stream_query(streams[kConnections]) == cuda::kNotReady);
  CHECK(load(&words[kConnections]) == 0);
  store(&words[0], kGo);
  CHECK(gpu.finish(streams[kConnections]) == cuda::kSuccess);
}

TEST_CASE("31 streams may wait on 32 connections, and another still runs") {
  const StandIn cuda({{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}});
  const Gpu gpu(cuda);
  auto* words = gpu.host<std::uint32_t>(2);
  std::vector<cuda::Stream> waiting;
  for (int i = 0; i < 31; ++i) hold(gpu, waiting.emplace_back(gpu.stream()), &words[0]);
  const auto other = gpu.stream();
  REQUIRE(cuda->write_value(other, address(&words[1]), 1, 0) == cuda::kSuccess);
  CHECK(gpu.finish(other) == cuda::kSuccess);
  for (const auto s : waiting) CHECK(cuda->stream_query(s) == cuda::kNotReady);
  store(&words[0], kGo);
  for (const auto s : waiting) CHECK(gpu.finish(s) == cuda::kSuccess);
}

TEST_CASE("a destroyed stream finishes its commands") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto s = gpu.stream();
  auto* words = gpu.host<std::uint32_t>(2);
  hold(gpu, s, &words[0]);
  REQUIRE(cuda->write_value(s, address(&words[1]), 1, 0) == cuda::kSuccess);
  CHECK(cuda.stream_destroy(s) == cuda::kSuccess);
  CHECK(cuda->stream_query(s) == kInvalidHandle);
  store(&words[0], kGo);
  while (load(&words[1]) != 1) std::this_thread::yield();
}

TEST_CASE("freeing or unpinning host memory and loading a module block while a stream of any device waits") {
  const StandIn cuda;
  const Gpu gpu(cuda), other(cuda, 1);
  auto* gate = gpu.host<std::uint32_t>(1);
  auto* words = gpu.host<std::uint32_t>(1);
  const auto s = other.stream();
  hold(other, s, gate);
  alignas(4096) static std::byte own[4096];
  REQUIRE(cuda->host_register(own, sizeof own, cuda::kPortable | cuda::kDeviceMapped) == cuda::kSuccess);
  {
    const Blocked unpinning(gpu, [&] { return cuda->host_unregister(own); });
    const Blocked freeing(gpu, [&] { return cuda.host_free(words); });
    cuda::Module m{};
    const Blocked loading(gpu, [&] { return cuda->load_module(&m, ".version 7.0"); });
    CHECK(freeing.blocks());
    CHECK(loading.blocks());
    // A wait that begins later counts too.
    auto* second = gpu.host<std::uint32_t>(1);
    const auto later = other.stream();
    hold(other, later, second);
    store(gate, kGo);
    CHECK(other.finish(s) == cuda::kSuccess);
    CHECK(freeing.blocks());
    CHECK(unpinning.blocks());
    store(second, kGo);
    CHECK(freeing.code() == cuda::kSuccess);
    CHECK(unpinning.code() == cuda::kSuccess);
    CHECK(loading.code() == cuda::kSuccess);
  }
  cuda::Module m{};
  CHECK(cuda->load_module(&m, "version 7.0") == kInvalidPtx);
  CHECK(cuda.host_free(words) == cuda::kInvalidValue);
  CHECK(cuda->host_unregister(own) != cuda::kSuccess);
}

TEST_CASE("copies between host memory and copies of pageable memory block; others do not") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  auto* gate = gpu.host<std::uint32_t>(1);
  auto* pinned = gpu.host<std::byte>(256);
  std::vector<std::byte> pageable(256, std::byte{9});
  const auto memory = gpu.memory(Gpu::kPage);
  const cuda::Copy2D rows{
      .src = address(pinned), .src_pitch = 16, .dst = address(pinned + 128), .dst_pitch = 16, .width = 8, .height = 4};
  const auto s = gpu.stream();
  const auto check = [&](bool blocks, auto call) {
    store(gate, 0);
    hold(gpu, s, gate);
    const Blocked b(gpu, call);
    CHECK((blocks ? b.blocks() : b.code() == cuda::kSuccess));
    store(gate, kGo);
    CHECK(b.code() == cuda::kSuccess);
    CHECK(gpu.finish(s) == cuda::kSuccess);
  };
  check(true, [&] { return cuda->copy(address(pinned), address(pinned + 64), 64, s); });
  check(true, [&] { return cuda->copy_2d(&rows, s); });
  check(true, [&] { return cuda->copy(memory, address(pageable.data()), 64, s); });
  check(true, [&] { return cuda->copy(address(pageable.data() + 64), memory, 64, s); });
  check(false, [&] { return cuda->copy(memory, address(pinned), 64, s); });
  check(false, [&] { return cuda->copy(address(pinned), memory, 64, s); });
  check(false, [&] { return cuda->set_8(address(pinned), 1, 64, s); });
  CHECK(pageable[64] == std::byte{9});
}

TEST_CASE("the process may exit while streams wait and a call blocks") {
  // The program itself is the test: it ends although this never does.
  static const StandIn cuda;
  static const auto* const gpu = new Gpu(cuda);
  auto* gate = gpu->host<std::uint32_t>(1);
  const auto s = gpu->stream();
  hold(*gpu, s, gate);
  std::thread([gate] {
    (void)cuda->push_context(gpu->context);
    (void)cuda.host_free(gate);
  }).detach();
  std::this_thread::sleep_for(2ms);
  CHECK(cuda->stream_query(s) == cuda::kNotReady);
}
