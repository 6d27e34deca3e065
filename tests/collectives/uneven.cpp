// SPDX-License-Identifier: MIT
// An alltoallv: how its sizes become parts, what is refused, and the bytes of uneven parts on the software device.
#include "sdma/check/check.hpp"
#include "support.hpp"

namespace collectives::test {
namespace {

Options uneven(std::string_view matrix) {
  Options o{.collective = Collective::alltoallv, .variant = Variant::pcpy};
  if (const auto wrong = set_matrix(o, matrix); !wrong.empty()) FAIL(wrong);
  return o;
}
std::vector<std::uint64_t> bytes(const Options& o) {
  std::vector<std::uint64_t> all;
  for (const auto& p : sent_parts(o)) all.push_back(p.bytes);
  return all;
}
std::string why(const Options& o) {
  const auto d = refusal(o);
  return d ? d->message : "";
}
constexpr std::string_view kMatrix = "# bytes\n0, 300, 20\n7 0 0   # a GPU that sends little\n\n64,\t1K, 5\n";

}  // namespace

TEST_CASE("a matrix says how many GPUs there are, and what each sends") {
  const auto o = uneven(kMatrix);
  CHECK((o.gpus == 3 && o.bytes == 64 + 1024 + 5));
  CHECK(bytes(o) == std::vector<std::uint64_t>{0, 300, 20, 7, 0, 0, 64, 1024, 5});
  CHECK(sent_parts(o)[7].begin == 64);
}

TEST_CASE("with another size, all parts change in proportion, and those of the fullest GPU have that size") {
  auto o = uneven(kMatrix);
  for (const std::uint64_t size : {1u, 1000u, 1093u * 3, 1u << 30}) {
    o.bytes = size;
    const auto parts = sent_parts(o);
    CHECK(parts[8].begin + parts[8].bytes == size);
    for (std::size_t i = 0; i < parts.size(); ++i)
      CHECK(static_cast<double>(parts[i].bytes) ==
            Approx(static_cast<double>(o.sizes[i]) * static_cast<double>(size) / 1093).margin(1));
  }
}

TEST_CASE("every part of an uneven matrix arrives, in every ordering and by every variant") {
  for (const auto order : kOrderings)
    for (const auto v : {Variant::pcpy, Variant::b2b})
      for (const auto p : kPrelaunches) {
        auto o = uneven(kMatrix);
        o.variant = v, o.prelaunch = p, o.own_part = p == Prelaunch::shared;
        o.bytes = 10007;
        o.offsets = {0, 1, 33};
        o.packet_bytes = 1024;
        const auto d = node(order, 5);
        auto r = prepared(planned(o), *d);
        CHECK(rounds(r, 2) == "");
      }
}

TEST_CASE("an uneven all-to-all is proved, with its expectations") {
  auto o = uneven(kMatrix);
  o.epochs = 3;
  const auto report = sdma::check(planned(o).schedule);
  for (const auto& f : report.findings) FAIL_CHECK(to_string(f.diagnostic));
  CHECK(planned(o).moves.size() == 5);
}

TEST_CASE("equal sizes move what an all_to_all moves") {
  const Options o{.collective = Collective::alltoallv, .variant = Variant::b2b, .gpus = 4, .bytes = 4096};
  CHECK(bytes(o) == std::vector<std::uint64_t>(16, 1024));
  CHECK(bus_factor(o) == 0.75);
}

TEST_CASE("busbw counts the direction of the GPU that exchanges the most") {
  CHECK(bus_factor(uneven("0 100 0  0 0 0  0 60 40")) == 1.6);  // gpu1 receives 160 of 100
  CHECK(bus_factor(uneven("40 60 0  0 0 0  0 0 0")) == 0.6);
}

TEST_CASE("sizes that are no matrix are refused, with the reason") {
  Options o{};
  CHECK(set_matrix(o, "1,2,3") == "3 numbers are not a matrix with as many rows as columns, and at least two");
  CHECK(set_matrix(o, "7") == "1 numbers are not a matrix with as many rows as columns, and at least two");
  CHECK(set_matrix(o, "") == "0 numbers are not a matrix with as many rows as columns, and at least two");
  CHECK(set_matrix(o, "to,a\n1,2") == "a cell is not a number");
  CHECK(why({.collective = Collective::alltoallv, .gpus = 2, .bytes = 8, .sizes = {1, 2, 3}}) ==
        "2 GPUs need 4 sizes, not 3");
  CHECK(why({.collective = Collective::all_gather, .gpus = 2, .bytes = 8, .sizes = {1, 2, 3, 4}}) ==
        "sizes are only for an alltoallv");
  CHECK(why({.collective = Collective::alltoallv, .gpus = 2, .bytes = 8, .sizes = {0, 1u << 31, 0, 0}}) ==
        "a size of 2147483648 is too large: at most 2147483647");
  CHECK(why({.collective = Collective::alltoallv, .gpus = 2, .bytes = 8, .sizes = {1u << 30, 1u << 30, 0, 0}}) ==
        "the sizes of gpu0 add up to 2G or more");
  CHECK(why({.collective = Collective::alltoallv, .gpus = 2, .bytes = 8, .sizes = {5, 0, 0, 5}}) ==
        "with these sizes, no GPU sends a byte to another");
  CHECK(why({.collective = Collective::alltoallv, .gpus = 2, .bytes = 8, .sizes = {0, 0, 0, 0}}) ==
        "with these sizes, no GPU sends a byte to another");
}

}  // namespace collectives::test
