// SPDX-License-Identifier: MIT
#include "gang.hpp"

#include <array>

namespace runtime {

using namespace sdma;

Result<std::uint64_t> submit(const Gang& g, const LinearCopy& all, const Command& common, Deadline d) noexcept {
  if (g.paths.empty() || g.paths.size() > kMostPaths || g.items.size() + 1 != g.paths.size()) return Errc::bad_argument;
  std::array<LinearCopy, kMostPaths> led;
  std::array<SignalView, kMostPaths> joined;
  std::size_t shares = 0, members = 0;
  for (std::size_t i = 0; i < g.paths.size(); ++i) {
    const auto part = hsa::share({.src = all.src, .dst = all.dst, .bytes = all.bytes}, i, g.paths.size());
    if (part.bytes == 0) continue;
    const LinearCopy share[] = {{part.src, part.dst, part.bytes}};
    if (i != 0 && g.paths[i]->submit({.work = std::span(share), .after = common.after, .out = g.items[i - 1]}, d))
      joined[members++] = g.items[i - 1];
    else led[shares++] = share[0];
  }
  auto leader = common;
  leader.work = std::span<const LinearCopy>(led.data(), shares);
  leader.members = {joined.data(), members};
  return g.paths[0]->submit(leader, d);
}

}  // namespace runtime
