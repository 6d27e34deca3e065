// SPDX-License-Identifier: MIT
#include "draw/curves.hpp"

#include "draw/elements.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <limits>

using namespace sdma;
using test::count;
using test::elements;
using test::number;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kEndless = std::numeric_limits<double>::infinity();

/// The texts with this anchor: numbers of y have "end", sizes and the axes' names "middle".
std::vector<std::string> texts(const std::string& svg, const std::string& anchor) {
  std::vector<std::string> all;
  for (const auto& e : elements(svg, "text"))
    if (e.find("text-anchor=\"" + anchor + "\"") != e.npos) all.push_back(test::content(e));
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("curves: a path a series, a mark a point, nothing for what is not a number") {
  const auto svg =
      curves_svg({.title = "speed-up",
                  .x_label = "bytes",
                  .y_label = "x",
                  .series = {{"a", {{1024, 1}, {4096, 2}}}, {"b", {{1024, 0.5}, {0, 1}, {2048, kNone}}, true}}});
  CHECK(count(svg, "<path") == 2);
  CHECK(count(svg, "<circle") == 3);
  CHECK(count(svg, "stroke-dasharray") == 2);  // the curve and its key
  CHECK(texts(svg, "end") == Texts{"0", "0.5", "1", "1.5", "2"});
  CHECK(texts(svg, "middle") == Texts{"1K", "4K", "bytes", "x"});
  CHECK(curves_svg({}).ends_with("</svg>\n"));
  const auto none = curves_svg({.series = {{"a", {{kEndless, 1}, {1, kEndless}, {1, kNone}, {-1, 1}}}}, .log_y = true});
  CHECK(count(none, "<circle") == 0);
  CHECK(count(none, "nan") + count(none, "inf") == 0);
}

TEST_CASE("curves: a picture has the size that was asked for, as far as its texts allow it") {
  Curves c{.title = "speed-up", .series = {{"a", {{1024, 1}, {4096, 2}}}, {"b", {{1024, 2}, {4096, 1}}}}};
  const auto plain = curves_svg(c);
  CHECK(number(plain, "width") == 680);
  c.width = 900, c.height = 300;
  const auto svg = curves_svg(c);
  CHECK(number(svg, "width") == 900);
  CHECK(number(svg, "height") == 300);
  auto second = c;
  second.width = 1, second.height = 1;  // the first says it
  const Curves both[] = {c, second};
  c.height = 700;
  const Curves tall[] = {c, second};
  CHECK(number(stacked_curves_svg(both), "height") > 300);  // two plots need more
  CHECK(number(stacked_curves_svg(tall), "height") == 700);
  c.width = 200, c.height = 200;
  const auto small = curves_svg(c);
  for (const auto& e : elements(small, "text")) CHECK(number(e, "y") < number(small, "height"));
}

TEST_CASE("curves: a band lies around its curve, within the picture") {
  const Curves::Series plain{"a", {{1024, 1}, {4096, 2}}};
  auto banded = plain;
  banded.band = {{0.5, 1.5}, {1, 3}};
  const auto svg = curves_svg({.series = {banded}});
  REQUIRE(count(svg, "fill-opacity") == 1);
  CHECK(count(svg, "<path") == 2);
  CHECK(texts(svg, "end") == Texts{"0", "0.5", "1", "1.5", "2", "2.5", "3"});
  // From the upper end of the first point to that of the second, and back below: both corners have the points' places.
  const auto paths = elements(svg, "path");
  const auto marks = elements(svg, "circle");
  for (const auto& m : marks)
    CHECK(count(paths[0], fmt::format("M{:.1f} ", number(m, "cx"))) +
              count(paths[0], fmt::format("L{:.1f} ", number(m, "cx"))) ==
          2);
  const auto high = number(elements(curves_svg({.series = {{"a", {{1024, 1.5}, {4096, 3}}}}}), "circle")[0], "cy");
  CHECK(count(paths[0], fmt::format(" {:.1f}", high)) == 1);
  banded.band.pop_back();  // of another length
  CHECK(count(curves_svg({.series = {banded}}), "fill-opacity") == 0);
}

TEST_CASE("curves: by logarithm, half is as far from one as twice is, and nothing is shown of zero") {
  const auto svg = curves_svg({.series = {{"a", {{1, 0.5}, {2, 1}, {4, 2}, {8, 0}}}}, .bytes = false, .log_y = true});
  CHECK(texts(svg, "end") == Texts{"0.5", "1", "2"});
  const auto marks = elements(svg, "circle");
  REQUIRE(marks.size() == 3);
  const auto below = number(marks[0], "cy") - number(marks[1], "cy"),
             above = number(marks[1], "cy") - number(marks[2], "cy");
  CHECK(below > 100);
  CHECK(below == Approx(above).margin(0.11));
  // So wide a range that not every power of two has a line.
  const auto wide = curves_svg({.series = {{"a", {{1, 1.0 / 1024}, {2, 65536}}}}, .log_y = true});
  CHECK(texts(wide, "end") == Texts{"0.001953", "0.01562", "0.125", "1", "8", "64", "512", "4096", "3.277e+04"});
}

TEST_CASE("curves: one point stands in the middle, whatever its value") {
  for (const bool log : {false, true}) {
    const auto svg = curves_svg({.series = {{"a", {{1000, 3}}}}, .log_y = log});
    CHECK(number(elements(svg, "circle").at(0), "cx") == 360);
    CHECK(texts(svg, "middle").front() == "1000");
    CHECK(count(svg, "nan") + count(svg, "inf") == 0);
  }
}

TEST_CASE("curves: ratios have a line at 1, which is in the picture whatever the values are") {
  for (const double all : {0.1, 0.5, 3.0})
    for (const bool log : {false, true}) {
      const Curves c{.series = {{"a", {{1024, all}, {4096, all * 1.1}}}}, .log_y = log, .ratios = true};
      CHECK(count(curves_svg(c), "stroke-dasharray=\"1 3\"") == 1);
      const auto y = texts(curves_svg(c), "end");
      CHECK(std::find(y.begin(), y.end(), "1") != y.end());
    }
  CHECK(count(curves_svg({.series = {{"a", {{1024, 2}}}}}), "stroke-dasharray") == 0);
}

TEST_CASE("curves: texts are escaped, a colour is what was asked for") {
  const auto svg = curves_svg({.title = "a <b> & \"c\"",
                               .series = {{.name = "<x>", .points = {{1, 1}}, .colour = "#123456"}, {"y", {{1, 1}}}}});
  CHECK(count(svg, ">a &lt;b&gt; &amp; &quot;c&quot;</text>") == 1);
  CHECK(count(svg, ">&lt;x&gt;</text>") == 1);
  CHECK(count(svg, "#123456") == 3);  // the curve, its mark, its key
  CHECK(count(svg, "\"#d55e00\"") == 3);
}

TEST_CASE("curves: names of sizes do not lie on each other, long names and numbers have room") {
  for (const std::size_t letters : {std::size_t{0}, std::size_t{200}}) {
    Curves c{.title = std::string(letters, 't'), .series = {{std::string(60, 'n'), {}}}};
    for (int i = 0; i < 200; ++i) c.series[0].points.emplace_back(999 * (1 + 0.05 * i), 123456789.0 * (1 + i));
    const auto svg = curves_svg(c);
    double free = 0;
    for (const auto& e : elements(svg, "text")) {
      const auto x = number(e, "x"), wide = 6.5 * static_cast<double>(test::content(e).size());
      if (e.find("middle") != e.npos && e.find("rotate") == e.npos && !test::content(e).empty()) {
        CHECK(x - wide / 2 >= free);
        free = x + wide / 2;
      }
      if (e.find("\"start\"") != e.npos) CHECK(x + wide <= number(svg, "width"));
      if (e.find("\"end\"") != e.npos) CHECK(x - wide > 22);  // the axis' own name stands at 16
    }
    CHECK(free > 0);
  }
}

TEST_CASE("curves: several plots stand below each other, at one left edge") {
  const std::vector<Curves> two{{.title = "first", .series = {{"a", {{1, 1}, {2, 123456}}}}},
                                {.series = {{"b", {{1, 1}, {2, 2}}}}}};
  const auto svg = stacked_curves_svg(two), first = curves_svg(two[0]);
  const auto marks = elements(svg, "circle");
  REQUIRE(marks.size() == 4);
  CHECK(number(marks[0], "cx") == number(marks[2], "cx"));
  CHECK(number(marks[2], "cy") > number(first, "height"));
  CHECK(number(svg, "height") == 2 * number(first, "height"));
  CHECK(count(svg, "<svg") == 1);
}
