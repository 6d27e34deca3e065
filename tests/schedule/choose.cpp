// SPDX-License-Identifier: MIT
// `choose`: what a schedule leaves open, by default, by --set, and as a search takes it.
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sdma;

namespace {

/// The values of the signals that lines declare, in their order: "1 2 3". Errors as "! message".
std::string values(const std::string& lines, ParseOptions o = {}) {
  const auto s = parse_schedule("sdma 1\n" + lines, "t", o);
  std::string out;
  if (!s) {
    for (const auto& e : s.error()) out += "! " + e.message;
    return out;
  }
  for (const auto& g : s->signals) out += (out.empty() ? "" : " ") + std::to_string(g.value);
  return out;
}

std::string with(const std::string& lines, Decisions& d) { return values(lines, {.decisions = &d}); }

/// "e [i=0]: 2 3" and so on: the names, the number of alternatives, and the values.
std::string met(const Decisions& d) {
  std::string out;
  for (const auto& c : d.met)
    out += (out.empty() ? "" : "; ") + c.name + ": " + std::to_string(c.alternatives) + " " + c.value;
  return out;
}

const std::string kTwo = "choose a in [4, 1K, 9]\nchoose b in 1..a\nsignal host.a value=a\nsignal host.b value=b\n";
const std::string kOrder = "for k in 1..4 choose order\nsignal host.s{k} value=k\nend\n";

}  // namespace

TEST_CASE("a value that is set may be computed from what stands above its line") {
  const auto first = [&](std::vector<ParseOptions::Setting> set) -> std::string {
    const auto s = parse_schedule(
        "sdma 1\nparam N = 8\nlet half = N/2\nparam M = 1\nparam L = [1]\n"
        "param way = push of [push, pull]\nchoose c in 1..N\nparam K = 4\n"
        "gpus 1\nbuffer gpu0.{way}{M}{c} bytes=K*sum(L)\n",
        "text", {.set = std::move(set)});
    if (!s) return "! " + s.error().front().message;
    return s->buffers[0].name + " " + std::to_string(s->buffers[0].bytes);
  };
  CHECK(first({}) == "push11 4");
  CHECK(first({{"M", "N/2"}}) == "push41 4");
  CHECK(first({{"N", "16"}, {"M", "half+1"}, {"c", "N-1"}}) == "push915 4");
  CHECK(first({{"L", "N,M"}, {"way", "pull"}}) == "pull11 36");
  CHECK(first({{"L", "[i for i in 0..N]"}}) == "push11 112");
  CHECK(first({{"c", "N"}}) == "! 8 is not one of the values of 'c'");
  CHECK(first({{"N", "K"}}) == "! 'K' is not defined");  // it stands below
  CHECK(first({{"M", "N/"}}).starts_with("! "));
}

TEST_CASE("the first alternative is the default, and --set takes another") {
  CHECK(values(kTwo) == "4 1");
  CHECK(values(kTwo, {.set = {{"a", "9"}, {"b", "8"}}}) == "9 8");
  CHECK(values(kTwo, {.set = {{"a", "5"}}}) == "! 5 is not one of the values of 'a'");
  CHECK(values(kTwo, {.set = {{"b", "4"}}}) == "! 4 is not one of the values of 'b'");
  CHECK(values(kTwo, {.set = {{"c", "4"}}}) == "! there is no param 'c'");
  SourceMap map;
  CHECK(values(kTwo, {.map = &map}) == "4 1");
  CHECK(map.params == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a reading lists what is open, and takes what it is asked to") {
  Decisions d;
  CHECK(with(kTwo, d) == "4 1");
  CHECK(met(d) == "a: 3 4; b: 3 1");
  CHECK(d.met[1].at == 7 + kTwo.find("choose b"));
  d.take = {{d.met[0].id, 2}, {d.met[1].id, 6}};
  CHECK(with(kTwo, d) == "9 7");
  CHECK(met(d) == "a: 3 9; b: 8 7");
  CHECK(decisions_text(d.met) == "a=9 b=7");
  // With a = 4, there is no seventh alternative of b.
  d.take[d.met[0].id] = 0;
  CHECK(with(kTwo, d) == "4 1");
  // What --set fixes is not open.
  CHECK(values(kTwo, {.set = {{"a", "9"}}, .decisions = &d}) == "9 7");
  CHECK(met(d) == "a: 1 9; b: 8 7");
  CHECK(decisions_text(d.met) == "b=7");
}

TEST_CASE("each iteration has its own choice, unless they share it") {
  const auto text = [](const std::string& scope) {
    return "for i in 0..2\nfor k in 1..3\nchoose e in [5, 6]" + scope + "\nsignal host.s{i}_{k} value=e\nend\nend\n";
  };
  Decisions own, per, once;
  CHECK(with(text(""), own) == "5 5 5 5");
  CHECK(met(own) == "e [i=0 k=1]: 2 5; e [i=0 k=2]: 2 5; e [i=1 k=1]: 2 5; e [i=1 k=2]: 2 5");
  own.take[own.met[2].id] = 1;
  CHECK(with(text(""), own) == "5 5 6 5");
  CHECK(decisions_text(own.met) == "e [i=0 k=1]=5 e [i=0 k=2]=5 e [i=1 k=1]=6 e [i=1 k=2]=5");

  CHECK(with(text(" per k"), per) == "5 5 5 5");
  CHECK(met(per) == "e [k=1]: 2 5; e [k=2]: 2 5");
  per.take[per.met[1].id] = 1;
  CHECK(with(text(" per k"), per) == "5 6 5 6");
  CHECK(with(text(" per i, k+1"), per) == "5 5 5 5");
  CHECK(per.met.back().name == "e [i=1 k+1=3]");

  CHECK(with(text(" once"), once) == "5 5 5 5");
  CHECK(met(once) == "e: 2 5");
  once.take[once.met[0].id] = 1;
  CHECK(with(text(" once"), once) == "6 6 6 6");

  // Two rounds with the same values of their variables are two choices.
  Decisions twice;
  const std::string same = "let n = 0\nfor i in [3, 3]\nchoose e in 0..2\nif e == 1\nsignal host.s value=1\nend\nend\n";
  CHECK(with(same, twice) == "");
  REQUIRE(twice.met.size() == 2);
  twice.take[twice.met[1].id] = 1;
  CHECK(with(same, twice) == "1");
}

TEST_CASE("an order is one choice after another: which value comes next") {
  Decisions d;
  CHECK(with(kOrder, d) == "1 2 3");
  CHECK(met(d) == "k: 3 1; k: 2 2; k: 1 3");
  CHECK(decisions_text(d.met) == "");
  std::vector<std::string> all;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 2; ++b) {
      d.take = {{d.met[0].id, a}, {d.met[1].id, b}};
      all.push_back(with(kOrder, d));
    }
  CHECK(all == std::vector<std::string>{"1 2 3", "1 3 2", "2 1 3", "2 3 1", "3 1 2", "3 2 1"});
  CHECK(decisions_text(d.met) == "k=3,2,1");
  CHECK(values("for k in [7, 2] choose order\nsignal host.s{k} value=k\nend\n") == "7 2");
  CHECK(values("for k in 0..0 choose order\nend\nsignal host.x value=1\n") == "1");
  // Shared by two loops of the same line, and by none.
  Decisions shared, own;
  const auto nested = [](const std::string& scope) {
    return "for i in 0..2\nfor k in 0..2 choose order" + scope + "\nsignal host.s{i}_{k} value=k\nend\nend\n";
  };
  CHECK(with(nested(" once"), shared) == "0 1 0 1");
  shared.take[shared.met[0].id] = 1;
  CHECK(with(nested(" once"), shared) == "1 0 1 0");
  CHECK(with(nested(""), own) == "0 1 0 1");
  own.take[own.met[2].id] = 1;
  CHECK(with(nested(""), own) == "0 1 1 0");
  CHECK(decisions_text(own.met) == "k [i=1]=1,0");
}

