// SPDX-License-Identifier: MIT
// Result: a value or a reason, for trivial types, rich ones, none at all, and types that only move.
#include "sdma/core/result.hpp"

#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace sdma;

namespace {

constexpr Result<int> half(int n) {
  if (n % 2 != 0) return Errc::bad_argument;
  return n / 2;
}
constexpr Result<void, Errc> even(int n) {
  if (n % 2 != 0) return Errc::bad_argument;
  return {};
}

TEST_CASE("trivial results are constant expressions") {
  STATIC_REQUIRE(half(8).has_value());
  STATIC_REQUIRE(half(8));
  STATIC_REQUIRE(*half(8) == 4);
  STATIC_REQUIRE_FALSE(half(7));
  STATIC_REQUIRE(half(7).error() == Errc::bad_argument);
  STATIC_REQUIRE(half(7).value_or(9) == 9);
  STATIC_REQUIRE(half(8).value_or(9) == 4);
  STATIC_REQUIRE(even(2));
  STATIC_REQUIRE_FALSE(even(3));
  STATIC_REQUIRE(even(3).error() == Errc::bad_argument);
}

TEST_CASE("trivial results stay trivial, so that registers hold them") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<Result<std::uint64_t>>);
  STATIC_REQUIRE(std::is_trivially_destructible_v<Result<std::uint64_t>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<Result<void, Errc>>);
  STATIC_REQUIRE(sizeof(Result<std::uint64_t>) == 16);
  STATIC_REQUIRE(sizeof(Result<void, Errc>) <= 2);
}

struct Point {
  int x, y;
};

TEST_CASE("a value is reached and changed in place") {
  Result<Point> r = Point{1, 2};
  REQUIRE(r);
  CHECK(r->x == 1);
  r->x = 7;
  (*r).y = 8;
  const auto& same = r;
  CHECK(same->x == 7);
  CHECK((*same).y == 8);
}

TEST_CASE("a result can be assigned over") {
  Result<Point> r = Errc::no_space;
  CHECK_FALSE(r);
  r = Point{3, 4};
  REQUIRE(r);
  CHECK(r->y == 4);
  r = Errc::timed_out;
  CHECK_FALSE(r.has_value());
  CHECK(r.error() == Errc::timed_out);
}

TEST_CASE("rich values and rich errors") {
  Result<std::string, std::vector<int>> good = std::string("long enough that it lies on the heap");
  REQUIRE(good);
  CHECK(good->size() == 36);
  auto copy = good;
  CHECK(*copy == *good);
  copy = std::vector{1, 2, 3};
  REQUIRE_FALSE(copy);
  CHECK(copy.error().size() == 3);
  const auto taken = std::move(copy).error();
  CHECK(taken == std::vector{1, 2, 3});
  CHECK(good.value_or("other").size() == 36);
  CHECK(Result<std::string>(Errc::stopped).value_or("other") == "other");
}

TEST_CASE("a value that only moves") {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(5);
  REQUIRE(r);
  CHECK(**r == 5);
  Result<std::unique_ptr<int>> moved = std::move(r);
  const std::unique_ptr<int> out = *std::move(moved);
  REQUIRE(out);
  CHECK(*out == 5);
  CHECK(*Result<std::unique_ptr<int>>(std::make_unique<int>(6)).value_or(nullptr) == 6);
  CHECK(*Result<std::unique_ptr<int>>(Errc::unmapped).value_or(std::make_unique<int>(7)) == 7);
}

/// Counts its living objects: a result must end the life of what it holds, once.
struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  Counted(const Counted&) noexcept { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
};

TEST_CASE("what a result holds dies with it") {
  {
    Result<Counted> a = Counted{};
    Result<Counted> b = a;
    CHECK(Counted::alive == 2);
    b = Errc::stopped;
    CHECK(Counted::alive == 1);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("no value, and a rich reason") {
  const Result<void, std::string> good{};
  CHECK(good);
  const Result<void, std::string> bad{std::string("why")};
  REQUIRE_FALSE(bad);
  CHECK(bad.error() == "why");
}

TEST_CASE("every error has a sentence of its own") {
  std::vector<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(Errc::stopped); ++i) {
    const auto text = message(static_cast<Errc>(i));
    CHECK(text != "unknown error");
    for (const auto other : seen) CHECK(text != other);
    seen.push_back(text);
  }
  CHECK(message(static_cast<Errc>(200)) == "unknown error");
}

}  // namespace
