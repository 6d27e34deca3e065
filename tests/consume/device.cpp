// SPDX-License-Identifier: MIT
// A client of the library for devices alone: it opens one, copies with a ring, and waits.
#include "sdma/device/open.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"

#include <cstdio>
#include <cstring>

int main() {
  using namespace sdma;
  auto device = open_device(DeviceKind::soft, {.soft = {.gpus = 1}});
  if (!device) return std::puts(to_string(device.error()).c_str()), 1;
  constexpr std::uint32_t kBytes = 4096;
  const auto from = (*device)->allocate({.bytes = kBytes}), to = (*device)->allocate({.bytes = kBytes});
  const auto done = (*device)->create_signal();
  const auto queue = (*device)->create_queue({.gpu = GpuId{0}});
  if (!from || !to || !done || !queue) return std::puts("the device has no memory or no queue"), 1;
  std::memset(from->host().data(), 0x5d, kBytes);
  Ring<> ring{queue->memory()};
  if (ring.submit(CopyLinear{.src = from->va(), .dst = to->va(), .bytes = kBytes},
                  Fence{.addr = (*done)->va, .value = 1}) != Errc::ok)
    return std::puts("the ring takes nothing"), 1;
  if (!wait(**done, Compare::ge, 1, Deadline::in(std::chrono::seconds(60)), ring))
    return std::puts("the copy does not end"), 1;
  return std::memcmp(from->host().data(), to->host().data(), kBytes) == 0 ? 0 : 1;
}
