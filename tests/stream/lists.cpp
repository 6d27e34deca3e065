// SPDX-License-Identifier: MIT
// Lists, what loops go over, and lines that depend on a condition: in streams and in schedules.
#include "sdma/schedule/text.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

/// The values of an expression in a text, or the first error.
std::string assembled_list(const std::string& text, const AssembleOptions& options = {}) {
  const auto r = assemble(text, "a", options);
  if (!r) return r.error().front().message + (r.error().front().hint.empty() ? "" : " | " + r.error().front().hint);
  std::string all;
  for (const auto d : *r) all += (all.empty() ? "" : " ") + std::to_string(d);
  return all;
}
std::string each(const std::string& list) {
  return assembled_list("let l = " + list + "\nfor v in l\n.dword v\nend\n");
}
std::string list_result(const std::string& expression) {
  return assembled_list("let l = [4, 8, 15]\nlet one = [1]\n.dword " + expression + "\n");
}

}  // namespace

TEST_CASE("a list has a name, elements, and a length") {
  CHECK(list_result("(l[0])") == "4");
  CHECK(list_result("(l[1+1]*2+1)") == "31");
  CHECK(list_result("len(l)") == "3");
  CHECK(list_result("len([])") == "0");
  CHECK(list_result("(l[l[0]-3])") == "8");
  CHECK(assembled_list("let l = [4, 8]\nlet x4 = 7\nfor i in 0..2\n.dword l[i]\nend\n.dword x{l[0]}\n") == "4 8 7");
  CHECK(list_result("(l[3])") == "there is no l[3]: the list has 3 values");
  CHECK(list_result("(one[-1])") == "there is no one[-1]: the list has 1 value");
  CHECK(list_result("l") == "'l' is a list, not a number | write l[0], or len(l)");
  CHECK(list_result("len(3)").starts_with("expected a list, got '3'"));
  // `len` is no reserved word.
  CHECK(assembled_list("let len = 3\n.dword len\n") == "3");
}

TEST_CASE("a list may be computed from another one, or from a range") {
  CHECK(each("[i*i for i in 0..4]") == "0 1 4 9");
  CHECK(each("[i for i in 0..10 step 4]") == "0 4 8");
  CHECK(each("[i for i in 0..10 if i%3 == 1]") == "1 4 7");
  CHECK(each("[v+1 for v in [7, 9]]") == "8 10");
  CHECK(each("[len([j for j in 0..i if j > 1]) for i in 0..5]") == "0 0 0 1 2");
  CHECK(each("[i for i in 3..1]") == "");
  CHECK(each("[max(i, 2) for i in 0..4]") == "2 2 2 3");
  CHECK(each("[i for l in 0..2]") == "'i' is not defined | did you mean 'l'?");
  CHECK(assembled_list("let i = 0\nlet l = [i for i in 0..2]\n").starts_with("'i' is already defined"));
  CHECK(each("[i for i in 0..2 if i]").starts_with("expected one of == != < <= > >="));
  CHECK(each("[i for i in 0..2 if i > 0, 3]").starts_with("expected ']'"));
  CHECK(each("[i 2 for i in 0..2]").starts_with("expected 'for'"));
  CHECK(each("[1/i for i in 0..2]") == "division by zero");
}

TEST_CASE("a table may be written in rows") {
  const auto table = [](const std::string& rows, const std::string& value) {
    return assembled_list("let t = " + rows + "\n.dword " + value + "\n");
  };
  CHECK(table("[[0, 1, 2], [3, 4, 5]]", "(t[1, 2])") == "5");
  CHECK(table("[[0, 1], [2, 3]]", "len(t)") == "2");
  CHECK(table("[[i*2 for i in 0..3], [7, 8, 9]]", "sum(t[0])") == "6");
  CHECK(table("[\n  [1, 2],\n  [3, 4]\n]", "sum(t[0..2, 1])") == "6");
  CHECK(table("[[0, 1], [2]]", "1") ==
        "row 1 has 1 number, and row 0 has 2 | the rows of a table have the same length");
  CHECK(table("[[]]", "1") == "a row of a table has at least one number");
  CHECK(table("[[1], 2]", "1").starts_with("expected a row, got '2'"));
  CHECK(table("[[1] 2]", "1").starts_with("expected ',' or ']'"));
  CHECK(table("[[1]", "1") != "1");
  CHECK(table("[[[1]]]", "1") != "1");
}

