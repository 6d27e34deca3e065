// SPDX-License-Identifier: MIT
#pragma once
// Queues that libhsakmt creates if it supports queues by engine, and the driver's ioctl if it does not.
//
//   DriverQueues queues{thunk, fd, version};
//   QueueState q{.gpu = ..., .ring = ..., .pointers = ..., .ring_bytes = ...};    // mapped to the GPU
//   if (auto d = queues.create(request, topology, {.node = 1, .id = 0xd2e}, q)) return *d;
//
// `pointers`: a page for rptr and wptr, if `needs_pointers`; libhsakmt allocates them itself. libhsakmt's instance must
// be the one that owns the GPU. One thread at a time. Internal to the library. Errors: Diagnostics.
#include "../request.hpp"
#include "kfd_driver.hpp"
#include "thunk.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <cerrno>
#include <cstring>
#include <unordered_map>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::uint32_t kAll = kfd::kMaxPercentage;  // percent of the engine's time
inline std::uint64_t* word_at(std::uint64_t address) noexcept { return reinterpret_cast<std::uint64_t*>(address); }

/// A queue, and what it is made of.
struct QueueState {
  GpuId gpu{};
  EngineId engine = kUnknownEngine;
  std::uint64_t ring{}, pointers{};  ///< ids of blocks of memory, which are their addresses; 0: none
  std::uint64_t ring_bytes{};
  std::uint64_t handle{};  ///< the driver's id of the queue, or that of the library which made it
  std::uint64_t watch{};   ///< rocr/watched.hpp
  RingMemory memory{};
};

/// All queues of the engine are in use.
inline Diagnostic nothing_free(const QueueRequest& r, const Topology& t) {
  return {.where = place_of(r),
          .message = fmt::format("all {} queues of the engine are in use, by this process or others",
                                 t.gpus[r.gpu.value].queues_per_engine),
          .hint = "destroy one, or share a queue between producers: Ring<Producers::many>"};
}

class DriverQueues {
 public:
  /// How libhsakmt and the driver call a GPU.
  struct Gpu {
    std::uint32_t node{}, id{};
  };

  DriverQueues(const thunk::Thunk& t, int fd, thunk::Version v) noexcept : thunk_(t), fd_(fd), version_(v) {}
  ~DriverQueues() {
    for (const auto& [gpu, at] : doorbells_)
      if (at != 0) ::munmap(reinterpret_cast<void*>(at), kfd::kDoorbellBytes);
  }
  DriverQueues(const DriverQueues&) = delete;
  DriverQueues& operator=(const DriverQueues&) = delete;

  bool needs_pointers() const noexcept { return !thunk_.create_queue; }
  std::optional<Diagnostic> create(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
    if (r.pick == EnginePick::exact && version_.minor < kfd::kByEngineMinor)
      return Diagnostic{.where = place_of(r),
                        .message = fmt::format("KFD {}.{} cannot place a queue on a chosen engine, but 1.{} can",
                                               version_.major, version_.minor, kfd::kByEngineMinor),
                        .hint = "use EnginePick::any_host or any_xgmi, or a newer kernel or amdgpu-dkms"};
    q.memory = {.dwords = {reinterpret_cast<std::uint32_t*>(q.ring), static_cast<std::size_t>(r.ring_bytes / 4)},
                .caching = Caching::write_back,
                .generation = t.gpus[r.gpu.value].generation()};
    return thunk_.create_queue ? by_library(r, t, g, q) : by_driver(r, t, g, q);
  }
  void destroy(const QueueState& q) noexcept {
    if (q.pointers == 0) {
      (void)thunk_.destroy_queue(q.handle);
      return;
    }
    kfd::DestroyQueue a{.queue_id = static_cast<std::uint32_t>(q.handle)};
    (void)kfd::call(fd_, kfd::Nr::destroy_queue, a);
  }
  /// A share of 0 % of the engine unmaps the queue; its ring and pointers stay.
  void disable(const QueueState& q) noexcept {
    if (q.pointers == 0) {
      (void)thunk_.update_queue(q.handle, 0, 0, word_at(q.ring), q.ring_bytes, nullptr);
      return;
    }
    kfd::UpdateQueue a{.ring = q.ring,
                       .queue_id = static_cast<std::uint32_t>(q.handle),
                       .ring_bytes = static_cast<std::uint32_t>(q.ring_bytes)};
    (void)kfd::call(fd_, kfd::Nr::update_queue, a, kfd::kIn);
  }

