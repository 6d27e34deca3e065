// SPDX-License-Identifier: MIT
// must not compile: a field or the pattern of this packet leaves the packet's fixed dwords
#include "sdma/packets/info.hpp"

namespace {
struct Bad {
  std::uint32_t a{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(2), "a test",
                                                          bits<&Bad::a>("a", 2, 0, 31, "a third dword"));

static_assert(sdma::packet_info<Bad>.fixed == 2);
