// SPDX-License-Identifier: MIT
// Host memory that GPUs use: the driver's limits for GTT and USERPTR. Part of the program of ioctl.cpp.
#include "../../lib/emulator/node/system_memory.hpp"

#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <fstream>

using namespace sdma::raw;
using sdma::emulator::system_limits;

namespace {

std::uint64_t total() { return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * 4096; }

/// An object that is not mapped anywhere, so that it may be as large as the machine.
kfd::AllocMemory object(Client& c, std::uint32_t flags, std::uint64_t bytes, std::uint64_t at = 0) {
  return {
      .va = 0x1000'0000'0000, .bytes = bytes, .handle = 0, .mmap_offset = at, .gpu_id = c.gpu_id(0), .flags = flags};
}
int freed(Client& c, const kfd::AllocMemory& a) {
  kfd::FreeMemory f{a.handle};
  return call(c.kfd, Nr::free_memory, f);
}

}  // namespace

TEST_CASE("the limits on host memory, by the size of the machine") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  CHECK(system_limits(64 * kGiB, false).all == 60 * kGiB);
  CHECK(system_limits(64 * kGiB, false).gtt == 32 * kGiB);
  CHECK(system_limits(8 * kGiB, false).all == 8 * kGiB - kGiB / 8 - 3 * kGiB);
  CHECK(system_limits(4 * kGiB, false).all == (4 * kGiB - kGiB / 16) / 2);  // less than twice the reserve
  CHECK(system_limits(4 * kGiB, true).all == ~std::uint64_t{0});
  CHECK(system_limits(4 * kGiB, true).gtt == 2 * kGiB);
}

TEST_CASE("USERPTR and GTT share one limit, and are released with the object") {
  std::string parameter;
  REQUIRE(std::getline(std::ifstream("/sys/module/amdgpu/parameters/no_system_mem_limit"), parameter));
  REQUIRE((parameter == "N" || parameter == "Y"));
  const bool unlimited = parameter == "Y";
  Client c;
  const auto limit = system_limits(total(), false).all & ~std::uint64_t{4095};
  const auto room = limit + (1 << 20);
  auto* p = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(p != MAP_FAILED);
  const auto at = reinterpret_cast<std::uint64_t>(p);
  auto more = object(c, kfd::kUserptr | kfd::kWritable, room, at);
  REQUIRE(call(c.kfd, Nr::alloc_memory, more) == (unlimited ? 0 : ENOMEM));
  if (unlimited) {
    auto twice = object(c, kfd::kUserptr | kfd::kWritable, room, at);
    CHECK(call(c.kfd, Nr::alloc_memory, twice) == 0);
    CHECK(freed(c, twice) == 0);
    CHECK(freed(c, more) == 0);
    ::munmap(p, room);
    return;
  }
  // All but a little: this process has objects from before.
  constexpr std::uint64_t kSlack = 64 << 20;
  auto most = object(c, kfd::kUserptr | kfd::kWritable, limit - kSlack, at);
  REQUIRE(call(c.kfd, Nr::alloc_memory, most) == 0);
  for (const std::uint32_t kind : {kfd::kUserptr, kfd::kGtt}) {
    auto further = object(c, kind | kfd::kWritable, 2 * kSlack, at);
    CHECK(call(c.kfd, Nr::alloc_memory, further) == ENOMEM);
  }
  auto vram = object(c, kfd::kVram | kfd::kWritable, 2 * kSlack);  // is not the host's
  CHECK(call(c.kfd, Nr::alloc_memory, vram) == 0);
  kfd::AvailableMemory before{.bytes = 0, .gpu_id = c.gpu_id(0), .pad = 0}, after = before;
  CHECK(call(c.kfd, Nr::available_memory, before) == 0);
  CHECK(freed(c, most) == 0);
  CHECK(call(c.kfd, Nr::available_memory, after) == 0);
  CHECK(before.bytes == after.bytes);  // VRAM alone
  auto gtt = object(c, kfd::kGtt | kfd::kWritable, 2 * kSlack);
  CHECK(call(c.kfd, Nr::alloc_memory, gtt) == 0);
  CHECK(freed(c, gtt) == 0);
  CHECK(freed(c, vram) == 0);
  // An allocation that fails later uses nothing.
  for (int i = 0; i < 3; ++i) {
    auto nothing = object(c, kfd::kUserptr | kfd::kWritable, limit - kSlack, 4096);
    CHECK(call(c.kfd, Nr::alloc_memory, nothing) == EFAULT);
  }
  REQUIRE(call(c.kfd, Nr::alloc_memory, most) == 0);
  CHECK(freed(c, most) == 0);
  ::munmap(p, room);
}

TEST_CASE("GTT has half of the machine") {
  Client c;
  auto most = object(c, kfd::kGtt | kfd::kWritable, total() / 2 + 4096);
  CHECK(call(c.kfd, Nr::alloc_memory, most) == ENOMEM);
  std::uint64_t used = 0, again = 0;
  CHECK(ask(c.render[0], sdma::drm::kGttUsage, used) == 0);
  auto some = object(c, kfd::kGtt | kfd::kWritable, 1 << 20);
  CHECK(call(c.kfd, Nr::alloc_memory, some) == 0);
  CHECK(ask(c.render[0], sdma::drm::kGttUsage, again) == 0);
  CHECK(again == used + (1 << 20));
  CHECK(freed(c, some) == 0);
}
