// SPDX-License-Identifier: MIT
// Every variant, number of GPUs, ordering and boundary, on the software device: right to the last byte.
#include "support.hpp"
#include "support/sanitizer.hpp"

namespace collectives::test {
namespace {

std::vector<std::pair<Collective, Variant>> everything() {
  std::vector<std::pair<Collective, Variant>> all;
  for (const auto c : kCollectives)
    for (const auto v : kVariants)
      if (has_variant(c, v)) all.emplace_back(c, v);
  return all;
}

/// Around every boundary: one byte, fewer bytes than GPUs, alignment of broadcast and swap, and the packet's limit,
/// which is set low: chunk - 1, chunk, chunk + 1 and what takes several packets. Two of them at a time: over seven
/// numbers of GPUs and three orderings each variant sees each size three times.
std::vector<std::uint64_t> sizes(std::uint32_t n, std::size_t turn) {
  const std::uint64_t all[] = {1,      n - 1,  n,           n + 1,   31 * n,      32 * n + 1,  63 * n,
                               64 * n, 65 * n, 128 * n - 1, 128 * n, 128 * n + 1, 1000 * n + 7};
  const auto first = (2 * (n - 2) + 14 * turn) % std::size(all);
  return {all[first], all[(first + 1) % std::size(all)]};
}
constexpr std::uint32_t kPacket = 128;

}  // namespace

TEST_CASE("every variant for 2 to 8 GPUs and sizes around every boundary, in all orderings") {
  // What a round costs is the making of queues: the other choices take turns instead of multiplying them.
  std::size_t turn = 0;
  for (const auto order : kOrderings) {
    const auto d = node(order, 11);
    for (const auto& [c, v] : everything())
      for (std::uint32_t n = 2; n <= 8; ++n)
        for (const auto bytes : sizes(n, static_cast<std::size_t>(order))) {
          if (++turn % 8 != 0 && (sdma::test::thread_sanitizer() || sdma::test::address_sanitizer())) continue;
          Options o{.collective = c, .variant = v, .gpus = n, .bytes = bytes, .packet_bytes = kPacket};
          o.prelaunch = kPrelaunches[turn / 3 % std::size(kPrelaunches)];
          o.ring_bytes = o.prelaunch == Prelaunch::off ? 1024 : 32768;
          o.completion = kCompletions[turn / 9 % 3];
          o.root = static_cast<std::uint32_t>(turn % n);
          if (turn % 4 == 1) o.granule = 1;
          if (turn % 8 == 5) o.offsets = {0, 1, 32, 63, 64, 100};
          INFO(describe(o) << " order=" << name(order));
          auto r = prepared(planned(o), *d);
          CHECK(rounds(r, 2) == "");
        }
  }
}

}  // namespace collectives::test
