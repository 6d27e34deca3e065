// SPDX-License-Identifier: MIT
// One buffer, two engines: gpu0 sends half of it straight to gpu1, and half through gpu2, over other links.
//
//   gpu0 --- engine 14 ----------------------------> gpu1      first half
//   gpu0 --- engine 12 ---> gpu2 --- engine 2 -----> gpu1      second half: store and forward, by a fence and a poll
//
// An engine sustains about the rate of one link. More bandwidth therefore needs more engines, each on the link next to
// it. The topology knows which engine that is.
#include "sdma/sync/recipes.hpp"
#include "support.hpp"

#include <cstring>

using namespace sdma;
using example::must;

int main(int argc, char** argv) {
  const auto device = example::open_device(argc, argv, 3);
  constexpr std::uint32_t kHalf = 1 << 20;
  constexpr GpuId kFrom{0}, kTo{1}, kOver{2};
  const auto& node = device->topology();

  const Memory source = must(device->allocate({.where = kFrom, .bytes = 2 * kHalf}));
  const Memory stage = must(device->allocate({.where = kOver, .bytes = kHalf}));
  const Memory target = must(device->allocate({.where = kTo, .bytes = 2 * kHalf}));
  const SignalMemory staged = must(device->create_signal()), done = must(device->create_signal());
  const Queue direct = must(device->create_queue({.gpu = kFrom, .engine = *node.engine_for(kFrom, kTo)}));
  const Queue first = must(device->create_queue({.gpu = kFrom, .engine = *node.engine_for(kFrom, kOver)}));
  const Queue second = must(device->create_queue({.gpu = kOver, .engine = *node.engine_for(kOver, kTo)}));
  for (std::uint32_t i = 0; auto& word : source.as<std::uint32_t>()) word = i++ * 2654435761u;
  example::flush_host_path(*device);  // the host wrote a GPU's memory: flush before the doorbells

  Ring<> ring_direct{direct.memory()}, ring_first{first.memory()}, ring_second{second.memory()};
  const Atomic count{.addr = done->va, .op = AtomicOp::add_rtn_64, .value = 1};
  must(ring_direct.submit(CopyLinear{.src = source.va(), .dst = target.va(), .bytes = kHalf}, count));
  must(ring_first.submit(CopyLinear{.src = source.va() + kHalf, .dst = stage.va(), .bytes = kHalf},
                         Fence{.addr = staged->va, .value = 1}));
  must(ring_second.submit(PollMem{.addr = staged->low_va(), .func = Compare::ge, .reference = 1},
                          CopyLinear{.src = stage.va(), .dst = target.va() + kHalf, .bytes = kHalf}, count));

  example::must_reach(*done, 2, ring_second, *device);
  if (std::memcmp(source.host().data(), target.host().data(), 2 * kHalf) != 0) example::fail("the bytes differ");
  for (const auto* q : {&direct, &first, &second}) std::printf("gpu%u engine %u\n", q->gpu().value, q->engine().value);
  std::printf("%u bytes over two paths, all correct\n", 2 * kHalf);
}
