// SPDX-License-Identifier: MIT
// Codes and names of enumerations, bit by bit; what a comparison and an operation width mean.
#include <map>
#include <set>

#include "packets/generic.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

TEST_CASE("comparisons have the engine's codes") {
  const std::map<std::uint32_t, std::string_view> expected{{0, "always"}, {1, "lt"}, {2, "le"}, {3, "eq"},
                                                           {4, "ne"},     {5, "ge"}, {6, "gt"}};
  std::map<std::uint32_t, std::string_view> got;
  for (const auto& n : grammar::names<Compare>) got[n.value] = n.text;
  CHECK(got == expected);
  CHECK(static_cast<int>(Compare::always) == 0);
  CHECK(static_cast<int>(Compare::lt) == 1);
  CHECK(static_cast<int>(Compare::le) == 2);
  CHECK(static_cast<int>(Compare::eq) == 3);
  CHECK(static_cast<int>(Compare::ne) == 4);
  CHECK(static_cast<int>(Compare::ge) == 5);
  CHECK(static_cast<int>(Compare::gt) == 6);
}

TEST_CASE("comparisons are unsigned, and an unassigned code never holds") {
  for (std::uint64_t v : {0ull, 1ull, 5ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull, ~0ull})
    for (std::uint64_t r : {0ull, 1ull, 5ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull, ~0ull}) {
      CHECK(holds(v, Compare::always, r));
      CHECK(holds(v, Compare::lt, r) == (v < r));
      CHECK(holds(v, Compare::le, r) == (v <= r));
      CHECK(holds(v, Compare::eq, r) == (v == r));
      CHECK(holds(v, Compare::ne, r) == (v != r));
      CHECK(holds(v, Compare::ge, r) == (v >= r));
      CHECK(holds(v, Compare::gt, r) == (v > r));
      CHECK_FALSE(holds(v, static_cast<Compare>(7), r));
    }
}

TEST_CASE("fill units have the engine's codes") {
  REQUIRE(grammar::names<FillUnit>.size() == 3);
  CHECK((grammar::names<FillUnit>[0].value == 0 && grammar::names<FillUnit>[0].text == "byte"));
  CHECK((grammar::names<FillUnit>[1].value == 1 && grammar::names<FillUnit>[1].text == "half"));
  CHECK((grammar::names<FillUnit>[2].value == 2 && grammar::names<FillUnit>[2].text == "dword"));
  CHECK(static_cast<int>(FillUnit::byte) == 0);
  CHECK(static_cast<int>(FillUnit::half) == 1);
  CHECK(static_cast<int>(FillUnit::dword) == 2);
}

// A code is a row and a column: 0x00 returning 32 bits, 0x20 returning 64, 0x40 and 0x60 the same without a return.
constexpr struct {
  std::uint32_t row;
  std::string_view name;
} kRows[] = {{0x01, "fcmpswap"},
             {0x02, "fmin"},
             {0x03, "fmax"},
             {0x07, "swap"},
             {0x08, "cmpswap"},
             {0x09, "fcmpswap_flush_denorm"},
             {0x0a, "fmin_flush_denorm"},
             {0x0b, "fmax_flush_denorm"},
             {0x0f, "add"},
             {0x10, "sub"},
             {0x11, "smin"},
             {0x12, "umin"},
             {0x13, "smax"},
             {0x14, "umax"},
             {0x15, "and"},
             {0x16, "or"},
             {0x17, "xor"},
             {0x18, "inc"},
             {0x19, "dec"}};
constexpr struct {
  std::uint32_t column;
  std::string_view suffix;
  std::uint32_t bytes;
} kColumns[] = {{0x00, "_rtn_32", 4}, {0x20, "_rtn_64", 8}, {0x40, "_32", 4}, {0x60, "_64", 8}};

