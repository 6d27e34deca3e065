// SPDX-License-Identifier: MIT
// AQL queues that a program drives by itself: many at once, in a chain of barriers, with a full ring, and with a packet
// that does not exist. Part of the program of rocr.cpp.
#include "rocr_runtime.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

using namespace rocr;

namespace {

/// The last error that a queue has reported.
std::atomic<int> reported{0};

class AqlQueue {
 public:
  AqlQueue(const Agent& of, std::uint32_t packets, hsa_queue_type32_t type) {
    GOOD(hsa_queue_create(
        of.agent, packets, type, [](hsa_status_t s, hsa_queue_t*, void*) { reported = s; }, nullptr, UINT32_MAX,
        UINT32_MAX, &q_));
  }
  ~AqlQueue() { (void)destroy(); }
  AqlQueue(AqlQueue&& from) noexcept : q_(std::exchange(from.q_, nullptr)) {}
  AqlQueue& operator=(AqlQueue&&) = delete;

  hsa_status_t destroy() { return q_ ? hsa_queue_destroy(std::exchange(q_, nullptr)) : HSA_STATUS_SUCCESS; }
  hsa_queue_t* get() const { return q_; }
  std::uint64_t read() const { return hsa_queue_load_read_index_scacquire(q_); }

  void barrier(hsa_packet_type_t type, hsa_signal_t after, hsa_signal_t then) {
    hsa_barrier_and_packet_t p{};
    p.dep_signal[0] = after;
    p.completion_signal = then;
    const auto header = (static_cast<std::uint32_t>(type) << HSA_PACKET_HEADER_TYPE) |
                        (1u << HSA_PACKET_HEADER_BARRIER) |
                        (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
                        (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    put(&p, header);
  }
  /// 64 bytes of zeros, except the header. All packets have their header first.
  void put(std::uint32_t header) {
    const hsa_barrier_and_packet_t p{};
    put(&p, header);
  }

 private:
  void put(const hsa_barrier_and_packet_t* p, std::uint32_t header) {
    const auto index = hsa_queue_add_write_index_relaxed(q_, 1);
    while (index - read() >= q_->size) std::this_thread::yield();
    auto* slot = static_cast<std::byte*>(q_->base_address) + index % q_->size * sizeof *p;
    std::memcpy(slot + 2, reinterpret_cast<const std::byte*>(p) + 2, sizeof *p - 2);
    __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot), static_cast<std::uint16_t>(header), __ATOMIC_RELEASE);
    hsa_signal_store_screlease(q_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }

  hsa_queue_t* q_{};
};

constexpr hsa_signal_t kNone{0};

}  // namespace

TEST_CASE("32 queues of a GPU in a chain of barriers, each wrapped around, half of them destroyed under the others") {
  const Runtime r;
  for (std::size_t g = 0; g < std::min<std::size_t>(r.gpus.size(), 2); ++g) {
    std::vector<AqlQueue> queues;
    std::vector<Signal> steps;
    for (std::uint32_t i = 0; i < 32; ++i) {
      queues.emplace_back(r.gpus[g], 256u << i % 4, i % 2 == 0 ? HSA_QUEUE_TYPE_SINGLE : HSA_QUEUE_TYPE_MULTI);
      steps.emplace_back();
    }
    const Signal start;
    for (std::size_t i = 0; i < queues.size(); ++i)
      queues[i].barrier(i % 3 == 0 ? HSA_PACKET_TYPE_BARRIER_OR : HSA_PACKET_TYPE_BARRIER_AND,
                        i == 0 ? start.s : steps[i - 1].s, steps[i].s);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (const auto& s : steps) REQUIRE(s.value() == 1);
    hsa_signal_store_screlease(start.s, 0);
    for (const auto& s : steps) REQUIRE(s.done());

    for (auto& q : queues) {
      const auto most = q.get()->size + 100;
      for (std::uint32_t i = 0; i < most; ++i) q.barrier(HSA_PACKET_TYPE_BARRIER_AND, kNone, kNone);
      const Signal end;
      q.barrier(HSA_PACKET_TYPE_BARRIER_AND, kNone, end.s);
      REQUIRE(end.done());
      REQUIRE(q.read() == most + 2);
      REQUIRE(hsa_amd_queue_set_priority(q.get(), HSA_AMD_QUEUE_PRIORITY_HIGH) == HSA_STATUS_SUCCESS);
    }
    for (std::size_t i = 0; i < queues.size(); i += 2) REQUIRE(queues[i].destroy() == HSA_STATUS_SUCCESS);
    for (std::size_t i = 1; i < queues.size(); i += 2) {
      const Signal end;
      queues[i].barrier(HSA_PACKET_TYPE_BARRIER_AND, kNone, end.s);
      REQUIRE(end.done());
      REQUIRE(queues[i].destroy() == HSA_STATUS_SUCCESS);
    }
  }
}

TEST_CASE("a packet of no type is an error of its queue alone") {
  const Runtime r;
  AqlQueue other(r.gpus[0], 64, HSA_QUEUE_TYPE_MULTI);
  reported = 0;
  {
    AqlQueue q(r.gpus[0], 64, HSA_QUEUE_TYPE_MULTI);
    q.put(17);
    for (int i = 0; i < 10'000 && reported == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(reported == HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
  }
  reported = 0;
  const Signal end;
  other.barrier(HSA_PACKET_TYPE_BARRIER_AND, kNone, end.s);
  CHECK(end.done());
  CHECK(hsa_queue_inactivate(other.get()) == HSA_STATUS_SUCCESS);
  CHECK(other.destroy() == HSA_STATUS_SUCCESS);
  CHECK(reported == 0);
}
