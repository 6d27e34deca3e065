// SPDX-License-Identifier: MIT
// The stand-in for libcuda: the GPUs' memory, who may access it, and what an illegal access does.
#include "cuda_stand_in.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;
using cuda::Pointer;

namespace {

constexpr std::size_t kPage = Gpu::kPage;
constexpr cuda::Status kNotInitialized = 3;
constexpr std::size_t kGiB = std::size_t{1} << 30;

/// What the context says after this device has copied 64 bytes between the address and host memory of its own.
cuda::Status after_copy(const Gpu& gpu, Pointer at, bool write = false) {
  auto* host = gpu.host<std::byte>(64);
  const auto s = gpu.stream();
  REQUIRE(gpu.driver->copy(write ? at : address(host), write ? address(host) : at, 64, s) == cuda::kSuccess);
  return gpu.finish(s);
}

}  // namespace

TEST_CASE("GPU memory is created in whole pages, until there is no more") {
  const StandIn cuda;
  cuda::MemoryProperties p;
  std::size_t page = 0;
  CHECK(cuda->granularity(&page, &p, 0) == cuda::kSuccess);
  CHECK(page == kPage);
  cuda::Handle most{}, more{};
  CHECK(cuda->memory_create(&most, kPage + 4096, &p, 0) == cuda::kInvalidValue);
  CHECK(cuda->memory_create(&most, 79 * kGiB, &p, 0) == cuda::kSuccess);
  CHECK(cuda->memory_create(&more, 2 * kGiB, &p, 0) == cuda::kOutOfMemory);
  CHECK(cuda->memory_create(&more, kGiB, &p, 0) == cuda::kSuccess);
  CHECK(cuda->memory_release(more) == cuda::kSuccess);
  CHECK(cuda->memory_release(more) == cuda::kInvalidValue);
  p.location.id = 1;
  CHECK(cuda->memory_create(&more, 2 * kGiB, &p, 0) == cuda::kSuccess);
  CHECK(cuda->memory_release(most) == cuda::kSuccess);
  p.location.id = 2;
  CHECK(cuda->memory_create(&more, kPage, &p, 0) == cuda::kInvalidValue);
}

TEST_CASE("addresses are reserved where the program wishes, if they are free") {
  const StandIn cuda;
  Pointer first{}, second{};
  CHECK(cuda->reserve(&first, 4 * kPage, 0, 0, 0) == cuda::kSuccess);
  CHECK(first % kPage == 0);
  CHECK(cuda->reserve(&second, kPage, 0, first + kPage, 0) == cuda::kSuccess);
  CHECK(second != first + kPage);
  CHECK(cuda->unreserve(first, kPage) == cuda::kInvalidValue);
  CHECK(cuda->unreserve(first, 4 * kPage) == cuda::kSuccess);
  CHECK(cuda->unreserve(first, 4 * kPage) == cuda::kInvalidValue);
  Pointer again{};
  CHECK(cuda->reserve(&again, kPage, 0, first + kPage, 0) == cuda::kSuccess);
  CHECK(again == first + kPage);
  CHECK(cuda->reserve(&again, kPage, kGiB, 0, 0) == cuda::kSuccess);
  CHECK(again % kGiB == 0);
  CHECK(cuda->reserve(&again, kPage - 1, 0, 0, 0) == cuda::kInvalidValue);
  CHECK(cuda->reserve(&again, kPage, 3 * kPage, 0, 0) == cuda::kInvalidValue);
}

