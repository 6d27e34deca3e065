// SPDX-License-Identifier: MIT
// Comparisons as values, min and max, and what a text requires of its values: in streams and in schedules.
#include "sdma/schedule/text.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

/// The value of an expression, as a splice gives it.
std::string value(const std::string& expression) {
  const auto r = assemble("let v = " + expression + "\n.dword v\n", "a");
  return r ? std::to_string(r->front()) : to_string(r.error().front());
}
/// The messages of a text's errors, each with its place.
template <class Parsed> std::string lines(const Parsed& r) {
  std::string all;
  if (!r)
    for (const auto& d : r.error()) all += d.where + ": " + d.message + (d.hint.empty() ? "" : " | " + d.hint) + "\n";
  return all;
}
std::string stream(const std::string& text) { return lines(assemble(text, "a")); }
std::string schedule(const std::string& text, std::vector<ParseOptions::Setting> set = {}) {
  return lines(parse_schedule("sdma 1\ngpus 2\n" + text, "s", {.set = std::move(set)}));
}

}  // namespace

TEST_CASE("a comparison is 1 or 0, and binds weaker than the operators") {
  CHECK(value("1 < 2") == "1");
  CHECK(value("2 < 2") == "0");
  CHECK(value("2 <= 2") == "1");
  CHECK(value("3 > 2") == "1");
  CHECK(value("2 >= 3") == "0");
  CHECK(value("2 == 2") == "1");
  CHECK(value("2 != 2") == "0");
  CHECK(value("-1 < 0") == "1");
  CHECK(value("1+1 == 4/2") == "1");
  CHECK(value("10-(7 % 4 > 0)") == "9");
  CHECK(value("(1 < 2)*(2 < 3)") == "1");
  CHECK(value("(1 < 2)+(2 > 3)") == "1");
  CHECK(value("0x8000000000000000 > -0x8000000000000000").starts_with("1"));
}

TEST_CASE("shifts and the exclusive or bind weaker than sums, and stronger than comparisons") {
  CHECK(value("1 << 4") == "16");
  CHECK(value("1 << 2+2") == "16");
  CHECK(value("(-1 << 63 == -0x8000000000000000)") == "1");
  CHECK(value("255 >> 4 >> 2") == "3");
  CHECK(value("(-5 >> 1 == -3)") == "1");
  CHECK(value("(-4 >> 1 == -2)") == "1");
  CHECK(value("(-1 >> 63 == -1)") == "1");
  CHECK(value("6 ^ 3") == "5");
  CHECK(value("6 ^ 1 << 1") == "4");
  CHECK(value("6 ^ 3 == 5") == "1");
  CHECK(value("(-1 ^ 5 == -6)") == "1");
  CHECK(value("(-1 ^ -6)") == "5");
  CHECK(value("(0xffffffffffffffff ^ 0xfffffffffffffffe)") == "1");
  CHECK(value("1 << 64").find("a shift is from 0 to 63 bits, got 64") != std::string::npos);
  CHECK(value("1 >> -1").find("a shift is from 0 to 63 bits, got -1") != std::string::npos);
  CHECK(value("2 << 63").find("this value does not fit in 64 bits") != std::string::npos);
  CHECK(value("0xffffffffffffffff ^ -1").find("this value does not fit in 64 bits") != std::string::npos);
  CHECK(schedule("signal host.s value=0\nqueue gpu0.q peer=gpu1\npoll_mem addr=host.s func=ge reference=epoch^1\nend\n")
            .find("this value is known only while the schedule runs, so '^' cannot take it") != std::string::npos);
}

TEST_CASE("of a choice, only the value that is taken is evaluated") {
  CHECK(value("1 < 2 ? 7 : 8") == "7");
  CHECK(value("1 > 2 ? 7 : 8") == "8");
  CHECK(value("1 > 2 ? 7 : 2 > 1 ? 9 : 10") == "9");
  CHECK(value("1 < 2 ? 2 > 3 ? 5 : 6 : 10") == "6");
  CHECK(value("10+(0 ? 1 : 2)") == "12");
  CHECK(value("max(1 < 2 ? 3 : 4, 2)") == "3");
  CHECK(value("1 < 2 ? 7 : 1/0") == "7");
  CHECK(value("1 > 2 ? 1 << 99 : 8") == "8");
  CHECK(value("1 < 2 ? 7 : [3][9]").find("expected a number, got '['") != std::string::npos);
  CHECK(stream("let l = [4, 8]\nfor i in 0..2\n.dword (i > 0 ? l[i-1] : min(l[i], l[i+1]))\nend\n") == "");
  CHECK(stream("let l = [4]\nfor i in 0..2\n.dword (i < 1 ? l[i] : x{i-1}+sum(l[i..9]))\nend\n")
            .find("'x0' is not defined") != std::string::npos);
  CHECK(stream("let l = [4]\n.dword (1 > 0 ? l[0] : x{0-1}+sum(l[5..9]) > 3 ? 1 : 2)\n") == "");
  CHECK(value("1 < 2 ? 7").find("expected ':'") != std::string::npos);
  CHECK(value("1 < 2 ? 7 : ").find("expected a number") != std::string::npos);
  CHECK(stream("when 1 < 2 ? 2 > 1 : 1 > 2: nop\n") == "");
  CHECK(schedule("signal host.s value=0\nqueue gpu0.q peer=gpu1\npoll_mem addr=host.s func=ge "
                 "reference=(1 < 2 ? epoch : 3)\nend\n") == "");
  std::string deep = "1";
  for (int i = 0; i < 100000; ++i) deep += "?1";
  CHECK(value(deep).find("nested too deeply") != std::string::npos);
}

