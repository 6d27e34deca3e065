// SPDX-License-Identifier: MIT
// Strong types: what they allow; what they refuse is in tests/nocompile.
#include "sdma/core/units.hpp"

#include <type_traits>

#include "support/catch.hpp"

using namespace sdma;

namespace {

TEST_CASE("an address counts bytes") {
  constexpr GpuVa a{0x7f1122334000};
  STATIC_REQUIRE((a + 4096).value == 0x7f1122335000);
  STATIC_REQUIRE((a + 4096) - a == 4096);
  STATIC_REQUIRE(GpuVa{}.value == 0);
  STATIC_REQUIRE(a < a + 1);
  STATIC_REQUIRE(a == GpuVa{0x7f1122334000});
}

TEST_CASE("addresses are 64 bits and wrap as integers do") {
  STATIC_REQUIRE((GpuVa{~0ull} + 1).value == 0);
  STATIC_REQUIRE(GpuVa{0} - GpuVa{1} == ~0ull);
  STATIC_REQUIRE(GpuVa{~0ull} > GpuVa{0});
}

TEST_CASE("the address of a host pointer") {
  const std::uint64_t word[2]{};
  CHECK(GpuVa::of(&word[1]) - GpuVa::of(word) == 8);
  CHECK(GpuVa::of(word).value == reinterpret_cast<std::uintptr_t>(word));
  CHECK(GpuVa::of(static_cast<const volatile void*>(nullptr)) == GpuVa{});
}

TEST_CASE("an integer is no address, a GPU is no engine") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<std::uint64_t, GpuVa>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<GpuVa, std::uint64_t>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, GpuId>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<EngineId, GpuId>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<GpuId, EngineId>);
  STATIC_REQUIRE(sizeof(GpuVa) == 8);
  STATIC_REQUIRE(std::is_trivially_copyable_v<GpuVa>);
  STATIC_REQUIRE(GpuId{1} < GpuId{2});
  STATIC_REQUIRE(EngineId{14} == EngineId{14});
}

}  // namespace
