// SPDX-License-Identifier: MIT
// Dispatches by a PM4 queue, of a kernel that a loaded code object
// names and of one without a name: they are refused, or skipped.
#include "../../lib/device/kfd/raw_client.hpp"
#include "code_object_image.hpp"

#include <algorithm>
#include <cstdio>

using namespace sdma::raw;

int main() {
  Client c;
  const auto object = compute::code_object({{"scale_by_three", {{"p", 8}}}});
  auto image = c.allocate(1 << 16, 0, kfd::kVram), word = c.allocate(4096);
  std::copy(object.bytes.begin(), object.bytes.end(), image.host());
  Queue q(c, 0, kfd::kQueueCompute);
  if (q.error != 0) return 3;
  std::uint64_t written = 0;
  const auto packet = [&](std::uint32_t opcode, std::initializer_list<std::uint32_t> body) {
    q.ring.as<std::uint32_t>()[written++] = 3u << 30 | static_cast<std::uint32_t>(body.size() - 1) << 16 | opcode << 8;
    for (const auto d : body) q.ring.as<std::uint32_t>()[written++] = d;
  };
  const auto code = (image.va + object.bytes.size() - 256) / 256;
  packet(0x76, {0x20c, static_cast<std::uint32_t>(code), static_cast<std::uint32_t>(code >> 32)});
  packet(0x15, {1, 1, 1, 1});
  packet(0x15, {2, 1, 1, 1});
  packet(0x76, {0x20c, 0x123456, 0});
  packet(0x15, {1, 1, 1, 1});
  packet(0x37, {5u << 8, static_cast<std::uint32_t>(word.va), static_cast<std::uint32_t>(word.va >> 32), 7});
  __atomic_store_n(q.pointers.as<std::uint64_t>(64), written, __ATOMIC_RELEASE);
  __atomic_store_n(q.doorbell, written, __ATOMIC_RELEASE);
  for (int i = 0; i < 1000 && __atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) != 7; ++i) ::usleep(500);
  std::printf("the word after the dispatches is %u\n", *word.as<std::uint32_t>());
  return 0;
}
