// SPDX-License-Identifier: MIT
#include "../../lib/draw/lanes.hpp"

#include "draw/elements.hpp"
#include "support/catch.hpp"

using namespace sdma;
using test::count;
using test::elements;
using test::number;

namespace {

const Lanes kTwo{.title = "a < b",
                 .end = 10,
                 .lanes = {{"upper", {{0, 5, 0, "#111111", "<first>"}, {2, 10, 1, "#222222", ""}}},
                           {"empty", {}},
                           {"lower", {{5, 10, 0, "#333333", ""}}}},
                 .arrows = {{.from = 2, .begin = 5, .to = 0, .end = 10, .row = 1}}};

/// The bar of this colour.
std::string bar(const std::string& svg, const std::string& colour) {
  for (const auto& e : elements(svg, "rect"))
    if (e.find(colour) != e.npos) return e;
  return {};
}

}  // namespace

TEST_CASE("lanes: bars stand in their lane and row, and are as wide as they last") {
  const auto svg = lanes_svg(kTwo);
  const auto a = bar(svg, "#111111"), b = bar(svg, "#222222"), c = bar(svg, "#333333");
  CHECK(number(svg, "width") == 680);
  CHECK(number(a, "x") == 120);
  CHECK(number(b, "width") == Approx(1.6 * number(a, "width")).margin(0.02));
  CHECK(number(c, "x") == Approx(number(a, "x") + number(a, "width")).margin(0.02));
  CHECK(number(b, "y") > number(a, "y") + number(a, "height"));
  CHECK(number(c, "y") > number(b, "y") + number(b, "height"));
  CHECK(count(svg, "<title>&lt;first&gt;</title>") == 1);
  CHECK(count(svg, ">a &lt; b</text>") == 1);
  CHECK(count(svg, ">empty</text>") == 0);
  CHECK(count(svg, "<path") == 1);
  const auto end = elements(svg, "circle").at(0);  // of the arrow, beside the second bar
  CHECK(number(end, "cx") == 660);
  CHECK(number(end, "cy") > number(b, "y"));
  CHECK(number(end, "cy") < number(b, "y") + number(b, "height"));
}

TEST_CASE("lanes: a picture has the size that was asked for, as far as its rows and texts allow it") {
  auto l = kTwo;
  l.width = 900, l.height = 420;
  const auto svg = lanes_svg(l);
  CHECK(number(svg, "width") == 900);
  CHECK(number(svg, "height") == 420);
  CHECK(number(bar(svg, "#222222"), "width") == Approx(0.8 * (900 - 140)).margin(0.02));
  CHECK(number(bar(svg, "#222222"), "height") > 30);  // rows fill the height
  l.width = l.height = 200;
  const auto small = lanes_svg(l);
  CHECK(number(small, "width") >= 200);
  for (const auto& e : elements(small, "text")) CHECK(number(e, "y") < number(small, "height"));
  CHECK(number(bar(small, "#222222"), "height") >= 2);
}

TEST_CASE("lanes: the axis has the unit of a table, and a heading stands above its lane") {
  auto l = kTwo;
  CHECK(count(lanes_svg(l), ">us</text>") == 1);
  CHECK(count(lanes_svg(l), ">10</text>") == 1);
  l.end = 10'000;
  CHECK(count(lanes_svg(l), ">ms</text>") == 1);
  CHECK(count(lanes_svg(l), ">10</text>") == 1);
  l.end = 0.5;
  CHECK(count(lanes_svg(l), ">ns</text>") == 1);
  CHECK(count(lanes_svg(l), ">500</text>") == 1);
  l = kTwo;
  const auto before = number(bar(lanes_svg(l), "#333333"), "y");
  l.lanes[2].heading = "second.sdma";
  l.lanes[1].heading = "of a lane that is not drawn";
  const auto svg = lanes_svg(l);
  CHECK(number(bar(svg, "#333333"), "y") == Approx(before + 20));
  CHECK(count(svg, ">second.sdma</text>") == 1);
  CHECK(count(svg, "not drawn") == 0);
}

TEST_CASE("lanes: what lies outside the times shown is cut off") {
  auto l = kTwo;
  l.begin = 6, l.end = 8;
  const auto svg = lanes_svg(l);
  CHECK(bar(svg, "#111111").empty());
  CHECK(number(bar(svg, "#222222"), "x") == 120);
  CHECK(number(bar(svg, "#222222"), "width") == 540);
  CHECK(count(svg, "<path") == 0);  // begins before
}

TEST_CASE("lanes: arrows of lanes that are not there, and no time at all, draw nothing") {
  auto l = kTwo;
  l.arrows = {{.from = 1, .begin = 1, .to = 2, .end = 6}, {.from = 0, .begin = 1, .to = 9, .end = 6}};
  CHECK(count(lanes_svg(l), "<path") == 0);
  const auto none = lanes_svg({});
  CHECK(none.ends_with("</svg>\n"));
  CHECK(count(none, "nan") + count(none, "inf") == 0);
}

TEST_CASE("lanes: long names and keys have room") {
  auto l = kTwo;
  l.title = std::string(400, 't');
  l.lanes[0].name = std::string(80, 'n');
  l.keys = {{std::string(40, 'k'), "#444444"}, {"next", "#555555"}};
  const auto svg = lanes_svg(l);
  for (const auto& e : elements(svg, "text")) {
    const auto wide = static_cast<double>(test::content(e).size());
    if (e.find("\"end\"") != e.npos) CHECK(number(e, "x") > 6.5 * wide);
    if (e.find("\"start\"") != e.npos) CHECK(number(e, "x") + 6.5 * wide < number(svg, "width"));
  }
  CHECK(number(bar(svg, "#555555"), "x") - number(bar(svg, "#444444"), "x") > 260);
  // Keys that do not fit into one line.
  l = kTwo;
  for (int i = 0; i < 20; ++i) l.keys.push_back({"a key", "#00000" + std::to_string(i % 10)});
  const auto many = lanes_svg(l);
  CHECK(number(many, "width") == 680);
  for (const auto& e : elements(many, "text"))
    if (test::content(e) == "a key") CHECK(number(e, "x") + 32 < 680);
}
