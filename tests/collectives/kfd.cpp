// A selection on the kernel driver's device: of this machine, or of the software node under `sdma emulate`. Hidden: a run of it
// names its tag.
#include "collectives/open.hpp"
#include "support.hpp"

namespace collectives::test {

TEST_CASE("collectives through the kernel driver", "[.][kfd]") {
  const auto d = open_device("kfd");
  if (!d) FAIL(to_string(d.error()));
  const auto n = static_cast<std::uint32_t>((*d)->topology().gpus.size());
  REQUIRE(n >= 2);
  for (const auto c : kCollectives)
    for (const auto v : kVariants)
      for (const auto p : kPrelaunches) {
        if (!has_variant(c, v)) continue;
        const Options o{.collective = c, .variant = v, .prelaunch = p, .gpus = n, .bytes = 10007, .offsets = {0, 4}};
        INFO(describe(o));
        auto r = prepared(planned(o), **d);
        CHECK(rounds(r, 2) == "");
      }
}

}  // namespace collectives::test
