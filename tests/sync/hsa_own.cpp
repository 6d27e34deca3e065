// SPDX-License-Identifier: MIT
#include "hsa_checks.hpp"

#include <hsa/amd_hsa_signal.h>

#include <cstddef>

using namespace sdma;
using namespace test;

TEST_CASE("ROCr's own signal") {
  static_assert(offsetof(amd_signal_t, start_ts) % 8 == 0 && offsetof(amd_signal_t, end_ts) % 8 == 0);
  static_assert(offsetof(amd_signal_t, value) == offsetof(Signal64, value));
  amd_signal_t s{};
  CHECK(hsa::value_va(s) == test::va(s.value));
  checks(s);
}
