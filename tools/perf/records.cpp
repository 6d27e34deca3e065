// SPDX-License-Identifier: MIT
#include "report.hpp"

#include "core/csv.hpp"
#include "others.hpp"
#include "sdma/core/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace collectives::perf {
namespace {

using sdma::json::Json;

/// Enough digits to distinguish two measurements.
std::string number(double v) { return fmt::format("{:.6g}", v); }

std::string order_of(const Settings& s) { return s.where == sdma::DeviceKind::soft ? std::string(name(s.order)) : ""; }

/// A value of a point. What is missing is empty in CSV, and null in JSON.
struct Field {
  std::string_view name{};
  std::string csv{};
  Json json = nullptr;
};
Field number(std::string_view name, std::optional<double> v) {
  return v ? Field{name, number(*v), std::stod(number(*v))} : Field{name};
}
Field count(std::string_view name, std::optional<std::uint64_t> n) {
  return n ? Field{name, std::to_string(*n), *n} : Field{name};
}
Field text(std::string_view name, std::string_view s) { return {name, sdma::detail::csv_field(s), s}; }
Field list(std::string_view name, const std::vector<std::string>& all) {
  return {name, sdma::detail::csv_field(fmt::format("{}", fmt::join(all, "; "))), all};
}
template <class T> std::optional<double> member(const std::optional<T>& of, double T::*what) {
  return of ? std::optional(*of.*what) : std::nullopt;
}

/// In the order of JSON.
std::vector<Field> fields_of(const Settings& s, std::span<const Point> points, const Point& p) {
  const auto known = [](bool is, double v) { return is ? std::optional(v) : std::nullopt; };
  // A simulation has one round, and so has a time of a file: their least and most mean nothing.
  const bool rounds = !p.spread && p.way.rival != Rival::brought, interval = p.spread.has_value();
  std::vector<std::string> ties;
  for (const auto& w : p.ties) ties.push_back(name(w));
  const auto bound = [&](double sdma::Bounds::*which) {
    return p.energy && p.energy->bounds ? std::optional((*p.energy->bounds).*which) : std::nullopt;
  };
  const auto prelaunch = p.way.rival != Rival::none ? Prelaunch::shared : options_of(s, p.way, p.bytes).prelaunch;
  return {count("size", p.bytes),
          count("count", p.count),
          text("variant", name(p.way)),
          text("ran", ran_text(p)),
          p.way.file ? Field{"prelaunch"} : text("prelaunch", name(prelaunch)),
          number("time_us", p.us.mean),
          number("min_us", known(rounds, p.us.least)),
          number("median_us", p.us.median),
          number("max_us", known(rounds, p.us.most)),
          number("algbw_gbps", p.algbw),
          number("busbw_gbps", p.busbw),
          number("speed_up", speed_up(points, p)),
          number("q1_us", known(rounds, p.us.lower)),
          number("q3_us", known(rounds, p.us.upper)),
          number("joules", member(p.energy, &Energy::joules)),
          number("nj_per_byte", member(p.energy, &Energy::nanojoules_per_byte)),
          number("watts", member(p.energy, &Energy::watts)),
          number("least_joules", bound(&sdma::Bounds::low)),
          number("most_joules", bound(&sdma::Bounds::high)),
          number("beside_us", member(p.beside, &Beside::us)),
          number("gemm_alone_tflops", member(p.beside, &Beside::product_alone)),
          number("gemm_tflops", member(p.beside, &Beside::product)),
          count("wrong", p.wrong),
          text("first_wrong", p.first_wrong),
          list("notes", p.notes),
          p.at.empty() ? Field{"sweep"} : text("sweep", p.at),
          list("ties", ties),
          number("uncertainty_us", known(interval, interval ? p.spread->uncertainty_ns / 1e3 : 0)),
          number("low_us", known(interval, p.us.lower)),
          number("high_us", known(interval, p.us.upper)),
          number("speed_up_uncertainty", p.speed_up_uncertainty)};
}

/// In their order: those that came later are at the end.
constexpr std::string_view kColumns =
    "collective,gpus,device,order,size,count,type,variant,ran,time_us,min_us,median_us,max_us,algbw_gbps,busbw_gbps,"
    "wrong,notes,q1_us,q3_us,joules,nj_per_byte,watts,beside_us,gemm_alone_tflops,gemm_tflops,sweep,uncertainty_us,"
    "low_us,high_us,speed_up_uncertainty,ties,least_joules,most_joules";

Json object(const std::vector<Field>& fields) {
  Json all = Json::object();
  for (const auto& f : fields) all[std::string(f.name)] = f.json;
  return all;
}
/// An array of what `of` makes of each.
template <class All, class Of> Json array(const All& all, Of of) {
  Json out = Json::array();
  for (const auto& one : all) out.push_back(object(of(one)));
  return out;
}

std::vector<Field> fields(const Comparison& c) {
  return {count("size", c.bytes),
          text("ours", name(c.ours)),
          number("ours_us", c.ours_us),
          text("theirs", name(c.theirs)),
          number("theirs_us", c.theirs_us),
          number("ratio", c.theirs_us / c.ours_us),
          {"tie", "", c.tie}};
}
std::vector<Field> fields(const Range& r) {
  return {count("from", r.least), count("to", r.most), text("variant", name(r.way))};
}
std::vector<Field> fields(const Elsewhere& e) {
  return {count("size", e.bytes),     number("time_us", e.us),      number("busbw_gbps", e.busbw),
          text("machine", e.machine), text("includes", e.includes), text("source", e.source)};
}

}  // namespace

