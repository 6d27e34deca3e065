// SPDX-License-Identifier: MIT
// Every GPU sends its part to all others, in place. The order of
// peers is staggered, so that no two GPUs begin with the same one.
#include "builder.hpp"

namespace collectives {

void all_gather(Builder& b) {
  const auto& o = b.options();
  const auto buf = b.buffers("buf", o.bytes);
  b.plan().inputs = b.plan().outputs = buf;
  for (std::uint32_t i = 0; i < o.gpus; ++i) {
    const auto [begin, bytes] = part_of(o, i);
    if (bytes != 0) b.plan().given.push_back({buf[i] + begin, bytes});
    std::vector<Transfer> all;
    for (std::uint32_t k = 1; k < o.gpus; ++k) {
      const auto d = (i + k) % o.gpus;
      all.push_back({d, buf[i] + begin, buf[d] + begin, bytes});
      b.moved(i, d, buf[i] + begin, buf[d] + begin, bytes);
    }
    b.send(i, std::move(all));
  }
}

}  // namespace collectives
