// SPDX-License-Identifier: MIT
// must not compile: a field of this packet is wider than its member
// (a bool holds one bit, a value stored minus one needs one more)
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(2), "a test",
                                                          bits<&Bad::a>("a", 1, 0, 8, "9 bits"));

static_assert(sdma::well_formed<Bad>());
