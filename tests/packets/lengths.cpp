// SPDX-License-Identifier: MIT
// The lengths agree with the registry, for every packet and for dwords that no packet begins with.
#include "sdma/packets/lengths.hpp"

#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

/// What the registry knows: 0 if no packet begins here; more than d.size() if `d` does not hold the count.
std::size_t by_registry(std::span<const std::uint32_t> d) {
  const auto* p = identify(d);
  return !p ? 0 : p->head <= d.size() ? p->length(d.data()) : p->head;
}

TEST_CASE("every packet has the length that its encoder writes") {
  Dice dice{1};
  each_packet([&]<class P>() {
    bool ok = true;
    for (int i = 0; i < 200; ++i) {
      const auto d = words_of(dice.packet<P>());
      ok = ok && packet_length(d) == d.size();
    }
    holds(grammar::layout<P>.name, ok);
  });
}

TEST_CASE("random dwords have the length that the registry gives, also if they end early") {
  Dice dice{2};
  int known = 0, early = 0;
  bool ok = true;
  for (int i = 0; i < 300000; ++i) {
    std::array<std::uint32_t, 16> d{};
    for (auto& w : d) w = static_cast<std::uint32_t>(dice.number());
    if (i % 4) d[0] = (d[0] & 0xffff0000) | static_cast<std::uint32_t>(dice.below(18) | dice.below(40) << 8);
    if (i % 8 == 7) d = {static_cast<std::uint32_t>(dice.below(2) << dice.below(32)) | 8, 0, 0x80000000};
    const auto span = std::span(d).first(dice.below(d.size() + 1));
    const auto n = packet_length(span);
    known += n != 0;
    early += n > span.size();
    ok = ok && n == by_registry(span);
  }
  CHECK(ok);
  CHECK(known > 10000);
  CHECK(early > 1000);
}

}  // namespace