TEST_CASE("choices in the bodies of queues and hosts") {
  const std::string text =
      "sdma 1\ngpus 2\nsignal host.s value=0\nfor i in 0..2\nqueue gpu{i}.q engine=0\n"
      "for k in 0..2 choose order\nchoose v in [3, 4] per k\nfence addr=host.s value=10*k+v\nend\nend\nend\n"
      "host main\nchoose w in [5, 6]\nsubmit *\nset host.s = w\nend\n";
  Decisions d;
  const auto plain = parse_schedule(text, "t", {.decisions = &d});
  REQUIRE(plain);
  CHECK(met(d) == "k [i=0]: 2 0; k [i=0]: 1 1; v [k=0]: 2 3; v [k=1]: 2 3; k [i=1]: 2 0; k [i=1]: 1 1; w: 2 5");
  d.take = {{d.met[0].id, 1}, {d.met[2].id, 1}, {d.met[6].id, 1}};
  const auto other = parse_schedule(text, "t", {.decisions = &d});
  REQUIRE(other);
  const auto flat = to_text(*other);
  CHECK(flat.find("value=13\n  fence addr=host.s value=4\n") != flat.npos);
  CHECK(flat.find("value=4\n  fence addr=host.s value=13\n") != flat.npos);
  CHECK(flat.find("set host.s = 6") != flat.npos);
  CHECK(flat.find("choose") == flat.npos);
  // What a search has taken is found again by the same ids.
  const auto again = parse_schedule(text, "t", {.decisions = &d});
  REQUIRE(again);
  CHECK(*again == *other);
}

TEST_CASE("what is wrong with a choice") {
  CHECK(values("choose a in 3..3\n") == "! there is nothing to choose from");
  CHECK(values("choose a in []\n") == "! there is nothing to choose from");
  CHECK(values("choose a in 0..5000\n") == "! a choice has at most 4096 alternatives, got 5000");
  CHECK(values("for k in 0..300 choose order\nend\n") ==
        "! an order that is left open has at most 256 values, got 300");
  CHECK(values("for k in 0..3 choose engines\nend\n") == "! expected 'order', got 'engines'");
  CHECK(values("choose a in 1..3 twice\n") == "! expected the end of the line, got 'twice'");
  CHECK(values("choose a in 1..3\nchoose a in 1..3\n") == "! 'a' is already defined");
  CHECK(values("for i in 1..3\nchoose a in 0..i once\nend\n") ==
        "! the values of 'a' differ between two iterations that share the choice [i=2]");
  CHECK(values("for i in 0..300\nfor k in 0..250 choose order\nend\nend\n") ==
        "! the choices of this text have more than 1048576 alternatives together [i=33]");
  // The id of an unknown alternative, and an unknown id.
  Decisions d{.take = {{"7", 9}, {"nothing", 1}}};
  CHECK(with(kTwo, d) == "4 1");
}

TEST_CASE("formatting keeps choices") {
  const std::string neat =
      "sdma 1\nchoose a in [1, 2]\nchoose b in 1..a+3\nfor k in 1..4 choose order per a\n  choose e in [-1, 2] once  # "
      "c\nend\n";
  CHECK(format_source("sdma 1\nchoose  a in [ 1,2 ]\nchoose b in 1 .. a + 3\nfor k in 1..4 choose order per a\n"
                      "choose e in [-1,2] once  # c\nend\n") == neat);
  CHECK(format_source(neat) == neat);
}
