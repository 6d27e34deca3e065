// SPDX-License-Identifier: MIT
// What the CUDA device gives to its driver, counted: calls, copies, batches, strided rows, wakes of its thread.
// On the stand-in for the driver, or on NVIDIA GPUs. No count depends on how fast the streams are.
#include "../../lib/device/cuda/held_copies.hpp"
#include "conformance_support.hpp"
#include "sdma/device/cuda.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/submission.hpp"

#include <random>

namespace conformance {
namespace {

constexpr std::uint32_t kBlock = 4096;

/// No doorbell is found by itself: what is issued was issued by who published it, or the thread was woken for it.
std::unique_ptr<CudaDevice> quiet(CudaOptions o = {.gpus = 1, .scan_interval = std::chrono::milliseconds(0)}) {
  return must(CudaDevice::open(o));
}

CudaIssued operator-(const CudaIssued& a, const CudaIssued& b) {
  return {.calls = a.calls - b.calls,
          .copies = a.copies - b.copies,
          .batches = a.batches - b.batches,
          .boxes = a.boxes - b.boxes,
          .rows = a.rows - b.rows,
          .refused = a.refused - b.refused,
          .wakes = a.wakes - b.wakes};
}

/// Blocks of host memory, in reverse order on the GPU: `rows` rows a plane apart.
struct Blocks {
  Device& d;
  std::uint32_t blocks, rows;
  Memory host, gpu;
  Blocks(Device& device, std::uint32_t n, std::uint32_t planes)
      : d(device), blocks(n), rows(planes), host(host_memory(d, bytes())), gpu(gpu_memory(d, 0, bytes())) {
    pattern(host.host(), 5);
    flush(d);
  }
  std::uint64_t bytes() const { return std::uint64_t{blocks} * rows * kBlock; }
  CopySubwindow box(std::uint32_t b, std::uint32_t first = 0, std::uint32_t n = ~0u) const {
    const auto plane = blocks * kBlock / 16, at = first * blocks * kBlock;
    return {.src = host.va() + (at + std::uint64_t{b} * kBlock),
            .dst = gpu.va() + (at + std::uint64_t{blocks - 1 - b} * kBlock),
            .element_log2 = 4,
            .src_pitch = kBlock / 16,
            .dst_pitch = kBlock / 16,
            .src_slice = plane,
            .dst_slice = plane,
            .x = kBlock / 16,
            .y = 1,
            .z = std::min(n, rows)};
  }
  CopyLinear copy(std::uint32_t row, std::uint32_t b) const {
    return {.src = host.va() + (std::uint64_t{row} * blocks + b) * kBlock,
            .dst = gpu.va() + (std::uint64_t{row} * blocks + blocks - 1 - b) * kBlock,
            .bytes = kBlock};
  }
  bool arrived(std::uint32_t first_block = 0) const {
    flush(d);
    for (std::uint32_t r = 0; r < rows; ++r)
      for (auto b = first_block; b < blocks; ++b)
        if (!equal(host.host().subspan((std::size_t{r} * blocks + b) * kBlock, kBlock),
                   gpu.host().subspan((std::size_t{r} * blocks + blocks - 1 - b) * kBlock, kBlock)))
          return false;
    return true;
  }
};

/// A store to a signal wakes the device's thread, which may be at a queue when its publisher comes. So rounds are run
/// until one is undisturbed: `round(last)` returns whether it was, and judges it if so, and the last one in any case.
template <class Round> void until_undisturbed(Round round) {
  constexpr int kMost = 200;
  for (int i = 1; i <= kMost; ++i)
    if (round(i == kMost)) return;
}

}  // namespace

TEST_CASE("cuda: the thread that publishes a list issues it, 64 copies a call, and wakes nobody", "[cuda]") {
  const auto d = quiet();
  constexpr std::uint32_t kParts = 8, kEach = 512;
  const Blocks all(*d, kEach, kParts);
  auto go = must(d->create_signal()), done = must(d->create_signal());
  auto queue = must(d->create_queue({.ring_bytes = 1u << 20}));
  Ring<> ring{queue.memory()};
  for (const bool ahead : {false, true})
    until_undisturbed([&](bool last) {
      CAPTURE(ahead);
      go->set(0);
      done->set(0);
      if (!ahead) go->set(1);
      const auto before = d->issued();
      for (std::uint32_t p = 0; p < kParts; ++p) {
        Submission s{ring, kEach * dwords_of<CopyLinear>() + dwords_of<PollMem, Fence>(), soon()};
        s.with([&](auto& w) { return acquire_equal(w, go->va, 1); });
        for (std::uint32_t b = 0; b < kEach; ++b) s.put(all.copy(p, b));
        s.with([&](auto& w) { return complete_with_fence(w, done->va, p + 1); });
        REQUIRE(s.publish() == Errc::ok);
      }
      const auto n = d->issued() - before;
      if (n.wakes == 0 || last) {
        // Everything is with the driver before any thread but this one has run; so rptr is at the end.
        CHECK(ring.positions().read == ring.positions().committed);
        CHECK(n.copies == kParts * kEach);
        CHECK(n.batches == kParts * kEach / 64);
        CHECK(n.wakes == 0);
        CHECK(n.boxes == 0);
        // A batch, at most a report after it; a wait and a fence for each part; a report for each 64 of all these.
        CHECK(n.calls <= 2 * n.batches + 2 * kParts + 8);
      }
      go->set(1);
      REQUIRE(wait(*done, Compare::eq, kParts, soon(), ring));
      CHECK(all.arrived());
      return n.wakes == 0;
    });
}

TEST_CASE("cuda: what exceeds the window of a stream that waits is left to the thread", "[cuda]") {
  const auto d = quiet();
  constexpr std::uint32_t kMany = 1200;  // a wait, a copy and a fence each
  const Blocks all(*d, 1, 1);
  auto go = must(d->create_signal()), done = must(d->create_signal());
  auto queue = must(d->create_queue({.ring_bytes = 1u << 20}));
  Ring<> ring{queue.memory()};
  const auto before = d->issued();
  for (std::uint32_t i = 1; i <= kMany; ++i)
    REQUIRE(ring.submit(PollMem{.addr = go->va, .func = Compare::ge, .reference = 1}, all.copy(0, 0),
                        Fence{.addr = done->va, .value = i}) == Errc::ok);
  CHECK((d->issued() - before).wakes > 0);
  CHECK((d->issued() - before).calls < 1020);  // one more would block
  go->set(1);
  REQUIRE(wait(*done, Compare::eq, kMany, soon(), ring));
  CHECK((d->issued() - before).copies == kMany);
}

TEST_CASE("cuda: no more copies are with a stream that waits than it takes without blocking", "[cuda]") {
  const auto d = quiet();
  constexpr std::uint32_t kMany = 32768;  // 512 batches: calls are not the limit
  const Blocks all(*d, 64, 1);
  auto go = must(d->create_signal()), done = must(d->create_signal());
  auto queue = must(d->create_queue({.ring_bytes = 2u << 20}));
  Ring<> ring{queue.memory()};
  const auto before = d->issued();
  Submission s{ring, kMany * dwords_of<CopyLinear>() + dwords_of<PollMem, Fence>(), soon()};
  s.with([&](auto& w) { return acquire_equal(w, go->va, 1); });
  for (std::uint32_t i = 0; i < kMany; ++i) s.put(all.copy(0, i % 64));
  s.with([&](auto& w) { return complete_with_fence(w, done->va, 1); });
  REQUIRE(s.publish() == Errc::ok);
  const auto held = d->issued() - before;
  CHECK(held.copies >= 8192);
  CHECK(held.copies < 26000);
  CHECK(held.wakes > 0);
  go->set(1);
  REQUIRE(wait(*done, Compare::eq, 1, soon(), ring));
  CHECK((d->issued() - before).copies == kMany);
  CHECK(all.arrived());
}

TEST_CASE("cuda: four rows or more are a strided copy where the engine has little to do", "[cuda]") {
  const auto d = quiet();
  for (const std::uint32_t rows : {2u, 3u, 4u, 8u, 64u, 100u}) {
    until_undisturbed([&](bool last) {
      CAPTURE(rows);
      const Blocks all(*d, 3, rows);
      Lane lane(*d);
      const auto before = d->issued();
      lane.submit(all.box(1));
      REQUIRE(lane.finish());
      const auto idle = d->issued() - before;

      // A stream that waits costs the host nothing: all rows are copies, which are faster for the engine.
      auto go = must(d->create_signal());
      lane.submit(PollMem{.addr = go->va, .func = Compare::eq, .reference = 1}, all.box(0), all.box(2));
      const auto held = d->issued() - before;
      if (held.wakes == 0 || last) {
        CHECK(idle.boxes == (rows >= 4 ? 1 : 0));
        CHECK(idle.rows == (rows >= 4 ? rows : 0));
        CHECK(idle.copies == (rows >= 4 ? 0 : rows));
        CHECK(idle.wakes == 0);
        CHECK(held.boxes == idle.boxes);
        CHECK(held.copies == idle.copies + 2 * rows);
      }
      go->set(1);
      REQUIRE(lane.finish());
      CHECK(all.arrived());
      return held.wakes == 0;
    });
  }
}

TEST_CASE("cuda: rows are copies while the engine has work for longer than the host takes for a batch", "[cuda]") {
  const auto d = quiet();
  const Blocks all(*d, 3, 8);
  auto big = host_memory(*d, 4u << 20), to = gpu_memory(*d, 0, 4u << 20);
  auto go = must(d->create_signal()), met = must(d->create_signal());
  met->set(7);
  const PollMem wait_for_go{.addr = go->va, .func = Compare::eq, .reference = 1},
      is_met{.addr = met->va, .func = Compare::eq, .reference = 7};
  for (const std::uint32_t bytes : {4u << 20, 4096u}) {  // 77 us and 0.2 us of the link
    until_undisturbed([&](bool last) {
      CAPTURE(bytes);
      go->set(0);
      Lane lane(*d);
      const auto before = d->issued();
      lane.submit(wait_for_go, CopyLinear{.src = big.va(), .dst = to.va(), .bytes = bytes}, is_met, all.box(0));
      const auto n = d->issued() - before;
      if (n.wakes == 0 || last) {
        CHECK(n.boxes == (bytes == 4096 ? 1 : 0));
        CHECK(n.copies == (bytes == 4096 ? 1 : 9));
      }
      go->set(1);
      REQUIRE(lane.finish());
      return n.wakes == 0;
    });
  }
}

TEST_CASE("cuda: a box takes the ring once, and its rows' addresses are stored once", "[cuda]") {
  const auto d = quiet();
  constexpr std::uint32_t kBlocks = 256, kRows = 8;
  const Blocks all(*d, kBlocks, kRows);
  auto done = must(d->create_signal()), go = must(d->create_signal());
  auto queue = must(d->create_queue({.ring_bytes = 1u << 20}));
  Ring<> ring{queue.memory()};
  until_undisturbed([&](bool last) {
    go->set(0);
    done->set(0);
    const auto from = ring.positions().committed;
    const auto before = d->issued();
    constexpr auto kDwords = kBlocks * dwords_of<CopySubwindow>() + dwords_of<PollMem, Fence>();
    Submission s{ring, kDwords, soon()};
    s.put(PollMem{.addr = go->va, .func = Compare::eq, .reference = 1});
    for (std::uint32_t b = 0; b < kBlocks; ++b) s.put(all.box(b));
    s.put(Fence{.addr = done->va, .value = 1});
    REQUIRE(s.publish() == Errc::ok);
    const auto n = d->issued() - before;
    if (n.wakes == 0 || last) {
      CHECK(ring.positions().committed - from <= 4 * kDwords);
      CHECK(n.copies == kBlocks * kRows);
      CHECK(n.batches == kBlocks * kRows / 64);
      CHECK(n.wakes == 0);
    }
    go->set(1);
    REQUIRE(wait(*done, Compare::eq, 1, soon(), ring));
    CHECK(all.arrived());
    return n.wakes == 0;
  });
}

TEST_CASE("cuda: a copy joins a batch unless order matters to it and to one of the batch", "[cuda]") {
  namespace cuda = detail::cuda;
  std::mt19937_64 random(7);
  struct Copy {
    cuda::Pointer dst, src;
    std::size_t bytes;
  };
  std::size_t clashed = 0, joined = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    cuda::HeldCopies held;
    std::vector<Copy> all;
    // Few places: neighbours, the same block twice, blocks that are read and written, and lengths that differ.
    const std::uint64_t unit = std::uint64_t{1} << random() % 8, places = 1 + random() % 4000;
    const bool apart = random() % 2 == 0, even = random() % 2 == 0;
    while (!held.full()) {
      const auto bytes = even ? unit : 1 + random() % (3 * unit);
      const Copy c{1000 + random() % places * unit, (apart ? 1u << 30 : 1000) + random() % places * unit, bytes};
      const auto touches = [&](const Copy& o) {
        return cuda::overlap(c.dst, c.bytes, o.dst, o.bytes) || cuda::overlap(c.dst, c.bytes, o.src, o.bytes) ||
               cuda::overlap(c.src, c.bytes, o.dst, o.bytes);
      };
      const bool right = std::any_of(all.begin(), all.end(), touches);
      REQUIRE(held.clashes(c.dst, c.src, c.bytes) == right);
      ++(right ? clashed : joined);
      if (right || random() % 50 == 0) {
        held.clear();
        all.clear();
        if (right && random() % 2 == 0) break;
      }
      held.add(c.dst, c.src, c.bytes);
      all.push_back(c);
    }
  }
  CHECK(clashed > 1000);
  CHECK(joined > 1000);
}

/// Run with batches refused by the driver: SDMA_STAND_IN_FAIL.
TEST_CASE("cuda: copies of a batch that the driver refuses go one by one", "[.][cuda-refused]") {
  const auto d = quiet();
  const Blocks all(*d, 256, 1);
  Lane lane(*d, {.ring_bytes = 64u << 10});
  const auto before = d->issued();
  for (std::uint32_t b = 0; b < 256; b += 4)
    lane.submit(all.copy(0, b), all.copy(0, b + 1), all.copy(0, b + 2), all.copy(0, b + 3));
  REQUIRE(lane.finish());
  CHECK(all.arrived());
  const auto n = d->issued() - before;
  CHECK(n.refused == 1);
  CHECK(n.batches == 0);
  CHECK(n.copies == 256);
  CHECK_FALSE(d->fault(lane.queue));
}

}  // namespace conformance
