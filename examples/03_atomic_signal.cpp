// SPDX-License-Identifier: MIT
// Many queues, one word: each engine subtracts one when it has finished, and the host waits for zero. The queues are
// submitted ahead of time and wait at a poll; one store of the host releases all of them.
//
//   each queue   poll(go >= 1)   copy   atomic(left -= 1)            host   go = 1 ... wait(left == 0)
//
// An atomic is one indivisible operation at memory, so engines need no other synchronisation. Fences could not do this:
// if several engines store to one word, the last store wins.
#include "sdma/sync/recipes.hpp"
#include "support.hpp"

#include <deque>

using namespace sdma;
using example::must;

int main(int argc, char** argv) {
  constexpr std::uint32_t kQueues = 8, kBytes = 1000;
  const auto device = example::open_device(argc, argv, 1);

  const Memory source = must(device->allocate({.bytes = kQueues * kBytes}));
  const Memory target = must(device->allocate({.where = GpuId{0}, .bytes = kQueues * kBytes}));
  const SignalMemory go = must(device->create_signal()), left = must(device->create_signal({.value = kQueues}));
  for (auto& byte : source.host()) byte = std::byte{0x77};

  // The engines that face other GPUs: on MI300X one for each queue.
  const auto first = device->topology().gpus[0].host_engines, engines = device->topology().gpus[0].engines();
  std::deque<Queue> queues;
  std::deque<Ring<>> rings;  // a deque: a ring never moves
  for (std::uint32_t i = 0; i < kQueues; ++i) {
    queues.push_back(must(device->create_queue({.gpu = GpuId{0}, .engine = EngineId{first + i % (engines - first)}})));
    auto& ring = rings.emplace_back(queues.back().memory());
    const auto slot = must(ring.reserve(64));
    Writer w{slot.dwords};
    const std::uint64_t at = std::uint64_t{i} * kBytes;
    must(acquire(w, go->low_va(), 1));
    must(w.copy({.src = source.va() + at, .dst = target.va() + at, .bytes = kBytes}));
    must(complete_with_atomic(w, left->va));
    ring.publish(slot, w.written().size());  // the rest of the slot becomes NOPs
  }

  std::printf("%u queues wait at their polls; the word is %lu\n", kQueues, static_cast<unsigned long>(left->load()));
  go->set(1);
  const auto r = wait(*left, Compare::eq, 0, Deadline::in(std::chrono::seconds(10)), rings.front());
  if (!r) example::fail(describe(r.error()));
  example::flush_host_path(*device);
  for (const auto byte : target.host())
    if (byte != std::byte{0x77}) example::fail("a byte is missing");
  std::printf("all complete: the word is %lu\n", static_cast<unsigned long>(left->load()));
}
