// SPDX-License-Identifier: MIT
// Transfers as a bandwidth benchmark runs them: hipMemcpyAsync between all pairs of GPUs and the host, each with a
// stream and two events of its own, several in parallel and from several threads. The destinations are cleared by
// hipMemset, and verified. Run under `sdma emulate`.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kHost = -1;
using Bytes = std::vector<std::uint8_t>;

Bytes pattern(std::size_t bytes, std::uint32_t seed) {
  Bytes v(bytes);
  for (auto& b : v) b = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

/// Counts the calls that failed: Catch's assertions belong to one thread.
std::atomic<int> failures{0};
void must(hipError_t e) { failures += e != hipSuccess; }

/// Memory of the host, which is pinned, or of a GPU.
struct Place {
  int where;
  std::uint8_t* p = nullptr;
  Place(int w, std::size_t bytes) : where(w) {
    if (where == kHost) must(hipHostMalloc(reinterpret_cast<void**>(&p), bytes, hipHostMallocNumaUser));
    else must(hipSetDevice(where)), must(hipMalloc(reinterpret_cast<void**>(&p), bytes));
  }
  ~Place() { must(where == kHost ? hipHostFree(p) : hipFree(p)); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
};

struct Transfer {
  int executor;
  std::size_t bytes, at;
  Place src, dst;
  Bytes data;
  hipStream_t stream{};
  hipEvent_t begin{}, end{};

  Transfer(int from, int to, std::size_t n, std::size_t offset, std::uint32_t seed)
      : executor(from == kHost ? to : from),
        bytes(n),
        at(offset),
        src(from, n + offset),
        dst(to, n + offset),
        data(pattern(n + offset, seed)) {
    must(hipSetDevice(executor));
    must(hipStreamCreate(&stream));
    must(hipEventCreate(&begin));
    must(hipEventCreate(&end));
    must(hipMemcpy(src.p, data.data(), data.size(), hipMemcpyDefault));
  }
  ~Transfer() {
    must(hipEventDestroy(begin));
    must(hipEventDestroy(end));
    must(hipStreamDestroy(stream));
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void clear(int value) const {
    if (dst.where == kHost) std::fill_n(dst.p, data.size(), static_cast<std::uint8_t>(value));
    else must(hipSetDevice(dst.where)), must(hipMemset(dst.p, value, data.size())), must(hipDeviceSynchronize());
  }
  void start(int copies) const {
    must(hipSetDevice(executor));
    must(hipEventRecord(begin, stream));
    for (int i = 0; i < copies; ++i) must(hipMemcpyAsync(dst.p + at, src.p + at, bytes, hipMemcpyDefault, stream));
    must(hipEventRecord(end, stream));
  }
  void wait() const {
    must(hipSetDevice(executor));
    must(hipStreamSynchronize(stream));
    float ms = -1;
    must(hipEventElapsedTime(&ms, begin, end));
    failures += ms < 0;
  }
  bool correct(int cleared) const {
    Bytes back(data.size());
    must(hipMemcpy(back.data(), dst.p, back.size(), hipMemcpyDefault));
    return std::all_of(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(at),
                       [=](auto b) { return b == cleared; }) &&
           std::equal(back.begin() + static_cast<std::ptrdiff_t>(at), back.end(),
                      data.begin() + static_cast<std::ptrdiff_t>(at));
  }
};

int prepared_gpus() {
  int n = 0;
  REQUIRE(hipGetDeviceCount(&n) == hipSuccess);
  for (int g = 0; g < n; ++g) {
    must(hipSetDevice(g));
    for (int other = 0; other < n; ++other) {
      int can = 0;
      if (other != g && hipDeviceCanAccessPeer(&can, g, other) == hipSuccess && can != 0)
        (void)hipDeviceEnablePeerAccess(other, 0);
    }
  }
  return n;
}

}  // namespace

TEST_CASE("transfers between all pairs, one after another and all at once") {
  const int n = prepared_gpus();
  std::vector<std::unique_ptr<Transfer>> all;
  for (int from = kHost; from < n; ++from)
    for (int to = kHost; to < n; ++to)
      if (from != kHost || to != kHost) {
        const auto i = all.size();
        all.push_back(
            std::make_unique<Transfer>(from, to, 300'000 + i * 1001, i % 7, static_cast<std::uint32_t>(i + 1)));
      }
  int cleared = 1;
  for (const auto& t : all) {
    INFO(t->src.where << " to " << t->dst.where);
    t->clear(cleared);
    t->start(1);
    t->wait();
    CHECK(t->correct(cleared));
  }
  for (int round = 0; round < 3; ++round) {
    ++cleared;
    for (const auto& t : all) t->clear(cleared);
    for (const auto& t : all) t->start(2);
    for (const auto& t : all) t->wait();
    for (const auto& t : all) {
      INFO(t->src.where << " to " << t->dst.where);
      CHECK(t->correct(cleared));
    }
  }
  CHECK(failures == 0);
}

TEST_CASE("transfers from one thread per executor") {
  const int n = prepared_gpus();
  std::vector<std::vector<std::unique_ptr<Transfer>>> executors(static_cast<std::size_t>(n));
  for (int g = 0; g < n; ++g)
    for (const int to : {kHost, g, (g + 1) % n}) {
      auto& own = executors[static_cast<std::size_t>(g)];
      own.push_back(std::make_unique<Transfer>(g, to, 2'000'003, own.size(), static_cast<std::uint32_t>(100 + g)));
      own.push_back(std::make_unique<Transfer>(kHost, g, 1'000'001, own.size(), static_cast<std::uint32_t>(200 + g)));
    }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const auto& own : executors)
    threads.emplace_back([&wrong, &own] {
      for (int round = 1; round <= 3; ++round) {
        for (const auto& t : own) t->clear(round);
        for (const auto& t : own) t->start(1);
        for (const auto& t : own) t->wait();
        for (const auto& t : own) wrong += !t->correct(round);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(failures == 0);
}

TEST_CASE("a chain of transfers through all GPUs, each waiting for the event of the one before it") {
  const int n = prepared_gpus();
  constexpr std::size_t kBytes = 1'500'007;
  const auto data = pattern(kBytes, 77);
  std::vector<std::unique_ptr<Place>> places;
  places.push_back(std::make_unique<Place>(kHost, kBytes));
  for (int g = 0; g < n; ++g) places.push_back(std::make_unique<Place>(g, kBytes));
  places.push_back(std::make_unique<Place>(kHost, kBytes));
  std::copy(data.begin(), data.end(), places.front()->p);
  std::fill_n(places.back()->p, kBytes, std::uint8_t{0});
  std::vector<hipStream_t> streams(places.size() - 1);
  std::vector<hipEvent_t> events(streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    must(hipSetDevice(std::min(static_cast<int>(i), n - 1)));
    must(hipStreamCreate(&streams[i]));
    must(hipEventCreateWithFlags(&events[i], hipEventDisableTiming));
    if (i > 0) must(hipStreamWaitEvent(streams[i], events[i - 1], 0));
    must(hipMemcpyAsync(places[i + 1]->p, places[i]->p, kBytes, hipMemcpyDefault, streams[i]));
    must(hipEventRecord(events[i], streams[i]));
  }
  must(hipEventSynchronize(events.back()));
  CHECK(std::equal(data.begin(), data.end(), places.back()->p));
  for (auto e : events) must(hipEventDestroy(e));
  for (auto s : streams) must(hipStreamDestroy(s));
  CHECK(failures == 0);
}
