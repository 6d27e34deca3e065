// SPDX-License-Identifier: MIT
// Rounds published ahead and triggered, many of them; many collectives at once; several threads on one node.
#include "support.hpp"

#include <thread>

namespace collectives::test {
namespace {

constexpr Options kSmall{.collective = Collective::all_gather,
                         .variant = Variant::b2b,
                         .prelaunch = Prelaunch::shared,
                         .gpus = 2,
                         .bytes = 128};

}  // namespace

TEST_CASE("10,000 triggers, with rounds published ahead") {
  const auto d = node();
  auto r = prepared(planned(kSmall), *d);
  r.fill(1);
  REQUIRE(r.refill(soon(), 7));
  for (int i = 1; i <= 10000; ++i) {
    REQUIRE(r.start(soon()));
    REQUIRE(r.wait(soon()));
    if (i % 8 == 0) REQUIRE(r.refill(soon(), 8));
    if (i % 1000 != 0) continue;
    CHECK(r.check().first == "");
    r.fill(static_cast<std::uint64_t>(i));
  }
  CHECK(r.round() == 10000);
  CHECK(r.bound().value(find_symbol(r.plan().schedule, r.plan().completions[0])->index) == 20000);
}

TEST_CASE("many rounds through the smallest ring wrap it, in every ordering") {
  for (const auto order : kOrderings)
    for (const auto prelaunch : kPrelaunches) {
      const auto d = node(order, 3);
      Options o{.collective = Collective::all_to_all,
                .variant = Variant::swap,
                .prelaunch = prelaunch,
                .completion = Completion::two_fences,
                .gpus = 3,
                .bytes = 1000,
                .ring_bytes = 1024};
      auto r = prepared(planned(o), *d);
      CHECK(rounds(r, 50) == "");
      CHECK(r.bound().ring(0).positions().committed > 2 * 1024);
    }
}

TEST_CASE("more packets than half a ring go in pieces") {
  const auto d = node();
  auto r = prepared(
      planned({.variant = Variant::b2b, .gpus = 2, .bytes = 16384, .packet_bytes = 64, .ring_bytes = 1024}), *d);
  CHECK(r.plan().counts[0].data == 128);
  CHECK(rounds(r, 3) == "");
  const auto ahead = Run::prepare(planned({.variant = Variant::b2b,
                                           .prelaunch = Prelaunch::shared,
                                           .gpus = 2,
                                           .bytes = 16384,
                                           .packet_bytes = 64,
                                           .ring_bytes = 1024}),
                                  *d);
  REQUIRE_FALSE(ahead);
  CHECK(ahead.error()[0].message.find("cannot be published ahead in a ring of 1024") != std::string::npos);
}

TEST_CASE("an epoch that polls cannot hold is refused, and a restart begins again") {
  const auto d = node();
  auto r = prepared(planned(kSmall), *d);
  REQUIRE(r.once(soon()));
  for (std::size_t q = 0; q < 2; ++q) r.bound().set_epoch(q, 0xfffffffe);
  REQUIRE(r.refill(soon()));
  const auto e = r.refill(soon());
  REQUIRE_FALSE(e);
  CHECK(e.error().hint == "restart");
  // What stands at its poll keeps a restart waiting.
  CHECK_FALSE(r.restart(Deadline::in(5ms)));
  r.bound().set(find_symbol(r.plan().schedule, r.plan().triggers[0])->index, 0xffffffff);
  REQUIRE(r.restart(soon()));
  CHECK(r.round() == 0);
  CHECK(rounds(r, 3) == "");
}

TEST_CASE("many collectives in flight, on engines of their own") {
  for (const auto order : kOrderings) {
    const auto d = node(order, 2);
    std::vector<Run> all;
    for (std::uint32_t e = 0; e < 5; ++e) {
      Options o{
          .collective = kCollectives[e], .variant = Variant::b2b, .gpus = 3, .bytes = 6000 + e, .engines = {2 + e}};
      if (e % 2 != 0) o.prelaunch = Prelaunch::shared;
      all.push_back(prepared(planned(o), *d, {.gpus = {GpuId{e}, GpuId{7}, GpuId{e + 1}}}));
    }
    for (std::uint64_t round = 0; round < 5; ++round) {
      for (auto& r : all) {
        r.fill(round);
        REQUIRE(r.start(soon()));
      }
      for (auto& r : all) {
        REQUIRE(r.wait(soon()));
        CHECK(r.check().first == "");
        REQUIRE(r.refill(soon()));
      }
    }
  }
}

TEST_CASE("two host threads drive one node, on engines of their own and on the same ones") {
  for (const bool same : {false, true}) {
    const auto d = node();
    std::string wrong[2];
    std::vector<Run> all;
    for (std::uint32_t i = 0; i < 2; ++i)
      all.push_back(prepared(planned({.collective = i == 0 ? Collective::all_gather : Collective::all_to_all,
                                      .variant = Variant::b2b,
                                      .gpus = 4,
                                      .bytes = 5000,
                                      .engines = {same ? 2 : 2 + i}}),
                             *d));
    std::thread other([&] { wrong[1] = rounds(all[1], 50, 100); });
    wrong[0] = rounds(all[0], 50);
    other.join();
    CHECK(wrong[0] == "");
    CHECK(wrong[1] == "");
  }
}

TEST_CASE("any subset of a node") {
  const auto d = node(Ordering::rocr, 4);
  for (const auto& gpus : {std::vector{GpuId{7}, GpuId{0}}, std::vector{GpuId{3}, GpuId{1}, GpuId{6}},
                           std::vector{GpuId{5}, GpuId{4}, GpuId{2}, GpuId{0}, GpuId{7}}})
    for (const auto v : {Variant::pcpy, Variant::bcst, Variant::b2b}) {
      auto r = prepared(planned({.variant = v, .gpus = static_cast<std::uint32_t>(gpus.size()), .bytes = 777}), *d,
                        {.gpus = gpus});
      CHECK(r.bound().queue(0).gpu() == gpus[0]);
      CHECK(rounds(r, 2) == "");
    }
}

}  // namespace collectives::test
