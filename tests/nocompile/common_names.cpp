// SPDX-License-Identifier: MIT
// Compiles: a program that says `using namespace sdma` and has names of its own that the layout language also uses.
#include "sdma/packets/registry.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/writer.hpp"

#include <tuple>

using namespace sdma;

namespace {
int dwords = 1, bits = 2, rule = 3, names = 4, op = 5, packet = 6, payload = 7, info = 8, layout = 9;
int addr64 = 10, minus_one = 11, kernel_only = 12;
struct Field {};
struct Rule {};
struct Layout {};
struct Length {};

struct Mine {
  std::uint32_t value{};
};
}  // namespace
template <>
inline constexpr auto sdma::grammar::layout<Mine> = packet("mine", op(99, 0), dwords(2), "a packet of a client",
                                                           bits<&Mine::value>("value", 1, 0, 31, "stored"));
static_assert(well_formed<Mine>());

int main() {
  [[maybe_unused]] const std::tuple<Field, Rule, Layout, Length> mine{};
  dwords += bits + rule + names + op + packet + payload + info + layout + addr64 + minus_one + kernel_only;
  const auto words = encode(Mine{.value = 7});
  return dwords == 78 && words[1] == 7 ? 0 : 1;
}
