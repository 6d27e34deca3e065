// SPDX-License-Identifier: MIT
#pragma once
// The memory that a CUDA device lends: pinned host memory, and GPU memory with or without a shadow for the host.
//
//   allocate(where, ...)  -> Block           pinned, or mapped by the driver's virtual memory calls
//   exported(id, va)      -> Block           with a descriptor, by which `allocate` of another process opens it
//   flush(gpu)                               host stores -> GPU, then GPU -> host, for each shadow of that GPU
//   free(id, in_use)                         now, or when no stream can touch it any more
//
//   GPU memory  [ what engines see ]         flush: where shadow and base differ, the host has stored: those bytes go
//   shadow      [ what the host sees ]       to the GPU, one by one (kernel `merge`). Then the GPU's bytes go to base,
//   base        [ both, at the last flush ]  and to the shadow where the host has not stored meanwhile.
//
// Thread-safe: `mutex_` guards the lists and is held for a moment only. `bytes_` is held while bytes are moved for the
// host: what is freed meanwhile is given back by a later `collect`. Only that, and a new shadow, waits for a GPU, which
// ends the call if it does not answer for kLong.
// Internal. Errors: Diagnostics, as Device::allocate gives them; Errc.
#include "../share_server.hpp"
#include "block.hpp"
#include "pinned.hpp"
#include "registered.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

inline constexpr auto kLong = std::chrono::seconds(60);  // for one piece of a flush or a peek

/// The shadow's word, with the bytes of `gpu` where the host has not stored since `base`.
inline void take_over(std::uint64_t* shadow, std::uint64_t base, std::uint64_t gpu) noexcept {
  atomic_ref word(*shadow);
  for (auto now = word.load(std::memory_order_relaxed);;) {
    auto next = gpu;
    for (unsigned byte = 0; byte < 8; ++byte) {
      const auto mask = std::uint64_t{0xff} << (byte * 8);
      if (((now ^ base) & mask) != 0) next = (next & ~mask) | (now & mask);
    }
    if (word.compare_exchange_weak(now, next, std::memory_order_acq_rel, std::memory_order_acquire)) return;
  }
}

class MemoryPool {
 public:
  /// `physical`: the GPU that a logical one is on.
  MemoryPool(AddressSpace& space, std::vector<PhysicalGpu*> physical) noexcept
      : space_(space), physical_(std::move(physical)) {}
  /// Gives back everything, unless `keep` was called.
  ~MemoryPool() {
    if (kept_) return;
    for (auto& f : freed_) dispose(f.block);
    for (auto& [id, b] : blocks_) dispose(b);
    RegisteredMemory::of_process().collect(any());
  }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Everything stays for the life of the process: a stream that still waits may touch it.
  void keep() noexcept { kept_ = true; }

