// SPDX-License-Identifier: MIT
#pragma once
// An SVG document with the few elements that our pictures use. Internal.
//
//   Svg svg(760, 430);
//   svg.text(12, 22, "a < b", "start", "fill=\"#555555\"");
//   save(svg.close(), "a.svg");
//
// Texts, titles and colours are escaped, styles are not. A title is shown when the pointer rests on its element.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline std::string escaped(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out;
}

/// In pixels. A picture that is as wide as a column of text keeps them.
inline constexpr double kColumn = 680, kFont = 13, kTitleFont = 15, kTitleLine = 20;

/// An upper estimate of the width of a text, in pixels: usual fonts are narrower on average.
inline double text_width(std::string_view s, double size = kFont) {
  return 0.62 * size * static_cast<double>(s.size());
}
inline double title_width(std::string_view s) { return text_width(s, kTitleFont) * 1.1; }

/// The words of a title in lines that are at most so wide, unless one word is wider.
inline std::vector<std::string> title_lines(std::string_view s, double width) {
  std::vector<std::string> out{""};
  while (!s.empty()) {
    const auto word = s.substr(0, s.find(' '));
    s.remove_prefix(std::min(s.size(), word.size() + 1));
    const auto longer = out.back() + (out.back().empty() ? "" : " ") + std::string(word);
    if (out.back().empty() || title_width(longer) <= width) out.back() = longer;
    else out.emplace_back(word);
  }
  return out;
}

class Svg {
 public:
  static constexpr std::string_view kGrid = "stroke=\"#e4e4e4\"";

  Svg(double width, double height) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"{2}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height, kFont);
  }
  /// `anchor`: start, middle, end.
  void text(double x, double y, std::string_view s, std::string_view anchor = "start", std::string_view style = "") {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style, escaped(s));
  }
  /// A line for each of the texts, the first at `y`.
  void title(double y, const std::vector<std::string>& lines) {
    for (const auto& s : lines)
      text(12, y, s, "start", fmt::format("font-size=\"{}\" font-weight=\"bold\"", kTitleFont)), y += kTitleLine;
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }
  void box(double x, double y, double w, double h, std::string_view fill, std::string_view title = "") {
    add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">{}</rect>\n", x, y, w, h,
        escaped(fill), tip(title));
  }
  void circle(double x, double y, double radius, std::string_view fill, std::string_view title = "") {
    add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\">{}</circle>\n", x, y, radius, escaped(fill),
        tip(title));
  }
  /// `d` as in SVG: "M1 2 L3 4". Filled, and faint.
  void area(std::string_view d, std::string_view fill) {
    add("<path d=\"{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", d, escaped(fill));
  }
  void path(std::string_view d, std::string_view style) { add("<path d=\"{}\" fill=\"none\" {}/>\n", d, style); }
  std::string close() { return std::move(out_) + "</svg>\n"; }

 private:
  static std::string tip(std::string_view s) { return s.empty() ? "" : "<title>" + escaped(s) + "</title>"; }
  template <class... Values> void add(fmt::format_string<const Values&...> form, const Values&... values) {
    out_ += fmt::format(form, values...);
  }

  std::string out_;
};

}}}  // namespace sdma::v0_3::detail
