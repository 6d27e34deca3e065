// SPDX-License-Identifier: MIT
#include "records.hpp"

#include "elsewhere.hpp"
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

/// Enough digits to distinguish two measurements.
std::string number(double v) { return fmt::format("{:.6g}", v); }

std::string order_of(const Settings& s) { return s.where == Where::soft ? std::string(name(s.order)) : ""; }

/// A value that may be missing: "null" or "" then.
template <class T> std::string member(const std::optional<T>& of, double T::*what, const char* missing) {
  return of ? number(*of.*what) : missing;
}

/// A simulation has one round, and so has a time of a file: their least and most mean nothing.
std::string of_rounds(const Point& p, double us, const char* missing) {
  return p.spread || p.way.rival == Rival::brought ? missing : number(us);
}

std::string interval_json(const Point& p) {
  return fmt::format("\"uncertainty_us\": {}, \"low_us\": {}, \"high_us\": {}, \"speed_up_uncertainty\": {}",
                     p.spread ? number(p.spread->uncertainty_ns / 1e3) : "null", p.spread ? number(p.us.lower) : "null",
                     p.spread ? number(p.us.upper) : "null",
                     p.speed_up_uncertainty ? number(*p.speed_up_uncertainty) : "null");
}
std::string interval_csv(const Point& p) {
  std::string ties;
  for (const auto& w : p.ties) ties += (ties.empty() ? "" : "; ") + name(w);
  return fmt::format("{},{},{},{},{}", p.spread ? number(p.spread->uncertainty_ns / 1e3) : "",
                     p.spread ? number(p.us.lower) : "", p.spread ? number(p.us.upper) : "",
                     p.speed_up_uncertainty ? number(*p.speed_up_uncertainty) : "", csv_text(ties));
}

std::string extras_json(const Point& p) {
  const auto energy = [&](double Energy::*what) { return member(p.energy, what, "null"); };
  const auto beside = [&](double Beside::*what) { return member(p.beside, what, "null"); };
  return fmt::format(
      "\"q1_us\": {}, \"q3_us\": {}, \"joules\": {}, \"nj_per_byte\": {}, \"watts\": {}, \"beside_us\": {}, "
      "\"gemm_alone_tflops\": {}, \"gemm_tflops\": {}",
      of_rounds(p, p.us.lower, "null"), of_rounds(p, p.us.upper, "null"), energy(&Energy::joules),
      energy(&Energy::nanojoules_per_byte), energy(&Energy::watts), beside(&Beside::us), beside(&Beside::product_alone),
      beside(&Beside::product));
}

std::string extras_csv(const Point& p) {
  const auto energy = [&](double Energy::*what) { return member(p.energy, what, ""); };
  const auto beside = [&](double Beside::*what) { return member(p.beside, what, ""); };
  return fmt::format("{},{},{},{},{},{},{},{}", of_rounds(p, p.us.lower, ""), of_rounds(p, p.us.upper, ""),
                     energy(&Energy::joules), energy(&Energy::nanojoules_per_byte), energy(&Energy::watts),
                     beside(&Beside::us), beside(&Beside::product_alone), beside(&Beside::product));
}

std::string point_json(const Settings& s, std::span<const Point> points, const Point& p) {
  std::string notes, ties;
  for (const auto& n : p.notes) notes += (notes.empty() ? "" : ", ") + json_text(n);
  for (const auto& w : p.ties) ties += (ties.empty() ? "" : ", ") + json_text(name(w));
  const auto o = options_of(s, p.way, p.bytes);
  const auto faster = speed_up(points, p);
  return fmt::format(
      "{{\"size\": {}, \"count\": {}, \"variant\": {}, \"ran\": {}, \"prelaunch\": {}, \"time_us\": {}, \"min_us\": "
      "{}, "
      "\"median_us\": {}, \"max_us\": {}, \"algbw_gbps\": {}, \"busbw_gbps\": {}, \"speed_up\": {}, {}, \"wrong\": {}, "
      "\"first_wrong\": {}, \"notes\": [{}], \"sweep\": {}, \"ties\": [{}], {}}}",
      p.bytes, p.count, json_text(name(p.way)), json_text(ran_text(p)),
      p.way.file ? "null" : json_text(name(p.way.rival != Rival::none ? Prelaunch::shared : o.prelaunch)),
      number(p.us.mean), of_rounds(p, p.us.least, "null"), number(p.us.median), of_rounds(p, p.us.most, "null"),
      number(p.algbw), number(p.busbw), faster ? number(*faster) : "null", extras_json(p),
      p.wrong ? std::to_string(*p.wrong) : "null", json_text(p.first_wrong), notes,
      p.at.empty() ? "null" : json_text(p.at), ties, interval_json(p));
}

