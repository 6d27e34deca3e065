// SPDX-License-Identifier: MIT
// Schedules that are made from a topology: proved, right in every byte, and near the bound.
#include "sdma/search/synthesize.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;

namespace {

Synthesis made(Synthesized c, const MachineDescription& m, std::uint64_t bytes) {
  auto r = synthesize({.collective = c, .bytes = bytes}, m);
  for (const auto& e : r ? std::vector<Diagnostic>{} : r.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(r);
  return *std::move(r);
}

}  // namespace

TEST_CASE("what is made is proved, moves the right bytes, and is read again from its text") {
  for (const auto* layout : {"mesh:4", "ring:4", "switch:4", "nodes:2x2"})
    for (const auto c : kSynthesized)
      for (const std::uint64_t bytes : {100u, 60'000u}) {
        CAPTURE(layout, name(c), bytes);
        const auto m = *layout_machine(layout);
        const auto r = made(c, m, bytes);
        CHECK(check(r.schedule, {.topology = &m.topology}).proved());
        const auto t = simulate(r.schedule, m, {.contents = true, .seed = 3});
        REQUIRE(t);
        CHECK(t->findings.empty());
        CHECK(r.ns >= r.bound.ns);
        const auto again = parse_schedule(to_text(r.schedule), "again.sdma");
        REQUIRE(again);
        CHECK(*again == r.schedule);
      }
}

// The table of docs/explore.md, which synthesized.py makes again, has seven other nodes.
TEST_CASE("large collectives come near the bound") {
  for (const auto c : kSynthesized) {
    CAPTURE(name(c));
    const auto r = made(c, *layout_machine("mesh:4"), std::uint64_t{64} << 20);
    CHECK(r.ns / r.bound.ns < 1.1);
  }
}

TEST_CASE("bytes go around a link that is missing") {
  auto m = *layout_machine("mesh:4");
  std::erase_if(m.topology.links, [](const Link& l) {
    return (l.from == LinkEnd::gpu(0) && l.to == LinkEnd::gpu(1)) ||
           (l.from == LinkEnd::gpu(1) && l.to == LinkEnd::gpu(0));
  });
  const auto r = made(Synthesized::all_gather, m, std::uint64_t{64} << 20);
  CHECK(r.ns / r.bound.ns < 1.1);
  CHECK(r.bound.rate == Approx(2 * 64 * m[Cost::xgmi_efficiency]));
}

TEST_CASE("a rival that is faster is the result, and one that is wrong is not") {
  const auto m = *layout_machine("mesh:2");
  const auto r = made(Synthesized::all_gather, m, 4096);
  auto wrong = r.schedule;
  wrong.hosts.front().actions.pop_back();
  auto o = SynthesizeOptions{.collective = Synthesized::all_gather, .bytes = 4096};
  o.others = {{"wrong", wrong}, {"same", r.schedule}};
  const auto again = synthesize(o, m);
  REQUIRE(again);
  CHECK(again->rival);
  CHECK(again->how == "same");
  CHECK(again->best_other == "same");
  CHECK(again->ns == r.ns);
}

TEST_CASE("the error names a GPU that cannot be reached") {
  auto m = *layout_machine("mesh:3");
  std::erase_if(m.topology.links,
                [](const Link& l) { return l.to == LinkEnd::gpu(2) && l.from.kind == LinkEnd::Kind::gpu; });
  const auto r = synthesize({.collective = Synthesized::broadcast, .bytes = 4096}, m);
  REQUIRE(!r);
  CHECK(r.error().front().message.find("gpu2 cannot be reached from gpu0") != std::string::npos);
}