TEST_CASE("lists cannot repeat more than loops, nor nest without a limit", "[long]") {
  const std::string together = " rounds; the loops of a text can have ";
  CHECK(
      each("[i for i in 0..67108865]")
          .starts_with("this list has 67108865" + together + "67108864 together (4G of memory, 64 bytes for each) | "));
  const auto nested = "for a in 0..1000\nlet l = [len([i for i in 0..1000]) for j in 0..1000]\nend\n";
  CHECK(assembled_list(nested, {.max_rounds = 1 << 20}).starts_with("this list has 1000" + together + "1048576"));
  CHECK(assembled_list("let l = [i+1000 for i in 0..1000]\n", {.max_text = 6999})
            .starts_with("the loops and lists of this text expand to more than 6999 bytes of text | "));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "len([";
  CHECK(assembled_list(".dword " + deep).find("nested too deeply") != std::string::npos);
  deep.clear();
  for (int i = 0; i < 100000; ++i) deep += "[x for x in ";
  CHECK(assembled_list("let l = " + deep) != "");
}

TEST_CASE("a part of a list is a list") {
  CHECK(each("[1, 2, 3]") == "1 2 3");
  const auto part = [](const std::string& index) {
    return assembled_list("let l = [4, 8, 15]\nfor v in l" + index + "\n.dword v\nend\n.dword 7\n");
  };
  CHECK(part("[0..2]") == "4 8 7");
  CHECK(part("[1..3]") == "8 15 7");
  CHECK(part("[3..3]") == "7");
  CHECK(part("[2..1]") == "7");
  CHECK(part("[1]..9").starts_with("8 7"));
  CHECK(part("[1..4]") == "there is no l[1..4]: the list has 3 values");
  CHECK(part("[0-1..2]") == "there is no l[-1..2]: the list has 3 values");
  CHECK(list_result("len(l[1..len(l)])") == "2");
  CHECK(list_result("(l[0..2])") == "'l' is a list, not a number | write l[0], or len(l)");
}

TEST_CASE("sums, the least and the most of lists") {
  CHECK(list_result("sum(l)") == "27");
  CHECK(list_result("sum(l[0..2])") == "12");
  CHECK(list_result("sum(l[0..0])") == "0");
  CHECK(list_result("sum(1, l, l[0], [2, 3])") == "37");
  CHECK(list_result("min(l)") == "4");
  CHECK(list_result("max(9, l, 2)") == "15");
  CHECK(list_result("max([])") == "an empty list has no 'max'");
  CHECK(list_result("sum(l[0..2]+1)").starts_with("expected ')'"));
  CHECK(list_result("sum()").starts_with("expected a number, got ')'"));
  CHECK(list_result("sum(0xffffffffffffffff, 1)") == "this value does not fit in 64 bits");
  // `sum` is no reserved word.
  CHECK(assembled_list("let sum = 3\n.dword sum\n") == "3");
}

TEST_CASE("lists are not taken and gone through without a limit", "[long]") {
  std::string many = "let l = [i for i in 0..100000]\n";
  CHECK(assembled_list(many + "for i in 0..100000\nlet s = sum(l)\nend\n")
            .starts_with("the lists of this text have too many values to go through them so often"));
  CHECK(assembled_list(many + "for i in 0..100000\nlet s = len(l[0..100000])\nend\n")
            .starts_with("the lists of this text have too many values to take them so often"));
}

TEST_CASE("a range has a step") {
  const auto loop = [](const std::string& range) { return assembled_list("for i in " + range + "\n.dword i\nend\n"); };
  CHECK(loop("0..7 step 3") == "0 3 6");
  CHECK(loop("0..6 step 3") == "0 3");
  CHECK(loop("5..5 step 3") == "");
  CHECK(loop("0..6 step 0") == "'step' must be from 1 to 18446744073709551615, got 0");
}

TEST_CASE("when: one line, if a condition holds") {
  CHECK(assembled_list("for i in 0..4\nwhen i%2 == 1: .dword i\nend\n") == "1 3");
  CHECK(assembled_list("when 1 > 2: what is this\n.dword 5\n") == "5");
  CHECK(assembled_list("when 1 < 2: for i in 0..2\nend\n").starts_with("expected one line's statement, got 'for'"));
  CHECK(assembled_list("when 1 < 2:\n").starts_with("expected one line's statement, got the end of the line"));
  CHECK(assembled_list("when 1: .dword 2\n").starts_with("expected one of == != < <= > >="));
  CHECK(assembled_list("when 1 < 2 .dword 2\n").starts_with("expected ':'"));
}
