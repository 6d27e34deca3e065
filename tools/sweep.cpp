#include "sweep.hpp"

#include "input.hpp"
#include "json/sweep.hpp"
#include "output.hpp"
#include "report.hpp"
#include "sdma/draw/curves.hpp"
#include "sdma/simulate/report.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::tool {
namespace {

constexpr std::size_t kNameWidth = 10, kTimeWidth = 16;

std::string csv_word(const std::string& s) {
  if (s.find_first_of(",\"\n\r") == s.npos) return s;
  std::string text = "\"";
  for (const char c : s) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

class Report {
 public:
  Report(const SweepRequest& request, const json::Swept& swept) : r_(request), s_(swept) {}

  int write() const {
    if (!r_.csv.empty())
      if (const auto code = write_text(r_.csv, csv()); code != kOk) return code;
    if (!r_.plot.empty())
      if (const auto code = write_text(r_.plot, curves_svg(curves())); code != kOk) return code;
    return write_text("-", r_.json ? json::document(json::of(s_)) : table());
  }

 private:
  std::string table() const {
    std::string out;
    const auto width = [&](const SweepAxis& a) { return std::max(kNameWidth, a.name.size()); };
    for (const auto& a : s_.axes) out += fmt::format("{}{:<{}}", out.empty() ? "" : " ", a.name, width(a));
    for (const auto& name : s_.names) out += fmt::format(" {:>{}}     x", name, kTimeWidth);
    out += "\n";
    for (const auto& r : s_.rows) {
      for (std::size_t a = 0; a < r.values.size(); ++a)
        out += fmt::format("{}{:<{}}", a == 0 ? "" : " ", s_.axes[a].text(r.values[a]), width(s_.axes[a]));
      for (std::size_t i = 0; i < r.ns.size(); ++i)
        out += fmt::format(" {:>{}} {:5.2f}", time_text(r.ns[i]), std::max(kTimeWidth, s_.names[i].size()), r.gain(i));
      out += "\n";
    }
    for (const auto& note : s_.notes) out += "note: " + note + "\n";
    return out;
  }

  std::string csv() const {
    std::string out;
    for (const auto& a : s_.axes) out += a.name + ",";
    out += "file,ns,speed_up\n";
    for (const auto& r : s_.rows)
      for (std::size_t i = 0; i < r.ns.size(); ++i) {
        for (const auto v : r.values) out += fmt::format("{},", v);
        out += fmt::format("{},{},{:.6g}\n", csv_word(s_.names[i]), r.ns[i], r.gain(i));
      }
    return out;
  }

  /// Speed-ups over the first file; the times of a single one.
  Curves curves() const {
    const bool one = s_.names.size() == 1;
    const auto& x = s_.axes[0];
    Curves c{.title = one ? s_.names[0] + ", simulated" : "Speed-up over " + s_.names[0] + ", simulated",
             .x_label = x.name,
             .y_label = one ? "time, us" : "speed-up",
             .bytes = !x.of_machine() || x.name.ends_with("_bytes")};
    const auto others = s_.axes.size() > 1 ? s_.axes[1].values : std::vector<double>{0};
    for (std::size_t i = 0; i < s_.names.size(); ++i)
      for (const auto w : others) {
        auto name = s_.names[i];
        if (s_.axes.size() > 1) name += fmt::format(", {}={}", s_.axes[1].name, s_.axes[1].text(w));
        Curves::Series series{.name = std::move(name)};
        for (const auto& r : s_.rows)
          if (r.values.size() == 1 || r.values[1] == w)
            series.points.emplace_back(r.values[0], one ? r.ns[0] / 1e3 : r.gain(i));
        c.series.push_back(std::move(series));
      }
    return c;
  }

  const SweepRequest& r_;
  const json::Swept& s_;
};

}  // namespace

int sweep(const SweepRequest& r) {
  json::SweepInput in{.parse = r.parse, .machine = r.machine, .axes = r.axes};
  for (const auto& path : r.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    in.files.push_back({path, std::move(*text)});
  }
  const auto swept = json::swept(in);
  if (swept) return Report(r, *swept).write();
  for (const auto& d : swept.error().all) report(d);
  switch (swept.error().kind) {
    case json::SweepError::Kind::request: return kUsage;
    case json::SweepError::Kind::schedule: return kInput;
    case json::SweepError::Kind::run: break;
  }
  return kFindings;
}

}  // namespace sdma::tool