TEST_CASE("the least and the most of several values") {
  CHECK(value("min(3, 1, 2)") == "1");
  CHECK(value("max(3, 1, 2)") == "3");
  CHECK(value("max(0, 3-5)") == "0");
  CHECK(value("min(7)") == "7");
  CHECK(value("2*min(max(1, 5), 4)+1") == "9");
  CHECK(value("max(2 > 1, 0)") == "1");
  // They are no reserved words.
  CHECK(stream("let min = 3\nlet max = min+1\n.dword min(max, 9) max\n") == "");
  CHECK(value("min()").find("expected a number, got ')'") != std::string::npos);
  CHECK(value("min(1").find("expected ')'") != std::string::npos);
  CHECK(value("min(1 2)").find("expected ')'") != std::string::npos);
  CHECK(value("avg(1, 2)").find("'avg' is not a function") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "max(";
  CHECK(value(deep).find("nested too deeply") != std::string::npos);
}

TEST_CASE("what a text requires of its values") {
  CHECK(stream("require 1 < 2 \"never printed\"\nnop\n") == "");
  CHECK(stream("let n = 3\nrequire n % 2 == 0 \"an even n, got {n}\"\nnop\n") ==
        "a:2:9: an even n, got 3 | the text requires this of its values\n");
  CHECK(stream("require max(1, 2) > 2 \"{1-3} and { stay\"\n") ==
        "a:1:9: -2 and { stay | the text requires this of its values\n");
  CHECK(stream("for i in 0..3\nrequire i < 1 \"i is {i}\"\nend\n") ==
        "a:2:9: i is 1 [i=1] | the text requires this of its values\n");
  CHECK(stream("require 1 < 2\n") ==
        "a:1:14: expected a message in quotes, got the end of the line | write require N > 1 \"at least two GPUs\"\n");
  CHECK(stream("require 1 \"no comparison\"\n") ==
        "a:1:11: expected one of == != < <= > >=, got '\"no comparison\"' | write if k % 2 == 0\n");
  CHECK(stream("require 1 < 2 \"one\" \"two\"\n").find("expected the end of the line") != std::string::npos);
  CHECK(stream("require 1 > 2 \"{n}\"\n").find("'n' is not defined") != std::string::npos);
}

TEST_CASE("what a schedule requires is asked once, wherever it stands") {
  const std::string line = "require N > 1 \"at least two, got {N}\"\n";
  const std::string at = ": at least two, got 1 | the text requires this of its values\n";
  CHECK(schedule("param N = 2\n" + line) == "");
  CHECK(schedule("param N = 2\n" + line, {{"N", "1"}}) == "s:4:9" + at);
  CHECK(schedule("param N = 2\nqueue gpu0.q engine=0\n" + line + "end\n", {{"N", "1"}}) == "s:5:9" + at);
  CHECK(schedule("param N = 2\nhost h\n" + line + "end\n", {{"N", "1"}}) == "s:5:9" + at);
  // Not in a branch that is not taken.
  CHECK(schedule("param N = 2\nif N > 1\n" + line + "end\n", {{"N", "1"}}) == "");
  // What is known only while the schedule runs cannot be compared.
  CHECK(schedule("signal host.n value=0\nhost h\n  repeat 3\n    wait host.n >= (epoch < 2)\n  end\nend\n")
            .find("known only while the schedule runs") != std::string::npos);
  CHECK(schedule("signal host.n value=0\nhost h\n  repeat 3\n    wait host.n >= max(epoch, 2)\n  end\nend\n")
            .find("known only while the schedule runs") != std::string::npos);
}

TEST_CASE("the formatter leaves blanks around the comparison of a require") {
  CHECK(format_source("sdma 1\nrequire N%2==0   \"even\"\n") == "sdma 1\nrequire N%2 == 0 \"even\"\n");
  CHECK(format_source("sdma 1\nrequire (N<2)*(M<3) == 1 \"x\"\n").find("require (N") != std::string::npos);
}
