// SPDX-License-Identifier: MIT
#pragma once
// A trace with every kind of event, and what makes writers stumble: overlapping
// packets, one without an end, an end without a beginning, names with quotes.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/trace/trace.hpp"

#include <algorithm>

namespace test {

inline sdma::trace::Trace sample() {
  using namespace sdma;
  trace::Recorder r(256, "virtual");
  const auto q0 = r.lane("gpu0", "engine 14 queue 0"), q1 = r.lane("gpu0", "engine 14 queue 1");
  const auto host = r.lane("host", "thread \"main\"\n\\"), link = r.lane("links",
                                                                         "0\xe2\x86\x92"
                                                                         "1");
  const auto bytes = r.text("bytes in flight"), why = r.text("no memory is mapped there");
  const auto flow = r.new_flow();
  const auto copy = encode(CopyLinear{.src = GpuVa{0x7f0000010000}, .dst = GpuVa{0x7f0000020000}, .bytes = 4096});
  const auto poll = encode(PollMem{.addr = GpuVa{0x7f0000001000}, .func = Compare::ge, .reference = 5});
  const auto fence = encode(Fence{.addr = GpuVa{0x7f0000002000}, .value = 1});
  const std::vector<std::uint32_t> nop(100, 0x00630000);

  const auto builds = r.text("builds 3 packets for gpu0.push, epoch {}"), waits = r.text("waits for host.done >= {}");
  r.name(GpuVa{0x7f0000002000}, 8, "host.done");
  r.name(GpuVa{0x7f0000018000}, 65536, "gpu1.buf");

  r.queue_created(q0, 1000, 65536);
  r.epoch(q0, 1900, 0, 7);
  r.action_begin(host, 1900, builds, 7);
  r.action_end(host, 2000);
  r.doorbell(q0, 2000, 68);
  r.flow_begin(host, 2000, flow);
  r.packet_begin(q0, 2500, 0, copy);
  r.packet_begin(q0, 2600, 28, copy);  // overlaps, and ends later
  r.counter(link, 2600, bytes, 8192);
  r.packet_end(q0, 3001, 0);
  r.packet_end(q0, 4200, 28);
  r.packet_begin(q0, 4200, 56, fence);
  r.signal(q0, 4250, GpuVa{0x7f0000002000}, 1);
  r.flow_end(q0, 4250, flow);
  r.packet_end(q0, 4300, 56);
  r.packet_begin(q0, 4400, 72, nop);
  r.packet_end(q0, 4400, 72);
  r.packet_begin(q1, 3000, 0, poll);  // never ends
  r.packet_end(q1, 2900, 999);        // never began
  r.packet_begin(q1, 3100, 24, {});
  r.packet_end(q1, 3200, 24);
  r.fault(q0, 5000, 472, why, GpuVa{0xdead000});
  r.queue_destroyed(q0, 6000, 472);
  r.action_begin(host, 2100, waits, 8, GpuVa{0x7f0000002000});  // never ends
  auto t = r.snapshot();
  t.lost = 2;
  return t;
}

}  // namespace test
