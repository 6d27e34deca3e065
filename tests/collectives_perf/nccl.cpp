// SPDX-License-Identifier: MIT
// NCCL's contenders alone, on the libraries that stand in.
#include "perf/companions.hpp"
#include "sdma/device/open.hpp"
#include "support.hpp"

#include <cstdlib>

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using namespace std::chrono_literals;

TEST_CASE("after an error of NCCL, no stream waits any more") {
  auto s = test::settings("-b 4K -e 8K -g 2 --device=cuda --timeout=2s --against=nccl");
  auto device = open_device(DeviceKind::cuda);
  if (!device) FAIL(to_string(device.error()));
  Watchdog dog;
  auto nccl = Nccl::open(**device, s, dog);
  if (!nccl) FAIL(to_string(nccl.error()));
  CHECK(nccl->version == "NCCL 2.28.9");
  const auto& way = s.rivals.front();
  // Three collectives of two ranks; the next one fails.
  ::setenv("SDMA_STAND_IN_NCCL_FAIL", "7", 1);
  auto c = nccl->prepare(way, options_of(s, way, 4096));
  if (!c) FAIL(to_string(c.error()));
  REQUIRE((*c)->fill(1));
  const auto armed = (*c)->arm(Deadline::in(2s));
  REQUIRE_FALSE(armed);
  CHECK(armed.error().message.find("unhandled system error") != std::string::npos);
  // The first collective of a size blocks while a stream waits.
  CHECK(nccl->prepare(way, options_of(s, way, 8192)));
  // A round that is not started ends at its deadline.
  c = nccl->prepare(way, options_of(s, way, 4096));
  REQUIRE(c);
  REQUIRE((*c)->arm(Deadline::in(2s)));
  CHECK_FALSE((*c)->wait(Deadline::in(50ms)));
  REQUIRE((*c)->start(Deadline::in(2s)));
  CHECK((*c)->wait(Deadline::in(2s)));
}
