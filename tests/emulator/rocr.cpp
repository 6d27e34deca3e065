// SPDX-License-Identifier: MIT
// ROCr's asynchronous copies on the node, every byte verified: both ways, a box, locked memory, profiling, between
// GPUs. Run under `sdma emulate --gpus=N --gpu=gfx90a`, and with gfx942.
#include "rocr_runtime.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace rocr;

TEST_CASE("host to GPU, between all GPUs, and back") {
  Runtime r;
  REQUIRE(!r.gpus.empty());
  const char* wanted = std::getenv("SDMA_EMULATE_GPUS");
  REQUIRE(r.gpus.size() == static_cast<std::size_t>(wanted ? std::atoi(wanted) : 1));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{5'000'003}}) {
    auto* host = r.allocate(r.cpu, bytes);
    auto* back = r.allocate(r.cpu, bytes);
    const auto data = pattern(bytes, static_cast<std::uint32_t>(bytes));
    std::copy(data.begin(), data.end(), host);
    std::vector<std::uint8_t*> vram;
    for (const auto& g : r.gpus) vram.push_back(r.allocate(g, bytes));
    copy(vram[0], r.gpus[0], host, r.cpu, bytes);
    for (std::size_t g = 1; g < r.gpus.size(); ++g) copy(vram[g], r.gpus[g], vram[g - 1], r.gpus[g - 1], bytes);
    copy(back, r.cpu, vram.back(), r.gpus.back(), bytes);
    CHECK(std::equal(data.begin(), data.end(), back));
    for (auto* p : vram) hsa_amd_memory_pool_free(p);
    hsa_amd_memory_pool_free(host);
    hsa_amd_memory_pool_free(back);
  }
}

TEST_CASE("every pair of GPUs") {
  Runtime r;
  constexpr std::size_t kBytes = 70'001;
  auto* host = r.allocate(r.cpu, kBytes);
  std::vector<std::uint8_t*> from, to;
  for (const auto& g : r.gpus) {
    from.push_back(r.allocate(g, kBytes));
    to.push_back(r.allocate(g, kBytes));
  }
  for (std::size_t a = 0; a < r.gpus.size(); ++a) {
    const auto data = pattern(kBytes, static_cast<std::uint32_t>(a + 1));
    std::copy(data.begin(), data.end(), host);
    copy(from[a], r.gpus[a], host, r.cpu, kBytes);
    for (std::size_t b = 0; b < r.gpus.size(); ++b) {
      if (a == b) continue;
      copy(to[b], r.gpus[b], from[a], r.gpus[a], kBytes);
      std::fill_n(host, kBytes, std::uint8_t{0});
      copy(host, r.cpu, to[b], r.gpus[b], kBytes);
      REQUIRE(std::equal(data.begin(), data.end(), host));
    }
  }
  for (auto* p : from) hsa_amd_memory_pool_free(p);
  for (auto* p : to) hsa_amd_memory_pool_free(p);
  hsa_amd_memory_pool_free(host);
}

