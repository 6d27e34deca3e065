// SPDX-License-Identifier: MIT
// Sums of kernels: how they are written, what they add, and what a run fills its buffers with.
#include "../../lib/schedule/sums.hpp"

#include "../../lib/schedule/contents.hpp"
#include "support.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

using namespace sdma;
using namespace sdma::test;

namespace {

const std::string kBuffers =
    "sdma 1\ngpus 2\nbuffer gpu*.a bytes=4K init=random\nbuffer gpu*.b bytes=4K init=random\n"
    "buffer gpu*.out bytes=4K\n";
std::string kernel(const std::string& action) { return kBuffers + "kernel gpu0.add\n  " + action + "\nend\n"; }
std::string wrong(const std::string& text) {
  const auto s = parse_schedule(text, "t");
  return s ? "" : s.error().front().message;
}
/// The bits of a sum of two elements.
std::uint32_t plus(Schedule::Sum::Type t, std::uint32_t a, std::uint32_t b) {
  const Schedule::Sum sum{.type = t, .parts = {{GpuVa{0}, 4}, {GpuVa{4}, 4}}};
  const std::array both{a, b};
  const auto out = detail::added(sum, [&](const Schedule::Range& r) {
    return std::as_bytes(std::span(both)).subspan(static_cast<std::size_t>(r.va.value), sum.element());
  });
  std::uint32_t bits = 0;
  std::memcpy(&bits, out.data(), out.size());
  return bits;
}
std::uint32_t bits(float f) { return std::bit_cast<std::uint32_t>(f); }

}  // namespace

TEST_CASE("a sum is read and printed in one form") {
  const auto form = [](const std::string& action) {
    const auto s = parse(kernel(action));
    CHECK(parse(to_text(s)) == s);
    return to_text(s, s.kernels[0].actions[0]);
  };
  CHECK(form("store gpu0.out = sum(gpu0.a, gpu0.b) type=f32") == "store gpu0.out = sum(gpu0.a, gpu0.b) type=f32");
  CHECK(form("store gpu0.out = sum(gpu*.a) order=free type=bf16") ==
        "store gpu0.out = sum(gpu0.a, gpu1.a) type=bf16 order=free");
  CHECK(
      form(
          "store gpu0.out[0..1K] = sum(gpu0.a[k*1K..+1K] for k in 0..4 if k != 2, gpu1.b[0..1K]) type=i32 order=free") ==
      "store gpu0.out[0..+1K] = sum(gpu0.a[0..+1K], gpu0.a[1K..+1K], gpu0.a[3K..+1K], gpu1.b[0..+1K]) type=i32");
  const auto s = parse(kBuffers + "kernel gpu0.add share=25\nend\nexpect gpu*.out == old sum(gpu*.a) type=f32\n");
  CHECK(s.kernels[0].share == 25);
  REQUIRE(s.expectations.size() == 2);
  CHECK(to_text(s, s.expectations[1]) == "expect gpu1.out == old sum(gpu0.a, gpu1.a) type=f32");
  CHECK(parse(to_text(s)) == s);
  CHECK(format_source("store   gpu0.out=sum( gpu0.a,gpu0.b )  type = f32\n") ==
        "store gpu0.out = sum(gpu0.a, gpu0.b) type=f32\n");
}