std::string csv_header() { return std::string(kColumns) + "\n"; }

std::string csv_line(const Settings& s, const Point& p) {
  auto fields = fields_of(s, {}, p);
  for (auto& f : {text("collective", name(s.options.collective)), count("gpus", s.options.gpus),
                  text("device", name(s.where)), text("order", order_of(s)), text("type", s.type.name)})
    fields.push_back(f);
  std::string line;
  for (const auto column : sdma::detail::between_commas(kColumns)) {
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == column; });
    line += (line.empty() ? "" : ",") + at->csv;
  }
  return line + "\n";
}

Json to_json(const Settings& s, std::string_view device, std::span<const Point> points, bool complete,
             std::optional<double> idle_watts, std::span<const Elsewhere> elsewhere,
             const sdma::MachineDescription* machine) {
  Json gpus = Json::array();
  for (std::uint32_t i = 0; i < s.options.gpus; ++i) gpus.push_back(s.gpus.empty() ? i : s.gpus[i].value);
  const auto plain = [](const auto& one) { return fields(one); };
  const auto ranges = [&](bool prelaunch) {
    return array(comparable(s) && s.axes.empty() ? best(points, prelaunch) : std::vector<Range>{}, plain);
  };
  Json j{{"program", "sdma perf"},
         {"version", sdma::version().string},
         {"collective", name(s.options.collective)},
         {"gpus", std::move(gpus)},
         {"device", name(s.where)},
         {"device_text", device},
         {"order", order_of(s)},
         {"seed", s.seed},
         {"type", s.type.name},
         {"iters", s.iterations},
         {"warmup_iters", s.warmups},
         {"check", s.checks},
         {"complete", complete},
         {"wrong", wrong_elements(points)},
         {"average_busbw_gbps", average_busbw(points)},
         {"best", ranges(true)},
         {"best_without_prelaunch", ranges(false)},
         {"against", array(compared(points), plain)},
         {"settle_us", s.settle.count()},
         {"idle_watts", idle_watts ? Json(*idle_watts) : Json()},
         {"elsewhere", array(elsewhere, plain)},
         {"points", array(points, [&](const Point& p) { return fields_of(s, points, p); })}};
  if (machine) j["defaults"] = defaults_of(*machine);
  return j;
}

}  // namespace collectives::perf
