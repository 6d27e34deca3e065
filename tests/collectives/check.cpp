// SPDX-License-Identifier: MIT
// The race checker has nothing to say against any collective.
#include "sdma/check/check.hpp"
#include "support.hpp"

namespace collectives::test {

TEST_CASE("no collective has a race, a deadlock or a missing wait") {
  for (const auto c : kCollectives)
    for (const auto v : kVariants)
      for (const auto p : kPrelaunches) {
        if (!has_variant(c, v)) continue;
        for (const std::uint32_t n : {3u, 8u})
          for (const std::uint64_t epochs : {1u, 3u}) {
            Options o{.collective = c, .variant = v, .prelaunch = p, .gpus = n, .bytes = 10007, .epochs = epochs};
            o.completion = kCompletions[(n + epochs) % 3];
            if (epochs == 3) o.offsets = {0, 4, 32};
            INFO(describe(o));
            const auto plan = planned(o);
            for (const auto& f : sdma::check(plan.schedule).findings) FAIL_CHECK(to_string(f.diagnostic));
          }
      }
}

}  // namespace collectives::test
