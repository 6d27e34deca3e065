// SPDX-License-Identifier: MIT
// must not compile: two fields of this packet have one name
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{}, b{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(2), "a test",
                                                          bits<&Bad::a>("a", 1, 0, 7, "8 bits"),
                                                          bits<&Bad::b>("a", 1, 8, 15, "8 more"));

static_assert(sdma::well_formed<Bad>());
