// SPDX-License-Identifier: MIT
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
      if (const auto code = write_text(r_.plot, curves_svg(json::curves(s_))); code != kOk) return code;
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
  return kRefuted;
}

}  // namespace sdma::tool
