#pragma once
// The few words of SVG that our pictures use. Internal.
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {
namespace detail {

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

/// How wide this is in the font that is drawn, about: letters of any font are no wider than that on average.
inline double text_width(std::string_view s, double size = 11) { return 0.62 * size * static_cast<double>(s.size()); }

class Svg {
 public:
  Svg(double width, double height)
      : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                         "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
                         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                         width, height)) {}
  /// `anchor`: start, middle, end.
  void text(double x, double y, std::string_view s, std::string_view anchor = "start", std::string_view more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                        escaped(s));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }
  void box(double x, double y, double w, double h, std::string_view fill, std::string_view title) {
    out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">", x, y, w, h,
                        fill);
    if (!title.empty()) out_ += "<title>" + escaped(title) + "</title>";
    out_ += "</rect>\n";
  }
  void raw(std::string_view s) { out_ += s; }
  std::string close() { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
