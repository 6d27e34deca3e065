// SPDX-License-Identifier: MIT
// must not compile: a bit of this packet has two owners (two fields, or a field and the pattern)
#include "sdma/packets/encode.hpp"

namespace {
struct Bad {
  sdma::GpuVa a{};
  std::uint32_t b{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Bad> = packet("bad", op(99, 0), dwords(3), "a test",
                                                          addr64<&Bad::a>("a", 1, "dwords 1 and 2"),
                                                          bits<&Bad::b>("b", 2, 31, 31, "the last bit of dword 2"));

static_assert(sdma::well_formed<Bad>());
