// SPDX-License-Identifier: MIT
// Snapshots of several processes as one: memory that they share under different addresses.
#include "sdma/doctor/diagnose.hpp"
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cstring>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr std::uint64_t kBytes = 0x1000;

/// A process that polls word `waits` and then stores to word `posts` of memory that it has mapped at `base`.
Snapshot process(int pid, std::uint64_t base, const std::string& object, std::uint64_t waits, std::uint64_t posts) {
  std::vector<std::uint32_t> ring;
  const auto put = [&](const auto& p) {
    const auto n = ring.size();
    ring.resize(n + length(p));
    encode_to(p, ring.data() + n);
  };
  put(PollMem{.addr = GpuVa{base + waits}, .reference = 1});
  put(Fence{.addr = GpuVa{base + posts}, .value = 1});
  const auto end = ring.size() * 4;
  ring.resize(64);
  Snapshot s{.from = "process " + std::to_string(pid) + " (p) on host"};
  s.queues.push_back(
      {.name = "queue", .ring = std::move(ring), .rptr = {0, Source::memory}, .wptr = {end, Source::memory}});
  s.ranges.push_back({.va = GpuVa{base}, .bytes = kBytes, .name = "memory", .object = object, .offset = 0x2000});
  s.ranges_complete = s.all_queues = true;
  s.watched_ns = 1'000'000'000;
  s.peek = [base](GpuVa va, std::span<std::byte> out) {
    if (va.value < base || va.value + out.size() > base + kBytes) return Errc::unmapped;
    std::memset(out.data(), 0, out.size());
    return Errc::ok;
  };
  return s;
}

}  // namespace

TEST_CASE("a cycle across memory that two processes share is found") {
  std::vector<Snapshot> two;
  two.push_back(process(7, 0x7f0000001000, "00:01 5", 0, 64));
  two.push_back(process(8, 0x7e0000003000, "00:01 5", 64, 0));
  two.push_back({.from = "process 9 (idle) on host", .ranges_complete = true, .all_queues = true});
  const auto s = merged(std::move(two));
  const auto d = diagnose(s);
  CHECK(d.verdict() == Verdict::hung);
  CHECK(d.findings.front().what == HangClass::cycle);
  CHECK(d.queues.at(1).name == "process 8 (p): queue");
  CHECK(address_in(s, 1, GpuVa{0x7e0000003040}) == GpuVa{0x7f0000001040});
}

TEST_CASE("equal addresses of two processes are different words, unless they share the memory") {
  std::vector<Snapshot> two;
  two.push_back(process(7, 0x7f0000001000, "00:01 5", 0, 64));
  two.push_back(process(8, 0x7f0000001000, "00:01 6", 64, 0));
  const auto s = merged(std::move(two));
  const auto d = diagnose(s);
  CHECK(d.verdict() == Verdict::waits);
  CHECK(std::none_of(d.findings.begin(), d.findings.end(), [](auto& f) { return f.what == HangClass::cycle; }));
  CHECK(address_in(s, 1, GpuVa{0x7f0000001000}) == GpuVa{0x0001'7f00'0000'1000});
}
