// SPDX-License-Identifier: MIT
// What processes of one `sdma emulate` share: the slots of the engines and the memory; and what they do not: faults and
// events. Processes that are killed give back what they had.
#include "../../lib/device/kfd/raw_client.hpp"
#include "child.hpp"

#include "support/catch.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"

#include <memory>
#include <vector>

using namespace sdma::raw;
using namespace sdma;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t available(const Client& c, std::uint32_t g = 0) {
  kfd::AvailableMemory a{};
  a.gpu_id = c.gpu_id(g);
  REQUIRE(call(c.kfd, Nr::available_memory, a) == 0);
  return a.bytes;
}

/// Creates queues until one is refused, at most `most`.
std::vector<std::unique_ptr<Queue>> queues(Client& c, std::size_t most, int& error) {
  std::vector<std::unique_ptr<Queue>> all;
  while (all.size() < most) {
    all.push_back(std::make_unique<Queue>(c, 0, kfd::kQueueSdma));
    if ((error = all.back()->error) == 0) continue;
    all.pop_back();
    break;
  }
  return all;
}

/// Allocates and frees VRAM of the first GPU. Returns the errno.
int takes(Client& c, std::uint64_t bytes, std::uint32_t type = kfd::kVram) {
  kfd::AllocMemory a{.va = 0x7100'0000'0000,
                     .bytes = bytes,
                     .handle = 0,
                     .mmap_offset = 0,
                     .gpu_id = c.gpu_id(0),
                     .flags = type | kfd::kWritable};
  if (const int error = call(c.kfd, Nr::alloc_memory, a)) return error;
  kfd::FreeMemory f{a.handle};
  return call(c.kfd, Nr::free_memory, f);
}

}  // namespace

TEST_CASE("(process) holds queues and memory until it is asked to end", "[.]") {
  Client c;
  int error = 0;
  const auto wanted = receive<int>(Child::kLink);
  const auto all = queues(c, static_cast<std::size_t>(wanted), error);
  const auto m = c.allocate(receive<std::uint64_t>(Child::kLink), 0, kfd::kVram);
  send(Child::kLink, static_cast<int>(all.size()));
  send(Child::kLink, error);
  (void)receive<int>(Child::kLink);
  CHECK(c.free(m) == 0);
}

/// A process with queues and VRAM of the first GPU.
struct Holder {
  Child process{"(process) holds queues and memory until it is asked to end"};
  int queues{}, error{};
  Holder(int wanted, std::uint64_t vram) {
    send(process.link(), wanted);
    send(process.link(), vram);
    queues = receive<int>(process.link());
    error = receive<int>(process.link());
  }
  void end() {
    send(process.link(), 1);
    CHECK(process.status() == 0);
  }
};

TEST_CASE("three processes get sixteen queues on the two engines that face the host") {
  Holder a(8, kMiB), b(8, kMiB), third(8, kMiB);
  CHECK(a.queues == 8);
  CHECK(b.queues == 8);
  CHECK(third.queues == 0);
  CHECK(third.error == ENOMEM);
  // A process that ends gives its queues back, and so does one that is killed.
  a.end();
  Holder again(5, kMiB);
  CHECK(again.queues == 5);
  b.process.kill();
  (void)b.process.status();
  Holder last(12, kMiB);
  CHECK(last.queues == 11);
  CHECK(last.error == ENOMEM);
  for (auto* h : {&third, &again, &last}) h->end();
}

TEST_CASE("a queue that is destroyed, and one that could not be created, leave their slots to others") {
  Client c;
  int error = 0;
  auto mine = queues(c, 100, error);
  CHECK(mine.size() == 16);
  CHECK(error == ENOMEM);
  CHECK(Queue(c, 0, kfd::kQueueSdmaXgmi).error == 0);
  mine.resize(14);
  kfd::CreateQueue bad{};  // without a ring that exists
  bad.ring = bad.rptr = bad.wptr = 0x7200'0000'0000;
  bad.ring_bytes = 4096;
  bad.gpu_id = c.gpu_id(0);
  bad.type = kfd::kQueueSdma;
  for (int i = 0; i < 3; ++i) CHECK(call(c.kfd, Nr::create_queue, bad) == EINVAL);
  Holder other(8, kMiB);
  CHECK(other.queues == 2);
  other.end();
}

TEST_CASE("the memory of a GPU is that of all processes; a process that is killed gives it back") {
  Client c;
  const auto all = available(c);
  {
    Holder other(0, 256 * kMiB);
    CHECK(available(c) == all - 256 * kMiB);
    CHECK(available(c, 1) == all);
    CHECK(takes(c, all) == ENOMEM);
    CHECK(takes(c, all - 256 * kMiB) == 0);
    std::uint64_t used = 0;
    REQUIRE(ask(c.render[0], drm::kVramUsage, used) == 0);
    CHECK(used >= 256 * kMiB);
    other.process.kill();
    (void)other.process.status();
  }
  CHECK(takes(c, all) == 0);
  CHECK(available(c) == all);
}

TEST_CASE("a forked child that uses no device holds nothing") {
  Client c;
  int error = 0;
  int link[2]{};
  REQUIRE(::pipe(link) == 0);
  pid_t idle = 0;
  {
    const auto mine = queues(c, 16, error);
    REQUIRE(mine.size() == 16);
    idle = ::fork();
    if (idle == 0) {
      char end = 0;
      ::close(link[1]);
      ::_exit(static_cast<int>(::read(link[0], &end, 1)));
    }
  }
  Holder other(16, kMiB);
  CHECK(other.queues == 16);
  other.end();
  ::close(link[1]);
  int status = -1;
  ::waitpid(idle, &status, 0);
  CHECK(status == 0);
  ::close(link[0]);
}

TEST_CASE("(process) faults", "[.]") {
  Client c;
  Queue q(c, 0, kfd::kQueueSdma);
  Ring<> ring(q.memory());
  kfd::CreateEvent e{};
  e.type = kfd::kEventMemory;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  REQUIRE(ring.submit(Fence{.addr = GpuVa{0x7300'0000'0000}, .value = 1}) == Errc::ok);
  kfd::EventData data{};
  data.event_id = e.event_id;
  kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data), .count = 1, .wait_for_all = 1};
  w.timeout_ms = 60'000;
  REQUIRE(call(c.kfd, Nr::wait_events, w) == 0);
  CHECK(w.result == kfd::kWaitComplete);
}

TEST_CASE("a fault of one process reaches no queue and no event of another") {
  Client c;
  Queue q(c, 0, kfd::kQueueSdma);
  Ring<> ring(q.memory());
  kfd::CreateEvent e{};
  e.type = kfd::kEventMemory;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  Child other("(process) faults");
  CHECK(other.status() == 0);
  auto words = c.allocate(4096);
  REQUIRE(ring.submit(Fence{.addr = words.gpu(), .value = 1}) == Errc::ok);
  for (int i = 0; i < 60'000 && __atomic_load_n(words.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 0; ++i) ::usleep(1000);
  CHECK(*words.as<std::uint32_t>() == 1);
  kfd::EventData data{};
  data.event_id = e.event_id;
  kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data), .count = 1, .wait_for_all = 1};
  CHECK(call(c.kfd, Nr::wait_events, w) == 0);
  CHECK(w.result == kfd::kWaitTimeout);
  CHECK(c.free(words) == 0);
}