 private:
  std::optional<Diagnostic> by_library(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
    const auto type = r.pick == EnginePick::exact      ? thunk::kQueueSdmaByEngine
                      : r.pick == EnginePick::any_host ? thunk::kQueueSdma
                                                       : thunk::kQueueSdmaXgmi;
    thunk::Grown<thunk::QueueResource> made;
    const auto s = thunk_.create_queue(g.node, type, kAll, r.priority, r.engine.value, word_at(q.ring), r.ring_bytes,
                                       nullptr, &made.known);
    if (s == thunk::kNoMemory) return nothing_free(r, t);
    if (s != thunk::kSuccess)
      return Diagnostic{.where = place_of(r),
                        .message = fmt::format("libhsakmt could not create the queue: {}", thunk::message(s)),
                        .hint = "HSAKMT_DEBUG_LEVEL=7 makes it print more"};
    q.handle = made.known.queue;
    q.memory.rptr = made.known.rptr;
    q.memory.wptr = made.known.wptr;
    q.memory.doorbell = made.known.doorbell;
    return {};
  }
  std::optional<Diagnostic> by_driver(const QueueRequest& r, const Topology& t, Gpu g, QueueState& q) {
    constexpr std::uint32_t kPriorities[] = {0, 3, 5, 7, 9, 11, 15};  // for -3 to 3
    // The engine writes 16 bytes from rptr on, the upper 8 for the firmware's own use, so wptr is on another cache
    // line.
    constexpr std::uint64_t kWptr = 64;
    kfd::CreateQueue a{.ring = q.ring,
                       .wptr = q.pointers + kWptr,
                       .rptr = q.pointers,
                       .ring_bytes = static_cast<std::uint32_t>(r.ring_bytes),
                       .gpu_id = g.id,
                       .type = r.pick == EnginePick::exact      ? kfd::kQueueSdmaByEngine
                               : r.pick == EnginePick::any_host ? kfd::kQueueSdma
                                                                : kfd::kQueueSdmaXgmi,
                       .percentage = kAll,
                       .priority = kPriorities[r.priority + 3],
                       .sdma_engine_id = r.pick == EnginePick::exact ? r.engine.value : 0};
    if (const int error = kfd::call(fd_, kfd::Nr::create_queue, a)) {
      if (error == ENOMEM) return nothing_free(r, t);
      return Diagnostic{.where = place_of(r),
                        .message = fmt::format("the driver could not create the queue: {}", std::strerror(error)),
                        .hint = "the kernel's log (dmesg) may say more"};
    }
    q.handle = a.queue_id;
    auto& doorbells = doorbells_[g.id];
    if (doorbells == 0) {
      const auto frame = a.doorbell_offset & ~(kfd::kDoorbellBytes - 1);
      void* at =
          ::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(frame));
      if (at == MAP_FAILED) {
        const int error = errno;
        destroy(q);
        return Diagnostic{.where = place_of(r),
                          .message = fmt::format("the doorbells cannot be mapped: {}", std::strerror(error)),
                          .hint = "the kernel's log (dmesg) may say more"};
      }
      doorbells = reinterpret_cast<std::uint64_t>(at);
    }
    q.memory.rptr = word_at(q.pointers);
    q.memory.wptr = word_at(q.pointers + kWptr);
    q.memory.doorbell = word_at(doorbells + a.doorbell_offset % kfd::kDoorbellBytes);
    return {};
  }

  const thunk::Thunk& thunk_;
  const int fd_;
  const thunk::Version version_;
  std::unordered_map<std::uint32_t, std::uint64_t> doorbells_;  ///< addresses by GPU, for queues that the ioctl creates
};

}}}  // namespace sdma::v0_3::detail