TEST_CASE("a sum in C++ is the one of the text") {
  auto s = parse(kBuffers);
  const auto at = [&](std::size_t k) { return Schedule::Range{link_buffer(k), 4 << 10}; };
  s.add_kernel(Place::gpu(0), "add").store(at(4), {.type = Schedule::Sum::Type::f32, .parts = {at(0), at(2)}});
  s.expect_sum(at(4), {.type = Schedule::Sum::Type::f32, .parts = {at(0), at(2)}});
  CHECK(s == parse(kernel("store gpu0.out = sum(gpu0.a, gpu0.b) type=f32") +
                   "expect gpu0.out == old sum(gpu0.a, gpu0.b) type=f32\n"));
  CHECK(lines(problems(s)) == "");
  auto& sum = s.kernels[0].actions[0].sum;
  sum.parts[1].bytes = 8;
  CHECK(lines(problems(s)) == "kernel gpu0.add: a part of 8 bytes is added to a sum of 4K");
  sum.parts[1] = {GpuVa{7}, 4 << 10};
  CHECK(lines(problems(s)) == "kernel gpu0.add: adds bytes that are in neither a buffer nor a signal");
  sum.parts.pop_back();
  s.kernels[0].share = 101;
  CHECK(lines(problems(s)) == "kernel gpu0.add: its share of the compute units must be from 0 to 100 percent");
  s.kernels[0].share = 100;
  s.expectations[0].sum.type = Schedule::Sum::Type::bf16;
  CHECK(lines(problems(s)).find("a run fills its buffers with numbers of one type") != std::string::npos);
  s.add_host("main").store(at(4), {.parts = {at(0)}});
  CHECK(lines(problems(s)).find("host main: only a kernel's store adds") != std::string::npos);
}

TEST_CASE("what is wrong with a sum is said") {
  CHECK(wrong(kBuffers + "host main\nstore gpu0.out = sum(gpu0.a) type=f32\nend\n")
            .starts_with("'sum' belongs in a kernel"));
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a[0..2K]) type=f32")) == "a part of 2K bytes is added to a sum of 4K");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a, gpu0.b)")) == "a sum needs 'type='");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a) type=f64")) == "'f64' is not a type of numbers");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a) type=f32 order=any")) == "'any' is not an order of additions");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a for k in 0..0) type=f32")) == "this sum has no parts");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a, gpu0.x) type=f32")) == "'gpu0.x' is not declared");
  CHECK(wrong(kernel("store gpu0.out[0..6] = sum(gpu0.a[0..6]) type=f32")) ==
        "the elements of the sum do not fill its bytes");
  CHECK(wrong(kernel("store gpu0.out = sum(gpu0.a) type=f32\nstore gpu0.out = sum(gpu0.a) type=bf16"))
            .starts_with("the schedule adds f32 and bf16"));
  CHECK(wrong(kBuffers + "kernel gpu0.add share=101\nend\n").starts_with("'share' must be from 0 to 100"));
  CHECK(wrong(kBuffers + "kernel gpu0.add units=4\nend\n") == "a kernel has no field 'units'");
  CHECK(wrong(kBuffers + "kernel gpu0.add workgroups=0\nend\n").starts_with("'workgroups' must be from 1 to 4096"));
  CHECK(wrong(kBuffers + "kernel gpu0.add protocol=l1\nend\n") == "'l1' is not a protocol of kernels");
}

TEST_CASE("workgroups and protocol of a kernel survive the text") {
  const auto text = [](const std::string& fields) { return kBuffers + "kernel gpu0.add" + fields + "\nend\n"; };
  const auto s = parse(text(" share=3 workgroups=8 protocol=ll"));
  CHECK(s.kernels[0].workgroups == 8);
  CHECK(s.kernels[0].protocol == Schedule::Protocol::ll);
  CHECK(to_text(s).find("kernel gpu0.add share=3 workgroups=8 protocol=ll\n") != std::string::npos);
  CHECK(parse(to_text(s)) == s);
  CHECK(parse(text(" protocol=plain")) == parse(text("")));
  auto many = s;
  many.kernels[0].workgroups = 5000;
  CHECK(lines(problems(many)) == "kernel gpu0.add: it has more than 4096 workgroups");
}

TEST_CASE("additions round to the type, and commute bit by bit") {
  using Type = Schedule::Sum::Type;
  CHECK(plus(Type::i32, 0xffffffff, 2) == 1);
  CHECK(plus(Type::f32, bits(1), bits(0x1p-24f)) == bits(1));
  CHECK(plus(Type::f32, bits(1.5f), bits(-0.25f)) == bits(1.25f));
  const auto half = [](float f) { return bits(f) >> 16; };
  CHECK(plus(Type::bf16, half(256), half(2)) == half(258));
  CHECK(plus(Type::bf16, half(256), half(1)) == half(256));  // 257 lies between 256 and 258: to even
  CHECK(plus(Type::bf16, half(258), half(1)) == half(260));
  CHECK(plus(Type::bf16, half(0x1.fep127f), half(0x1p127f)) == 0x7f80);
  CHECK(plus(Type::f32, 0x7fc00001, 0x7fc00002) == plus(Type::f32, 0x7fc00002, 0x7fc00001));
}

