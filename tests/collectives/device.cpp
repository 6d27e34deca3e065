// SPDX-License-Identifier: MIT
// A selection on the device that SDMA_TEST_DEVICE names (default: kfd), of this machine or of what stands in for it.
// Hidden: a run of it names its tag. SDMA_TEST_GPUS: how many GPUs (default: those of the node, up to 8).
// SDMA_TEST_LIBHSA: the library of a device over ROCr (default: the machine's).
#include "sdma/device/open.hpp"
#include "sdma/device/rocr.hpp"
#include "support.hpp"

#include <cstdlib>

namespace collectives::test {
namespace {

std::uint32_t gpus_asked() {
  const char* text = std::getenv("SDMA_TEST_GPUS");
  return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 0;
}

std::unique_ptr<Device> device_under_test() {
  const char* text = std::getenv("SDMA_TEST_DEVICE");
  const auto kind = device_kind(text ? text : "kfd");
  REQUIRE(kind);
  if (const char* library = std::getenv("SDMA_TEST_LIBHSA")) {
    auto d = RocrDevice::open({.libhsa = library});
    if (!d) FAIL(to_string(d.error()));
    return *std::move(d);
  }
  auto d = open_device(*kind, {.gpus = gpus_asked()});
  if (!d) FAIL(to_string(d.error()));
  REQUIRE((*d)->topology().gpus.size() >= 2);
  return *std::move(d);
}

std::uint32_t gpus_of(const Device& d) {
  const auto asked = gpus_asked();
  return std::min<std::uint32_t>(asked != 0 ? asked : 8, static_cast<std::uint32_t>(d.topology().gpus.size()));
}

void run_rounds(Device& d, const Options& o, unsigned n) {
  INFO(describe(o));
  auto r = prepared(planned(o), d);
  CHECK(rounds(r, n) == "");
  // A queue of the CUDA device that is destroyed while it waits keeps a stream.
  while (r.ahead() != 0) {
    REQUIRE(r.start(soon()));
    REQUIRE(r.wait(soon()));
  }
}

}  // namespace

TEST_CASE("device: every collective and variant, submitted and prelaunched, of odd sizes", "[.][device]") {
  const auto d = device_under_test();
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

TEST_CASE("device: filled again after rounds at whose result nobody has looked", "[.][device]") {
  const auto d = device_under_test();
  for (const auto v : {Variant::swap, Variant::pcpy})
    for (const unsigned unseen : {1u, 2u}) {
      const Options o{.collective = Collective::all_to_all, .variant = v, .gpus = gpus_of(*d), .bytes = 64 << 10};
      INFO(describe(o) << ", rounds before: " << unseen);
      auto r = prepared(planned(o), *d);
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        r.fill(seed);
        for (unsigned i = 0; i < (seed == 1 ? unseen : 1); ++i) REQUIRE(r.once(soon()));
      }
      CHECK(r.check().first == "");
    }
}

TEST_CASE("device: back to back on the engines that are named, a group each", "[.][device]") {
  const auto d = device_under_test();
  for (auto engines : {std::vector<std::uint32_t>{3}, {15, 2}, {0, 1, 9}}) {
    // As many of the engines that the node has as the groups need.
    const auto& gpu = d->topology().gpus[0];
    for (auto& e : engines) e %= gpu.engines();
    while (engines.size() * gpu.queues_per_engine < gpus_of(*d) - 1)
      engines.push_back((engines.back() + 1) % gpu.engines());
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

TEST_CASE("device: many rounds wrap the smallest ring, some of them published ahead", "[.][device]") {
  const auto d = device_under_test();
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

TEST_CASE("device: any GPUs of the node, several collectives in flight", "[.][device]") {
  const auto d = device_under_test();
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