TEST_CASE("a kernel dispatch is an error of its queue, and never completes") {
  Runtime r;
  std::atomic<int> status{0};
  hsa_queue_t* q = nullptr;
  REQUIRE(hsa_queue_create(
              r.gpus[0].agent, 64, HSA_QUEUE_TYPE_SINGLE,
              [](hsa_status_t s, hsa_queue_t*, void* out) { static_cast<std::atomic<int>*>(out)->store(s); }, &status,
              0, 0, &q) == HSA_STATUS_SUCCESS);
  auto* code = r.allocate(r.cpu, 4096);
  std::fill_n(code, 4096, std::uint8_t{0});
  Signal done;
  const auto index = hsa_queue_add_write_index_relaxed(q, 1);
  auto* p = static_cast<hsa_kernel_dispatch_packet_t*>(q->base_address) + index;
  *p = {};
  p->setup = 1;
  p->workgroup_size_x = p->workgroup_size_y = p->workgroup_size_z = 1;
  p->grid_size_x = p->grid_size_y = p->grid_size_z = 1;
  p->kernel_object = reinterpret_cast<std::uint64_t>(code);
  p->completion_signal = done.s;
  __atomic_store_n(&p->header, std::uint16_t{HSA_PACKET_TYPE_KERNEL_DISPATCH}, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(q->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  for (int i = 0; i < 10'000 && status == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(status == HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
  CHECK(hsa_signal_load_scacquire(done.s) == 1);
  hsa_queue_destroy(q);
  hsa_amd_memory_pool_free(code);
}

TEST_CASE("copies that depend on each other, waited for actively and blocked") {
  Runtime r;
  constexpr std::size_t kBytes = 256 * 1024;
  auto* host = r.allocate(r.cpu, kBytes);
  auto* back = r.allocate(r.cpu, kBytes);
  auto* vram = r.allocate(r.gpus[0], kBytes);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto data = pattern(kBytes, i);
    std::copy(data.begin(), data.end(), host);
    Signal there, home;
    REQUIRE(hsa_amd_memory_async_copy(back, r.cpu.agent, vram, r.gpus[0].agent, kBytes, 1, &there.s, home.s) ==
            HSA_STATUS_SUCCESS);
    REQUIRE(hsa_amd_memory_async_copy(vram, r.gpus[0].agent, host, r.cpu.agent, kBytes, 0, nullptr, there.s) ==
            HSA_STATUS_SUCCESS);
    REQUIRE(home.done(i % 2 == 0 ? HSA_WAIT_STATE_ACTIVE : HSA_WAIT_STATE_BLOCKED));
    REQUIRE(std::equal(data.begin(), data.end(), back));
  }
  for (auto* p : {host, back, vram}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("a box") {
  Runtime r;
  constexpr std::size_t kPitch = 256, kRows = 64;
  auto* host = r.allocate(r.cpu, kPitch * kRows);
  auto* back = r.allocate(r.cpu, kPitch * kRows);
  auto* vram = r.allocate(r.gpus[0], kPitch * kRows);
  const auto data = pattern(kPitch * kRows, 9);
  std::copy(data.begin(), data.end(), host);
  std::fill_n(back, kPitch * kRows, std::uint8_t{0});
  copy(vram, r.gpus[0], host, r.cpu, kPitch * kRows);
  const hsa_pitched_ptr_t to{back, kPitch, kPitch * kRows}, from{vram, kPitch, kPitch * kRows};
  const hsa_dim3_t dst{16, 2, 0}, src{32, 5, 0}, range{100, 40, 1};
  Signal done;
  REQUIRE(hsa_amd_memory_async_copy_rect(&to, &dst, &from, &src, &range, r.gpus[0].agent, hsaDeviceToHost, 0, nullptr,
                                         done.s) == HSA_STATUS_SUCCESS);
  REQUIRE(done.done());
  std::size_t wrong = 0;
  for (std::size_t y = 0; y < kRows; ++y)
    for (std::size_t x = 0; x < kPitch; ++x) {
      const bool inside = x >= 16 && x < 116 && y >= 2 && y < 42;
      wrong += back[y * kPitch + x] != (inside ? data[(y + 3) * kPitch + x + 16] : 0);
    }
  CHECK(wrong == 0);
  for (auto* p : {host, back, vram}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("locked memory of the program") {
  Runtime r;
  constexpr std::size_t kBytes = 300'001;
  auto data = pattern(kBytes, 3);
  std::vector<std::uint8_t> back(kBytes);
  void *in = nullptr, *out = nullptr;
  REQUIRE(hsa_amd_memory_lock(data.data(), kBytes, &r.gpus[0].agent, 1, &in) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_amd_memory_lock(back.data(), kBytes, &r.gpus[0].agent, 1, &out) == HSA_STATUS_SUCCESS);
  auto* vram = r.allocate(r.gpus[0], kBytes);
  copy(vram, r.gpus[0], in, r.cpu, kBytes);
  copy(out, r.cpu, vram, r.gpus[0], kBytes);
  CHECK(back == data);
  hsa_amd_memory_unlock(data.data());
  hsa_amd_memory_unlock(back.data());
  hsa_amd_memory_pool_free(vram);
}

TEST_CASE("a fill and a copy within one GPU, which ROCr does with kernels of its own") {
  Runtime r;
  constexpr std::size_t kWords = 2'600'003;  // more than two steps of the queue move
  auto* a = r.allocate(r.gpus[0], kWords * 4);
  auto* b = r.allocate(r.gpus[0], kWords * 4);
  auto* host = r.allocate(r.cpu, kWords * 4);
  REQUIRE(hsa_amd_memory_fill(a, 0x12345678, kWords) == HSA_STATUS_SUCCESS);
  copy(b, r.gpus[0], a, r.gpus[0], kWords * 4);
  copy(host, r.cpu, b, r.gpus[0], kWords * 4);
  const auto* words = reinterpret_cast<const std::uint32_t*>(host);
  CHECK(std::count(words, words + kWords, 0x12345678u) == kWords);
  auto* numbers = reinterpret_cast<std::uint32_t*>(host);
  for (std::size_t i = 0; i < kWords; ++i) numbers[i] = static_cast<std::uint32_t>(i);
  copy(a, r.gpus[0], host, r.cpu, kWords * 4);
  copy(b, r.gpus[0], a, r.gpus[0], kWords * 4);
  std::fill_n(numbers, kWords, 0u);
  copy(host, r.cpu, b, r.gpus[0], kWords * 4);
  bool whole = true;
  for (std::size_t i = 0; i < kWords; ++i) whole = whole && numbers[i] == i;
  CHECK(whole);
  for (auto* p : {a, b, host}) hsa_amd_memory_pool_free(p);
}

TEST_CASE("copies are timed") {
  Runtime r;
  constexpr std::size_t kBytes = 8 << 20;
  REQUIRE(hsa_amd_profiling_async_copy_enable(true) == HSA_STATUS_SUCCESS);
  auto* host = r.allocate(r.cpu, kBytes);
  auto* vram = r.allocate(r.gpus[0], kBytes);
  Signal done;
  REQUIRE(hsa_amd_memory_async_copy(vram, r.gpus[0].agent, host, r.cpu.agent, kBytes, 0, nullptr, done.s) ==
          HSA_STATUS_SUCCESS);
  REQUIRE(done.done());
  hsa_amd_profiling_async_copy_time_t t{};
  REQUIRE(hsa_amd_profiling_get_async_copy_time(done.s, &t) == HSA_STATUS_SUCCESS);
  CHECK(t.end > t.start);
  CHECK(t.end - t.start < 20'000'000'000);
  hsa_amd_memory_pool_free(host);
  hsa_amd_memory_pool_free(vram);
}

TEST_CASE("dependent copies of odd sizes at odd addresses, with times that follow each other") {
  Runtime r;
  std::uint64_t frequency = 0;
  REQUIRE(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_amd_profiling_async_copy_enable(true) == HSA_STATUS_SUCCESS);
  constexpr std::size_t kMost = 65'537;
  auto *host = r.allocate(r.cpu, kMost + 8), *back = r.allocate(r.cpu, kMost + 8);
  const auto &first = r.gpus.front(), &last = r.gpus.back();
  auto *a = r.allocate(first, kMost + 8), *b = r.allocate(last, kMost + 8);
  for (const std::size_t bytes : {1u, 2u, 3u, 7u, 15u, 17u, 63u, 65u, 255u, 4095u, 4097u, 65'537u})
    for (const std::size_t at : {0u, 1u, 3u}) {
      const auto data = pattern(bytes, static_cast<std::uint32_t>(bytes + at));
      std::copy(data.begin(), data.end(), host);
      std::fill_n(back, kMost + 8, std::uint8_t{0xee});
      const Signal one, two, three;
      REQUIRE(hsa_amd_memory_async_copy(a + at, first.agent, host, r.cpu.agent, bytes, 0, nullptr, one.s) == 0);
      REQUIRE(hsa_amd_memory_async_copy(b + at, last.agent, a + at, first.agent, bytes, 1, &one.s, two.s) == 0);
      REQUIRE(hsa_amd_memory_async_copy(back + 1, r.cpu.agent, b + at, last.agent, bytes, 1, &two.s, three.s) == 0);
      REQUIRE(three.done());
      REQUIRE(std::equal(data.begin(), data.end(), back + 1));
      REQUIRE((back[0] == 0xee && back[bytes + 1] == 0xee));
      std::uint64_t before = 0, now = 0;
      for (const auto* s : {&one, &two, &three}) {
        hsa_amd_profiling_async_copy_time_t t{};
        REQUIRE(hsa_amd_profiling_get_async_copy_time(s->s, &t) == HSA_STATUS_SUCCESS);
        REQUIRE(t.start <= t.end);
        REQUIRE(t.start + frequency / 100 >= before);  // ROCr compares two clocks, and may be interrupted between them
        before = t.end;
      }
      REQUIRE(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now) == HSA_STATUS_SUCCESS);
      REQUIRE(before <= now + frequency / 100);
    }
  REQUIRE(hsa_amd_profiling_async_copy_enable(false) == HSA_STATUS_SUCCESS);
  for (auto* p : {host, back, a, b}) hsa_amd_memory_pool_free(p);
}
