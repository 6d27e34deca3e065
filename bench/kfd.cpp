// SPDX-License-Identifier: MIT
// Doorbell to completion on a device of the kernel driver, with memory, events and doorbells from libhsakmt.
//
//   build/bench/bench-kfd                                       on MI300X
//   build/tools/sdma emulate -- build/bench/bench-kfd           on the software node
//
// Prints medians and best tenths; a batch is submitted with one doorbell. The creation of queues is shown apart, once.
#include "sdma/device/kfd.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/wait.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

using Steady = Deadline::Clock;

template <class F> void measure(const char* what, int rounds, F f) {
  std::vector<double> us;
  for (int i = 0; i < rounds; ++i) us.push_back(f());
  std::sort(us.begin(), us.end());
  std::printf("%-52s median %8.2f us, best tenth %8.2f us\n", what, us[us.size() / 2], us[us.size() / 10]);
}

/// Microseconds of `f`; ends the program if it fails.
template <class F> double timed(F f) {
  const auto begin = Steady::now();
  if (!f()) {
    std::fputs("a wait timed out\n", stderr);
    std::exit(1);
  }
  return std::chrono::duration<double, std::micro>(Steady::now() - begin).count();
}

}  // namespace

int main() {
  auto opened = KfdDevice::open();
  if (!opened) {
    std::fprintf(stderr, "%s\n", to_string(opened.error()).c_str());
    return 77;
  }
  auto& d = **opened;
  std::printf("%s, KFD %s, %s\n", d.topology().name.c_str(), d.version().c_str(), d.gpus()[0].driver.c_str());
  const auto deadline = [] { return Deadline::in(10s); };

  auto done = *d.create_signal();
  auto event = *d.create_event();
  auto src = *d.allocate({.bytes = 1 << 20}), dst = *d.allocate({.where = GpuId{0}, .bytes = 1 << 20});
  const auto begin = Steady::now();
  auto queue = *d.create_queue({.engine = EngineId{1}});
  const auto created = Steady::now() - begin;
  Ring<> ring{queue.memory()};
  std::uint32_t epoch = 0;

  const auto fence = [&] {
    return timed([&] {
      (void)ring.submit(Fence{.addr = done->va, .value = ++epoch});
      return wait(*done, Compare::eq, epoch, deadline(), ring).has_value();
    });
  };
  const auto copy = [&](std::uint32_t bytes) {
    return timed([&] {
      (void)ring.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = bytes},
                        Fence{.addr = done->va, .value = ++epoch});
      return wait(*done, Compare::eq, epoch, deadline(), ring).has_value();
    });
  };
  for (int i = 0; i < 100; ++i) (void)fence();
  measure("fence", 5000, fence);
  measure("copy of 64 bytes and fence", 5000, [&] { return copy(64); });
  measure("copy of 4 KiB and fence", 5000, [&] { return copy(4096); });
  measure("copy of 1 MiB and fence", 200, [&] { return copy(1 << 20); });
  measure("atomic", 5000, [&] {
    return timed([&] {
      const auto next = done->load() + 1;
      epoch = static_cast<std::uint32_t>(next);
      (void)ring.submit(Atomic{.addr = done->va, .value = 1});
      return wait(*done, Compare::eq, next, deadline(), ring).has_value();
    });
  });
  measure("fence, mailbox, trap; the thread sleeps in the driver", 2000, [&] {
    return timed([&] {
      (void)ring.submit(Fence{.addr = event.mailbox(), .value = event.id()}, Trap{.context = event.id()});
      return d.wait_event(event, deadline()) == Errc::ok;
    });
  });
  measure("fence, after 100 ms of rest", 30, [&] {
    std::this_thread::sleep_for(100ms);
    return fence();
  });
  measure("a batch of 64 fences, per fence", 500, [&] {
    return timed([&] {
             auto slot = ring.reserve(64 * 4);
             if (!slot) return false;
             Writer w{slot->dwords};
             for (int i = 0; i < 64; ++i) (void)w.put(Fence{.addr = done->va, .value = ++epoch});
             ring.publish(*slot);
             return wait(*done, Compare::eq, epoch, deadline(), ring).has_value();
           }) /
           64;
  });
  measure("flush_host_writes", 5000, [&] { return timed([&] { return d.flush_host_writes(GpuId{0}) == Errc::ok; }); });
  measure("fault(queue)", 5000, [&] { return timed([&] { return !d.fault(queue); }); });
  std::printf("%-52s %15.2f us\n", "create_queue, once", std::chrono::duration<double, std::micro>(created).count());
}
