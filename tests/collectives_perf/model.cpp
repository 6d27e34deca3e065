// SPDX-License-Identifier: MIT
#include "perf/modelled.hpp"

#include "support.hpp"

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using test::point;
using test::settings;

namespace {

const MachineDescription& machine() {
  static const auto m = *mi300x_machine();
  return m;
}
constexpr auto kAlways = [](std::size_t, std::size_t) { return true; };

TableRow line(std::uint32_t least, std::uint32_t most, std::uint64_t up_to, Variant v, bool prelaunch = true) {
  return {.least_gpus = least, .most_gpus = most, .prelaunch = prelaunch, .up_to = up_to, .variant = v};
}
bool same(const Table& a, const Table& b) { return to_text(a, "") == to_text(b, ""); }

}  // namespace

TEST_CASE("a point out of the simulator has times and bandwidths, and nobody verified it") {
  const auto s = settings("-g 4 --device=simulate");
  const auto p = modelled(s, default_table(), machine(), {Variant::b2b, true}, 4 << 20);
  REQUIRE(p);
  CHECK(p->us.mean > 0);
  CHECK(p->busbw == Approx((4 << 20) / p->us.mean / 1e3 * 3 / 4));
  CHECK_FALSE(p->wrong);
  // One engine sustains one link's rate: three links at once are faster at large sizes.
  const auto all = modelled(s, default_table(), machine(), {Variant::pcpy, true}, 4 << 20);
  REQUIRE(all);
  CHECK(all->us.mean < p->us.mean);
}

TEST_CASE("what the machine does not have is an error with size and way") {
  const auto small = *mi300x_machine(2);
  const auto p = modelled(settings("-g 3"), {}, small, {Variant::pcpy, false}, 64);
  REQUIRE_FALSE(p);
  CHECK(p.error().front().where.starts_with("pcpy, 64"));
}

TEST_CASE("rows of a sweep end where another variant is better, without ties; the last has no end") {
  const Way pcpy{Variant::pcpy, true}, b2b{Variant::b2b, true};
  const Options o{.gpus = 5};
  const auto rows = rows_of(o, std::vector{point(1024, pcpy, 2), point(1024, b2b, 1), point(2048, pcpy, 2),
                                           point(2048, b2b, 1.9), point(4096, pcpy, 1.99), point(4096, b2b, 2)});
  CHECK(same(rows, {line(5, 5, 2048, Variant::b2b), line(5, 5, ~std::uint64_t{0}, Variant::pcpy)}));
}

TEST_CASE(
    "a sweep has rows with and without prelaunch; rivals, files, auto and what is in place do not count, nor does "
    "noise") {
  const Way ring{.rival = Rival::nccl}, chosen{Variant::automatic, false}, swap{Variant::swap, true};
  const Way pcpy{Variant::pcpy, true}, b2b{Variant::b2b, true}, slow{Variant::b2b, false};
  const Options o{.collective = Collective::all_to_all, .gpus = 4};
  const auto rows = rows_of_sweep(
      o, std::vector{point(1024, b2b, 1), point(1024, pcpy, 2), point(1024, ring, .1), point(1024, chosen, .1),
                     point(1024, swap, .1), point(2048, b2b, 1), point(2048, pcpy, .98), point(2048, slow, 3),
                     point(4096, pcpy, 1), point(4096, b2b, 2)});
  auto with = std::vector{line(4, 4, 2048, Variant::b2b), line(4, 4, ~std::uint64_t{0}, Variant::pcpy),
                          line(4, 4, ~std::uint64_t{0}, Variant::b2b, false)};
  for (auto& row : with) row.collective = Collective::all_to_all;
  CHECK(same(rows, with));
  CHECK(rows_of_sweep(o, std::vector{point(1024, ring, 1)}).empty());
}

TEST_CASE("numbers of GPUs that agree in all lines become one") {
  const Table three{line(2, 2, 10, Variant::b2b),         line(2, 2, 99, Variant::pcpy),  //
                    line(3, 3, 10, Variant::b2b),         line(3, 3, 99, Variant::pcpy),  //
                    line(4, 4, 10, Variant::bcst),        line(4, 4, 99, Variant::pcpy),  //
                    line(2, 2, 99, Variant::pcpy, false), line(3, 3, 99, Variant::pcpy, false)};
  CHECK(same(merged(three), {line(2, 3, 10, Variant::b2b), line(2, 3, 99, Variant::pcpy), line(4, 4, 10, Variant::bcst),
                             line(4, 4, 99, Variant::pcpy), line(2, 3, 99, Variant::pcpy, false)}));
  // One line is no end of two.
  const Table other{line(2, 2, 10, Variant::b2b), line(2, 2, 99, Variant::pcpy), line(3, 3, 99, Variant::pcpy)};
  CHECK(same(merged(other), other));
}

TEST_CASE("a tuned table is one that auto reads, for all collectives") {
  const auto s = settings("-b 4K -e 16M -f 64 -g 8 --tune");
  const auto table = tuned(machine(), s, kAlways);
  REQUIRE(table);
  const auto read = parse_table(to_text(*table, "simulated"), "tuned");
  if (!read) FAIL(to_string(read.error()));
  CHECK(same(*read, *table));
  for (const auto c : kCollectives)
    for (const auto prelaunch : {Prelaunch::off, Prelaunch::shared}) {
      const auto v = choose(*read, {.collective = c, .prelaunch = prelaunch, .gpus = 8, .bytes = 16 << 20});
      // At large sizes nothing beats an engine a link.
      CHECK(v == Variant::pcpy);
    }
  CHECK(choose(*read, {.collective = Collective::all_to_all, .gpus = 8, .bytes = 99, .in_place = true}) ==
        Variant::swap);
  const auto none = tuned(machine(), s, [](std::size_t, std::size_t) { return false; });
  REQUIRE(none);
  CHECK(none->empty());
}
