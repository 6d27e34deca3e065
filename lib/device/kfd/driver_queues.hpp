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
#include "driver.hpp"
#include "thunk.hpp"

#include <unordered_map>

namespace sdma::inline v0::detail {

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
Diagnostic nothing_free(const QueueRequest&, const Topology&);

class DriverQueues {
 public:
  /// How libhsakmt and the driver call a GPU.
  struct Gpu {
    std::uint32_t node{}, id{};
  };

  DriverQueues(const thunk::Thunk& t, int fd, thunk::Version v) noexcept : thunk_(t), fd_(fd), version_(v) {}
  ~DriverQueues();
  DriverQueues(const DriverQueues&) = delete;
  DriverQueues& operator=(const DriverQueues&) = delete;

  bool needs_pointers() const noexcept { return !thunk_.create_queue; }
  std::optional<Diagnostic> create(const QueueRequest&, const Topology&, Gpu, QueueState&);
  void destroy(const QueueState&) noexcept;
  /// A share of 0 % of the engine unmaps the queue; its ring and pointers stay.
  void disable(const QueueState&) noexcept;

 private:
  std::optional<Diagnostic> by_library(const QueueRequest&, const Topology&, Gpu, QueueState&);
  std::optional<Diagnostic> by_driver(const QueueRequest&, const Topology&, Gpu, QueueState&);

  const thunk::Thunk& thunk_;
  const int fd_;
  const thunk::Version version_;
  std::unordered_map<std::uint32_t, std::uint64_t> doorbells_;  ///< addresses by GPU, for queues that the ioctl creates
};

}  // namespace sdma::inline v0::detail
