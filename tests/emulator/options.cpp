// SPDX-License-Identifier: MIT
// What a client sees of the options that choose among drivers and engines: --kfd-version, --indirect. Each test
// compares with what its run was given, so one program serves all of them.
#include "../../lib/device/kfd/raw_client.hpp"

#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using namespace sdma::raw;
using namespace sdma;

namespace {

std::uint32_t minor_version() {
  const char* set = std::getenv("SDMA_EMULATE_KFD_VERSION");
  return set ? static_cast<std::uint32_t>(std::atoi(set + 2)) : 17;
}
std::string indirect() { return std::getenv("SDMA_EMULATE_INDIRECT"); }

int asked(int fd, unsigned nr) {
  std::byte room[512]{};
  return ::ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'K', nr, sizeof room), room) == 0 ? 0 : errno;
}

bool reaches(const std::uint32_t* word, std::uint32_t value, std::chrono::milliseconds limit) {
  for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("the driver has the calls of its version, and no others") {
  Client c;
  kfd::GetVersion v{};
  REQUIRE(call(c.kfd, Nr::get_version, v) == 0);
  CHECK(v.major == 1);
  CHECK(v.minor == minor_version());
  const std::pair<Nr, std::uint32_t> first[] = {{Nr::available_memory, 11}, {Nr::export_dmabuf, 12},
                                                {Nr::runtime_enable, 13},   {Nr::dbg_trap, 13},
                                                {Nr::create_process, 19},   {Nr::profiler, 23}};
  for (const auto& [nr, minor] : first) {
    INFO(static_cast<unsigned>(nr));
    CHECK((asked(c.kfd, static_cast<unsigned>(nr)) == ENOTTY) == (v.minor < minor));
  }
  CHECK(asked(c.kfd, 0x29) == ENOTTY);
}

TEST_CASE("queues by engine id, and rings with metadata, exist from their versions on") {
  Client c;
  CHECK(Queue(c, 0, kfd::kQueueSdmaByEngine, 1).error == (minor_version() < 17 ? 524 : 0));
  CHECK(Queue(c, 0, kfd::kQueueSdma).error == 0);
  // A ring of a page, and metadata after it in the same allocation. Before 1.22, only the ring counts.
  auto both = c.allocate(2 * 4096), pointers = c.allocate(4096);
  kfd::CreateQueue a{.ring = both.va, .wptr = pointers.va + 64, .rptr = pointers.va, .doorbell_offset = 0};
  a.ring_bytes = a.metadata_ring_bytes = 4096;
  a.gpu_id = c.gpu_id(0);
  a.type = kfd::kQueueComputeAql;
  a.percentage = 100;
  const int error = call(c.kfd, Nr::create_queue, a);
  CHECK(error == (minor_version() < 22 ? EINVAL : 0));
  if (error == 0) {
    kfd::DestroyQueue d{.queue_id = a.queue_id, .pad = 0};
    CHECK(call(c.kfd, Nr::destroy_queue, d) == 0);
  }
  c.free(both);
  c.free(pointers);
}

TEST_CASE("memory policy, contexts and profiler answer as their versions do") {
  Client c;
  kfd::SetMemoryPolicy policy{.alternate_base = 0, .alternate_bytes = 0, .gpu_id = c.gpu_id(0), .default_policy = 0};
  policy.process_flags = 1;
  CHECK(call(c.kfd, Nr::set_memory_policy, policy) == 0);
  if (minor_version() >= 19) CHECK((::ioctl(c.kfd, _IO('K', 0x27)) == -1 && errno == ENOMEM));
  if (minor_version() < 23) return;
  kfd::Profiler p;
  p.op = static_cast<std::uint32_t>(kfd::ProfilerOp::version);
  CHECK(call(c.kfd, Nr::profiler, p) == 0);
  CHECK(p.version == kfd::kProfilerVersion);
  p = {};
  p.counters = {.gpu_id = c.gpu_id(0), .lock = 1, .enable = 1};
  CHECK(call(c.kfd, Nr::profiler, p) == 0);
  p.counters.gpu_id = 1;
  CHECK(call(c.kfd, Nr::profiler, p) == EINVAL);
  p.op = static_cast<std::uint32_t>(kfd::ProfilerOp::pc_sample);
  CHECK(call(c.kfd, Nr::profiler, p) == EINVAL);
}

TEST_CASE("an INDIRECT is executed, passed, never passed, or a fault") {
  Client c;
  auto words = c.allocate(4096), buffer = c.allocate(4096);
  std::memset(words.host(), 0, words.bytes);
  Queue q(c, 0, kfd::kQueueSdma), other(c, 0, kfd::kQueueSdma);
  REQUIRE(q.error == 0);
  Ring<> ring(q.memory()), beside(other.memory());
  const auto dwords = static_cast<std::uint32_t>(
      encode_to(Fence{.addr = words.gpu(0), .value = 1}, buffer.as<std::uint32_t>()) - buffer.as<std::uint32_t>());
  std::uint32_t nops[8]{};
  std::memcpy(buffer.host() + dwords * 4, nops, sizeof nops);
  REQUIRE(ring.submit(Indirect{.base = buffer.gpu(), .dwords = 8}) == Errc::ok);
  REQUIRE(ring.submit(Fence{.addr = words.gpu(4), .value = 1}) == Errc::ok);
  // The same in any case: another queue is not held up.
  REQUIRE(beside.submit(Fence{.addr = words.gpu(8), .value = 1}) == Errc::ok);
  REQUIRE(reaches(words.as<std::uint32_t>(8), 1, std::chrono::seconds(60)));
  const bool passes = indirect() == "run" || indirect() == "ignore";
  CHECK(reaches(words.as<std::uint32_t>(4), 1, passes ? std::chrono::seconds(60) : std::chrono::milliseconds(50)) ==
        passes);
  CHECK(*words.as<std::uint32_t>(0) == (indirect() == "run" ? 1 : 0));
  CHECK(q.destroy() == 0);
  c.free(buffer);
  c.free(words);
}
