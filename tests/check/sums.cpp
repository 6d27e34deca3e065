// SPDX-License-Identifier: MIT
// Sums are proved for every order: each part once, in the order that the expectation asks for. Attempts to have a wrong
// sum proved come last.
#include "checked.hpp"

using namespace sdma;
using test::checked, test::said;

namespace {

/// A kernel of gpu0 that adds, and a copy of its sum to gpu1; a, b and c are random, z is zero.
std::string adding(const std::string& actions, const std::string& rest) {
  return "gpus 2\nbuffer gpu0.a bytes=4K init=random\nbuffer gpu0.b bytes=4K init=random\nbuffer gpu0.c bytes=4K "
         "init=random\nbuffer gpu0.z bytes=4K init=zero\nbuffer gpu0.s bytes=4K\nbuffer gpu0.out bytes=4K\n"
         "buffer gpu1.got bytes=4K\nsignal gpu0.ready value=0 bits=32\nsignal host.done value=0\n"
         "queue gpu0.q peer=gpu1\npoll_mem addr=gpu0.ready func=eq reference=1\n"
         "copy_linear bytes=4K src=gpu0.out dst=gpu1.got\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
         "kernel gpu0.add\n" +
         actions + "set gpu0.ready = 1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n" + rest;
}
/// "proved", or what is not.
std::string sums(const std::string& actions, const std::string& expectation) {
  const auto r = checked(adding(actions, "expect gpu1.got == old " + expectation + "\n"));
  return r.proved() && r.expectations == 1 ? "proved" : said(r);
}
bool refuted(const std::string& result) {
  INFO(result);
  return result.starts_with("wrong-result");
}
bool open(const std::string& result) {
  INFO(result);
  return result.starts_with("unknown-result");
}
std::string store(const std::string& to, const std::string& parts, const std::string& how = "type=f32") {
  return "store gpu0." + to + " = sum(" + parts + ") " + how + "\n";
}
const std::string kAll = "gpu0.a, gpu0.b, gpu0.c";

}  // namespace

TEST_CASE("a sum in its order is proved, and so is one in steps") {
  const auto expected = "sum(" + kAll + ") type=f32";
  CHECK(sums(store("out", kAll), expected) == "proved");
  CHECK(sums(store("s", "gpu0.a, gpu0.b") + store("out", "gpu0.s, gpu0.c"), expected) == "proved");
  CHECK(sums(store("s", "gpu0.b, gpu0.a") + store("out", "gpu0.c, gpu0.s"), expected) == "proved");
  CHECK(sums(store("a", "gpu0.a, gpu0.b") + store("out", "gpu0.a, gpu0.c"), expected) == "proved");
  CHECK(sums(store("out", "gpu0.a"), "gpu0.a") == "proved");
  CHECK(sums("store gpu0.out[0..1K] = sum(gpu0.a[0..1K], gpu0.b[0..1K]) type=bf16\n"
             "store gpu0.out[1K..4K] = sum(gpu0.a[1K..4K], gpu0.b[1K..4K]) type=bf16\n",
             "sum(gpu0.a, gpu0.b) type=bf16") == "proved");
}

TEST_CASE("another order of additions is another sum, unless the order is open or numbers are integers") {
  const auto other = store("s", "gpu0.b, gpu0.c") + store("out", "gpu0.a, gpu0.s");
  const auto result = sums(other, "sum(" + kAll + ") type=f32");
  CHECK(refuted(result));
  CHECK(result.find("gpu1.got holds the right parts, but added in another order") != result.npos);
  CHECK(sums(other, "sum(" + kAll + ") type=f32 order=free") == "proved");
  const auto integers = store("s", "gpu0.b, gpu0.c", "type=i32") + store("out", "gpu0.a, gpu0.s", "type=i32");
  CHECK(sums(integers, "sum(" + kAll + ") type=i32") == "proved");
  CHECK(sums(store("out", kAll, "type=f32 order=free"), "sum(gpu0.c, gpu0.b, gpu0.a) type=f32 order=free") == "proved");
  CHECK(open(sums(store("out", kAll, "type=f32 order=free"), "sum(" + kAll + ") type=f32")));
  CHECK(sums(store("out", "gpu0.b, gpu0.a", "type=f32 order=free"), "sum(gpu0.a, gpu0.b) type=f32") == "proved");
}

