// SPDX-License-Identifier: MIT
#pragma once
// One client for the whole program: only the first DRM file that a process acquires has the queues' mappings.
#include "../../lib/device/kfd/raw_client.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"

namespace gem {

using namespace sdma::raw;
namespace drm = sdma::drm;

inline Client& client() {
  static Client c;
  return c;
}

/// A range of addresses that nothing else uses.
inline std::uint64_t reserve(std::uint64_t bytes) {
  auto* p = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(p != MAP_FAILED);
  return reinterpret_cast<std::uint64_t>(p);
}

inline std::uint32_t create(int fd, std::uint64_t bytes, std::uint64_t domains = drm::kDomainVram,
                            std::uint64_t flags = 0) {
  drm::GemCreate a{.bytes = bytes, .alignment = 4096, .domains = domains, .flags = flags};
  REQUIRE(drm_call(fd, drm::kGemCreate, a) == 0);
  return static_cast<std::uint32_t>(a.bytes);
}
inline int close(int fd, std::uint32_t handle) {
  drm::GemClose a{.handle = handle, .pad = 0};
  return drm_call(fd, drm::kGemClose, a);
}
template <class T = std::uint32_t> T* host(int fd, std::uint32_t handle, std::uint64_t bytes) {
  drm::GemMmap a{handle};
  REQUIRE(drm_call(fd, drm::kGemMmap, a) == 0);
  auto* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(a.handle_then_offset));
  REQUIRE(p != MAP_FAILED);
  return static_cast<T*>(p);
}

constexpr std::uint32_t kReadWrite = drm::kVaReadable | drm::kVaWriteable;
inline int va(int fd, std::uint32_t operation, std::uint32_t handle, std::uint64_t at, std::uint64_t bytes,
              std::uint64_t offset = 0, std::uint32_t flags = kReadWrite) {
  drm::GemVa a{
      .handle = handle, .pad = 0, .operation = operation, .flags = flags, .va = at, .offset = offset, .bytes = bytes};
  return drm_call(fd, drm::kGemVa, a);
}

/// A descriptor of the events of GPU g.
inline int monitor(std::uint32_t g, std::uint64_t mask) {
  kfd::SmiEvents a{.gpu_id = client().gpu_id(g), .fd = 0};
  REQUIRE(call(client().kfd, Nr::smi_events, a) == 0);
  const int fd = static_cast<int>(a.fd);
  if (mask != 0) CHECK(::write(fd, &mask, sizeof mask) == sizeof mask);
  return fd;
}
/// What a monitor can read now; "" if that is nothing.
inline std::string events(int fd, std::size_t room = 256) {
  std::string text(room, 0);
  const auto n = ::read(fd, text.data(), room);
  if (n < 0) CHECK(errno == EAGAIN);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

/// Copies a dword with a queue of GPU g; false if it does not arrive within `ms`.
inline bool copied(std::uint32_t g, std::uint64_t to, std::uint64_t from, int ms = 10'000) {
  auto& c = client();
  auto word = c.allocate(4096, g);
  bool arrived = false;
  {
    Queue q(c, g, kfd::kQueueSdma);
    sdma::Ring<> ring(q.memory());
    if (ring.submit(sdma::CopyLinear{.src = sdma::GpuVa{from}, .dst = sdma::GpuVa{to}, .bytes = 4},
                    sdma::Fence{.addr = word.gpu(), .value = 1}) != sdma::Errc::ok)
      return false;
    const auto there = [&] { return __atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 1; };
    for (int i = 0; i < ms && !there(); ++i) ::usleep(1000);
    arrived = there();
  }
  c.free(word);
  return arrived;
}

}  // namespace gem
