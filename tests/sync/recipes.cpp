// SPDX-License-Identifier: MIT
#include "sdma/sync/recipes.hpp"

#include "support/catch.hpp"

#include <array>
#include <vector>

using namespace sdma;

namespace {

constexpr GpuVa kWord{0x7f1122334010};
using Dwords = std::vector<std::uint32_t>;

/// What a recipe writes; with one dword less of room it must write nothing and say no_space.
template <class Recipe> Dwords written(std::size_t dwords, Recipe recipe) {
  std::vector<std::uint32_t> room(dwords, 0xdeadbeef);
  Writer w{room};
  REQUIRE(recipe(w) == Errc::ok);
  const Dwords out(w.written().begin(), w.written().end());

  std::vector<std::uint32_t> less(dwords - 1, 0xdeadbeef);
  Writer tight{less};
  CHECK(recipe(tight) == Errc::no_space);
  CHECK(tight.written().empty());
  CHECK(less == Dwords(dwords - 1, 0xdeadbeef));
  return out;
}
template <class Recipe> void refused(Recipe recipe) {
  std::vector<std::uint32_t> room(64, 0xdeadbeef);
  Writer w{room};
  CHECK(recipe(w) == Errc::bad_packet);
  CHECK(w.written().empty());
  CHECK(room == Dwords(64, 0xdeadbeef));
}

}  // namespace

TEST_CASE("an atomic takes one away from 64 bits") {
  CHECK(written(dwords_of<Atomic>(), [](Writer& w) { return complete_with_atomic(w, kWord); }) ==
        Dwords{0x5e00000a, 0x22334010, 0x7f11, 0xffffffff, 0xffffffff, 0, 0, 0});
  CHECK(written(dwords_of<Atomic>(), [](Writer& w) { return complete_with_atomic(w, kWord, 1); }) ==
        Dwords{0x5e00000a, 0x22334010, 0x7f11, 1, 0, 0, 0, 0});
  refused([](Writer& w) { return complete_with_atomic(w, kWord + 4); });
}

TEST_CASE("a fence stores an epoch") {
  CHECK(written(dwords_of<Fence>(), [](Writer& w) { return complete_with_fence(w, kWord, 5); }) ==
        Dwords{5, 0x22334010, 0x7f11, 5});
  refused([](Writer& w) { return complete_with_fence(w, kWord + 2, 5); });
}

TEST_CASE("two fences store 64 bits, high then low") {
  const auto d = written(dwords_of<Fence, Fence>(),
                         [](Writer& w) { return complete_with_two_fences(w, kWord, 0x1111111122222222); });
  CHECK(d == Dwords{5, 0x22334014, 0x7f11, 0x11111111, 5, 0x22334010, 0x7f11, 0x22222222});
  refused([](Writer& w) { return complete_with_two_fences(w, kWord + 4, 1); });
}

TEST_CASE("an interrupt fills its mailbox first") {
  const auto d =
      written(dwords_of<Fence, Trap>(), [](Writer& w) { return interrupt(w, {.slot = kWord, .event = 0x123}); });
  CHECK(d == Dwords{5, 0x22334010, 0x7f11, 0x123, 6, 0x123});
  // 28 bits of event: the fence alone would have fitted, and must not be written.
  refused([](Writer& w) { return interrupt(w, {.slot = kWord, .event = 0x10000000}); });
}

TEST_CASE("acquires hold the queue") {
  CHECK(written(dwords_of<PollMem>(), [](Writer& w) { return acquire(w, kWord, 9); }) ==
        Dwords{0xd0000008, 0x22334010, 0x7f11, 9, 0xffffffff, 0x0fff0004});
  CHECK(written(dwords_of<PollMem>(), [](Writer& w) { return acquire_equal(w, kWord, 9); }) ==
        Dwords{0xb0000008, 0x22334010, 0x7f11, 9, 0xffffffff, 0x0fff0004});
  refused([](Writer& w) { return acquire(w, kWord + 1, 9); });
  refused([](Writer& w) { return acquire_equal(w, kWord + 2, 9); });
}

TEST_CASE("zero of 64 bits is polled high, then low") {
  CHECK(written(dwords_of<PollMem, PollMem>(), [](Writer& w) { return acquire_zero(w, kWord); }) ==
        Dwords{0xb0000008, 0x22334014, 0x7f11, 0, 0xffffffff, 0x0fff0004,  //
               0xb0000008, 0x22334010, 0x7f11, 0, 0xffffffff, 0x0fff0004});
  refused([](Writer& w) { return acquire_zero(w, kWord + 4); });
}

TEST_CASE("a full barrier waits for its own fence") {
  CHECK(written(dwords_of<Fence, PollMem>(), [](Writer& w) { return full_barrier(w, kWord, 0x80000001); }) ==
        Dwords{5, 0x22334010, 0x7f11, 0x80000001,  //
               0xb0000008, 0x22334010, 0x7f11, 0x80000001, 0xffffffff, 0x0fff0004});
  refused([](Writer& w) { return full_barrier(w, kWord + 2, 1); });
}

TEST_CASE("several packets are all or none, whichever of them is bad") {
  refused([](Writer& w) { return put_all(w, Fence{.addr = kWord}, Fence{.addr = kWord + 1}, Trap{}); });
  const auto d = written(6, [](Writer& w) { return put_all(w, Trap{1}, Fence{.addr = kWord, .value = 2}); });
  CHECK(d == Dwords{6, 1, 5, 0x22334010, 0x7f11, 2});
}

TEST_CASE("recipes are constant expressions") {
  constexpr auto dwords = [] {
    std::array<std::uint32_t, dwords_of<Fence, PollMem>()> out{};
    Writer w{out};
    static_cast<void>(full_barrier(w, kWord, 7));
    return out;
  }();
  static_assert(dwords[3] == 7 && dwords[7] == 7);
}