TEST_CASE("a wrong part, a missing one and one that counts twice are named, with who has stored the sum") {
  const auto expected = "sum(" + kAll + ") type=f32 order=free";
  const auto twice = sums(store("out", "gpu0.a, gpu0.b, gpu0.c, gpu0.b"), expected);
  CHECK(refuted(twice));
  CHECK(twice.find("gpu1.got holds a sum of f32 that also has the first contents of gpu0.b\n") != twice.npos);
  const auto missing = sums(store("out", "gpu0.a, gpu0.b"), expected);
  CHECK(refuted(missing));
  CHECK(missing.find("holds a sum of f32 without the first contents of gpu0.c\n") != missing.npos);
  const auto wrong = sums(store("out", "gpu0.a, gpu0.b, gpu0.a"), expected);
  CHECK(refuted(wrong));
  CHECK(wrong.find("without the first contents of gpu0.c, but with the first contents of gpu0.a\n") != wrong.npos);
  CHECK(refuted(sums(store("out", kAll, "type=bf16"), "sum(gpu0.a, gpu0.b) type=bf16")));
  CHECK(refuted(sums(store("out", "gpu0.a, gpu0.b"), "gpu0.a")));
  CHECK(
      sums(store("out", "gpu0.a, gpu0.b"), "gpu0.a").find("a sum of f32 of the first contents of gpu0.a, the first") !=
      std::string::npos);
  const auto r = checked(adding(store("out", "gpu0.a, gpu0.b"), "expect gpu0.out == old gpu0.a\n"));
  REQUIRE(!r.findings.empty());
  REQUIRE(r.findings.front().locations.size() == 1);
  CHECK(r.findings.front().locations[0].text == "store gpu0.out = sum(gpu0.a, gpu0.b) type=f32");
}

TEST_CASE("zeros do not count in integers, and in floating-point numbers they leave it open") {
  CHECK(sums(store("out", "gpu0.a, gpu0.z, gpu0.b", "type=i32"), "sum(gpu0.a, gpu0.b) type=i32") == "proved");
  CHECK(sums(store("out", "gpu0.a, gpu0.z", "type=i32"), "gpu0.a") == "proved");
  CHECK(sums(store("out", "gpu0.z, gpu0.z", "type=i32"), "gpu0.z") == "proved");
  CHECK(open(sums(store("out", "gpu0.a, gpu0.z"), "gpu0.a")));
  CHECK(open(sums(store("out", "gpu0.a, gpu0.z, gpu0.b"), "sum(gpu0.a, gpu0.b) type=f32")));
  CHECK(sums(store("out", "gpu0.z, gpu0.a"), "sum(gpu0.a, gpu0.z) type=f32") == "proved");
}

TEST_CASE("a zero that is added elsewhere does not refute a sum") {
  CHECK(open(sums(store("out", "gpu0.a, gpu0.b, gpu0.z"), "sum(gpu0.b, gpu0.z, gpu0.a) type=f32")));
  CHECK(refuted(sums(store("out", kAll), "sum(gpu0.a, gpu0.c, gpu0.b) type=f32")));
}

TEST_CASE("an expectation of a kernel is about its moment") {
  const auto now = [](const std::string& actions) {
    const auto r = checked(adding(actions, ""));
    return r.proved() ? "proved" : said(r);
  };
  CHECK(now(store("out", "gpu0.a, gpu0.b") + "expect gpu0.out == sum(gpu0.b, gpu0.a) type=f32\n") == "proved");
  CHECK(refuted(now(store("a", "gpu0.a, gpu0.b") + "expect gpu0.a == sum(gpu0.b, gpu0.a) type=f32\n")));
  CHECK(now(store("a", "gpu0.a, gpu0.b") + "expect gpu0.a == old sum(gpu0.b, gpu0.a) type=f32\n") == "proved");
}

TEST_CASE("a part that something else stores at the same time is a race") {
  const auto text = adding("set gpu0.ready = 1\n" + store("out", "gpu0.a, gpu0.b"), "");
  CHECK(test::has(checked(text), "race"));
  const auto read = [](const std::string& part) {
    return checked(
        "gpus 1\nbuffer gpu0.a bytes=4K init=random\nbuffer gpu0.b bytes=4K\nbuffer gpu0.out bytes=2K\n"
        "signal host.done value=0\nqueue gpu0.q engine=0\ncopy_linear bytes=4K src=gpu0.a dst=gpu0.b\n"
        "atomic op=add_rtn_64 addr=host.done value=1\nend\nkernel gpu0.k\nstore gpu0.out = sum(gpu0.a[0..2K], " +
        part + ") type=i32\nadd host.done += 1\nend\nhost main\nsubmit *\nwait host.done == 2\nend\n");
  };
  CHECK(read("gpu0.a[2K..4K]").proved());
  const auto race = read("gpu0.b[2K..4K]");
  REQUIRE(test::has(race, "race"));
  CHECK(said(race).find("gpu0.b[2K..+2K]") != std::string::npos);
}

