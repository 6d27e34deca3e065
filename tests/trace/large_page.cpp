// SPDX-License-Identifier: MIT
// Writes the page of a trace with many packets in one lane:
// large_page PACKETS FILE. Prints how long that took, and the memory.
//
// The packets are copies between rising addresses, in two rows; each 16th is a fence, which writes a signal,
// each 1000th a poll. Packet i begins at 100 i ns and, if i is a multiple of 16384, lasts 150 us. Each 64
// packets have a doorbell, and each 256 an arrow from the host and a new value of a counter.
// tests/trace/large_page.py knows these numbers.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/trace/write.hpp"

#include <sys/resource.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace sdma;

namespace {

trace::Event event(std::uint64_t ns, std::uint32_t lane, trace::Kind kind) {
  return {.ns = ns, .lane = {lane}, .kind = kind};
}

trace::Trace large(std::uint64_t packets) {
  trace::Trace t{.clock = "virtual",
                 .lanes = {{"host", "thread 1"}, {"gpu0", "engine 0 queue 0"}, {"links", "0->1"}},
                 .texts = {"bytes in flight"}};
  t.events.reserve(packets * 9 / 4);
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < packets; ++i) {
    const auto begin = 1000 + 100 * i, end = begin + (i % 16384 == 0 ? 150'000 : 60 + i % 37);
    if (i % 64 == 0) {
      t.events.push_back(event(begin - 50, 1, trace::Kind::doorbell));
      t.events.back().position = position + 64 * 28;
    }
    auto e = event(begin, 1, trace::Kind::packet_begin);
    const auto keep = [&](const auto& packet) {
      const auto dwords = encode(packet);
      e.dword_count = static_cast<std::uint8_t>(dwords.size());
      e.length = static_cast<std::uint32_t>(dwords.size());
      std::copy(dwords.begin(), dwords.end(), e.dwords.begin());
    };
    const bool poll = i % 1000 == 999, fence = !poll && i % 16 == 15;
    if (poll) keep(PollMem{.addr = GpuVa{0x7f0000001000}, .func = Compare::ge, .reference = 5});
    else if (fence) keep(Fence{.addr = GpuVa{0x7f0000002000}, .value = static_cast<std::uint32_t>(i)});
    else
      keep(CopyLinear{.src = GpuVa{0x7f0000000000 + i * 4096}, .dst = GpuVa{0x7e0000000000 + i * 4096}, .bytes = 4096});
    e.position = position;
    t.events.push_back(e);
    if (i % 256 == 0) {
      auto from = event(begin - 90, 0, trace::Kind::flow_begin), to = event(end, 1, trace::Kind::flow_end);
      from.value = to.value = i + 1;
      auto counter = event(begin, 2, trace::Kind::counter);
      counter.value = i % 4096;
      for (const auto& more : {from, to, counter}) t.events.push_back(more);
    }
    if (fence) {
      auto s = event(end, 1, trace::Kind::signal);
      s.address = GpuVa{0x7f0000002000};
      s.value = i;
      t.events.push_back(s);
    }
    auto stop = event(end, 1, trace::Kind::packet_end);
    stop.position = position;
    t.events.push_back(stop);
    position += std::uint64_t{e.length} * 4;
  }
  std::stable_sort(t.events.begin(), t.events.end(), [](const auto& a, const auto& b) { return a.ns < b.ns; });
  return t;
}

double peak_gb() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: large_page PACKETS FILE\n"), 2;
  const auto t = large(std::strtoull(argv[1], nullptr, 10));
  const auto events = static_cast<double>(t.events.size() * sizeof(trace::Event)) / 1e9;
  const auto before = trace::now();
  if (const auto saved = trace::save(t, argv[2]); !saved)
    return std::fprintf(stderr, "%s\n", to_string(saved.error()).c_str()), 1;
  std::printf("%.1f s, events %.2f GB, peak %.2f GB\n", static_cast<double>(trace::now() - before) / 1e9, events,
              peak_gb());
}
