// SPDX-License-Identifier: MIT
// An engine's access through GEM_VA that is not permitted is a VM fault. A fault stops the GPU's queues for good, so
// these tests come last, each with a GPU of its own. Part of the program of gem.cpp.
#include "gem.hpp"

#include <poll.h>
#include <sys/prctl.h>

using namespace gem;

namespace {

constexpr std::uint64_t kPage = 4096;

kfd::MemoryException fault_of(std::uint32_t g, std::uint64_t to, std::uint64_t from) {
  auto& c = client();
  event_page(c);
  kfd::CreateEvent e{};
  e.type = kfd::kEventMemory;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  CHECK_FALSE(copied(g, to, from, 200));
  kfd::EventData data{};
  data.event_id = e.event_id;
  kfd::WaitEvents w{};
  w.events = reinterpret_cast<std::uint64_t>(&data);
  w.count = 1;
  w.timeout_ms = 1000;
  CHECK(call(c.kfd, Nr::wait_events, w) == 0);
  CHECK(w.result == kfd::kWaitComplete);
  CHECK(data.memory.gpu_id == c.gpu_id(g));
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_event, id) == 0);
  return data.memory;
}

}  // namespace

TEST_CASE("an access after unmapping is a fault, which monitors of this GPU report") {
  constexpr std::uint64_t kVmFaults = 1, kResets = 4 | 8;
  const int all = monitor(0, ~std::uint64_t{0}), faults = monitor(0, kVmFaults), resets = monitor(0, kResets),
            masked = monitor(0, 0), other = monitor(1, kVmFaults), closed = monitor(0, kVmFaults);
  ::close(closed);
  const int fd = client().render[0];
  const auto at = reserve(kPage);
  const auto a = create(fd, kPage);
  auto word = client().allocate(kPage);
  REQUIRE(va(fd, drm::kVaMap, a, at, kPage) == 0);
  REQUIRE(copied(0, at, word.va));
  REQUIRE(va(fd, drm::kVaUnmap, a, at, kPage) == 0);
  const auto fault = fault_of(0, at, word.va);
  CHECK(fault.va == at);
  CHECK(fault.not_present == 1);
  CHECK(fault.read_only == 0);
  pollfd p{.fd = faults, .events = POLLIN, .revents = 0};
  CHECK(::poll(&p, 1, 1000) == 1);
  CHECK(p.revents == POLLIN);
  char name[16]{}, line[64];
  ::prctl(PR_GET_NAME, name);
  std::snprintf(line, sizeof line, "1 %x:%s\n", static_cast<unsigned>(::getpid()), name);
  CHECK(events(all) == line);
  CHECK(events(faults, 4) + events(faults) == line);  // a stream: in pieces as well
  for (const int none : {faults, resets, masked, other}) CHECK(events(none).empty());
  for (const int d : {all, faults, resets, masked, other}) ::close(d);
}

TEST_CASE("a write through a mapping for reading is a fault") {
  const int fd = client().render[1];
  const auto at = reserve(kPage);
  const auto a = create(fd, kPage);
  auto word = client().allocate(kPage, 1);
  REQUIRE(va(fd, drm::kVaMap, a, at, kPage, 0, drm::kVaReadable) == 0);
  REQUIRE(copied(1, word.va, at));
  const auto fault = fault_of(1, at, word.va);
  CHECK(fault.va == at);
  CHECK(fault.read_only == 1);
}
