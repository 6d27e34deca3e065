// SPDX-License-Identifier: MIT
// Every atomic operation against its meaning, written again from the names: and on memory, whole words only.
#include "engine/rig.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>

using namespace sdma;
using namespace sdma::test;

namespace {

struct Words {
  std::uint64_t v, s, c;
};

/// What a name says, for a word of `bits` bits. No switch over codes: the test reads the names.
std::uint64_t reference(std::string name, unsigned bits, Words w) {
  const auto mask = bits == 64 ? ~0ull : 0xffffffffull;
  w = {w.v & mask, w.s & mask, w.c & mask};
  const auto sign = [&](std::uint64_t x) {
    return bits == 64 ? static_cast<std::int64_t>(x) : static_cast<std::int64_t>(static_cast<std::int32_t>(x));
  };
  const bool flush = name.find("flush_denorm") != std::string::npos;
  // A float is exact as a double, so doubles serve both widths: only denormals must be told by the word's own width.
  const auto number = [&](std::uint64_t x) -> double {
    double d = bits == 64 ? std::bit_cast<double>(x)
                          : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(x)));
    const double least =
        bits == 64 ? std::numeric_limits<double>::min() : static_cast<double>(std::numeric_limits<float>::min());
    if (flush && d != 0 && std::fabs(d) < least) d = std::copysign(0.0, d);
    return d;
  };
  const auto bits_of = [&](double d) -> std::uint64_t {
    return bits == 64 ? std::bit_cast<std::uint64_t>(d) : std::bit_cast<std::uint32_t>(static_cast<float>(d));
  };
  const auto is = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
  if (is("fcmpswap")) return number(w.v) == number(w.c) ? (flush ? bits_of(number(w.s)) : w.s) : w.v;
  if (is("fmin") || is("fmax")) {
    const double v = number(w.v), s = number(w.s);
    if (std::isnan(v) && std::isnan(s)) return ~0ull;  // some NaN: the caller knows
    if (std::isnan(v)) return bits_of(s);
    if (std::isnan(s)) return bits_of(v);
    const bool s_less = s < v || (s == v && std::signbit(s) && !std::signbit(v));
    return bits_of(is("fmin") == s_less ? s : v);
  }
  if (is("swap") || is("write")) return w.s;
  if (is("cmpswap")) return w.v == w.c ? w.s : w.v;
  if (is("add")) return (w.v + w.s) & mask;
  if (is("sub")) return (w.v - w.s) & mask;
  if (is("smin")) return sign(w.s) < sign(w.v) ? w.s : w.v;
  if (is("smax")) return sign(w.s) > sign(w.v) ? w.s : w.v;
  if (is("umin")) return std::min(w.s, w.v);
  if (is("umax")) return std::max(w.s, w.v);
  if (is("and")) return w.v & w.s;
  if (is("or")) return w.v | w.s;
  if (is("xor")) return w.v ^ w.s;
  if (is("inc")) return w.v >= w.s ? 0 : w.v + 1;
  if (is("dec")) return w.v == 0 || w.v > w.s ? w.s : w.v - 1;
  FAIL("no meaning for " << name);
  return 0;
}

bool is_nan(std::uint64_t v, unsigned bits) {
  return bits == 64 ? std::isnan(std::bit_cast<double>(v))
                    : std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(v)));
}

std::vector<std::uint64_t> interesting() {
  std::vector<std::uint64_t> v{0,
                               1,
                               2,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               ~0ull,
                               0xdeadbeefcafef00d};
  for (double d : {0.0, -0.0, 1.5, -1.5, 3e38, -3e38, std::numeric_limits<double>::infinity(),
                   -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                   std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::denorm_min(), 1e-310}) {
    v.push_back(std::bit_cast<std::uint64_t>(d));
    v.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(d)));
  }
  for (float f : {std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min(), 1e-40f})
    v.push_back(std::bit_cast<std::uint32_t>(f));
  return v;
}

}  // namespace

