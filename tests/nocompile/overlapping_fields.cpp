// SPDX-License-Identifier: MIT
// must not compile: a bit of this packet has two owners (two fields, or a field and the pattern)
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{}, b{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(2), "a test",
                                                          bits<&Bad::a>("a", 1, 0, 7, "8 bits"),
                                                          bits<&Bad::b>("b", 1, 7, 14, "8 more, one of them taken"));

static_assert(sdma::well_formed<Bad>());
