// SPDX-License-Identifier: MIT
// Part d of GPU i's input goes to slot i of GPU d: by copies if out of place, by exchange if in place. Each
// pair of GPUs (i < j) is the work of one of the two: of i if i + j is even, so that with N = 8 each GPU has
// three or four pairs.
#include "builder.hpp"

namespace collectives {
namespace {

void out_of_place(Builder& b) {
  const auto& o = b.options();
  const auto chunk = chunk_of(o);
  const auto in = b.buffers("in", o.bytes), out = b.buffers("out", o.gpus * chunk);
  b.plan().inputs = in;
  b.plan().outputs = out;
  for (std::uint32_t i = 0; i < o.gpus; ++i) {
    b.plan().given.push_back({in[i], o.bytes});
    std::vector<Transfer> all;
    for (std::uint32_t k = 1; k < o.gpus + (o.own_part ? 1 : 0); ++k) {
      const auto d = (i + k) % o.gpus;
      const auto [begin, bytes] = part_of(o, d);
      all.push_back({d, in[i] + begin, out[d] + i * chunk, bytes});
      b.moved(i, d, all.back().from, all.back().to, bytes);
    }
    b.send(i, std::move(all));
  }
}

void in_place(Builder& b) {
  const auto& o = b.options();
  const auto chunk = chunk_of(o);
  const auto buf = b.buffers("buf", o.gpus * chunk);
  b.plan().inputs = b.plan().outputs = buf;
  for (std::uint32_t i = 0; i < o.gpus; ++i) b.plan().given.push_back({buf[i], o.bytes});
  for (std::uint32_t i = 0; i < o.gpus; ++i)
    for (std::uint32_t j = i + 1; j < o.gpus; ++j) {
      const bool mine = (i + j) % 2 == 0;
      const auto driver = mine ? i : j, peer = mine ? j : i;
      const auto a = buf[driver] + peer * chunk, c = buf[peer] + driver * chunk;
      const auto sent = part_of(o, peer).bytes, received = part_of(o, driver).bytes;
      b.moved(driver, peer, a, c, sent);
      b.moved(peer, driver, c, a, received);
      b.exchange(driver, peer, a, c, sent, received);
    }
}

}  // namespace

void all_to_all(Builder& b) { b.options().variant == Variant::swap ? in_place(b) : out_of_place(b); }

}  // namespace collectives
