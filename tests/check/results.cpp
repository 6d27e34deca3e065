// SPDX-License-Identifier: MIT
// Expectations are proved for every order: what is proved, what is refuted, whose bytes are there and who put them
// there, and what is not followed.
#include "checked.hpp"

using namespace sdma;
using test::checked, test::has, test::said;

namespace {

/// A queue with these packets, submitted once and waited for, and these expectations.
std::string with_packets(const std::string& packets, const std::string& rest) {
  return "gpus 2\nbuffer gpu0.a bytes=8K init=random\nbuffer gpu0.b bytes=8K\nbuffer gpu1.c bytes=8K\n"
         "buffer gpu1.z bytes=8K init=zero\nsignal gpu0.w value=5 bits=32\nsignal host.done value=0\n"
         "queue gpu0.q peer=gpu1\n" +
         packets +
         "atomic op=add_rtn_64 addr=host.done value=1\nend\n"
         "host main\nsubmit *\nwait host.done == 1\nend\n" +
         rest;
}
/// "proved 2", with the number of expectations that hold; or the findings that are more than advice.
std::string result(const std::string& packets, const std::string& rest) {
  const auto r = checked(with_packets(packets, rest));
  if (r.proved()) return "proved " + std::to_string(r.expectations);
  std::string out;
  for (const auto& f : r.findings)
    if (f.diagnostic.severity != Severity::note) out += f.diagnostic.rule + ": " + f.diagnostic.message;
  return out;
}
bool begins(const std::string& text, const std::string& with) {
  INFO(text);
  return text.starts_with(with);
}
/// Two packets with a barrier between them.
std::string then(const std::string& one, const std::string& two) {
  return one + "fence addr=gpu0.w value=9\npoll_mem addr=gpu0.w func=eq reference=9\n" + two;
}
const std::string kCopy = "copy_linear bytes=4K src=gpu0.a dst=gpu1.c\n";

}  // namespace

TEST_CASE("a copy takes contents, and every expectation about them is proved") {
  CHECK(result(kCopy, "expect gpu1.c[0..4K] == old gpu0.a[0..4K]\n") == "proved 1");
  CHECK(result(kCopy, "expect gpu1.c[0..4K] == gpu0.a[0..4K]\nexpect gpu1.c[4K..8K] == old gpu1.c[4K..8K]\n") ==
        "proved 2");
  CHECK(result(kCopy, "expect gpu1.c[1..100] == old gpu0.a[1..100]\n") == "proved 1");
  CHECK(result(kCopy, "") == "proved 0");
}

TEST_CASE("a wrong expectation says whose bytes are there, and who put them there") {
  const auto r = checked(with_packets(kCopy, "expect gpu1.c[2K..6K] == old gpu0.a[2K..6K]\n"));
  REQUIRE(has(r, "wrong-result"));
  const auto& f = r.findings.front();
  CHECK(f.diagnostic.message ==
        "expect gpu1.c[2K..+4K] == old gpu0.a[2K..+4K]: gpu1.c[4K..+2K] holds the first contents of gpu1.c[4K..+2K], "
        "not the first contents of gpu0.a[4K..+2K]; nothing has stored to them");
  CHECK(f.overlap == "gpu1.c[4K..+2K]");
  CHECK(f.locations.empty());
  const auto moved = checked(with_packets(kCopy,
                                          "expect gpu1.c[0..1K] == old gpu0.a[1K..2K]\n"
                                          "expect gpu1.c[0..1K] == old gpu0.a[2K..3K]\n"));
  REQUIRE(has(moved, "wrong-result"));
  CHECK(moved.findings.front().diagnostic.message ==
        "expect gpu1.c[0..+1K] == old gpu0.a[1K..+1K]: gpu1.c[0..+1K] holds the first contents of gpu0.a[0..+1K], not "
        "the first contents of gpu0.a[1K..+1K]; 1 expectation more");
  REQUIRE(moved.findings.front().locations.size() == 1);
  CHECK(moved.findings.front().locations[0].text == "copy_linear bytes=4K src=gpu0.a dst=gpu1.c");
  CHECK(moved.findings.front().diagnostic.at.line == 10);
  CHECK(moved.expectations == 0);
}

