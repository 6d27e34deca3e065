// SPDX-License-Identifier: MIT
// Two queues in order: the second one copies the data that the first one has copied.
//
//   queue a   copy input -> middle   fence(ready = 1)
//   queue b                poll(ready >= 1)   copy middle -> output   fence(done = 1)
//
// Only signals order queues: a fence stores after all earlier packets of its queue are complete, and later packets of a
// queue do not start before its poll is satisfied. Here queue b is even submitted first.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support.hpp"

#include <cstring>

using namespace sdma;
using example::must;

int main(int argc, char** argv) {
  const auto device = example::open_device(argc, argv, 2);
  constexpr std::uint32_t kBytes = 64 * 1024;

  const Memory input = must(device->allocate({.bytes = kBytes}));
  const Memory middle = must(device->allocate({.where = GpuId{0}, .bytes = kBytes}));
  const Memory output = must(device->allocate({.where = GpuId{1}, .bytes = kBytes}));
  const SignalMemory ready = must(device->create_signal()), done = must(device->create_signal());
  const EngineId to_peer = *device->topology().engine_for(GpuId{0}, GpuId{1});
  const Queue a = must(device->create_queue({.gpu = GpuId{0}, .engine = EngineId{1}}));
  const Queue b = must(device->create_queue({.gpu = GpuId{0}, .engine = to_peer}));
  for (std::uint32_t i = 0; auto& word : input.as<std::uint32_t>()) word = i++;

  Ring<> ring_b{b.memory()};
  must(ring_b.submit(PollMem{.addr = ready->low_va(), .func = Compare::ge, .reference = 1},
                     CopyLinear{.src = middle.va(), .dst = output.va(), .bytes = kBytes},
                     Fence{.addr = done->va, .value = 1}));

  Ring<> ring_a{a.memory()};
  must(ring_a.submit(CopyLinear{.src = input.va(), .dst = middle.va(), .bytes = kBytes},
                     Fence{.addr = ready->va, .value = 1}));

  example::must_reach(*done, 1, ring_b, *device);
  if (std::memcmp(input.host().data(), output.host().data(), kBytes) != 0) example::fail("the bytes differ");
  std::printf("%u bytes went from the host to gpu0 and on to gpu1, in this order\n", kBytes);
}