TEST_CASE("mappings lie within a reservation, do not overlap, and end as a whole") {
  const StandIn cuda;
  const cuda::MemoryProperties p;
  cuda::Handle h{};
  Pointer at{};
  REQUIRE(cuda->memory_create(&h, 4 * kPage, &p, 0) == cuda::kSuccess);
  REQUIRE(cuda->reserve(&at, 4 * kPage, 0, 0, 0) == cuda::kSuccess);
  CHECK(cuda->map(at, 5 * kPage, 0, h, 0) == cuda::kInvalidValue);
  CHECK(cuda->map(at + 2 * kPage, 4 * kPage, 0, h, 0) == cuda::kInvalidValue);
  CHECK(cuda->map(at, 2 * kPage, 3 * kPage, h, 0) == cuda::kInvalidValue);
  CHECK(cuda->map(at + 4096, kPage, 0, h, 0) == cuda::kInvalidValue);
  CHECK(cuda->map(at, 2 * kPage, 0, h, 0) == cuda::kSuccess);
  CHECK(cuda->map(at + kPage, kPage, 0, h, 0) == cuda::kInvalidValue);
  CHECK(cuda->map(at + 2 * kPage, kPage, 0, h, 0) == cuda::kSuccess);
  const cuda::MemoryAccess access;
  CHECK(cuda->set_access(at, kPage, &access, 1) == cuda::kInvalidValue);
  CHECK(cuda->set_access(at, 4 * kPage, &access, 1) == cuda::kInvalidValue);
  CHECK(cuda->set_access(at, 3 * kPage, &access, 1) == cuda::kSuccess);
  CHECK(cuda->unreserve(at, 4 * kPage) == cuda::kInvalidValue);
  CHECK(cuda->unmap(at, kPage) == cuda::kInvalidValue);
  CHECK(cuda->unmap(at, 3 * kPage) == cuda::kSuccess);
  CHECK(cuda->unmap(at, 2 * kPage) == cuda::kInvalidValue);
  CHECK(cuda->unreserve(at, 4 * kPage) == cuda::kSuccess);
}

TEST_CASE("two mappings of a handle show the same bytes, and copies cross from mapping to mapping") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const cuda::MemoryProperties p;
  const cuda::MemoryAccess access;
  cuda::Handle h{};
  Pointer at{};
  REQUIRE(cuda->memory_create(&h, 2 * kPage, &p, 0) == cuda::kSuccess);
  REQUIRE(cuda->reserve(&at, 4 * kPage, 0, 0, 0) == cuda::kSuccess);
  // Pages 0 1 1 0 of the handle.
  REQUIRE(cuda->map(at, 2 * kPage, 0, h, 0) == cuda::kSuccess);
  REQUIRE(cuda->map(at + 2 * kPage, kPage, kPage, h, 0) == cuda::kSuccess);
  REQUIRE(cuda->map(at + 3 * kPage, kPage, 0, h, 0) == cuda::kSuccess);
  REQUIRE(cuda->set_access(at, 4 * kPage, &access, 1) == cuda::kSuccess);
  CHECK(cuda->memory_release(h) == cuda::kSuccess);
  auto* host = gpu.host<std::uint32_t>(64);
  for (std::uint32_t i = 0; i < 32; ++i) host[i] = i + 1;
  const auto s = gpu.stream();
  // Half of it ends page 1, the other half begins page 1.
  CHECK(cuda->copy(at + 2 * kPage - 64, address(host), 128, s) == cuda::kSuccess);
  CHECK(cuda->copy(address(host + 32), at + kPage, 64, s) == cuda::kSuccess);
  CHECK(cuda->copy(address(host + 48), at + 3 * kPage - 64, 64, s) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  for (std::uint32_t i = 0; i < 16; ++i) CHECK(host[32 + i] == i + 17);
  for (std::uint32_t i = 0; i < 16; ++i) CHECK(host[48 + i] == i + 1);
}

