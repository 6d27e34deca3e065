// SPDX-License-Identifier: MIT
// Compiles: what the others do wrong, done right. Were this refused, their refusals would say nothing.
#include "packets/unambiguous.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/packets/registry.hpp"

namespace {
struct Good {
  std::uint8_t low{};
  std::uint16_t high{};
  std::span<const std::uint32_t> more{};
};
sdma::Result<int> half(int n) { return n % 2 ? sdma::Result<int>(sdma::Errc::bad_argument) : sdma::Result<int>(n / 2); }
void place(sdma::GpuId, sdma::EngineId) {}
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Good> = packet("good", op(99, 0), dwords(2, "more"), "a test",
                                                           bits<&Good::low>("low", 0, 16, 23, "8 bits"),
                                                           bits<&Good::high>("high", 1, 0, 15, "16 bits"),
                                                           payload<&Good::more>("more", 1, 16, 31, "what follows"));

int main() {
  static_assert(sdma::well_formed<Good>());
  static_assert(sdma::detail::unambiguous(std::array{sdma::packet_info<Good>, sdma::packet_info<sdma::Fence>}));
  const sdma::CopyLinear copy{.src = sdma::GpuVa{0x1000}, .dst = sdma::GpuVa{0x2000}, .bytes = 64};
  std::array<std::uint32_t, 8> out{};
  sdma::encode_to(Good{.low = 1}, out.data());
  place(sdma::GpuId{0}, sdma::EngineId{14});
  return half(2) && fits(copy) ? 0 : 1;
}
