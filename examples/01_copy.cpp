// SPDX-License-Identifier: MIT
// A copy from host memory to a GPU's memory, and a word that signals its completion.
//
//   host memory --- engine 1 of gpu0 (it faces the host) ---> memory of gpu0
#include "sdma/stream/text.hpp"
#include "support.hpp"

#include <cstring>

using namespace sdma;
using example::must;

int main(int argc, char** argv) {
  const auto device = example::open_device(argc, argv, 1);
  constexpr std::uint32_t kBytes = 4096;

  // Memory first, queue last, because a queue must be destroyed before the memory that its packets name.
  const Memory source = must(device->allocate({.bytes = kBytes}));
  const Memory target = must(device->allocate({.where = GpuId{0}, .bytes = kBytes}));
  const SignalMemory done = must(device->create_signal());
  const EngineId engine = *device->topology().engine_for(GpuId{0}, HostDirection::from_host);
  const Queue queue = must(device->create_queue({.gpu = GpuId{0}, .engine = engine}));

  std::memset(source.host().data(), 0x5a, kBytes);

  // One slot, two packets, one doorbell. The fence stores 1 after the copy before it is complete.
  Ring<> ring{queue.memory()};
  must(ring.submit(CopyLinear{.src = source.va(), .dst = target.va(), .bytes = kBytes},
                   Fence{.addr = done->va, .value = 1}));

  example::must_reach(*done, 1, ring, *device);
  if (std::memcmp(source.host().data(), target.host().data(), kBytes) != 0) example::fail("the bytes differ");

  std::printf("%u bytes copied by engine %u of gpu0. Its ring:\n", kBytes, engine.value);
  std::fputs(disassemble(ring.memory().dwords.first(ring.positions().committed / 4)).c_str(), stdout);
}