TEST_CASE("a command that accesses what its device may not kills the context") {
  const StandIn cuda;
  const auto on_new_context = [&](auto test) {
    const Gpu gpu(cuda), peer(cuda, 1);
    test(gpu, peer);
    return true;
  };
  on_new_context([](const Gpu& gpu, const Gpu& peer) {
    const auto shared = gpu.memory(kPage, {1}), own = gpu.memory(kPage);
    CHECK(after_copy(peer, shared) == cuda::kSuccess);
    CHECK(after_copy(peer, own) == cuda::kIllegalAddress);
  });
  on_new_context([&](const Gpu& gpu, const Gpu& peer) {
    const auto at = gpu.memory(kPage, {1});
    cuda::MemoryAccess read{.location = {.id = 1}, .flags = 1};
    REQUIRE(cuda->set_access(at, kPage, &read, 1) == cuda::kSuccess);
    CHECK(after_copy(peer, at) == cuda::kSuccess);
    CHECK(after_copy(peer, at, true) == cuda::kIllegalAddress);
    read.flags = 0;
    REQUIRE(cuda->set_access(at, kPage, &read, 1) == cuda::kIllegalAddress);
  });
  on_new_context([](const Gpu& gpu, const Gpu& peer) {
    const auto at = gpu.memory(kPage, {1});
    CHECK(after_copy(peer, at + kPage - 64) == cuda::kSuccess);
    CHECK(after_copy(peer, at + kPage - 60) == cuda::kIllegalAddress);
  });
  on_new_context([&](const Gpu&, const Gpu& peer) {
    Pointer at{};
    REQUIRE(cuda->reserve(&at, kPage, 0, 0, 0) == cuda::kSuccess);
    CHECK(after_copy(peer, at) == cuda::kIllegalAddress);
  });
}

TEST_CASE("an unmap takes memory from the commands that have not used it yet") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto at = gpu.memory(kPage);
  auto* words = gpu.host<std::uint32_t>(2);
  const auto s = gpu.stream();
  REQUIRE(cuda->wait_value(s, address(words), 1, cuda::kWaitEqual) == cuda::kSuccess);
  REQUIRE(cuda->write_value(s, at, 1, 0) == cuda::kSuccess);
  REQUIRE(cuda->unmap(at, kPage) == cuda::kSuccess);
  store(words, 1);
  CHECK(gpu.finish(s) == cuda::kIllegalAddress);

  const Gpu other(cuda, 1);
  const auto word = other.memory(kPage);
  const auto waits = other.stream();
  REQUIRE(cuda->wait_value(waits, word, 1, cuda::kWaitEqual) == cuda::kSuccess);
  std::this_thread::sleep_for(2ms);
  CHECK(cuda->stream_query(waits) == cuda::kNotReady);
  REQUIRE(cuda->unmap(word, kPage) == cuda::kSuccess);
  CHECK(other.finish(waits) == cuda::kIllegalAddress);
}

TEST_CASE("a dead context executes nothing more, and every call on it says why") {
  const StandIn cuda;
  {
    const Gpu alive(cuda, 1);
    const Gpu gpu(cuda);
    const auto at = gpu.memory(kPage);
    auto* words = gpu.host<std::uint32_t>(3);
    const auto bad = gpu.stream(), waits = gpu.stream();
    REQUIRE(cuda->wait_value(waits, address(&words[0]), 1, cuda::kWaitEqual) == cuda::kSuccess);
    REQUIRE(cuda->write_value(waits, address(&words[1]), 1, 0) == cuda::kSuccess);
    for (int i = 2; i < 1020; ++i) REQUIRE(cuda->write_value(waits, address(&words[1]), 1, 0) == cuda::kSuccess);
    const Blocked full(gpu, [&] { return cuda->write_value(waits, address(&words[1]), 1, 0); });
    CHECK(full.blocks());
    REQUIRE(cuda->copy(at + kPage - 2, address(words), 4, bad) == cuda::kSuccess);
    CHECK(gpu.finish(bad) == cuda::kIllegalAddress);
    CHECK(full.code() == cuda::kIllegalAddress);
    CHECK(cuda->stream_query(waits) == cuda::kIllegalAddress);
    CHECK(cuda->copy(at, address(words), 4, waits) == cuda::kIllegalAddress);
    CHECK(cuda->set_8(at, 1, 4, waits) == cuda::kIllegalAddress);
    CHECK(cuda->wait_value(waits, address(words), 0, 0) == cuda::kIllegalAddress);
    void* more = nullptr;
    CHECK(cuda->host_allocate(&more, 64, 0) == cuda::kIllegalAddress);
    CHECK(cuda.stream_destroy(bad) == cuda::kIllegalAddress);
    store(&words[0], 1);
    std::this_thread::sleep_for(2ms);
    CHECK(load(&words[1]) == 0);

    (void)cuda->push_context(alive.context);
    const auto s = alive.stream();
    CHECK(cuda->write_value(s, address(&words[2]), 1, 0) == cuda::kSuccess);
    CHECK(alive.finish(s) == cuda::kSuccess);
    (void)cuda->pop_context(nullptr);
  }
  // The context was released, so this one is new.
  const Gpu gpu(cuda);
  CHECK(after_copy(gpu, gpu.memory(kPage)) == cuda::kSuccess);
}

