// SPDX-License-Identifier: MIT
// share/machines/mi300x.json is what `sdma calibrate --from share/published/dma-latte.csv` writes, and for kernels what
// rccl-mi300x.csv gives.
#include "sdma/simulate/measurements.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <string>

using namespace sdma;

namespace {

/// How many parameters the table gives, each of which is that of the shipped machine.
std::size_t given(const std::string& table) {
  auto m = read_measurements(SDMA_SOURCE_ROOT "/share/published/" + table);
  REQUIRE(m);
  const auto shipped = *mi300x_machine();
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
  return m->options.free.size();
}

}  // namespace

TEST_CASE("the fits to the published tables give the machine that is shipped") {
  const auto shipped = *mi300x_machine();
  const auto fitted = std::count_if(shipped.parameters.begin(), shipped.parameters.end(),
                                    [](const Parameter& p) { return p.fitted(); });
  CHECK(given("dma-latte.csv") + given("rccl-mi300x.csv") == static_cast<std::size_t>(fitted));
}
