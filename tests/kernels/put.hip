// SPDX-License-Identifier: MIT
// A copy and a fence, by hand and by encode_to: device_code.py compares the number of their instructions.
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/packets/sync.hpp"

using u32 = std::uint32_t;
using u64 = std::uint64_t;
#define KERNEL extern "C" __attribute__((global)) void

KERNEL by_hand(u32* out, u64 src, u64 dst, u32 bytes, u64 done) {
  const u32 dwords[] = {1,
                        bytes - 1,
                        0,
                        static_cast<u32>(src),
                        static_cast<u32>(src >> 32),
                        static_cast<u32>(dst),
                        static_cast<u32>(dst >> 32),
                        5,
                        static_cast<u32>(done),
                        static_cast<u32>(done >> 32),
                        1};
  for (u32 i = 0; i < 11; ++i) out[i] = dwords[i];
}

KERNEL by_headers(u32* out, u64 src, u64 dst, u32 bytes, u64 done) {
  using namespace sdma;
  out = encode_to(CopyLinear{.src = GpuVa{src}, .dst = GpuVa{dst}, .bytes = bytes}, out);
  encode_to(Fence{.addr = GpuVa{done}, .value = 1}, out);
}
