// SPDX-License-Identifier: MIT
#include "sdma/core/names.hpp"
#include "support/catch.hpp"

#include <random>
#include <vector>

using namespace sdma;

namespace {

std::string error(std::string_view text) {
  const auto t = parse_names(text, "f");
  return t ? "" : t.error().where + ": " + t.error().message;
}

}  // namespace

TEST_CASE("an address has the name of its range, and its offset as the language prints sizes") {
  NameTable t;
  CHECK(t.add(GpuVa{0x10000}, 0x20000, "gpu1.buf"));
  CHECK(t.text(GpuVa{0x10000}) == "gpu1.buf");
  CHECK(t.text(GpuVa{0x20000}) == "gpu1.buf[64K]");
  CHECK(t.text(GpuVa{0x10064}) == "gpu1.buf[100]");
  CHECK(t.text(GpuVa{0x2ffff}) == "gpu1.buf[131071]");
  CHECK(t.text(GpuVa{0xffff}).empty());
  CHECK(t.text(GpuVa{0x30000}).empty());
  CHECK(NameTable().text(GpuVa{}).empty());
}

TEST_CASE("the smallest range names an address; of equal ones the first") {
  NameTable t;
  CHECK(t.add(GpuVa{100}, 100, "buf"));
  CHECK(t.add(GpuVa{120}, 8, "signal"));
  CHECK(t.add(GpuVa{90}, 200, "all"));
  CHECK(!t.add(GpuVa{120}, 8, "again"));
  CHECK(t.text(GpuVa{127}) == "signal[7]");
  CHECK(t.text(GpuVa{128}) == "buf[28]");
  CHECK(t.text(GpuVa{99}) == "all[9]");
  CHECK(t.text(GpuVa{200}) == "all[110]");
  CHECK(t.ranges().size() == 3);
}

TEST_CASE("a table knows no empty range, no range without a name, and the last address") {
  NameTable t;
  CHECK(!t.add(GpuVa{1}, 0, "none"));
  CHECK(!t.add(GpuVa{1}, 1, ""));
  CHECK(!t.add(GpuVa{~std::uint64_t{0}}, 2, "beyond"));
  CHECK(t.empty());
  CHECK(t.add(GpuVa{~std::uint64_t{0} - 3}, 4, "end"));
  CHECK(t.text(GpuVa{~std::uint64_t{0}}) == "end[3]");
}

TEST_CASE("whatever ranges overlap, each address has the name of the smallest") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    NameTable t;
    struct One {
      std::uint64_t from, bytes;
      std::string name;
    };
    std::vector<One> all;
    for (int i = 0; i < 12; ++i) {
      One r{random() % 60, 1 + random() % 30, "r" + std::to_string(i)};
      if (t.add(GpuVa{r.from}, r.bytes, r.name)) all.push_back(r);
    }
    for (std::uint64_t at = 0; at < 100; ++at) {
      const One* best = nullptr;
      for (const auto& r : all)
        if (at >= r.from && at - r.from < r.bytes && (!best || r.bytes < best->bytes)) best = &r;
      const auto* found = t.find(GpuVa{at});
      REQUIRE((found == nullptr) == (best == nullptr));
      if (found) REQUIRE(found->name == best->name);
    }
  }
}

TEST_CASE("a file of names, and the file that it becomes") {
  const auto t = parse_names(
      "# what the program allocates\n\n"
      "0x7f5c00000000..+64M   weights\r\n"
      "\t0x7f5c04000000..0x7f5c04001000 done::flags  # 4K\n"
      "4096..+1 one");
  REQUIRE(t);
  CHECK(t->text(GpuVa{0x7f5c00010000}) == "weights[64K]");
  CHECK(t->text(GpuVa{0x7f5c04000fff}) == "done::flags[4095]");
  CHECK(t->text(GpuVa{4096}) == "one");
  const auto text = print_names(*t);
  CHECK(text == "0x7f5c00000000..+64M weights\n0x7f5c04000000..+4K done::flags\n0x1000..+1 one\n");
  const auto back = parse_names(text);
  REQUIRE(back);
  CHECK(*back == *t);
  CHECK(parse_names("")->empty());
}

TEST_CASE("errors of a file of names say which line") {
  CHECK(error("weights 0x1000..+4K") == "f:1: 'weights' is not a range of addresses");
  CHECK(error("# first\n0x1000 weights") == "f:2: '0x1000' is not a range of addresses");
  CHECK(error("0x1000..+4K") == "f:1: the range '0x1000..+4K' has no name");
  CHECK(error("0x1000..+0 a") == "f:1: the range '0x1000..+0' is empty");
  CHECK(error("0x2000..0x1000 a") == "f:1: '0x2000..0x1000' is not a range of addresses");
  CHECK(error("0xffffffffffffffff..+2 a") == "f:1: the range '0xffffffffffffffff..+2' ends beyond 2^64");
  CHECK(error("0x1000..+4K my weights") == "f:1: 'weights' follows the name 'my'");
  CHECK(error("0x1000..+4K 1st") == "f:1: '1st' is not a name");
  CHECK(error("0x1000..+4K a[1]") == "f:1: 'a[1]' is not a name");
  CHECK(error("0x2000..+4K b\n0x1000..+4K a\n0x2fff..+1 c\n") ==
        "f:3: the range of 'c' overlaps that of 'b' on line 1");
  CHECK(error("0x1000..+4K a\n0x1000..+4K a") == "f:2: the range of 'a' overlaps that of 'a' on line 1");
}
