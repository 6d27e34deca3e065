// SPDX-License-Identifier: MIT
// The copy path of integration/runtime in a process that ROCr owns, with ROCr's signals and memory: chains over all
// GPUs, gangs, two threads, a hang and a fault. Run under `sdma emulate --gpus=N`.
#include "emulator/rocr_runtime.hpp"
#include "integration/runtime/gang.hpp"

#include "sdma/device/kfd.hpp"

#include <hsa/amd_hsa_signal.h>
#include <algorithm>
#include <atomic>
#include <deque>
#include <span>
#include <thread>

using namespace runtime;
using rocr::pattern;
using sdma::Deadline, sdma::Errc, sdma::GpuId, sdma::GpuVa;

namespace {

Deadline far() { return Deadline::in(std::chrono::seconds(60)); }

SignalView view_of(const rocr::Signal& s) { return view(*reinterpret_cast<const amd_signal_t*>(s.s.handle)); }
GpuVa va(const void* p) { return GpuVa{reinterpret_cast<std::uintptr_t>(p)}; }

/// ROCr first, because it does not open the driver a second time; then queues beside its own.
struct Node {
  rocr::Runtime rocr{};
  std::unique_ptr<sdma::KfdDevice> device{};
  Node() {
    auto d = sdma::KfdDevice::open();
    INFO((d ? std::string() : to_string(d.error())));
    REQUIRE(d);
    device = std::move(*d);
    REQUIRE(device->topology().gpus.size() == rocr.gpus.size());
  }
  std::uint32_t gpus() const { return static_cast<std::uint32_t>(rocr.gpus.size()); }
};

struct Lane {
  sdma::SignalMemory progress;
  sdma::Queue queue;
  CopyPath path;
  Lane(Node& n, std::uint32_t gpu, sdma::EngineId engine)
      : progress(*n.device->create_signal()),
        queue(*n.device->create_queue({.gpu = GpuId{gpu}, .engine = engine})),
        path(*engine_of(n.device->topology().gpus[gpu].gfx,
                        {.atomics = n.device->topology().completion(GpuId{gpu}, {}) == sdma::Completion::atomic}),
             queue.memory(), *progress) {}
};

void submit_copy(CopyPath& p, void* dst, const void* src, std::size_t bytes, std::span<const SignalView> after,
                 const rocr::Signal& out) {
  const LinearCopy work[] = {{va(src), va(dst), bytes}};
  REQUIRE(p.submit({.work = std::span(work), .after = after, .out = view_of(out), .stamps = true}, far()));
}

}  // namespace

TEST_CASE("a chain over all GPUs, each copy after the one before, with a thread asleep at its end") {
  Node n;
  constexpr std::size_t kBytes = 300'001;
  auto *host = n.rocr.allocate(n.rocr.cpu, kBytes), *back = n.rocr.allocate(n.rocr.cpu, kBytes);
  std::vector<std::uint8_t*> at{host};
  std::deque<Lane> lanes;
  for (std::uint32_t g = 0; g < n.gpus(); ++g) {
    at.push_back(n.rocr.allocate(n.rocr.gpus[g], kBytes));
    lanes.emplace_back(n, g, sdma::EngineId{0});
  }
  lanes.emplace_back(n, n.gpus() - 1, sdma::EngineId{1});
  at.push_back(back);
  for (std::uint32_t round = 0; round < 5; ++round) {
    const auto data = pattern(kBytes, round);
    std::copy(data.begin(), data.end(), host);
    std::deque<rocr::Signal> done(at.size());
    // The last copy is submitted first, so that each one waits. done[0] holds all of them.
    for (auto i = at.size() - 1; i > 0; --i) {
      const SignalView after[] = {view_of(done[i - 1])};
      submit_copy(lanes[i - 1].path, at[i], at[i - 1], kBytes, after, done[i]);
    }
    std::uint64_t pending = 0;
    for (auto& l : lanes) pending += l.path.pending_bytes();
    CHECK(pending == kBytes * (at.size() - 1));
    hsa_signal_store_screlease(done[0].s, 0);
    REQUIRE(done.back().done(round % 2 == 0 ? HSA_WAIT_STATE_BLOCKED : HSA_WAIT_STATE_ACTIVE));
    CHECK(std::equal(data.begin(), data.end(), back));
    std::fill_n(back, kBytes, std::uint8_t{0});
    const auto& s = *reinterpret_cast<amd_signal_t*>(done.back().s.handle);
    CHECK(s.start_ts <= s.end_ts);
    CHECK(s.start_ts != 0);
  }
  for (auto& l : lanes) CHECK(l.path.wait_idle(far()) == Errc::ok);
  lanes.clear();
  for (auto* p : at) hsa_amd_memory_pool_free(p);
}

