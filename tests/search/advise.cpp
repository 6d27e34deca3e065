// SPDX-License-Identifier: MIT
// The rule for an all-gather beside a product: its estimates are near what the simulation says, and its errors name
// what is wrong.
#include "sdma/search/advise.hpp"
#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;

namespace {

const std::string kText = std::string(SDMA_SOURCE_ROOT) + "/share/sdma/overlap/all_gather_gemm.sdma";

double simulated(const OverlapAdvice& a, const OverlapEstimate& v, const MachineDescription& m) {
  ParseOptions o;
  for (const auto& [name, value] : a.settings) o.set.push_back({name, value});
  o.set.push_back({"way", std::to_string(static_cast<unsigned>(v.way))});
  o.set.push_back({"pieces", std::to_string(v.pieces)});
  const auto text = read_file(kText);
  REQUIRE(text);
  const auto s = parse_schedule(*text, kText, o);
  REQUIRE(s);
  const auto t = simulate(*s, m);
  REQUIRE(t);
  return t->ns;
}

std::string why(const GemmShape& shape, const MachineDescription& m) {
  const auto a = advise(shape, mi300x_gemm_times(), m);
  REQUIRE(!a);
  return a.error().message;
}

}  // namespace

TEST_CASE("each estimate is near its simulation") {
  const std::pair<const char*, std::size_t> layouts[] = {
      {"mesh:2", 14}, {"mesh:8", 16}, {"ring:5", 16}, {"ring:8", 16}, {"switch:4x800G", 15}};
  for (const auto& [layout, variants] : layouts) {
    const auto m = *layout_machine(layout);
    const auto a = advise({.m = 256 * m.topology.gpus.size(), .n = 2048, .k = 4096}, mi300x_gemm_times(), m);
    REQUIRE(a);
    CHECK(a->variants.size() == variants);
    for (const auto& v : a->variants) {
      CAPTURE(layout, name(v.way), v.pieces);
      CHECK(v.ns == Approx(simulated(*a, v, m)).epsilon(0.1));
      CHECK(v.ns >= a->pick().ns);
    }
  }
}

TEST_CASE("large products take pieces, and small ones take none") {
  auto m = *layout_machine("mesh:8");
  const auto large = advise({.m = 8192, .n = 8192, .k = 8192}, mi300x_gemm_times(), m);
  CHECK(large->pick().pieces > 1);
  CHECK(advise({.m = 512, .n = 512, .k = 512}, mi300x_gemm_times(), m)->pick().pieces == 1);
  REQUIRE(m.set("engine.bytes_per_ns", 1e5) == Errc::ok);
  REQUIRE(m.set("xgmi.rate", 1e5) == Errc::ok);
  const auto fast = advise({.m = 8192, .n = 8192, .k = 8192}, mi300x_gemm_times(), m);
  CHECK(fast->gather_ns < large->gather_ns / 10);
  CHECK(fast->product_ns == large->product_ns);
}

TEST_CASE("what the rule does not know is an error") {
  CHECK(why({.m = 8192, .n = 4096, .k = 4096}, *layout_machine("mesh:16")) ==
        "the rule is for 2 to 8 GPUs, and the machine has 16");
  CHECK(why({.m = 8190, .n = 4096, .k = 4096}, *layout_machine("mesh:8")) == "8190 rows are not equal parts of 8 GPUs");
  CHECK(why({.m = 256, .n = 4096, .k = 4096}, *layout_machine("mesh:8")) ==
        "the part of one GPU, 32x4096x4096, is below the table of products, which begins at 64x512x512");
  CHECK(why({.m = 8192, .n = 4096, .k = 4096}, *layout_machine("nodes:2x4")).find("the rule is for one node") == 0);
}
