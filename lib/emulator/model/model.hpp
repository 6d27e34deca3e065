#pragma once
// sDMA queues without a kernel driver, doorbells or a separate process: the program announces memory, and the model polls the
// write pointers of rings. The engine is that of the software node.
//
//   Model m;
//   m.add_memory(base, bytes);                      // the GPU uses the program's addresses
//   m.add_queue({.ring = ..., .queue_id = 7});      // the first queue starts the thread
//   m.on_event([](void*, std::uint32_t id) {...}, nullptr);
//
// One thread serves all queues, a few packets of each in turn, so a poll delays only its own queue. After its last work it spins
// for 50 us, and then sleeps for 20 us to 1 ms at a time, because nothing can wake it. The variables of the software node set
// ordering, seed and trace: SDMA_EMULATE_ORDER, _SEED, _TRACE, _WATCH.
//
// An access outside the announced memory stops its queue, with a message on stderr, because the interface cannot report it.
// Any thread, but not from within the function of on_event. Errors: an errno.
#include "interface.hpp"

#include "../../engine/worker.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace sdma::emulator {

class Model final : private sdma::detail::Worker::Served {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  int add_memory(void* address, std::uint64_t bytes);
  int remove_memory(void* address);
  int add_queue(const hsakmt_model_queue_info&);
  int remove_queue(std::uint32_t id);
  void on_event(hsakmt_model_set_event, void* data);

 private:
  struct Queue {
    Queue(Model&, const hsakmt_model_queue_info&, std::span<std::uint32_t> ring);
    const std::uint64_t* write_pointer;
    std::uint64_t told = 0;
    AddressSpace::Reader reader;
    EngineState state{};
    Pipeline pipeline;
  };
  PipelineHooks hooks() noexcept;
  using Worker = sdma::detail::Worker;
  Progress round() noexcept override;
  Worker::Rest rest(Progress, std::chrono::nanoseconds nap) noexcept override;
  void wake() noexcept override { parking_.wake(); }

  AddressSpace space_{};
  Worker worker_;  // its lock guards the queues
  sdma::detail::Parking parking_;
  std::uint32_t ticket_ = 0;
  std::map<std::uint32_t, std::unique_ptr<Queue>> queues_{};
  std::mutex event_mutex_;
  hsakmt_model_set_event set_event_ = nullptr;
  void* event_data_ = nullptr;
};

}  // namespace sdma::emulator