TEST_CASE("apply does what each name says") {
  const auto words = interesting();
  for (const auto& n : grammar::names<AtomicOp>) {
    const auto op = static_cast<AtomicOp>(n.value);
    const std::string name(n.text);
    const unsigned bits = name.ends_with("_64") ? 64 : 32;
    REQUIRE(width(op) * 8 == bits);
    CHECK(compares(op) == (name.find("cmpswap") != std::string::npos));
    for (auto v : words)
      for (auto s : words)
        for (auto c : {v, s, std::uint64_t{0}, ~std::uint64_t{0}}) {
          const auto want = reference(name, bits, {v, s, c}), got = apply(op, v, s, c);
          const bool same = got == want || (name[0] == 'f' && is_nan(got, bits) && is_nan(want, bits));
          if (!same) FAIL(name << " of " << v << ", " << s << ", " << c << ": " << got << ", not " << want);
        }
  }
}

TEST_CASE("an atomic changes its word and nothing beside it") {
  std::mt19937_64 random(3);
  for (const auto& n : grammar::names<AtomicOp>) {
    const auto op = static_cast<AtomicOp>(n.value);
    for (std::uint64_t offset : {0u, 8u, 4096u, 65528u}) {
      Rig rig;
      rig.first.randomise(static_cast<std::uint32_t>(random()));
      Expected want{rig.first};
      const auto where = rig.a(offset + (width(op) == 4 ? 4 : 0));
      const auto value = random(), old = width(op) == 8 ? rig.at<std::uint64_t>(where) : rig.at(where);
      const auto compare = offset % 16 == 0 ? old : random();
      const auto result = apply(op, old, value, compare);
      if (width(op) == 8) want.put(where, result);
      else want.put(where, static_cast<std::uint32_t>(result));
      rig.put(Atomic{.addr = where, .op = op, .value = value, .compare = compare});
      rig.go();
      CHECK(want.holds());
    }
  }
}

TEST_CASE("a looping compare and swap waits for its word") {
  for (auto ordering : {Ordering::strict, Ordering::rocr, Ordering::adversarial}) {
    Rig rig{{.ordering = ordering}};
    rig.at<std::uint64_t>(rig.a(0)) = 5;
    rig.put(Atomic{.addr = rig.a(0), .op = AtomicOp::cmpswap_rtn_64, .value = 9, .compare = 6, .loop = true});
    CHECK(rig.run() == Progress::waiting);
    CHECK(rig.pipeline->waits_for() == rig.a(0));
    CHECK(!rig.pipeline->ready());
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == 5);
    rig.at<std::uint64_t>(rig.a(0)) = 6;
    CHECK(rig.pipeline->ready());
    CHECK(rig.drain() == Progress::idle);
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == 9);
  }
}

TEST_CASE("engines and host add to one word") {
  AddressSpace space;
  Memory memory{GpuVa{0x1000}, 4096};
  REQUIRE(space.map(memory.mapping()) == Errc::ok);
  memory.words[0] = memory.words[1] = 0;
  constexpr int kEach = 2000;
  const auto engine = [&](AtomicOp op, std::uint64_t offset) {
    AddressSpace::Reader reader{space, GpuId{0}};
    EngineState state;
    Machine m{.memory = reader, .state = state};
    for (int i = 0; i < kEach; ++i) {
      const AddressSpace::Reader::Section s{reader};
      execute(Atomic{.addr = memory.va + offset, .op = op, .value = op == AtomicOp::inc_64 ? ~0ull : 1}, m);
    }
  };
  std::thread one(engine, AtomicOp::add_rtn_64, 0), two(engine, AtomicOp::inc_64, 0),
      three(engine, AtomicOp::add_32, 12);
  for (int i = 0; i < kEach; ++i) std::atomic_ref(memory.words[0]).fetch_add(1);
  one.join(), two.join(), three.join();
  CHECK(memory.words[0] == 3 * kEach);
  CHECK(memory.words[1] == std::uint64_t{kEach} << 32);
}
