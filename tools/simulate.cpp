// sdma simulate: predicts the time of schedules on a described machine.
#include "input.hpp"
#include "machine_file.hpp"
#include "output.hpp"
#include "schedule_file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/draw/curves.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/trace/form.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <variant>

namespace sdma::tool {
namespace {

enum class Format { table, json };
/// If the total exceeds the last round by this factor, there were rounds before it.
constexpr double kOneRound = 1.5;

struct Options {
  std::vector<std::string> paths;
  ParseOptions parse;
  MachineOptions machine;
  std::string trace, plot;
  std::string sweep;
  Format format = Format::table;
  bool show_machine = false, contents = false, no_sensitivity = false;
  std::uint64_t seed = 0;
};

/// "chunk=1K..1G": a name, and sizes that double; with "chunk=1K..1G*4" they grow by a factor of four.
struct Sweep {
  std::string name;
  std::vector<std::uint64_t> values{};
};

/// Returns the sweep, or a message that says what is wrong with the text.
std::variant<Sweep, std::string> sweep_of(const std::string& text) {
  const auto equal = text.find('='), dots = text.find("..");
  if (equal == text.npos || equal == 0 || dots == text.npos || dots < equal) return "this is not NAME=A..B";
  auto last = text.substr(dots + 2), step = std::string("2");
  if (const auto star = last.find('*'); star != last.npos) {
    step = last.substr(star + 1);
    last.resize(star);
  }
  const auto first = text.substr(equal + 1, dots - equal - 1);
  const auto from = parse_size(first), to = parse_size(last), factor = parse_size(step);
  for (const auto& [size, word] : {std::pair{from, first}, {to, last}, {factor, step}})
    if (!size || *size == 0) return "'" + word + "' is not a size";
  if (*factor < 2) return "'*" + step + "' is not a factor of at least 2";
  if (*from > *to) return first + " is greater than " + last;
  Sweep s{.name = text.substr(0, equal)};
  for (auto v = *from;; v *= *factor) {
    s.values.push_back(v);
    if (v > *to / *factor) return s;
  }
}

void say(const std::string& path, const std::vector<Diagnostic>& all) {
  for (auto d : all) {
    d.where = shown(path) + (d.where.empty() ? "" : ": " + d.where);
    report(d);
  }
}

/// The picture shows all rounds, but the time is that of the last one.
std::string title(const std::string& path, const Simulation& r) {
  return shown(path) + ", " + time_text(r.ns) +
         (r.total_ns > r.ns * kOneRound ? " for the last round of " + time_text(r.total_ns) : "");
}

int one(const Options& o, const MachineDescription& m) {
  const auto& path = o.paths[0];
  const auto text = read_text(path);
  if (!text) return report(text.error()), kInput;
  SourceMap map;
  const auto s = load_schedule(path, *text, o.parse, &map);
  if (!s) return kInput;
  if (expects_finding(*s))
    return complain(shown(path) + " contains a deliberate error for the checker, so it is not simulated",
                    "sdma check reports the error"),
           kFindings;
  std::optional<trace::Recorder> recorder;
  if (!o.trace.empty() || !o.plot.empty()) recorder.emplace(trace::Recorder::kDefaultEvents, "virtual");
  const auto r = simulate(
      *s, m, {.recorder = recorder ? &*recorder : nullptr, .contents = o.contents, .seed = o.seed, .map = &map});
  if (!r) return say(path, r.error()), kFindings;
  std::optional<Sensitivity> found;
  if (!o.no_sensitivity) {
    auto h = sensitivity(*s, m);
    if (!h) return say(path, h.error()), kFindings;
    found = std::move(*h);
  }
  const auto* const why = found ? &*found : nullptr;
  // Files first: the reader of the table may exit before its end.
  if (recorder) {
    const auto t = recorder->snapshot();
    if (!o.trace.empty())
      if (const auto code = write_text(o.trace, trace::to_string(t, trace::form_of(o.trace), o.trace)); code != kOk)
        return code;
    if (!o.plot.empty())
      if (const auto code = write_text(o.plot, trace::timeline_svg(t, {.title = title(path, *r)})); code != kOk)
        return code;
  }
  if (const auto code = write_text("-", o.format == Format::json ? to_json(*r, why) : to_table(*r, why)); code != kOk)
    return code;
  say(path, r->findings);
  return r->findings.empty() ? kOk : kFindings;
}

constexpr std::size_t kSizeWidth = 10, kTimeWidth = 16;

/// A file's name without folder and suffix, or the whole path if two names are equal.
std::string short_name(const std::string& path, const std::vector<std::string>& all) {
  const auto stem = [](const std::string& p) { return std::filesystem::path(p).stem().string(); };
  const auto same = std::count_if(all.begin(), all.end(), [&](const auto& p) { return stem(p) == stem(path); });
  return same == 1 ? stem(path) : path;
}

std::string line_of(const nlohmann::ordered_json& j) {
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Simulates every file at every value. Prints times, and how much faster each file is than the first.
int sweep(const Options& o, const MachineDescription& m, const Sweep& sweep) {
  std::vector<Curves::Series> series;
  std::vector<std::string> texts;
  for (const auto& path : o.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    texts.push_back(std::move(*text));
    series.push_back({.name = short_name(path, o.paths)});
  }
  const auto width = std::max(kSizeWidth, sweep.name.size());
  auto out = fmt::format("{:<{}}", sweep.name, width);
  for (const auto& s : series) out += fmt::format(" {:>{}}     x", s.name, kTimeWidth);
  out += "\n";
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const auto value : sweep.values) {
    auto parse = o.parse;
    parse.set.push_back({sweep.name, size_text(value)});
    out += fmt::format("{:<{}}", size_text(value), width);
    auto& times =
        points.emplace_back(nlohmann::ordered_json{{"value", value}, {"ns", nlohmann::ordered_json::array()}})["ns"];
    double first = 0;
    for (std::size_t i = 0; i < o.paths.size(); ++i) {
      const auto s = load_schedule(o.paths[i], texts[i], parse);
      if (!s) return kInput;
      const auto r = simulate(*s, m);
      if (!r) return say(o.paths[i], r.error()), kFindings;
      if (i == 0) first = r->ns;
      const auto gain = first == r->ns ? 1 : first / r->ns;
      series[i].points.emplace_back(static_cast<double>(value), gain);
      out += fmt::format(" {:>{}} {:5.2f}", time_text(r->ns), std::max(kTimeWidth, series[i].name.size()), gain);
      times.push_back(r->ns);
    }
    out += "\n";
  }
  if (!o.plot.empty()) {
    const auto code = write_text(o.plot, curves_svg({.title = "Speed-up over " + series[0].name + ", simulated",
                                                     .x_label = sweep.name,
                                                     .y_label = "speed-up",
                                                     .series = series}));
    if (code != kOk) return code;
  }
  if (o.format == Format::table) return write_text("-", out);
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& s : series) names.push_back(s.name);
  auto whole = "{\"param\": " + line_of(sweep.name) + ", \"files\": " + line_of(names) + ", \"points\": [";
  for (std::size_t i = 0; i < points.size(); ++i) whole += (i == 0 ? "\n  " : ",\n  ") + line_of(points[i]);
  return write_text("-", whole + "\n]}\n");
}

int run(const Options& o) {
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  if (o.show_machine) return write_text("-", o.format == Format::json ? to_json(*m) : to_table(*m));
  if (o.paths.empty()) return complain("no schedule given", "sdma simulate FILE"), kUsage;
  for (const auto* path : {&o.trace, &o.plot})
    if (*path == "-")
      return complain("--trace and --plot need a file, not -", "standard output is for the report"), kUsage;
  auto read = o.paths;
  if (!o.machine.path.empty()) read.push_back(o.machine.path);
  if (overwrites({{"--trace", o.trace}, {"--plot", o.plot}}, read)) return kUsage;
  if (!o.sweep.empty()) {
    const auto s = sweep_of(o.sweep);
    if (const auto* why = std::get_if<std::string>(&s))
      return complain("--sweep " + o.sweep + ": " + *why, "write chunk=1K..1G, or chunk=1K..1G*4"), kUsage;
    if (!o.trace.empty() || o.contents)
      return complain("--sweep does not take --trace or --contents", "simulate one FILE at one value to use them"),
             kUsage;
    if (std::count(o.paths.begin(), o.paths.end(), "-") > 1) return complain("- can be read only once"), kUsage;
    return sweep(o, *m, std::get<Sweep>(s));
  }
  if (o.paths.size() > 1) return complain("more than one FILE", "--sweep takes several"), kUsage;
  return one(o, *m);
}

}  // namespace

