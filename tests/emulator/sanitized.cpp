// SPDX-License-Identifier: MIT
// A program that is built with a sanitizer: engines copy between its own buffers, which it writes and reads in between.
// sanitized [error]: with `error`, it also makes the mistake that its sanitizer reports. cases/sanitizers runs it under
// `sdma emulate`.
#include "../../lib/device/kfd/raw_client.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace sdma::raw;
using namespace sdma;

namespace {

constexpr std::size_t kBytes = 1 << 20;

/// Whole pages of the program's own memory, which engines reach at their addresses.
std::uint8_t* own_pages(Client& c) {
  auto* p = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes));
  const auto va = reinterpret_cast<std::uint64_t>(p);
  kfd::AllocMemory a{.va = va,
                     .bytes = kBytes,
                     .handle = 0,
                     .mmap_offset = va,
                     .gpu_id = c.gpu_id(0),
                     .flags = kfd::kUserptr | kfd::kWritable};
  if (call(c.kfd, Nr::alloc_memory, a) != 0) return nullptr;
  return c.map({.va = va, .bytes = kBytes, .handle = a.handle, .offset = 0}, ~0ull) == 0 ? p : nullptr;
}

int copies() {
  Client c;
  auto words = c.allocate(4096);
  auto *from = own_pages(c), *to = own_pages(c);
  Queue q(c, 0, kfd::kQueueSdma);
  if (q.error != 0 || !from || !to) return 10;
  Ring<> ring(q.memory());
  const auto va = [](const void* p) { return GpuVa{reinterpret_cast<std::uint64_t>(p)}; };
  for (std::uint32_t round = 1; round <= 20; ++round) {
    std::memset(from, static_cast<int>(round), kBytes);
    if (ring.submit(CopyLinear{.src = va(from), .dst = va(to), .bytes = kBytes},
                    Fence{.addr = words.gpu(), .value = round}) != Errc::ok)
      return 11;
    for (int i = 0; i < 10'000 && __atomic_load_n(words.as<std::uint32_t>(), __ATOMIC_ACQUIRE) != round; ++i)
      ::usleep(1000);
    if (std::memcmp(from, to, kBytes) != 0) return 12;
    to[round] = 0;
  }
  return 0;
}

/// What a sanitizer must still find.
int mistake() {
  auto* heap = new int[2]{};
  int sum = 0;
  std::thread one([&] { sum = heap[0] + 1; });
  sum = 2;
  one.join();
  delete[] heap;
  return *static_cast<volatile int*>(heap) + sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int error = copies();
  std::printf("copies: %d\n", error);
  std::fflush(stdout);
  if (argc > 1 && std::strcmp(argv[1], "error") == 0) (void)mistake();
  return error;
}