TEST_CASE("contents pass through broadcasts, swaps, boxes, fills and writes") {
  CHECK(result("copy_broadcast bytes=4K src=gpu0.a dst1=gpu0.b dst2=gpu1.c\n",
               "expect gpu0.b[0..4K] == old gpu0.a[0..4K]\nexpect gpu1.c[0..4K] == gpu0.b[0..4K]\n") == "proved 2");
  CHECK(result("copy_swap bytes=4K a=gpu0.a b=gpu0.b\n",
               "expect gpu0.b[0..4K] == old gpu0.a[0..4K]\nexpect gpu0.a[0..4K] == old gpu0.b[0..4K]\n") == "proved 2");
  CHECK(begins(result("copy_swap bytes=4K a=gpu0.a b=gpu0.b\n", "expect gpu0.b[0..4K] == gpu0.a[0..4K]\n"),
               "wrong-result"));
  const std::string box =
      "copy_subwindow element_log2=0 src=gpu0.a src_pitch=64 dst=gpu1.c dst_pitch=32 x=16 y=4 z=1\n";
  CHECK(result(box,
               "expect gpu1.c[0..16] == old gpu0.a[0..16]\nexpect gpu1.c[96..112] == old gpu0.a[192..208]\n"
               "expect gpu1.c[16..32] == old gpu1.c[16..32]\n") == "proved 3");
  CHECK(begins(result(box, "expect gpu1.c[32..48] == old gpu0.a[32..48]\n"), "wrong-result"));
  const std::string fill = "fill bytes=4K data=0 dst=gpu1.c unit=dword\n";
  CHECK(result(fill, "expect gpu1.c[0..4K] == gpu1.z[0..4K]\nexpect gpu1.c[0..4K] == gpu1.z[4K..8K]\n") == "proved 2");
  CHECK(
      begins(result("fill bytes=4K data=0x100 dst=gpu1.c unit=dword\n", "expect gpu1.c[0..4K] == gpu1.z[0..4K]\n"),
             "wrong-result: expect gpu1.c[0..+4K] == gpu1.z[0..+4K]: gpu1.c[0..+4K] holds 0x00 0x01 0x00 0x00 .., not "
             "0x00 0x00 0x00 0x00 .."));
  CHECK(result("write dst=gpu1.c data=[0 0]\n", "expect gpu1.c[0..8] == gpu1.z[0..8]\n") == "proved 1");
  CHECK(
      begins(result("write dst=gpu1.c data=[0 0x1000000]\n", "expect gpu1.c[0..8] == gpu1.z[0..8]\n"), "wrong-result"));
}

TEST_CASE("what comes later replaces what came before") {
  const std::string back = "copy_linear bytes=1K src=gpu1.c[1K] dst=gpu0.b\n";
  CHECK(result(then(kCopy, back), "expect gpu0.b[0..1K] == old gpu0.a[1K..2K]\n") == "proved 1");
  CHECK(result(then("fill bytes=1K data=0 dst=gpu1.c[1K] unit=dword\n", back),
               "expect gpu0.b[0..1K] == gpu1.z[0..1K]\n") == "proved 1");
  CHECK(begins(
      result(then(kCopy, "fill bytes=16 data=7 dst=gpu1.c[1K] unit=dword\n"),
             "expect gpu1.c[0..4K] == old gpu0.a[0..4K]\n"),
      "wrong-result: expect gpu1.c[0..+4K] == old gpu0.a[0..+4K]: gpu1.c[1K..+16] holds 0x07 0x00 0x00 0x00 .."));
}

TEST_CASE("final values of signals are proved") {
  CHECK(result(kCopy, "expect host.done == 1\nexpect gpu0.w == 5\n") == "proved 2");
  CHECK(begins(result(kCopy, "expect host.done == 2\n"), "wrong-result: expect host.done == 2: host.done holds 0x01"));
  CHECK(result(then(kCopy, ""), "expect gpu0.w == 9\n") == "proved 1");
  // Additions commute: the sum is the same in every order.
  const std::string two =
      "gpus 1\nsignal host.n value=3\nfor i in 0..2\nqueue gpu0.q{i} engine=i\natomic op=add_rtn_64 addr=host.n "
      "value=i+1\nend\nend\nhost main\nsubmit *\nwait host.n == 6\nend\nexpect host.n == ";
  CHECK(checked(two + "6").proved());
  CHECK(has(checked(two + "5"), "wrong-result"));
}

