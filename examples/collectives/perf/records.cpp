#include "records.hpp"

#include "sdma/core/version.hpp"
#include "summary.hpp"
#include "table.hpp"

#include <fmt/format.h>

namespace collectives::perf {
namespace {

std::string csv_text(std::string_view s) {
  if (s.find_first_of(",\"\n\r") == s.npos) return std::string(s);
  std::string text = "\"";
  for (const char c : s) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

std::string json_text(std::string_view s) {
  std::string text = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') (text += '\\') += c;
    else if (static_cast<unsigned char>(c) < ' ') text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else text += c;
  }
  return text + '"';
}

/// Enough digits to distinguish two measurements.
std::string number(double v) { return fmt::format("{:.6g}", v); }

std::string order_of(const Settings& s) { return s.where == Where::soft ? std::string(name(s.order)) : ""; }

std::string point_json(const Settings& s, std::span<const Point> points, const Point& p) {
  std::string notes;
  for (const auto& n : p.notes) notes += (notes.empty() ? "" : ", ") + json_text(n);
  const auto o = options_of(s, p.way, p.bytes);
  const auto faster = speed_up(points, p);
  return fmt::format(
      "{{\"size\": {}, \"count\": {}, \"variant\": {}, \"ran\": {}, \"prelaunch\": {}, \"time_us\": {}, \"min_us\": "
      "{}, "
      "\"median_us\": {}, \"max_us\": {}, \"algbw_gbps\": {}, \"busbw_gbps\": {}, \"speed_up\": {}, \"wrong\": {}, "
      "\"first_wrong\": {}, \"notes\": [{}]}}",
      p.bytes, p.count, json_text(name(p.way)), json_text(name(p.ran)), json_text(name(o.prelaunch)), number(p.us.mean),
      number(p.us.least), number(p.us.median), number(p.us.most), number(p.algbw), number(p.busbw),
      faster ? number(*faster) : "null", p.wrong ? std::to_string(*p.wrong) : "null", json_text(p.first_wrong), notes);
}

std::string best_json(const std::vector<Range>& all) {
  std::string text;
  for (const auto& r : all)
    text += fmt::format("{}\n    {{\"from\": {}, \"to\": {}, \"variant\": {}}}", text.empty() ? "" : ",", r.least,
                        r.most, json_text(name(r.way)));
  return "[" + text + "]";
}

}  // namespace

std::string csv_header() {
  return "collective,gpus,device,order,size,count,type,variant,ran,time_us,min_us,median_us,max_us,algbw_gbps,busbw_"
         "gbps,"
         "wrong,notes\n";
}

std::string csv_line(const Settings& s, const Point& p) {
  std::string notes;
  for (const auto& n : p.notes) notes += (notes.empty() ? "" : "; ") + n;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name(s.options.collective), s.options.gpus,
                     name(s.where), order_of(s), p.bytes, p.count, kType, name(p.way), name(p.ran), number(p.us.mean),
                     number(p.us.least), number(p.us.median), number(p.us.most), number(p.algbw), number(p.busbw),
                     p.wrong ? std::to_string(*p.wrong) : "", csv_text(notes));
}

std::string to_json(const Settings& s, std::string_view device, std::span<const Point> points, bool complete) {
  std::string gpus, all;
  for (std::uint32_t i = 0; i < s.options.gpus; ++i)
    gpus += fmt::format("{}{}", i == 0 ? "" : ", ", s.gpus.empty() ? i : s.gpus[i].value);
  for (const auto& p : points) all += (all.empty() ? "\n    " : ",\n    ") + point_json(s, points, p);
  return fmt::format(
      "{{\n  \"program\": \"collective_perf\",\n  \"version\": {},\n  \"collective\": {},\n  \"gpus\": [{}],\n"
      "  \"device\": {},\n  \"device_text\": {},\n  \"order\": {},\n  \"seed\": {},\n  \"type\": {},\n  \"iters\": "
      "{},\n"
      "  \"warmup_iters\": {},\n  \"check\": {},\n  \"complete\": {},\n  \"wrong\": {},\n  \"average_busbw_gbps\": "
      "{},\n"
      "  \"best\": {},\n  \"best_without_prelaunch\": {},\n  \"points\": [{}]\n}}\n",
      json_text(sdma::runtime_version()), json_text(name(s.options.collective)), gpus, json_text(name(s.where)),
      json_text(device), json_text(order_of(s)), s.seed, json_text(kType), s.iterations, s.warmups, s.checks, complete,
      wrong_elements(points), number(average_busbw(points)), best_json(best(points, true)),
      best_json(best(points, false)), all);
}

}  // namespace collectives::perf