  /// `file`: the descriptor of memory of another process, which this one opens; -1: the memory is new.
  Result<std::pair<std::uint64_t, Block>, Diagnostic> allocate(const MemoryRequest& r, const std::string& where,
                                                               int file = -1) {
    collect();
    Block b{.bytes = r.bytes, .owner = r.where, .gpus = r.gpus, .shareable = r.shareable};
    const bool opens = file >= 0;
    if (!r.where && r.shareable) {
      auto pages = shareable_pages(where, round_up(r.bytes, kPage));
      if (!pages) return pages.error();
      file = b.file = pages->release();
    }
    auto status = kSuccess;
    const auto on_error = [&](const char* what) {
      dispose(b);
      const bool out = status != kNotSupported;
      return Diagnostic{
          .where = where,
          .message = fmt::format("{}{}: {}", out ? "out of memory: " : "", what, any().driver().describe(status)),
          .hint = out ? "free memory, or request less" : "allocate it without MemoryRequest::shareable",
          .cause = out ? Cause::no_memory : Cause::bad_argument};
    };
    if (r.where) {
      status = map_gpu(b, r, physical_, file);
      if (status != kSuccess) return on_error("the driver maps no GPU memory");
    }
    if (!r.where && file >= 0) {
      status = RegisteredMemory::of_process().take(any(), file, round_up(r.bytes, kPage), r.alignment, b.pages);
      if (status != kSuccess) return on_error("the driver pins no shared pages");
      b.host = b.pages.at;
    } else if (!r.where || r.host_access) {
      const auto more = r.alignment > kPage ? r.alignment : 0;
      const auto bytes = round_up(r.bytes, kPage) + (r.where ? 0 : more);
      status = pin(b, bytes);
      if (status != kSuccess) return on_error("the driver pins no host memory");
      b.host = r.where ? b.pinned_at : aligned(b.pinned_at, std::max(r.alignment, kPage));
    }
    if (r.where && r.host_access) {
      auto* base = mmap(nullptr, round_up(r.bytes, kPage), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base == MAP_FAILED) return on_error("no memory for a shadow");
      b.base = static_cast<std::byte*>(base);
      auto& gpu = *physical_[r.where->value];
      const std::lock_guard own(gpu.control());
      if (!(opens ? pull(gpu, b) : gpu.clear_now(b.va.value, r.bytes, Deadline::in(kLong)))) {
        status = gpu.error();
        return on_error("the GPU does not answer");
      }
    }
    if (!r.where) b.va = GpuVa{reinterpret_cast<std::uintptr_t>(b.host)};
    const auto lent = lend(b, r.gpus);
    if (!lent) return on_error("the address is in use");
    return *lent;
  }
  /// The block, with a descriptor for other processes, which the pool closes. kInvalidValue: it cannot be shared.
  Result<Block, Status> exported(std::uint64_t id, GpuVa va) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(id);
    if (at == blocks_.end() || at->second.va != va || !at->second.shareable) return kInvalidValue;
    auto& b = at->second;
    if (b.file < 0)
      if (const auto s = export_gpu(b, physical_); s != kSuccess) return s;
    return b;
  }
  /// Memory that the caller's program has allocated; `free` gives it back.
  Result<std::pair<std::uint64_t, Block>, Diagnostic> adopt(std::byte* pointer, std::uint64_t bytes,
                                                            std::uint64_t gpus) {
    collect();
    Block b{.bytes = bytes};
    if (auto d = find_owner(b, pointer, gpus)) return *d;
    const auto lent = lend(b, gpus);
    if (lent) return *lent;
    return Diagnostic{.where = fmt::format("adopt pointer={} bytes={}", fmt::ptr(pointer), bytes),
                      .message = "it overlaps memory that this device lends already",
                      .hint = "share the handle, or give the other one back first"};
  }
  /// `in_use`: may a stream still touch memory that is freed now? It is asked again by `collect`.
  void free(std::uint64_t id, std::function<bool()> in_use) noexcept {
    {
      const std::lock_guard lock(mutex_);
      const auto at = blocks_.find(id);
      if (at == blocks_.end()) return;
      // no_space: streams still see the mapping, so the block stays as long as the device.
      if (space_.unmap(at->second.va, Deadline{}) == Errc::no_space) return;
      freed_.push_back({at->second, std::move(in_use)});
      blocks_.erase(at);
    }
    collect();
  }
  /// Gives back what is no longer in use, and waits for nothing.
  void collect() noexcept {
    std::vector<Freed> candidates;
    {
      const std::lock_guard lock(mutex_);
      candidates.swap(freed_);
    }
    auto used = candidates.begin();
    // A thread in a Section may still issue commands: who uses the block is known only after it has left. Asked without
    // a lock, because the answer takes others.
    if (space_.drain(Deadline{}) == Errc::ok)
      used = std::stable_partition(used, candidates.end(), [](Freed& f) { return !f.in_use(); });
    if (const std::unique_lock bytes(bytes_, std::try_to_lock); bytes)
      for (auto f = candidates.begin(); f != used; ++f) dispose(f->block);
    else used = candidates.begin();
    const std::lock_guard lock(mutex_);
    freed_.insert(freed_.end(), std::make_move_iterator(used), std::make_move_iterator(candidates.end()));
  }

  /// The id of the next block.
  std::uint64_t next_id() noexcept {
    const std::lock_guard lock(mutex_);
    return next_id_;
  }

  /// Unpins shared pages that are free. Nothing may be issued to a stream meanwhile.
  void unpin() noexcept { RegisteredMemory::of_process().collect(any()); }

  Errc flush(GpuId g) noexcept { return each_shadow(g, true); }
  /// Only host -> GPU: what an HDP_FLUSH does.
  Errc push(GpuId g) noexcept { return each_shadow(g, false); }
  Errc peek(GpuVa va, std::span<std::byte> out) noexcept {
    const std::lock_guard bytes(bytes_);  // nothing is given back meanwhile
    for (std::size_t done = 0; done < out.size();) {
      const auto m = space_.find(va + done);
      if (!m) return Errc::unmapped;
      const auto offset = (va + done) - m->va;
      const auto left = std::min<std::uint64_t>(m->bytes - offset, out.size() - done);
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, PhysicalGpu::kBounceBytes));
      if (m->owner == Mapping::kHost) {
        load_bytes(m->host + offset, out.subspan(done, n));
      } else {
        auto& gpu = *physical_[m->owner];
        const std::lock_guard own(gpu.control());
        if (!gpu.copy_now(reinterpret_cast<Pointer>(gpu.bounce(0)), va.value + done, n, Deadline::in(kLong)))
          return Errc::stopped;
        std::memcpy(out.data() + done, gpu.bounce(0), n);
      }
      done += n;
    }
    return Errc::ok;
  }

 private:
  /// Makes the block known to streams and to `free`.
  Result<std::pair<std::uint64_t, Block>, Errc> lend(const Block& b, std::uint64_t gpus) {
    const std::lock_guard lock(mutex_);
    // What lies at the address is never touched by the host for GPU memory: the mapping needs an address all the same.
    const auto e = space_.map({.va = b.va,
                               .bytes = round_up(b.bytes, 8),
                               .host = reinterpret_cast<std::byte*>(b.va.value),
                               .owner = b.owner ? b.owner->value : Mapping::kHost,
                               .gpus = gpus,
                               .access = Access::read_write});
    if (e != Errc::ok) return e;
    const auto id = next_id_++;
    blocks_.emplace(id, b);
    return std::pair(id, b);
  }
  /// Finds out whose memory it is, and opens the way from other GPUs.
  std::optional<Diagnostic> find_owner(Block& b, std::byte* pointer, std::uint64_t gpus) {
    const auto refused = [&](std::string why, const char* hint) {
      return Diagnostic{.where = fmt::format("adopt pointer={} bytes={}", fmt::ptr(pointer), b.bytes),
                        .message = std::move(why),
                        .hint = hint};
    };
    if (!pointer || b.bytes == 0) return refused("the range is empty", "pass an allocation and its length in bytes");
    const auto& d = any().driver();
    const InContext here(any());
    const auto at = reinterpret_cast<Pointer>(pointer);
    b.va = GpuVa{at};
    unsigned type = 0;
    if (const auto s = d.pointer_attribute(&type, kMemoryType, at); s != kSuccess || type == 0)
      return refused("CUDA does not know this memory",
                     "pass memory of cudaMalloc, or pin the host's: cudaHostRegister");
    Pointer start = 0;
    std::size_t bytes = 0;
    if (d.pointer_attribute(&start, kRangeStart, at) != kSuccess ||
        d.pointer_attribute(&bytes, kRangeBytes, at) != kSuccess || at - start >= bytes ||
        b.bytes > bytes - (at - start))
      return refused(fmt::format("its allocation has {} bytes from {:#x} on", bytes, start),
                     "adopt a range that lies in one allocation");
    if (type == kHostMemory) {
      b.host = pointer;
      return {};
    }
    int ordinal = -1;
    (void)d.pointer_attribute(&ordinal, kOrdinalOf, at);
    for (std::uint32_t g = 0; g < physical_.size() && !b.owner; ++g)
      if (physical_[g]->ordinal() == ordinal) b.owner = GpuId{g};
    if (!b.owner)
      return refused(fmt::format("it belongs to GPU {} of the driver, which this device has not opened", ordinal),
                     "open all GPUs: CudaOptions::gpus = 0");
    for (std::size_t g = 0; g < physical_.size(); ++g) {
      auto& peer = *physical_[g];
      if ((gpus >> g & 1) == 0 || peer.ordinal() == ordinal) continue;
      const InContext there(peer);
      const auto s = d.enable_peer(physical_[b.owner->value]->context(), 0);
      if (s != kSuccess && s != kPeerAlreadyEnabled)
        return refused(fmt::format("GPU {} gets no access to GPU {}: {}", peer.ordinal(), ordinal, d.describe(s)),
                       "adopt it for GPUs that can reach it");
    }
    return {};
  }
  Status pin(Block& b, std::uint64_t bytes) {
    const auto pinned = PinnedMemory::of_process().take(any(), bytes);
    if (!pinned) return pinned.status;
    b.pinned_at = pinned.at;
    b.pinned = pinned.bytes;
    return kSuccess;
  }
  /// Nothing can touch the block any more.
  void dispose(const Block& b) noexcept {
    if (b.mapped) unmap_gpu(b, physical_);
    if (b.file >= 0) ::close(b.file);
    if (b.pages.at) RegisteredMemory::of_process().give(b.pages);
    if (b.base) munmap(b.base, round_up(b.bytes, kPage));
    if (b.pinned) PinnedMemory::of_process().give({b.pinned_at, b.pinned});
  }
  /// What the host has stored since the last flush goes to the GPU. Hold `bytes_` and the GPU's lock.
  bool push(PhysicalGpu& gpu, const Block& b) noexcept {
    for (std::uint64_t at = 0; at < b.bytes; at += PhysicalGpu::kBounceBytes) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(b.bytes - at, PhysicalGpu::kBounceBytes));
      if (std::memcmp(b.host + at, b.base + at, n) == 0) continue;
      auto *now = gpu.bounce(0), *before = gpu.bounce(1);
      load_bytes(b.host + at, {now, n});
      std::memcpy(before, b.base + at, n);
      if (!gpu.merge_now(b.va.value + at, now, before, n, Deadline::in(kLong))) return false;
      std::memcpy(b.base + at, now, n);
    }
    return true;
  }
  /// What engines have stored since the last flush goes to the shadow. Hold the GPU's lock and, unless the block is not
  /// lent yet, `bytes_`.
  bool pull(PhysicalGpu& gpu, const Block& b) noexcept {
    for (std::uint64_t at = 0; at < b.bytes; at += PhysicalGpu::kBounceBytes) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(b.bytes - at, PhysicalGpu::kBounceBytes));
      auto* seen = gpu.bounce(0);
      if (!gpu.copy_now(reinterpret_cast<Pointer>(seen), b.va.value + at, n, Deadline::in(kLong))) return false;
      if (std::memcmp(seen, b.base + at, n) == 0) continue;
      for (std::size_t i = 0; i < n; i += 8) {  // the shadow and its base are whole pages
        std::uint64_t gpu_word = 0, base_word = 0;
        std::memcpy(&base_word, b.base + at + i, 8);
        gpu_word = base_word;
        std::memcpy(&gpu_word, seen + i, std::min<std::size_t>(8, n - i));
        if (gpu_word == base_word) continue;
        take_over(reinterpret_cast<std::uint64_t*>(b.host + at + i), base_word, gpu_word);
        std::memcpy(b.base + at + i, &gpu_word, 8);
      }
    }
    return true;
  }
  Errc each_shadow(GpuId g, bool both) noexcept {
    if (g.value >= physical_.size()) return Errc::bad_argument;
    auto& gpu = *physical_[g.value];
    const std::lock_guard bytes(bytes_);
    std::vector<Block> shadowed;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, b] : blocks_)
        if (b.owner == g && b.base) shadowed.push_back(b);
    }
    const std::lock_guard own(gpu.control());
    for (const auto& b : shadowed)
      if (!push(gpu, b) || (both && !pull(gpu, b))) return Errc::stopped;
    return Errc::ok;
  }
  PhysicalGpu& any() const noexcept { return *physical_.front(); }

  struct Freed {
    Block block;
    std::function<bool()> in_use;
  };

  AddressSpace& space_;
  const std::vector<PhysicalGpu*> physical_;
  std::mutex bytes_;  ///< taken before mutex_
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::vector<Freed> freed_;
  std::uint64_t next_id_ = 1;
  bool kept_ = false;
};

}}}  // namespace sdma::v0_3::detail::cuda
