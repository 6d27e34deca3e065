// SPDX-License-Identifier: MIT
// must not compile: two packets claim the same dwords
#include "packets/unambiguous.hpp"
#include "sdma/packets/registry.hpp"

namespace {
struct Rival {
  std::uint32_t value{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Rival> = packet("rival", op(5), dwords(4), "any packet of a fence's op",
                                                            bits<&Rival::value>("value", 3, 0, 31, "stored"));

template <class... P> constexpr bool kAlone = sdma::detail::unambiguous(std::array{sdma::packet_info<P>...});
static_assert(kAlone<sdma::Fence, sdma::Trap>);
static_assert(kAlone<Rival, sdma::Fence>, "two packets claim the same dwords");
