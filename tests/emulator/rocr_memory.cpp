// SPDX-License-Identifier: MIT
// Memory of ROCr: what it reports of its pools and pointers, memory of the program of every origin, fills, and boxes of
// all element sizes. Part of the program of rocr.cpp.
#include "rocr_runtime.hpp"

#include <sys/mman.h>
#include <array>
#include <cstring>

using namespace rocr;

namespace {

hsa_amd_pointer_info_t info(const void* p) {
  hsa_amd_pointer_info_t i{};
  i.size = sizeof i;
  GOOD(hsa_amd_pointer_info(p, &i, nullptr, nullptr, nullptr));
  return i;
}

std::uint32_t agents_with_access(const void* p) {
  hsa_amd_pointer_info_t i{};
  i.size = sizeof i;
  std::uint32_t count = 0;
  hsa_agent_t* list = nullptr;
  GOOD(hsa_amd_pointer_info(p, &i, std::malloc, &count, &list));
  std::free(list);
  return count;
}

template <class T> T about(hsa_amd_memory_pool_t p, hsa_amd_memory_pool_info_t what) {
  T value{};
  GOOD(hsa_amd_memory_pool_get_info(p, what, &value));
  return value;
}

/// Distances of pixels: a box is copied to the GPU and back, and everything around it keeps its bytes.
struct Box {
  std::uint32_t width, height, depth, x, y, z, pitch, rows;
  std::uint64_t at(std::uint32_t i, std::uint32_t j, std::uint32_t k) const {
    return (std::uint64_t{k + z} * rows + j + y) * pitch + i + x;
  }
};

}  // namespace

TEST_CASE("pools: sizes, alignment, and what a pointer is said to be") {
  const Runtime r;
  auto agents = r.gpus;
  agents.push_back(r.cpu);
  for (const auto& a : agents)
    for (const auto pool : a.pools) {
      const auto granule = about<std::size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE);
      const auto alignment = about<std::size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT);
      const auto whole = about<std::size_t>(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE);
      const auto flags = about<std::uint32_t>(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS);
      for (const auto bytes : {std::size_t{1}, granule - 1, granule, granule + 1, std::size_t{3'000'001}}) {
        auto* p = r.allocate({.agent = a.agent, .pool = pool}, bytes);
        REQUIRE(reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
          const auto i = info(p + at);
          REQUIRE(i.type == HSA_EXT_POINTER_TYPE_HSA);
          REQUIRE(i.agentBaseAddress == p);
          REQUIRE(i.agentOwner.handle == a.agent.handle);
          REQUIRE(i.sizeInBytes >= bytes);
          // The newer ROCr has a fourth kind of pool, whose pointers it says to be fine-grained.
          if ((flags & 7) != 0) REQUIRE((i.global_flags & 7) == (flags & 7));
        }
        p[bytes - 1] = 7;  // the host sees all of a GPU's memory
        REQUIRE(p[bytes - 1] == 7);
        int owner = 0;
        REQUIRE(hsa_amd_pointer_info_set_userdata(p, &owner) == HSA_STATUS_SUCCESS);
        REQUIRE(info(p + bytes / 2).userData == &owner);
        REQUIRE(hsa_amd_memory_pool_free(p) == HSA_STATUS_SUCCESS);
      }
      if (a.agent.handle == r.cpu.agent.handle) continue;  // these runs have no limit on host memory
      void* p = nullptr;
      CHECK(hsa_amd_memory_pool_allocate(pool, whole + granule, 0, &p) != HSA_STATUS_SUCCESS);
    }
}

