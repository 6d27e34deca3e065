// A selection on the kernel driver's device: of this machine, or of the software node under `sdma emulate`. Hidden: a run of it
// names its tag. It takes as many GPUs as the node has, up to 8.
#include "open.hpp"
#include "support.hpp"

namespace collectives::test {
namespace {

std::unique_ptr<Device> kfd() {
  auto d = example::open_device("kfd");
  if (!d) FAIL(to_string(d.error()));
  REQUIRE((*d)->topology().gpus.size() >= 2);
  return *std::move(d);
}

std::uint32_t gpus_of(const Device& d) {
  return std::min<std::uint32_t>(8, static_cast<std::uint32_t>(d.topology().gpus.size()));
}

void run_rounds(Device& d, const Options& o, unsigned n) {
  INFO(describe(o));
  auto r = prepared(planned(o), d);
  CHECK(rounds(r, n) == "");
}

}  // namespace

TEST_CASE("kfd: every collective and variant, submitted and prelaunched, of odd sizes", "[.][kfd]") {
  const auto d = kfd();
  std::size_t turn = 0;
  for (const auto c : kCollectives)
    for (const auto v : kVariants)
      for (const auto p : kPrelaunches) {
        if (!has_variant(c, v)) continue;
        ++turn;
        Options o{.collective = c, .variant = v, .prelaunch = p, .gpus = gpus_of(*d)};
        // The first takes several packets for a part, the last leaves GPUs without one.
        const std::uint64_t sizes[] = {10007, 65 * o.gpus + 1, 1};
        o.bytes = sizes[turn % std::size(sizes)];
        o.packet_bytes = 1024;
        if (turn % 2 == 0) o.offsets = {0, 4, 33};
        o.completion = kCompletions[turn / 2 % std::size(kCompletions)];
        o.root = static_cast<std::uint32_t>(turn % o.gpus);
        run_rounds(*d, o, 2);
      }
}

TEST_CASE("kfd: back to back on the engines that are named, a group each", "[.][kfd]") {
  const auto d = kfd();
  for (const auto& engines : {std::vector<std::uint32_t>{3}, {15, 2}, {0, 1, 9}}) {
    const Options o{.collective = Collective::all_to_all,
                    .variant = Variant::b2b,
                    .gpus = gpus_of(*d),
                    .bytes = 4001,
                    .peers_per_engine = 1,
                    .engines = engines};
    INFO(describe(o));
    auto r = prepared(planned(o), *d);
    const auto groups = r.plan().counts[0].doorbells;
    CHECK(groups == o.gpus - 1);
    for (std::uint32_t g = 0; g < groups; ++g)
      CHECK(r.bound().queue(g).engine() == EngineId{engines[g % engines.size()]});
    CHECK(rounds(r, 3) == "");
  }
}

TEST_CASE("kfd: many rounds wrap the smallest ring, some of them published ahead", "[.][kfd]") {
  const auto d = kfd();
  for (const auto p : {Prelaunch::off, Prelaunch::shared}) {
    const Options o{.collective = Collective::all_gather,
                    .variant = Variant::b2b,
                    .prelaunch = p,
                    .gpus = 2,
                    .bytes = 999,
                    .ring_bytes = 1024};
    INFO(describe(o));
    auto r = prepared(planned(o), *d);
    REQUIRE(r.refill(soon(), 3));
    CHECK(rounds(r, 60) == "");
    CHECK(r.bound().ring(0).positions().committed > 3 * 1024);
  }
}

TEST_CASE("kfd: any GPUs of the node, several collectives in flight", "[.][kfd]") {
  const auto d = kfd();
  const auto last = gpus_of(*d) - 1;
  std::vector<Run> all;
  for (const auto& gpus : {std::vector{GpuId{last}, GpuId{0}}, std::vector{GpuId{0}, GpuId{last}}})
    all.push_back(prepared(planned({.variant = Variant::pcpy, .gpus = 2, .bytes = 777}), *d, {.gpus = gpus}));
  CHECK(all[0].bound().queue(0).gpu() == GpuId{last});
  for (auto& r : all) r.fill(5);
  for (auto& r : all) REQUIRE(r.start(soon()));
  for (auto& r : all) {
    REQUIRE(r.wait(soon()));
    CHECK(r.check().first == "");
  }
}

}  // namespace collectives::test
