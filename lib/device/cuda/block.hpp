// SPDX-License-Identifier: MIT
#pragma once
// One piece of memory of a CUDA device, and the GPU memory in it: by the driver's virtual memory calls, of this process
// or of another.
//
//   map_gpu(block, request, physical, -1)          creates memory, at a new address
//   export_gpu(block, physical)                    block.file: a descriptor that names it, for other processes
//   map_gpu(block, request, physical, file)        opens what another process has exported
//   unmap_gpu(block, physical)                     the memory goes with the last process that has it
//
// Each gives access to the GPUs of the request, and to the owner. One thread at a time for a block; internal. Errors:
// the driver's status; after one, what the block holds (`mapped`) is still to be unmapped.
#include "../request.hpp"
#include "../share_server.hpp"
#include "gpu.hpp"

#include <fcntl.h>
#include <algorithm>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

struct Block {
  GpuVa va{};
  std::uint64_t bytes{};         ///< as requested
  std::optional<GpuId> owner{};  ///< nullopt: the host
  std::uint64_t gpus{};          ///< bit g: GPU g may access it
  bool shareable{};
  std::byte* host{};       ///< pinned memory, or the shadow; null: the host has no access
  std::uint64_t pinned{};  ///< bytes at `pinned_at`; 0: none
  std::byte* pinned_at{};  ///< `host` may be aligned further
  FilePages pages{};       ///< host memory of several processes: in place of `pinned`
  std::byte* base{};       ///< of a shadow
  std::uint64_t mapped{};  ///< bytes of GPU memory at `va`
  Handle handle{};
  int file = -1;  ///< what other processes open
};

/// `physical`: the GPU that a logical one is on. `file`: -1, or what another process has exported.
inline Status map_gpu(Block& b, const MemoryRequest& r, const std::vector<PhysicalGpu*>& physical, int file) {
  auto& gpu = *physical[b.owner->value];
  if (r.shareable && !gpu.shares()) return kNotSupported;
  const auto& d = gpu.driver();
  const InContext here(gpu);
  MemoryProperties p;
  p.location.id = gpu.ordinal();
  if (r.shareable) p.handle_types = kFileDescriptor;
  const auto bytes = round_up(r.bytes, gpu.granularity());
  Pointer at{};
  if (const auto s = d.reserve(&at, bytes, std::max<std::uint64_t>(r.alignment, gpu.granularity()), 0, 0);
      s != kSuccess)
    return s;
  b.va = GpuVa{at};
  // The driver takes a descriptor in place of a pointer.
  auto s = file < 0
               ? d.memory_create(&b.handle, bytes, &p, 0)
               : d.import_memory(&b.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), kFileDescriptor);
  if (s != kSuccess) {
    d.unreserve(at, bytes);
    return s;
  }
  s = d.map(at, bytes, 0, b.handle, 0);
  if (s != kSuccess) {
    d.memory_release(b.handle);
    d.unreserve(at, bytes);
    return s;
  }
  b.mapped = bytes;
  std::vector<MemoryAccess> access;
  for (std::size_t g = 0; g < physical.size(); ++g) {
    if (GpuId{static_cast<std::uint32_t>(g)} != *b.owner && (r.gpus >> g & 1) == 0) continue;
    const auto id = physical[g]->ordinal();
    if (std::none_of(access.begin(), access.end(), [&](const auto& a) { return a.location.id == id; }))
      access.push_back({.location = {.id = id}});
  }
  return d.set_access(at, bytes, access.data(), access.size());
}

inline Status export_gpu(Block& b, const std::vector<PhysicalGpu*>& physical) {
  auto& gpu = *physical[b.owner->value];
  const InContext here(gpu);
  int file = -1;
  if (const auto s = gpu.driver().export_memory(&file, b.handle, kFileDescriptor, 0); s != kSuccess) return s;
  (void)::fcntl(file, F_SETFD, FD_CLOEXEC);
  b.file = file;
  return kSuccess;
}

inline void unmap_gpu(const Block& b, const std::vector<PhysicalGpu*>& physical) noexcept {
  auto& gpu = *physical[b.owner->value];
  const auto& d = gpu.driver();
  const InContext here(gpu);
  d.unmap(b.va.value, b.mapped);
  d.memory_release(b.handle);
  d.unreserve(b.va.value, b.mapped);
}

}}}  // namespace sdma::v0_3::detail::cuda