TEST_CASE("threads store, and expect bytes at their moment") {
  const auto thread = [](const std::string& actions) {
    return checked(
        "gpus 1\nbuffer host.a bytes=64\nbuffer host.b bytes=64 init=zero\nsignal host.x value=0\n"
        "host main\n" +
        actions + "end\nhost other\nwait host.x == 1\nend\n");
  };
  const std::string set = "set host.x = 1\n";
  CHECK(thread("store host.a[0..64] = zero\nexpect host.a == host.b\n" + set).expectations == 1);
  CHECK(has(thread("expect host.a == host.b\nstore host.a[0..64] = zero\n" + set), "wrong-result"));
  CHECK(has(thread("store host.a[0..64] = 0x41\nexpect host.a == host.b\n" + set), "wrong-result"));
  CHECK(thread("store host.a[0..64] = random\nstore host.b[0..32] = zero\n" + set + "expect host.a == host.a\n")
            .proved());
  // Two random stores of one range and round are equal in a run; that is not followed.
  CHECK(has(thread("store host.a = random\nexpect host.a == old host.a\n" + set), "wrong-result"));
}

TEST_CASE("what is not followed is named, and leaves the schedule unproved") {
  const auto stamp = result("timestamp addr=gpu1.c\n", "expect gpu1.c[0..8] == old gpu1.c[0..8]\n");
  CHECK(begins(stamp,
               "unknown-result: expect gpu1.c[0..+8] == old gpu1.c[0..+8]: whether gpu1.c[0..+8] holds the first "
               "contents of gpu1.c[0..+8] is not known: it holds what line 10 stores"));
  // An opaque byte equals itself.
  CHECK(result(then("timestamp addr=gpu1.c\n", "copy_linear bytes=8 src=gpu1.c dst=gpu0.b\n"),
               "expect gpu1.c[0..8] == gpu0.b[0..8]\n") == "proved 1");
  CHECK(begins(result("timestamp addr=gpu1.c\n", "expect gpu1.c[8..16] == gpu1.z[0..8]\n"), "wrong-result"));
}

TEST_CASE("no expectation of a schedule with another finding is examined") {
  const auto r =
      checked(with_packets(kCopy + "fill bytes=16 data=7 dst=gpu1.c unit=dword\n", "expect gpu0.a == old gpu0.b\n"));
  CHECK(has(r, "race"));
  CHECK(!has(r, "wrong-result"));
  CHECK(r.expectations == 0);
}