void add_simulate(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.values("FILE", o->paths, "a schedule, or several with --sweep");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  verb.flag("--show-machine", o->show_machine, "list the machine's parameters and their sources");
  verb.value("--sweep", o->sweep,
             "simulate and compare each FILE for each value of a param: chunk=1K..1G doubles it at each step, "
             "chunk=1K..1G*4 multiplies it by 4")
      .type("NAME=A..B");
  add_choice<Format>(verb, "--format", o->format, {{"table", Format::table}, {"json", Format::json}},
                     "form of the report (default: table)");
  add_json(verb, [o] { o->format = Format::json; });
  verb.value("--trace", o->trace, kTraceDoc).type("PATH");
  verb.value("--plot", o->plot, "draw an SVG: the timeline, or the speed-ups with --sweep").type("PATH");
  verb.flag("--contents", o->contents, "also move the bytes, and check the expectations");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed for random contents, with --contents");
  verb.flag("--no-sensitivity", o->no_sensitivity, "omit the sensitivity and the uncertainty from the report");
  verb.footer(
      "Times cover the last round, from its first trigger or submit to the end of its waits.\n"
      "Examples:\n"
      "  sdma simulate --set N=8 --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --trace run.json --plot run.svg examples/schedules/4_broadcast.sdma\n"
      "  sdma simulate --sweep chunk=1K..1G*4 --set N=8 --plot speedup.svg a.sdma b.sdma\n"
      "  sdma simulate --show-machine");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