TEST_CASE("pointers that are not ROCr's, a free in the middle, and access that is granted later") {
  const Runtime r;
  const int mine = 0;
  CHECK(info(&mine).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
  CHECK(info(reinterpret_cast<void*>(0xdead0000)).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
  void* p = nullptr;
  GOOD(hsa_amd_memory_pool_allocate(r.gpus[0].pool, 100'000, 0, &p));
  CHECK(hsa_amd_memory_pool_free(static_cast<std::byte*>(p) + 4096) != HSA_STATUS_SUCCESS);
  const auto before = agents_with_access(p);
  const auto all = r.gpu_agents();
  GOOD(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(all.size()), all.data(), nullptr, p));
  CHECK(agents_with_access(p) == before + all.size() - 1);
  CHECK(hsa_amd_memory_pool_free(p) == HSA_STATUS_SUCCESS);
  CHECK(hsa_amd_memory_pool_free(p) != HSA_STATUS_SUCCESS);
}

TEST_CASE("memory of the program is locked wherever it comes from") {
  const Runtime r;
  const auto& g = r.gpus[0];
  auto* vram = r.allocate(g, 1 << 20);
  const auto through = [&](std::uint8_t* p, std::size_t bytes) {
    void* seen = nullptr;
    GOOD(hsa_amd_memory_lock(p, static_cast<std::size_t>(bytes), nullptr, 0, &seen));
    const auto data = pattern(bytes, 7);
    std::memcpy(p, data.data(), bytes);
    copy(vram, g, seen, r.cpu, bytes);
    std::memset(p, 0, bytes);
    copy(seen, r.cpu, vram, g, bytes);
    CHECK(std::memcmp(p, data.data(), bytes) == 0);
    const auto i = info(p);
    CHECK(i.type == HSA_EXT_POINTER_TYPE_LOCKED);
    CHECK(i.agentBaseAddress == seen);
    CHECK(i.hostBaseAddress == p);
    CHECK(i.sizeInBytes == bytes);
    CHECK(hsa_amd_memory_unlock(p) == HSA_STATUS_SUCCESS);
    CHECK(info(p).type == HSA_EXT_POINTER_TYPE_UNKNOWN);
  };
  std::array<std::uint8_t, 70'001> stack{};
  through(stack.data(), stack.size());
  through(stack.data() + 13, 999);
  static std::array<std::uint8_t, 100'000> zeros;
  through(zeros.data(), zeros.size());
  const int file = ::memfd_create("memory of a program", MFD_CLOEXEC);
  REQUIRE(::ftruncate(file, 200'000) == 0);
  for (const int how : {MAP_SHARED, MAP_PRIVATE}) {
    auto* p = ::mmap(nullptr, 200'000, PROT_READ | PROT_WRITE, how, file, 0);
    REQUIRE(p != MAP_FAILED);
    through(static_cast<std::uint8_t*>(p), 200'000);
    ::munmap(p, 200'000);
  }
  ::close(file);

  // Two locks of one range; the second ends first.
  void *first = nullptr, *second = nullptr;
  GOOD(hsa_amd_memory_lock(zeros.data(), zeros.size(), nullptr, 0, &first));
  GOOD(hsa_amd_memory_lock(zeros.data(), zeros.size(), nullptr, 0, &second));
  CHECK(hsa_amd_memory_unlock(zeros.data()) == HSA_STATUS_SUCCESS);
  zeros.fill(9);
  copy(vram, g, first, r.cpu, zeros.size());
  CHECK(vram[99'999] == 9);
  CHECK(hsa_amd_memory_unlock(zeros.data()) == HSA_STATUS_SUCCESS);

  auto* gone = ::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(gone, 8192);
  CHECK(hsa_amd_memory_lock(gone, 8192, nullptr, 0, &first) != HSA_STATUS_SUCCESS);
  hsa_amd_memory_pool_free(vram);
}

TEST_CASE("fills of some words, on GPUs and on the host") {
  const Runtime r;
  auto agents = r.gpus;
  agents.push_back(r.cpu);
  for (const auto& a : agents) {
    auto* words = reinterpret_cast<std::uint32_t*>(r.allocate(a, 4000));
    GOOD(hsa_amd_memory_fill(words, 0xdeadbeef, 1000));
    GOOD(hsa_amd_memory_fill(words + 5, 0x12345678, 17));
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(words[i] == (i >= 5 && i < 22 ? 0x12345678 : 0xdeadbeef));
    hsa_amd_memory_pool_free(words);
  }
}

TEST_CASE("boxes of many sizes and pitches") {
  const Runtime r;
  const auto& g = r.gpus[0];
  constexpr std::size_t kBytes = 64 << 10;
  auto *host = r.allocate(r.cpu, kBytes), *back = r.allocate(r.cpu, kBytes), *vram = r.allocate(g, kBytes);
  std::uint32_t seed = 3;
  const auto below = [&](std::uint32_t n) { return (seed = seed * 1664525 + 1013904223) / 65536 % n; };
  for (std::uint32_t round = 0; round < 60; ++round) {
    const std::uint32_t unit = 1u << below(5);
    Box b{.width = (1 + below(40)) * unit,
          .height = 1 + below(12),
          .depth = 1 + below(4),
          .x = below(3) * unit,
          .y = below(3),
          .z = below(2),
          .pitch = 0,
          .rows = 0};
    b.pitch = (b.x + b.width + below(9) * unit + 3) / 4 * 4;
    b.rows = b.y + b.height;
    REQUIRE(std::size_t{b.pitch} * b.rows * (b.z + b.depth) <= kBytes);
    const auto data = pattern(kBytes, round);
    std::memcpy(host, data.data(), kBytes);
    std::memset(back, 0x55, kBytes);
    const hsa_pitched_ptr_t from{host, b.pitch, std::size_t{b.pitch} * b.rows}, to{back, from.pitch, from.slice};
    const hsa_pitched_ptr_t packed{vram, (b.width + 3) / 4 * 4, std::size_t{(b.width + 3) / 4 * 4} * b.height};
    const hsa_dim3_t corner{b.x, b.y, b.z}, origin{0, 0, 0}, range{b.width, b.height, b.depth};
    const Signal there, home;
    GOOD(hsa_amd_memory_async_copy_rect(&packed, &origin, &from, &corner, &range, g.agent, hsaHostToDevice, 0, nullptr,
                                        there.s));
    GOOD(hsa_amd_memory_async_copy_rect(&to, &corner, &packed, &origin, &range, g.agent, hsaDeviceToHost, 1, &there.s,
                                        home.s));
    REQUIRE(home.done());
    std::vector<std::uint8_t> expected(kBytes, 0x55);
    for (std::uint32_t k = 0; k < b.depth; ++k)
      for (std::uint32_t j = 0; j < b.height; ++j) std::memcpy(&expected[b.at(0, j, k)], &data[b.at(0, j, k)], b.width);
    REQUIRE(std::memcmp(back, expected.data(), kBytes) == 0);
  }
  for (auto* p : {host, back, vram}) hsa_amd_memory_pool_free(p);
}