TEST_CASE("no attacker is proved") {
  const std::string fill = "fill bytes=16 data=7 dst=gpu1.c[2K] unit=dword\n";
  const std::string back = "copy_linear bytes=4K src=gpu1.c dst=gpu0.b\n";
  const auto attack = [](const std::string& packets, const std::string& rest, CheckOptions o = {}) {
    INFO(packets << rest);
    const auto r = checked(with_packets(packets, rest), std::move(o));
    CHECK(!r.proved());
    CHECK(r.verdict() != Verdict::proved);
    return said(r);
  };
  const std::string whole = "expect gpu1.c[0..4K] == old gpu0.a[0..4K]\n";
  // Each of these holds if a queue executes in order, and not in every order.
  attack(fill + kCopy, whole);
  attack(kCopy + back, "expect gpu0.b[0..4K] == old gpu0.a[0..4K]\n");
  attack("write dst=gpu1.c data=[1 2 3]\n" + kCopy, whole);
  attack(kCopy + "copy_linear bytes=16 src=gpu1.z dst=gpu1.c[4080]\n", "expect gpu1.c[4080..4K] == gpu1.z[0..16]\n");
  attack("copy_swap bytes=4K a=gpu0.a b=gpu0.b\ncopy_swap bytes=4K a=gpu0.a b=gpu0.b\n",
         "expect gpu0.a[0..4K] == old gpu0.a[0..4K]\n");
  // Under the assumption that makes them true they are proved, and the verdict names it.
  CheckOptions strict{.profile = Profile::strict()};
  CHECK(checked(with_packets(fill + kCopy, whole), strict).proved());
  CHECK(checked(with_packets(kCopy + back, "expect gpu0.b[0..4K] == old gpu0.a[0..4K]\n"), strict).proved());
  // What is wrong in every order is wrong under every assumption.
  const auto wrong = [&](const std::string& packets, const std::string& rest) {
    CHECK(begins(attack(packets, rest), "wrong-result"));
    CHECK(begins(attack(packets, rest, strict), "wrong-result"));
  };
  wrong(then(kCopy, fill), whole);
  wrong(then(fill, "copy_linear bytes=2064 src=gpu0.a dst=gpu1.c\n"), whole);
  wrong("copy_linear bytes=4095 src=gpu0.a dst=gpu1.c\n", whole);
  wrong("copy_linear bytes=4K src=gpu0.a[1] dst=gpu1.c\n", whole);
  wrong(then("copy_swap bytes=4K a=gpu0.a b=gpu0.b\n", "copy_linear bytes=4K src=gpu0.a dst=gpu1.c\n"), whole);
  wrong(then(kCopy, "fence addr=gpu1.c[8] value=7\n"), whole);
  // A sum of random bytes is not followed.
  CHECK(begins(attack(then(kCopy, "atomic op=add_rtn_32 addr=gpu1.c[8] value=1\n"), whole), "unknown-result"));
  wrong("nop\n", "expect host.done == 0\n");
}

TEST_CASE("what a thread, a kernel or an unordered packet stores is not taken for what was there") {
  const auto r = [](const std::string& kernel, const std::string& rest) {
    return checked(
        "gpus 2\nbuffer gpu0.in bytes=64 init=random\nbuffer gpu1.out bytes=64 init=zero\n"
        "signal host.go value=0\nsignal host.done value=0\nkernel gpu1.k\nwait host.go == 1\n" +
        kernel +
        "set host.done = 1\nend\nqueue gpu0.q peer=gpu1\ncopy_linear bytes=64 src=gpu0.in dst=gpu1.out\n"
        "fence addr=host.go value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n" +
        rest);
  };
  const std::string whole = "expect gpu1.out == old gpu0.in\n";
  CHECK(r("", whole).proved());
  CHECK(r("store gpu1.out = random\n", "").proved());
  CHECK(has(r("store gpu1.out = random\n", whole), "wrong-result"));
  CHECK(has(r("store gpu1.out[32..33] = 0x5a\n", whole), "wrong-result"));
  // A copy that races with a write of the host.
  const auto race = checked(
      "gpus 2\nbuffer gpu0.in bytes=64 init=random\nbuffer gpu1.out bytes=64\nsignal host.done value=0\n"
      "queue gpu0.q peer=gpu1\ncopy_linear bytes=64 src=gpu0.in dst=gpu1.out\nfence addr=host.done value=1\nend\n"
      "host main\nsubmit *\nstore gpu0.in[0..4] = zero\nwait host.done == 1\nend\n"
      "expect gpu1.out == old gpu0.in\n");
  CHECK(has(race, "race"));
  CHECK(race.expectations == 0);
  // A condition that holds in some executions only.
  const auto maybe = checked(
      "gpus 1\nbuffer gpu0.a bytes=64 init=random\nbuffer gpu0.b bytes=64\nsignal gpu0.w value=0 bits=32\n"
      "signal host.done value=0\nqueue gpu0.p engine=2\nfence addr=gpu0.w value=1\natomic op=add_rtn_64 addr=host.done value=1\n"
      "end\nqueue gpu0.q engine=3\ncond_exec addr=gpu0.w reference=1 dwords=7\ncopy_linear bytes=64 src=gpu0.a dst=gpu0.b\n"
      "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 2\nend\n"
      "expect gpu0.b == old gpu0.a\n");
  INFO(said(maybe));
  CHECK(!maybe.proved());
}
