// SPDX-License-Identifier: MIT
#pragma once
// The memory that a CUDA device lends: pinned host memory, and GPU memory with or without a shadow for the host.
//
//   allocate(where, ...)  -> Block           pinned, or mapped by the driver's virtual memory calls
//   flush(gpu)                               host stores -> GPU, then GPU -> host, for each shadow of that GPU
//   free(id, in_use)                         now, or when no stream can touch it any more
//
//   GPU memory  [ what engines see ]         flush: where shadow and base differ, the host has stored: those bytes go
//   shadow      [ what the host sees ]       to the GPU, one by one (kernel `merge`). Then the GPU's bytes go to base,
//   base        [ both, at the last flush ]  and to the shadow where the host has not stored meanwhile.
//
// Thread-safe: one lock. Internal. Errors: Diagnostics, as Device::allocate gives them; Errc.
#include "../request.hpp"
#include "gpu.hpp"
#include "pinned.hpp"
#include "sdma/engine/memory.hpp"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace sdma::inline v0::detail::cuda {

struct Block {
  GpuVa va{};
  std::uint64_t bytes{};         ///< as requested
  std::optional<GpuId> owner{};  ///< nullopt: the host
  std::byte* host{};             ///< pinned memory, or the shadow; null: the host has no access
  std::uint64_t pinned{};        ///< bytes at `pinned_at`; 0: none
  std::byte* pinned_at{};        ///< `host` may be aligned further
  std::byte* base{};             ///< of a shadow
  std::uint64_t mapped{};        ///< bytes of GPU memory at `va`
  Handle handle{};
};

class MemoryPool {
 public:
  /// `physical`: the GPU that a logical one is on.
  MemoryPool(AddressSpace& space, std::vector<PhysicalGpu*> physical) noexcept
      : space_(space), physical_(std::move(physical)) {}
  ~MemoryPool();  ///< gives back everything, unless `keep` was called
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Everything stays for the life of the process: a stream that still waits may touch it.
  void keep() noexcept { kept_ = true; }

  Result<std::pair<std::uint64_t, Block>, Diagnostic> allocate(const MemoryRequest&, const std::string& where);
  /// Memory that the caller's program has allocated; `free` gives it back.
  Result<std::pair<std::uint64_t, Block>, Diagnostic> adopt(std::byte* pointer, std::uint64_t bytes,
                                                            std::uint64_t gpus);
  /// `in_use`: may a stream still touch memory that is freed now? It is asked again by `collect`.
  void free(std::uint64_t id, std::function<bool()> in_use) noexcept;
  /// Frees what is no longer in use.
  void collect() noexcept;

  /// The id of the next block.
  std::uint64_t next_id() noexcept {
    const std::lock_guard lock(mutex_);
    return next_id_;
  }

  Errc flush(GpuId) noexcept;
  /// Only host -> GPU: what an HDP_FLUSH does.
  Errc push(GpuId) noexcept;
  Errc peek(GpuVa, std::span<std::byte>) noexcept;

 private:
  Result<std::pair<std::uint64_t, Block>, Errc> lend(const Block&, std::uint64_t gpus);
  std::optional<Diagnostic> find_owner(Block&, std::byte* pointer, std::uint64_t gpus);
  Status pin(Block&, std::uint64_t bytes);
  Status map_gpu(Block&, const MemoryRequest&);
  void unmap_gpu(const Block&) noexcept;
  void dispose(const Block&) noexcept;
  bool push(PhysicalGpu&, const Block&) noexcept;
  bool pull(PhysicalGpu&, const Block&) noexcept;
  Errc each_shadow(GpuId, bool both) noexcept;
  PhysicalGpu& any() const noexcept { return *physical_.front(); }

  struct Freed {
    Block block;
    std::function<bool()> in_use;
  };

  AddressSpace& space_;
  const std::vector<PhysicalGpu*> physical_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::vector<Freed> freed_;
  std::uint64_t next_id_ = 1;
  bool kept_ = false;
};

}  // namespace sdma::inline v0::detail::cuda