TEST_CASE("random contents are numbers that can be added in any order, if a sum leaves it open") {
  const auto contents = [](const std::string& how) {
    const auto s = parse(kernel("store gpu0.out = sum(gpu0.a, gpu0.b) " + how));
    std::vector<std::vector<std::byte>> all(s.buffers.size(), std::vector<std::byte>(4 << 10));
    detail::fill(s, 3, [&](std::size_t k) { return std::span(all[k]); });
    return all[0];
  };
  const auto each = [](const std::vector<std::byte>& all, std::size_t size, auto fn) {
    for (std::size_t at = 0; at < all.size(); at += size) {
      std::uint32_t word = 0;
      std::memcpy(&word, all.data() + at, size);
      fn(std::bit_cast<float>(word << (size == 2 ? 16 : 0)));
    }
  };
  each(contents("type=f32 order=free"), 4, [](float f) { CHECK((f == std::trunc(f) && f >= -128 && f < 128)); });
  each(contents("type=bf16 order=free"), 2, [](float f) { CHECK((f == std::trunc(f) && f >= -4 && f < 4)); });
  std::size_t whole = 0;
  each(contents("type=f32"), 4, [&](float f) {
    CHECK((std::abs(f) >= 0.125f && std::abs(f) < 32));
    whole += f == std::trunc(f);
  });
  CHECK(whole < 10);
  each(contents("type=bf16"), 2, [](float f) { CHECK((std::abs(f) >= 0.125f && std::abs(f) < 32)); });
  const auto plain = parse(kBuffers);
  std::vector<std::byte> bytes(4 << 10);
  detail::fill(plain, 3, [&](std::size_t) { return std::span(bytes); });
  CHECK(contents("type=i32") != contents("type=f32"));
}

TEST_CASE("a stand-in adds, and a run compares sums") {
  const auto ran = [](const std::string& text) {
    const auto d = node(2, Ordering::strict, 1);
    return lines(run(link(parse(text), *d)).findings);
  };
  for (const std::string type : {"f32", "bf16", "i32"}) {
    const auto sum = "store gpu0.out = sum(gpu*.a, gpu0.b) type=" + type;
    CHECK(ran(kernel(sum) + "expect gpu0.out == sum(gpu0.a, gpu1.a, gpu0.b) type=" + type + "\n") == "");
    CHECK(ran(kernel(sum) + "expect gpu0.out == old sum(gpu0.a, gpu1.a, gpu0.b) type=" + type + "\n") == "");
    const auto other = "old sum(gpu0.b, gpu1.a, gpu0.a) type=" + type;
    CHECK((ran(kernel(sum) + "expect gpu0.out == " + other + "\n") == "") == (type == "i32"));
    CHECK(ran(kernel(sum + " order=free") + "expect gpu0.out == " + other + " order=free\n") == "");
    CHECK(ran(kernel(sum) + "expect gpu0.out == old sum(gpu0.a, gpu1.a) type=" + type + "\n").find("bytes differ") !=
          std::string::npos);
    CHECK(ran(kernel("store gpu0.a = sum(gpu0.a, gpu0.b) type=" + type +
                     "\nexpect gpu0.a == old sum(gpu0.b, gpu0.a) type=" + type)) == "");
  }
  const auto d = node(2);
  const auto r = run(link(parse(kernel("expect gpu0.a == sum(gpu0.a, gpu0.b) type=i32")), *d));
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].where == "kernel gpu0.add: expect gpu0.a == sum(gpu0.a, gpu0.b) type=i32");
}
