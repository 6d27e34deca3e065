// SPDX-License-Identifier: MIT
#pragma once
// A compute queue without a node: memory, events and a ring, whose steps a test runs by itself.
//
//   ComputeRig rig;
//   Pm4Queue q(rig.config());  ...  q.step()
//
// GPU addresses are those of the host.
#include "../../lib/emulator/queues/hw_queue.hpp"

#include "support/catch.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace compute {

using namespace sdma;
using namespace sdma::emulator;

/// Memory that GPU 0 sees; the addresses after its end are not mapped.
struct Block {
  std::byte* data{};
  std::size_t bytes{};

  Block(AddressSpace& space, std::size_t n, Access access = Access::read_write, std::size_t alignment = 4096)
      : data(static_cast<std::byte*>(std::aligned_alloc(alignment, (n + alignment - 1) & ~(alignment - 1)))),
        bytes(n),
        space_(space) {
    std::memset(data, 0, n);
    REQUIRE(space.map({.va = GpuVa{va()}, .bytes = (n + 7) & ~std::size_t{7}, .host = data, .access = access}) ==
            Errc::ok);
  }
  ~Block() {
    (void)space_.unmap(GpuVa{va()}, Deadline::in(std::chrono::seconds(10)));
    std::free(data);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::uint64_t va(std::size_t at = 0) const { return reinterpret_cast<std::uint64_t>(data + at); }
  template <class T> T& at(std::size_t offset) const { return *reinterpret_cast<T*>(data + offset); }

 private:
  AddressSpace& space_;
};

struct ComputeRig {
  AddressSpace space{};
  AddressSpace::Reader reader{space, GpuId{0}};
  Block events_page{space, kfd::kSignalEvents * 8}, ring{space, 4096}, memory{space, 1 << 16};
  Events events{};
  std::uint32_t event = 0;  ///< a signal that resets itself
  std::uint64_t doorbell = ~std::uint64_t{0}, wptr = 0;
  std::vector<std::uint64_t> faults{};

  ComputeRig() {
    kfd::CreateEvent e{};
    e.auto_reset = 1;
    REQUIRE(events.create(e, &events_page.at<std::uint64_t>(0)) == 0);
    event = e.event_id;
  }
  std::uint64_t& slot() const { return events_page.at<std::uint64_t>(event * 8); }
  bool signalled() {
    kfd::EventData data{};
    data.event_id = event;
    kfd::WaitEvents w{.events = 0, .count = 1, .wait_for_all = 0, .timeout_ms = 0, .result = 9};
    REQUIRE(events.wait(w, {&data, 1}) == 0);
    return w.result == kfd::kWaitComplete;
  }
  /// `rptr`: null: a word of its own.
  ComputeConfig config(std::uint64_t* rptr = nullptr) {
    auto* at = rptr ? rptr : &memory.at<std::uint64_t>(0);
    return {.id = 3,
            .gpu = GpuId{0},
            .ring = {&ring.at<std::uint32_t>(0), ring.bytes / 4},
            .doorbell = &doorbell,
            .wptr = &wptr,
            .rptr = at,
            .rptr_va = GpuVa{reinterpret_cast<std::uint64_t>(at)},
            .reader = &reader,
            .events = &events,
            .vm_fault = [this](GpuVa va) { faults.push_back(va.value); }};
  }
  /// Publishes, as the server would notice it.
  void publish(HwQueue& q, std::uint64_t position) {
    wptr = doorbell = position;
    REQUIRE(q.look());
  }
};

}  // namespace compute
