// SPDX-License-Identifier: MIT
// must not compile: a field or the pattern of this packet leaves the packet's fixed dwords
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0).is(1, 0, 31, 0), dwords(1), "a test",
                                                          bits<&Bad::a>("a", 0, 16, 23, "8 bits"));

static_assert(sdma::well_formed<Bad>());