TEST_CASE("what a process exports another one imports, and its bytes stay when the first one has let go") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const cuda::MemoryAccess access;
  cuda::MemoryProperties p;
  cuda::Handle plain{}, made{}, opened{};
  int file = -1;
  REQUIRE(cuda->memory_create(&plain, kPage, &p, 0) == cuda::kSuccess);
  CHECK(cuda->export_memory(&file, plain, cuda::kFileDescriptor, 0) == cuda::kInvalidValue);
  p.handle_types = cuda::kFileDescriptor;
  REQUIRE(cuda->memory_create(&made, kPage, &p, 0) == cuda::kSuccess);
  CHECK(cuda->export_memory(&file, made, 2, 0) == cuda::kInvalidValue);
  REQUIRE(cuda->export_memory(&file, made, cuda::kFileDescriptor, 0) == cuda::kSuccess);
  const auto as_pointer = [](int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); };
  CHECK(cuda->import_memory(&opened, as_pointer(0), cuda::kFileDescriptor) == cuda::kInvalidValue);
  REQUIRE(cuda->import_memory(&opened, as_pointer(file), cuda::kFileDescriptor) == cuda::kSuccess);
  CHECK(::close(file) == 0);
  Pointer at[2]{};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cuda->reserve(&at[i], kPage, 0, 0, 0) == cuda::kSuccess);
    REQUIRE(cuda->map(at[i], kPage, 0, i == 0 ? made : opened, 0) == cuda::kSuccess);
    REQUIRE(cuda->set_access(at[i], kPage, &access, 1) == cuda::kSuccess);
  }
  auto* host = gpu.host<std::uint32_t>(2);
  host[0] = 77;
  const auto s = gpu.stream();
  REQUIRE(cuda->copy(at[0] + 64, address(host), 4, s) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(cuda->unmap(at[0], kPage) == cuda::kSuccess);
  CHECK(cuda->memory_release(made) == cuda::kSuccess);
  REQUIRE(cuda->copy(address(host + 1), at[1] + 64, 4, s) == cuda::kSuccess);
  CHECK(gpu.finish(s) == cuda::kSuccess);
  CHECK(host[1] == 77);
}

TEST_CASE("the child of a process that has called cuInit cannot use the driver") {
  const StandIn cuda;
  const auto child = ::fork();
  if (child == 0) {
    int n = 0;
    ::_exit(cuda->init(0) == kNotInitialized && cuda->device_count(&n) == kNotInitialized ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a host that reads GPU memory crashes") {
  const StandIn cuda;
  const Gpu gpu(cuda);
  const auto at = gpu.memory(kPage);
  const auto child = ::fork();
  if (child == 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGSEGV, SIG_DFL);
    const auto byte = *reinterpret_cast<const volatile char*>(at);
    ::_exit(byte == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}
