// SPDX-License-Identifier: MIT
// Collectives with a root, in place: it sends everything (broadcast) or each GPU's part (scatter), or receives each
// GPU's part (gather). The root's engines do the work, except in a gather by pcpy, where each GPU pushes its part with
// its own engine.
#include "builder.hpp"

namespace collectives {

void rooted(Builder& b) {
  const auto& o = b.options();
  const auto buf = b.buffers("buf", o.bytes);
  b.plan().inputs = b.plan().outputs = buf;
  const bool gather = o.collective == Collective::gather, everything = o.collective == Collective::broadcast;
  if (!gather) b.plan().given.push_back({buf[o.root], o.bytes});
  std::vector<Transfer> of_root;
  for (std::uint32_t k = 0; k < o.gpus; ++k) {
    const auto g = (o.root + k) % o.gpus;
    const auto [begin, bytes] = everything ? Part{0, o.bytes} : part_of(o, g);
    if (gather && bytes != 0) b.plan().given.push_back({buf[g] + begin, bytes});
    if (k == 0) continue;
    const auto at_root = buf[o.root] + begin, at_peer = buf[g] + begin;
    if (!gather) {
      of_root.push_back({g, at_root, at_peer, bytes});
      b.moved(o.root, g, at_root, at_peer, bytes);
      continue;
    }
    b.moved(g, o.root, at_peer, at_root, bytes);
    if (o.variant == Variant::b2b) of_root.push_back({g, at_peer, at_root, bytes});
    else b.send(g, {{o.root, at_peer, at_root, bytes}});
  }
  b.send(o.root, std::move(of_root));
}

}  // namespace collectives