TEST_CASE("attempts to have a wrong sum proved") {
  const auto i32 = [](const std::string& actions, const std::string& expectation) {
    return sums(actions, expectation) == "proved";
  };
  // Each store of an open order has its own: two of them are not equal bytes.
  const auto free = "type=f32 order=free";
  const auto two = store("out", kAll, free) + store("s", kAll, free);
  CHECK(open(said(checked(adding(two, "expect gpu0.s == gpu0.out\n")))));
  CHECK(checked(adding(store("out", kAll, free), "expect gpu1.got == gpu0.out\n")).proved());
  const auto again =
      "repeat 2\n" + store("s", kAll, free) + "expect gpu0.s == gpu0.out\n" + store("out", kAll, free) + "end\n";
  CHECK_FALSE(checked(adding(again, "")).proved());
  // Elements that begin elsewhere have other carries.
  CHECK_FALSE(
      i32("store gpu0.out[2..4K-2] = sum(gpu0.a[2..4K-2], gpu0.b[2..4K-2]) type=i32\n"
          "store gpu0.out[0..2] = sum(gpu0.a[0..2], gpu0.b[0..2]) type=bf16\n"
          "store gpu0.out[4K-2..4K] = sum(gpu0.a[4K-2..4K], gpu0.b[4K-2..4K]) type=bf16\n",
          "sum(gpu0.a, gpu0.b) type=i32"));
  // A sum that is taken apart within its elements is not a part of another.
  CHECK_FALSE(i32(store("s", "gpu0.a, gpu0.b", "type=i32") +
                      "store gpu0.out[0..4K-4] = sum(gpu0.s[1..4K-3], gpu0.c[1..4K-3]) type=i32\n"
                      "store gpu0.out[4K-4..4K] = sum(gpu0.a[0..4], gpu0.a[4..8]) type=i32\n",
                  "sum(gpu0.a, gpu0.b, gpu0.c) type=i32"));
  // Another type adds other elements.
  CHECK_FALSE(i32(store("s", "gpu0.a, gpu0.b", "type=i32") + store("out", "gpu0.s, gpu0.c"),
                  "sum(gpu0.a, gpu0.b, gpu0.c) type=f32 order=free"));
  CHECK_FALSE(i32(store("out", "gpu0.a, gpu0.b", "type=i32"), "sum(gpu0.a, gpu0.b) type=f32"));
  // What is stored is not yet there while the parts are read, but a part that overlaps it is not followed.
  CHECK_FALSE(
      i32("store gpu0.a[4..4K] = sum(gpu0.a[0..4K-4], gpu0.b[0..4K-4]) type=i32\n" + store("out", "gpu0.a", "type=i32"),
          "gpu0.a"));
  CHECK(test::has(checked(adding("store gpu0.a[4..4K] = sum(gpu0.a[0..4K-4], gpu0.b[0..4K-4]) type=i32\n",
                                 "expect gpu0.a[4..4K] == old sum(gpu0.a[0..4K-4], gpu0.b[0..4K-4]) type=i32\n")),
                  "overlap"));
  // Random contents differ from round to round.
  CHECK_FALSE(i32("repeat 2\nstore gpu0.s = random\n" + store("out", "gpu0.a, gpu0.s") + "end\n",
                  "sum(gpu0.a, gpu0.s) type=f32"));
  // A part twice is not two parts, and a sum of sums counts what both have twice.
  CHECK(refuted(sums(store("s", "gpu0.a, gpu0.b", "type=i32") + store("out", "gpu0.s, gpu0.s", "type=i32"),
                     "sum(gpu0.a, gpu0.b) type=i32")));
  CHECK(sums(store("s", "gpu0.a, gpu0.b", "type=i32") + store("out", "gpu0.s, gpu0.s", "type=i32"),
             "sum(gpu0.a, gpu0.b, gpu0.b, gpu0.a) type=i32") == "proved");
  // More parts than are followed: each round doubles them.
  const auto many =
      "repeat 20\n" + store("a", "gpu0.a, gpu0.a", "type=i32") + "end\n" + store("out", "gpu0.a", "type=i32");
  CHECK(open(sums(many, "gpu0.a")));
}