TEST_CASE("a gang over the engines of a GPU completes one signal of ROCr") {
  Node n;
  constexpr std::size_t kBytes = 1'000'003;
  const auto last = n.gpus() - 1;
  auto *src = n.rocr.allocate(n.rocr.gpus[0], kBytes), *dst = n.rocr.allocate(n.rocr.gpus[last], kBytes);
  auto* host = n.rocr.allocate(n.rocr.cpu, kBytes);
  std::deque<Lane> lanes;
  for (std::uint32_t e = 0; e < 4; ++e) lanes.emplace_back(n, 0, sdma::EngineId{e});
  const auto data = pattern(kBytes, 7);
  std::copy(data.begin(), data.end(), host);
  const rocr::Signal there, done, home;
  submit_copy(lanes[0].path, src, host, kBytes, {}, there);
  const rocr::Signal items[] = {rocr::Signal{2}, rocr::Signal{2}, rocr::Signal{2}};
  // Only the leader wakes the host.
  std::vector<SignalView> views;
  for (const auto& i : items) {
    views.push_back(view_of(i));
    views.back().event_mailbox_ptr = 0;
  }
  CopyPath* const paths[] = {&lanes[0].path, &lanes[1].path, &lanes[2].path, &lanes[3].path};
  const SignalView after[] = {view_of(there)}, moved[] = {view_of(done)};
  REQUIRE(submit({paths, views}, {va(src), va(dst), kBytes}, {.after = after, .out = view_of(done)}, far()));
  submit_copy(lanes[1].path, host, dst, kBytes, moved, home);
  REQUIRE(home.done());
  CHECK(std::equal(data.begin(), data.end(), host));
  for (const auto& i : items) CHECK(i.value() == 0);
  for (auto& l : lanes) CHECK(l.path.wait_idle(far()) == Errc::ok);
  lanes.clear();
  for (auto* p : {src, dst, host}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("two threads on one path: pending bytes are exact at every moment") {
  Node n;
  constexpr std::size_t kEach = 30, kBytes = 4096;
  auto *host = n.rocr.allocate(n.rocr.cpu, kBytes), *vram = n.rocr.allocate(n.rocr.gpus[0], 2 * kEach * kBytes);
  std::deque<Lane> lanes;
  lanes.emplace_back(n, 0, sdma::EngineId{0});
  auto& path = lanes[0].path;
  const rocr::Signal held;
  std::deque<rocr::Signal> done(2 * kEach);
  const SignalView after[] = {view_of(held)};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (auto i = t; i < done.size(); i += 2) {
        const LinearCopy work[] = {{va(host), va(vram + i * kBytes), i + 1}};
        const auto before = path.pending_bytes();
        if (!path.submit({.work = std::span(work), .after = after, .out = view_of(done[i])}, far())) ++failed;
        if (path.pending_bytes() < before + i + 1) ++failed;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(failed == 0);
  auto left = path.pending_bytes();
  CHECK(left == 2 * kEach * (2 * kEach + 1) / 2);
  hsa_signal_store_screlease(held.s, 0);
  for (const auto& d : done) REQUIRE(d.done());
  CHECK(path.pending_bytes() == 0);
  CHECK(path.wait_idle(far()) == Errc::ok);
  lanes.clear();
  for (auto* p : {host, vram}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("after a hang, sleepers get an error, and the path goes on with another queue") {
  Node n;
  constexpr std::size_t kBytes = 5000;
  auto *host = n.rocr.allocate(n.rocr.cpu, kBytes), *vram = n.rocr.allocate(n.rocr.gpus[0], kBytes);
  Lane lane(n, 0, sdma::EngineId{0});
  const rocr::Signal never, lost, good;
  const SignalView after[] = {view_of(never)};
  submit_copy(lane.path, vram, host, kBytes, after, lost);
  hsa_signal_value_t seen = 1;
  std::thread sleeper(
      [&] { seen = hsa_signal_wait_scacquire(lost.s, HSA_SIGNAL_CONDITION_LT, 1, ~0ull, HSA_WAIT_STATE_BLOCKED); });
  CHECK(lane.path.wait_idle(Deadline::in(std::chrono::milliseconds(1))) == Errc::timed_out);
  REQUIRE(lane.path.stop(far()) == Errc::ok);
  lane.queue.reset();
  lane.queue = *n.device->create_queue({.gpu = GpuId{0}, .engine = sdma::EngineId{0}});
  REQUIRE(lane.path.recover(lane.queue.memory(), [](const CopyPath::Unfinished& u) {
    CHECK_FALSE(u.moved);
    hsa_signal_store_screlease({u.signal}, -1);
  }) == Errc::ok);
  sleeper.join();
  CHECK(seen == -1);
  const auto data = pattern(kBytes, 4);
  std::copy(data.begin(), data.end(), host);
  submit_copy(lane.path, vram, host, kBytes, {}, good);
  CHECK(good.done());
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
  CHECK(std::equal(data.begin(), data.end(), vram));
  for (auto* p : {host, vram}) hsa_amd_memory_pool_free(p);
}

// The last test: ROCr creates no queue on a GPU whose memory has faulted.
TEST_CASE("after a fault, the path goes on with a queue of another GPU") {
  Node n;
  constexpr std::size_t kBytes = 5000;
  std::atomic<int> faults{0};
  // Without a handler, ROCr ends the program.
  GOOD(hsa_amd_register_system_event_handler(
      [](const hsa_amd_event_t* e, void* count) {
        if (e->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) ++*static_cast<std::atomic<int>*>(count);
        return HSA_STATUS_SUCCESS;
      },
      &faults));
  auto *host = n.rocr.allocate(n.rocr.cpu, kBytes), *vram = n.rocr.allocate(n.rocr.gpus[1], kBytes);
  Lane lane(n, 0, sdma::EngineId{0});
  const rocr::Signal lost, good;
  const LinearCopy work[] = {{va(host), GpuVa{0x1000}, kBytes}};
  REQUIRE(lane.path.submit({.work = std::span(work), .out = view_of(lost)}, far()));
  const auto f = n.device->wait_fault(far());
  REQUIRE(f);
  CHECK(f->gpu == GpuId{0});
  REQUIRE(lane.path.stop(far()) == Errc::ok);
  lane.queue.reset();
  lane.queue = *n.device->create_queue({.gpu = GpuId{1}, .engine = sdma::EngineId{0}});
  std::size_t reported = 0;
  REQUIRE(lane.path.recover(lane.queue.memory(), [&](const CopyPath::Unfinished& u) {
    ++reported;
    hsa_signal_store_screlease({u.signal}, -1);
  }) == Errc::ok);
  CHECK(reported == 1);
  CHECK(lost.value() == -1);
  submit_copy(lane.path, vram, host, kBytes, {}, good);
  CHECK(good.done());
  CHECK(lane.path.wait_idle(far()) == Errc::ok);
  for (auto* p : {host, vram}) hsa_amd_memory_pool_free(p);
}