std::string against_json(const std::vector<Comparison>& all) {
  std::string text;
  for (const auto& c : all)
    text += fmt::format(
        "{}\n    {{\"size\": {}, \"ours\": {}, \"ours_us\": {}, \"theirs\": {}, \"theirs_us\": {}, \"ratio\": {}, "
        "\"tie\": {}}}",
        text.empty() ? "" : ",", c.bytes, json_text(name(c.ours)), number(c.ours_us), json_text(name(c.theirs)),
        number(c.theirs_us), number(c.theirs_us / c.ours_us), c.tie);
  return "[" + text + "]";
}

std::string best_json(const std::vector<Range>& all) {
  std::string text;
  for (const auto& r : all)
    text += fmt::format("{}\n    {{\"from\": {}, \"to\": {}, \"variant\": {}}}", text.empty() ? "" : ",", r.least,
                        r.most, json_text(name(r.way)));
  return "[" + text + "]";
}

}  // namespace

std::string json_text(std::string_view s) {
  std::string text = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') (text += '\\') += c;
    else if (static_cast<unsigned char>(c) < ' ') text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else text += c;
  }
  return text + '"';
}

std::string csv_header() {
  return "collective,gpus,device,order,size,count,type,variant,ran,time_us,min_us,median_us,max_us,algbw_gbps,busbw_"
         "gbps,wrong,notes,q1_us,q3_us,joules,nj_per_byte,watts,beside_us,gemm_alone_tflops,gemm_tflops,sweep,uncertainty_"
         "us,low_us,high_us,speed_up_uncertainty,ties\n";
}

std::string csv_line(const Settings& s, const Point& p) {
  std::string notes;
  for (const auto& n : p.notes) notes += (notes.empty() ? "" : "; ") + n;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name(s.options.collective),
                     s.options.gpus, name(s.where), order_of(s), p.bytes, p.count, s.type.name, csv_text(name(p.way)),
                     csv_text(ran_text(p)), number(p.us.mean), of_rounds(p, p.us.least, ""), number(p.us.median),
                     of_rounds(p, p.us.most, ""), number(p.algbw), number(p.busbw),
                     p.wrong ? std::to_string(*p.wrong) : "", csv_text(notes), extras_csv(p), csv_text(p.at),
                     interval_csv(p));
}

std::string to_json(const Settings& s, std::string_view device, std::span<const Point> points, bool complete,
                    std::optional<double> idle_watts, std::span<const Elsewhere> elsewhere) {
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
      "  \"best\": {},\n  \"best_without_prelaunch\": {},\n  \"against\": {},\n  \"settle_us\": {},\n"
      "  \"idle_watts\": {},\n  \"elsewhere\": {},\n  \"points\": [{}]\n}}\n",
      json_text(sdma::version().string), json_text(name(s.options.collective)), gpus, json_text(name(s.where)),
      json_text(device), json_text(order_of(s)), s.seed, json_text(s.type.name), s.iterations, s.warmups, s.checks,
      complete, wrong_elements(points), number(average_busbw(points)),
      best_json(comparable(s) && s.axes.empty() ? best(points, true) : std::vector<Range>{}),
      best_json(comparable(s) && s.axes.empty() ? best(points, false) : std::vector<Range>{}),
      against_json(compared(points)), s.settle.count(), idle_watts ? number(*idle_watts) : "null",
      elsewhere_json(elsewhere), all);
}

}  // namespace collectives::perf