TEST_CASE("atomic operations are 19 rows and 4 columns, and a write") {
  std::map<std::uint32_t, std::string> expected, got;
  for (const auto& r : kRows)
    for (const auto& c : kColumns) expected[r.row + c.column] = std::string(r.name) + std::string(c.suffix);
  for (const auto& n : grammar::names<AtomicOp>) {
    CHECK(got.count(n.value) == 0);
    got[n.value] = std::string(n.text);
  }
  expected[0x20] = "write_64";
  CHECK(expected.size() == 77);
  CHECK(got == expected);
}

TEST_CASE("the enumerators of atomic operations are those names") {
#define SDMA_SAME(row, name)                                        \
  CHECK(static_cast<int>(AtomicOp::name##_rtn_32) == (row));        \
  CHECK(static_cast<int>(AtomicOp::name##_rtn_64) == (row) + 0x20); \
  CHECK(static_cast<int>(AtomicOp::name##_32) == (row) + 0x40);     \
  CHECK(static_cast<int>(AtomicOp::name##_64) == (row) + 0x60)
  SDMA_SAME(0x01, fcmpswap);
  SDMA_SAME(0x02, fmin);
  SDMA_SAME(0x03, fmax);
  SDMA_SAME(0x07, swap);
  SDMA_SAME(0x08, cmpswap);
  SDMA_SAME(0x09, fcmpswap_flush_denorm);
  SDMA_SAME(0x0a, fmin_flush_denorm);
  SDMA_SAME(0x0b, fmax_flush_denorm);
  SDMA_SAME(0x0f, add);
  SDMA_SAME(0x10, sub);
  SDMA_SAME(0x11, smin);
  SDMA_SAME(0x12, umin);
  SDMA_SAME(0x13, smax);
  SDMA_SAME(0x14, umax);
  SDMA_SAME(0x15, and);
  SDMA_SAME(0x16, or);
  SDMA_SAME(0x17, xor);
  SDMA_SAME(0x18, inc);
  SDMA_SAME(0x19, dec);
#undef SDMA_SAME
}

TEST_CASE("an atomic operation changes 4 bytes or 8") {
  CHECK(width(AtomicOp::write_64) == 8);
  for (const auto& r : kRows)
    for (const auto& c : kColumns) {
      INFO(r.name << c.suffix);
      CHECK(width(static_cast<AtomicOp>(r.row + c.column)) == c.bytes);
    }
}

TEST_CASE("only fields of the right packets have enumerants") {
  std::set<std::string> named;
  for (const auto& p : kPackets)
    for (const auto& f : p.fields) {
      if (f.enumerants.empty()) continue;
      named.insert(std::string(p.name) + '.' + std::string(f.name));
      for (const auto& n : f.enumerants) CHECK(n.value <= f.max());
    }
  CHECK(named == std::set<std::string>{"atomic.op", "fill.unit", "gcr.form", "poll_mem.func", "poll_mem.retry",
                                       "poll_reg.func", "poll_reg.retry"});
}

TEST_CASE("a retry count of 4095 is forever") {
  REQUIRE(grammar::kRetryNames.size() == 1);
  CHECK(grammar::kRetryNames[0].value == 4095);
  CHECK(grammar::kRetryNames[0].text == "forever");
}

TEST_CASE("a dword fill covers whole dwords, the others what they say") {
  const auto covered = [](std::uint32_t bytes, FillUnit unit) { return bytes_written({.bytes = bytes, .unit = unit}); };
  for (std::uint32_t bytes = 4093; bytes <= 4096; ++bytes) CHECK(covered(bytes, FillUnit::dword) == 4096);
  CHECK(covered(4092, FillUnit::dword) == 4092);
  CHECK(covered(4097, FillUnit::dword) == 4100);
  CHECK(covered(1, FillUnit::dword) == 4);
  CHECK(covered(1u << 30, FillUnit::dword) == 1u << 30);
  CHECK(covered((1u << 30) - 3, FillUnit::dword) == 1u << 30);
  for (std::uint32_t bytes : {1u, 2u, 3u, 4093u, 4096u, 1u << 30}) {
    CHECK(covered(bytes, FillUnit::byte) == bytes);
    CHECK(covered(bytes, FillUnit::half) == bytes);
  }
}

}  // namespace
