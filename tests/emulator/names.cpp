// SPDX-License-Identifier: MIT
// Copies between everything that a program can give to the node: what recordings call it. cases/names runs it under
// `sdma emulate`. Prints the address of its VRAM, for a file of names.
#include "../../lib/device/kfd/raw_client.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"

#include <fcntl.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace model {
alignas(4096) unsigned char weights[65536] = {1};  // in .data
alignas(4096) unsigned char gradients[65536];      // in .bss
}  // namespace model
alignas(4096) static unsigned char scratch[8192];
extern const unsigned char table[4096];
alignas(4096) const unsigned char table[4096] = {7};  // in .rodata
extern "C" const char __executable_start;

namespace {

using namespace sdma::raw;
using namespace sdma;

bool give(Client& c, const void* at, std::uint64_t bytes, std::uint32_t rights = kfd::kWritable) {
  kfd::AllocMemory a{.va = reinterpret_cast<std::uint64_t>(at),
                     .bytes = bytes,
                     .handle = 0,
                     .mmap_offset = reinterpret_cast<std::uint64_t>(at),
                     .gpu_id = c.gpu_id(0),
                     .flags = kfd::kUserptr | rights};
  if (call(c.kfd, Nr::alloc_memory, a) != 0) return false;
  const Memory m{.va = a.va, .bytes = bytes, .handle = a.handle};
  return c.map(m, 1) == 0;
}

GpuVa va(const void* at) { return GpuVa{reinterpret_cast<std::uint64_t>(at)}; }

}  // namespace

int main() {
  Client c;
  constexpr std::uint64_t kBytes = 65536;
  auto* const heap = static_cast<unsigned char*>(::sbrk(2 * 4096));
  const int file = ::open("data.bin", O_RDWR | O_CREAT, 0666);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) return 2;
  auto* const mapped =
      static_cast<unsigned char*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 4096));
  auto* const nothing =
      static_cast<unsigned char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const whole =
      reinterpret_cast<unsigned char*>((reinterpret_cast<std::uint64_t>(heap) + 4095) & ~std::uint64_t{4095});
  // The program's own file, mapped only to be read: the bytes of a variable, but not the variable.
  const int self = ::open("/proc/self/exe", O_RDONLY);
  const auto place = reinterpret_cast<std::uint64_t>(table) - reinterpret_cast<std::uint64_t>(&__executable_start);
  const auto* const flat =
      static_cast<const unsigned char*>(::mmap(nullptr, place + sizeof table, PROT_READ, MAP_PRIVATE, self, 0));
  if (flat == MAP_FAILED || std::memcmp(flat + place, table, sizeof table) != 0) return 8;
  if (!give(c, table, sizeof table, 0) || !give(c, flat + place, sizeof table, 0)) return 9;
  if (!give(c, model::weights, kBytes) || !give(c, model::gradients, kBytes) || !give(c, scratch, sizeof scratch) ||
      !give(c, whole, 4096) || !give(c, mapped, 8192) || !give(c, nothing, 4096))
    return 3;
  const auto vram = c.allocate(kBytes, 0, kfd::kVram), words = c.allocate(4096);
  std::printf("%#llx..+%lluK cache\n", static_cast<unsigned long long>(vram.va),
              static_cast<unsigned long long>(kBytes / 1024));
  Queue q(c, 0, kfd::kQueueSdma);
  if (q.error != 0) return 4;
  Ring<> ring(q.memory());
  const auto copy = [&](GpuVa from, GpuVa to) { return CopyLinear{.src = from, .dst = to, .bytes = 64}; };
  if (ring.submit(copy(va(model::weights), va(model::gradients + 4096)), copy(va(scratch + 100), va(whole + 64)),
                  copy(va(mapped + 64), va(nothing)), copy(vram.gpu(), vram.gpu(4096)), copy(va(table + 8), vram.gpu()),
                  copy(va(flat + place + 8), vram.gpu()), Fence{.addr = words.gpu(), .value = 1}) != Errc::ok)
    return 5;
  for (int i = 0; i < 10'000; ++i) {
    if (__atomic_load_n(words.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 1) return model::gradients[4096] == 1 ? 0 : 6;
    ::usleep(1000);
  }
  return 7;
}
