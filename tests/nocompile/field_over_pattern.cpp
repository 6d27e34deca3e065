// SPDX-License-Identifier: MIT
// must not compile: a bit of this packet has two owners (two fields, or a field and the pattern)
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0).is(0, 27, 27, 1), dwords(2), "a test",
                                                          bits<&Bad::a>("a", 0, 24, 31, "the pattern has bit 27"));

static_assert(sdma::well_formed<Bad>());
