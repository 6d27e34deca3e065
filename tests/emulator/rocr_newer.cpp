// SPDX-License-Identifier: MIT
// What Debian's ROCr 5.2.3 does not have, apart from virtual memory: DMABUFs of ROCr's memory, and copies on an engine
// that the program chooses. Part of the program of vmem.cpp.
#include "child.hpp"
#include "rocr_runtime.hpp"
#include "send_fd.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <array>
#include <cstring>

using namespace rocr;

namespace {

template <class F> F* function(const char* name) { return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name)); }
const auto export_dmabuf =
    function<hsa_status_t(const void*, std::size_t, int*, std::uint64_t*)>("hsa_amd_portable_export_dmabuf");
const auto close_dmabuf = function<hsa_status_t(int)>("hsa_amd_portable_close_dmabuf");
const auto engines_between =
    function<hsa_status_t(hsa_agent_t, hsa_agent_t, std::uint32_t*)>("hsa_amd_memory_copy_engine_status");
using CopyOnEngine = hsa_status_t(void*, hsa_agent_t, const void*, hsa_agent_t, std::size_t, std::uint32_t,
                                  const hsa_signal_t*, hsa_signal_t, std::uint32_t, bool);
const auto copy_on_engine = function<CopyOnEngine>("hsa_amd_memory_async_copy_on_engine");

constexpr std::size_t kBytes = 200'000, kOffset = 4096;

/// Maps a DMABUF for all GPUs.
hsa_status_t map(const Runtime& r, int fd, std::size_t& bytes, void*& p) {
  auto all = r.gpu_agents();
  return hsa_amd_interop_map_buffer(static_cast<std::uint32_t>(all.size()), all.data(), fd, 0, &bytes, &p, nullptr,
                                    nullptr);
}

}  // namespace

TEST_CASE("(process) maps a DMABUF", "[.]") {
  const int fd = receive_fd(Child::kLink);
  const Runtime r;
  std::size_t bytes = 0;
  void* p = nullptr;
  GOOD(map(r, fd, bytes, p));
  ::close(fd);
  CHECK(bytes >= kBytes + kOffset);
  auto* there = static_cast<std::uint8_t*>(p) + kOffset;
  auto* host = r.allocate(r.cpu, kBytes);
  const auto expected = pattern(kBytes, 42), mine = pattern(kBytes, 43);
  for (const auto& g : r.gpus) {
    std::memset(host, 0, kBytes);
    copy(host, r.cpu, there, g, kBytes);
    CHECK(std::memcmp(host, expected.data(), kBytes) == 0);
  }
  hsa_amd_pointer_info_t i{};
  i.size = sizeof i;
  GOOD(hsa_amd_pointer_info(p, &i, nullptr, nullptr, nullptr));
  CHECK(i.type == HSA_EXT_POINTER_TYPE_GRAPHICS);
  std::memcpy(host, mine.data(), kBytes);
  copy(there, r.gpus.back(), host, r.cpu, kBytes);
  CHECK(hsa_amd_interop_unmap_buffer(p) == HSA_STATUS_SUCCESS);
  const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK(map(r, other, bytes, p) != HSA_STATUS_SUCCESS);
  ::close(other);
}

TEST_CASE("a DMABUF of a part of ROCr's memory, in this process and in another") {
  REQUIRE((export_dmabuf && close_dmabuf));
  Child child("(process) maps a DMABUF");
  const Runtime r;
  auto *vram = r.allocate(r.gpus[0], 2 * kBytes), *host = r.allocate(r.cpu, kBytes);
  const auto data = pattern(kBytes, 42), theirs = pattern(kBytes, 43);
  std::memcpy(host, data.data(), kBytes);
  copy(vram + kOffset, r.gpus[0], host, r.cpu, kBytes);
  int fd = -1;
  std::uint64_t offset = 0;
  GOOD(export_dmabuf(vram + kOffset, kBytes, &fd, &offset));
  CHECK(offset == kOffset);
  CHECK(::lseek(fd, 0, SEEK_END) >= static_cast<off_t>(2 * kBytes));
  std::size_t bytes = 0;
  void* p = nullptr;
  GOOD(map(r, fd, bytes, p));
  std::memset(host, 0, kBytes);
  copy(host, r.cpu, static_cast<std::uint8_t*>(p) + offset, r.gpus[0], kBytes);
  CHECK(std::memcmp(host, data.data(), kBytes) == 0);
  CHECK(hsa_amd_interop_unmap_buffer(p) == HSA_STATUS_SUCCESS);

  send_fd(child.link(), fd);
  CHECK(close_dmabuf(fd) == HSA_STATUS_SUCCESS);
  CHECK(child.status() == 0);
  copy(host, r.cpu, vram + kOffset, r.gpus[0], kBytes);
  CHECK(std::memcmp(host, theirs.data(), kBytes) == 0);
  const std::array<char, 100> not_rocrs{};
  CHECK(export_dmabuf(not_rocrs.data(), not_rocrs.size(), &fd, &offset) != HSA_STATUS_SUCCESS);
  for (auto* m : {vram, host}) CHECK(hsa_amd_memory_pool_free(m) == HSA_STATUS_SUCCESS);
}

TEST_CASE("copies on every engine that a program may choose, from the host, to it, and to another GPU") {
  REQUIRE((engines_between && copy_on_engine));
  const Runtime r;
  auto *host = r.allocate(r.cpu, kBytes), *back = r.allocate(r.cpu, kBytes);
  const auto& g = r.gpus[0];
  auto* vram = r.allocate(g, kBytes);
  std::uint32_t seed = 0;
  const auto on_each = [&](std::uint8_t* to, const Agent& there, const std::uint8_t* from, const Agent& here) {
    std::uint32_t engines = 0;
    GOOD(engines_between(there.agent, here.agent, &engines));
    CHECK(engines != 0);
    for (std::uint32_t e = 0; e < 16; ++e) {
      if ((engines >> e & 1) == 0) continue;
      const auto data = pattern(kBytes, ++seed);
      std::memcpy(host, data.data(), kBytes);
      if (from != host) copy(vram, g, host, r.cpu, kBytes);
      const Signal done;
      GOOD(copy_on_engine(to, there.agent, from, here.agent, kBytes, 0, nullptr, done.s, 1u << e, false));
      REQUIRE(done.done());
      if (to != back) copy(back, r.cpu, to, there, kBytes);
      REQUIRE(std::memcmp(back, data.data(), kBytes) == 0);
    }
  };
  on_each(vram, g, host, r.cpu);
  on_each(back, r.cpu, vram, g);
  if (r.gpus.size() > 1) {
    auto* peer = r.allocate(r.gpus[1], kBytes);
    on_each(peer, r.gpus[1], vram, g);
    hsa_amd_memory_pool_free(peer);
  }
  for (auto* p : {host, back, vram}) hsa_amd_memory_pool_free(p);
}
