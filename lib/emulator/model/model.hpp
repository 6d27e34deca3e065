// SPDX-License-Identifier: MIT
#pragma once
// One GPU of the model interface: sDMA queues without a kernel driver. The engine is that of the software node.
//
//   Model m;
//   m.set_aperture(base, size);                     // GPU address a is the program's base + a
//   m.add_memory(address, bytes);                   // GPU addresses; every model of the process may access them
//   hsakmt_model_queue* q = nullptr;
//   m.add_queue({.ring_base_address = ...}, q);     // the first queue starts the thread
//   m.on_event([](void*, unsigned id) {...}, nullptr);
//
// Memory that no model has announced is a fault: the queue stops, with a message on stderr, because the interface
// cannot report it. Memory that the caller has announced but not mapped into this aperture is an invalid access
// of the process.
//
// One thread serves all queues, a few packets of each in turn, so a poll delays only its own queue. It polls write
// pointers, and doorbells where the caller has given them. After its last work it spins for 50 us, and then sleeps for
// 20 us to 1 ms at a time, because nothing can wake it. A compute queue exists, but no packet of it is executed; the
// first is reported. The variables of the software node set ordering, seed and trace: SDMA_EMULATE_ORDER, _SEED,
// _TRACE, _WATCH.
//
// Any thread, but not from within the function of on_event. Errors: a sentence, null if there is none.
#include "interface.hpp"

#include "../../engine/worker.hpp"

#include <memory>
#include <mutex>
#include <vector>

/// What register_queue returns.
struct hsakmt_model_queue {
  virtual ~hsakmt_model_queue() = default;
};

namespace sdma::emulator {

class Model final : private sdma::detail::Worker::Served {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const char* set_aperture(std::byte* base, std::uint64_t bytes);
  const char* add_memory(void* address, std::uint64_t bytes);
  /// Waits for engines that may use it, at most 60 s.
  const char* remove_memory(void* address);
  const char* add_queue(const hsakmt_model_queue_info&, hsakmt_model_queue*& made);
  void remove_queue(hsakmt_model_queue*);
  void on_event(hsakmt_model_set_event_fn, void* data);

 private:
  struct Queue;
  struct Announced;
  static Announced& announced();

  const char* map(GpuVa, std::uint64_t bytes);
  template <class T> T* at(std::uint64_t address) const { return reinterpret_cast<T*>(base_ + address); }
  PipelineHooks hooks() noexcept;
  using Worker = sdma::detail::Worker;
  Progress round() noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;
  void wake() noexcept override { parking_.wake(); }

  GpuId gpu_;  ///< models are numbered in the order of their creation
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  AddressSpace space_{};
  Worker worker_;  // its lock guards the queues
  sdma::detail::Parking parking_;
  std::uint32_t ticket_ = 0, next_queue_ = 0;
  std::vector<std::unique_ptr<Queue>> queues_{};
  std::mutex event_mutex_;
  hsakmt_model_set_event_fn set_event_ = nullptr;
  void* event_data_ = nullptr;
};

}  // namespace sdma::emulator
