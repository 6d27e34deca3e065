// SPDX-License-Identifier: MIT
// must not compile: a field or the pattern of this packet leaves the packet's fixed dwords
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  std::uint64_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(3), "a test",
                                                          bits<&Bad::a>("a", 1, 8, 71, "dwords 1 to 3"));

static_assert(sdma::well_formed<Bad>());
