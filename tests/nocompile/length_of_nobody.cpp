// SPDX-License-Identifier: MIT
// must not compile: this packet's length is counted by a field that it does not have
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint8_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(2, "words"), "a test",
                                                          bits<&Bad::a>("a", 1, 0, 7, "8 bits"));

static_assert(sdma::well_formed<Bad>());
