// SPDX-License-Identifier: MIT
// Random producers, through the fuzz target: several threads, slots of any size, given up or kept open, a real engine.
#include "support/catch.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "memory.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

using namespace sdma;

TEST_CASE("whatever several producers do, every packet is executed once and in order") {
  std::mt19937 random(3);
  for (int run = 0; run < 40; ++run) {
    std::vector<std::uint8_t> input(3 + random() % 300);
    for (auto& b : input) b = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

TEST_CASE("after a fork, the child continues the ring, and nothing is lost or repeated") {
  struct Shared {
    alignas(256) std::array<std::uint32_t, 256> dwords;
    alignas(64) std::uint64_t rptr, reserved_for_firmware;
    alignas(64) std::uint64_t wptr;
    alignas(64) std::uint64_t doorbell;
  };
  auto* const pages = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  auto& s = *static_cast<Shared*>(pages);
  const RingMemory memory{
      .dwords = s.dwords, .rptr = &s.rptr, .wptr = &s.wptr, .doorbell = &s.doorbell, .caching = Caching::write_back};
  constexpr std::uint32_t kEach = 100;
  const auto produce = [](Ring<Producers::many>& ring, std::uint32_t from, std::uint32_t to) {
    for (auto i = from; i < to;) {
      if (ring.submit(Fence{.addr = GpuVa{0x1000}, .value = i}) == Errc::ok) ++i;
      else ::usleep(100);
    }
  };
  std::uint32_t next = 0;
  // Executes what is published, and returns whether there was anything.
  const auto execute = [&] {
    const auto end = order::Native::load(&s.doorbell, std::memory_order_acquire);
    auto at = order::Native::load(&s.rptr, std::memory_order_relaxed);
    if (at == end) return false;
    while (at != end) {
      const auto offset = at / 4 % s.dwords.size();
      const auto n = std::min<std::size_t>((end - at) / 4, s.dwords.size() - offset);
      const auto v = Reader{std::span<const std::uint32_t>(s.dwords).subspan(offset, n)}.next();
      if (v.is<Fence>()) CHECK(decode<Fence>(v.dwords).value == next++);
      else CHECK(v.is<Nop>());
      at += v.dwords.size() * 4;
    }
    order::Native::store(&s.rptr, at, std::memory_order_release);
    return true;
  };
  Ring<Producers::many> ring{memory};
  produce(ring, 0, 20);  // some of it is unread when the child begins
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    produce(ring, 20, kEach);
    ::_exit(0);
  }
  int status = -1;
  for (int i = 0; i < 100'000 && ::waitpid(child, &status, WNOHANG) == 0; ++i)
    if (!execute()) ::usleep(100);
  while (execute()) {}
  CHECK(status == 0);
  CHECK(next == kEach);
  // Its copy of the ring object is outdated: the parent makes a new one.
  Ring<Producers::many> again{memory};
  produce(again, kEach, kEach + 10);
  while (execute()) {}
  CHECK(next == kEach + 10);
  ::munmap(pages, sizeof(Shared));
}
