// SPDX-License-Identifier: MIT
// share/machines/mi300x.json is what `sdma calibrate --from share/published/dma-latte.csv` writes.
#include "sdma/simulate/measurements.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace sdma;

TEST_CASE("the fit to the published tables gives the machine that is shipped") {
  auto m = read_measurements(SDMA_SOURCE_ROOT "/share/published/dma-latte.csv");
  REQUIRE(m);
  const auto shipped = *mi300x_machine();
  std::size_t fitted = 0;
  for (const auto& p : shipped.parameters) fitted += p.fitted();
  CHECK(fitted == m->options.free.size());
  // Nothing of the earlier fit may help.
  auto start = shipped;
  for (const auto& p : m->options.free) start.parameter(p.cost) = {1, 0, "not known"};
  const auto f = fit(m->observations, m->from(start), m->options);
  REQUIRE(f);
  CHECK(f->end == Fit::End::converged);
  const auto machine = rounded(*f, m->options);
  for (const auto& free : m->options.free) {
    const auto &now = machine.parameter(free.cost), &then = shipped.parameter(free.cost);
    INFO(name(free.cost) << ": " << now.value << " +- " << now.uncertainty << ", shipped " << then.value << " +- "
                         << then.uncertainty);
    // More than the last digit: other compilers may round the sums of the fit differently.
    CHECK(std::abs(now.value - then.value) <= 0.01 * then.value);
    CHECK(std::abs(now.uncertainty - then.uncertainty) <= 0.1 * then.uncertainty);
    CHECK(now.source == then.source);
  }
}
