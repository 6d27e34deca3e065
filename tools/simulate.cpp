// sdma simulate: the time of schedules on a described machine.
#include "input.hpp"
#include "output.hpp"
#include "recording.hpp"
#include "schedule_file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/draw/curves.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <variant>

namespace sdma::tool {
namespace {

enum class Format { table, json };
/// What is longer than the last round by this has others before it.
constexpr double kOneRound = 1.5;

struct Options {
  std::vector<std::string> paths;
  ParseOptions parse;
  std::string machine, trace, plot;
  std::vector<std::pair<std::string, std::string>> changes;
  std::string sweep;
  Format format = Format::table;
  bool show_machine = false, contents = false, no_sensitivity = false;
  std::uint64_t seed = 0;
};

/// "chunk=1K..1G": a name, and sizes by powers of two; "chunk=1K..1G*4" by powers of four.
struct Sweep {
  std::string name;
  std::vector<std::uint64_t> values{};
};

/// Or what is wrong with it.
std::variant<Sweep, std::string> sweep_of(const std::string& text) {
  const auto equal = text.find('='), dots = text.find("..");
  if (equal == text.npos || equal == 0 || dots == text.npos || dots < equal) return "it is not NAME=A..B";
  auto last = text.substr(dots + 2), step = std::string("2");
  if (const auto star = last.find('*'); star != last.npos) {
    step = last.substr(star + 1);
    last.resize(star);
  }
  const auto first = text.substr(equal + 1, dots - equal - 1);
  const auto from = parse_size(first), to = parse_size(last), factor = parse_size(step);
  for (const auto& [size, word] : {std::pair{from, first}, {to, last}, {factor, step}})
    if (!size || *size == 0) return "'" + word + "' is no size";
  if (*factor < 2) return "'*" + step + "' goes no further";
  if (*from > *to) return first + " is more than " + last;
  Sweep s{.name = text.substr(0, equal)};
  for (auto v = *from;; v *= *factor) {
    s.values.push_back(v);
    if (v > *to / *factor) return s;
  }
}

std::optional<MachineDescription> machine_of(const Options& o) {
  auto m = [&]() -> Result<MachineDescription, Diagnostic> {
    if (o.machine.empty()) return mi300x_machine();
    const auto text = read_text(o.machine);
    if (!text) return text.error();
    return machine_from_json(*text, shown(o.machine));
  }();
  if (!m) return report(m.error()), std::nullopt;
  for (const auto& [name, value] : o.changes) {
    char* end = nullptr;
    const auto v = std::strtod(value.c_str(), &end);
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < kCosts; ++i) known.push_back(sdma::name(static_cast<Cost>(i)));
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      complain("--parameter " + name + ": there is no such parameter" + did_you_mean(name, known),
               "sdma simulate --show-machine lists them");
      return {};
    }
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    const auto unit = sdma::unit(static_cast<Cost>(at - known.begin()));
    complain("--parameter " + name + "=" + value + ": " + "'" + value + "' is no value that it can have",
             unit == "part" ? "a part is above 0, and 1 at most"
             : unit == "ns" ? "a number of ns from 0 to 1e12, without a unit"
                            : "a number of " + std::string(unit) + " above 0, without a unit, and 1e12 at most");
    return {};
  }
  return std::move(*m);
}

void say(const std::string& path, const std::vector<Diagnostic>& all) {
  for (auto d : all) {
    d.where = shown(path) + (d.where.empty() ? "" : ": " + d.where);
    report(d);
  }
}

int write(const std::string& path, const std::string& text) {
  Output out{path};
  out.text() = text;
  return out.close() ? kOk : out.exit_code();
}

/// The picture shows all rounds, the time is the last one's.
std::string title(const std::string& path, const Simulation& r) {
  return shown(path) + ", " + time_text(r.ns) +
         (r.total_ns > r.ns * kOneRound ? " for the last round of " + time_text(r.total_ns) : "");
}

int one(const Options& o, const MachineDescription& m) {
  const auto& path = o.paths[0];
  const auto text = read_text(path);
  if (!text) return report(text.error()), kInput;
  const auto s = load_schedule(path, *text, o.parse);
  if (!s) return kInput;
  if (expects_finding(*s))
    return complain(shown(path) + " is wrong on purpose, for a checker: it is not simulated", "sdma check"), kFindings;
  std::optional<trace::Recorder> recorder;
  if (!o.trace.empty() || !o.plot.empty()) recorder.emplace(trace::Recorder::kDefaultEvents, "virtual");
  const auto r = simulate(*s, m, {.recorder = recorder ? &*recorder : nullptr, .contents = o.contents, .seed = o.seed});
  if (!r) return say(path, r.error()), kFindings;
  std::optional<Sensitivity> hangs;
  if (!o.no_sensitivity) {
    auto h = sensitivity(*s, m);
    if (!h) return say(path, h.error()), kFindings;
    hangs = std::move(*h);
  }
  const auto* const why = hangs ? &*hangs : nullptr;
  // Files first: whoever reads the table may be gone before its end.
  if (recorder) {
    const auto t = recorder->snapshot();
    if (!o.trace.empty())
      if (const auto code = save_trace(t, o.trace, trace::form_of(o.trace)); code != kOk) return code;
    if (!o.plot.empty())
      if (const auto code = write(o.plot, trace::timeline_svg(t, {.title = title(path, *r)})); code != kOk) return code;
  }
  if (const auto code = write("-", o.format == Format::json ? to_json(*r, why) : to_table(*r, why)); code != kOk)
    return code;
  say(path, r->findings);
  return r->findings.empty() ? kOk : kFindings;
}

constexpr int kSizeWidth = 10, kTimeWidth = 16;

/// At least so wide: negative, with the spaces behind it.
std::string padded(const std::string& text, int width) {
  const auto n = static_cast<std::size_t>(std::abs(width));
  const std::string spaces(n - std::min(n, text.size()), ' ');
  return width < 0 ? text + spaces : spaces + text;
}

/// A file's name without folder and ending, unless another has the same.
std::string short_name(const std::string& path, const std::vector<std::string>& all) {
  const auto stem = [](const std::string& p) { return std::filesystem::path(p).stem().string(); };
  const auto same = std::count_if(all.begin(), all.end(), [&](const auto& p) { return stem(p) == stem(path); });
  return same == 1 ? stem(path) : path;
}

std::string line_of(const nlohmann::ordered_json& j) {
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Every file at every value: times, and how much faster each file is than the first.
int sweep(const Options& o, const MachineDescription& m, const Sweep& sweep) {
  std::vector<Curves::Series> series;
  std::vector<std::string> texts;
  for (const auto& path : o.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    texts.push_back(std::move(*text));
    series.push_back({.name = short_name(path, o.paths)});
  }
  auto out = padded(sweep.name, -kSizeWidth);
  for (const auto& s : series) out += " " + padded(s.name, kTimeWidth) + "     x";
  out += "\n";
  char cell[64];
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const auto value : sweep.values) {
    auto parse = o.parse;
    parse.set.push_back({sweep.name, size_text(value)});
    out += padded(size_text(value), -std::max(kSizeWidth, static_cast<int>(sweep.name.size())));
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
      std::snprintf(cell, sizeof cell, " %5.2f", gain);
      out += " " + padded(time_text(r->ns), std::max(kTimeWidth, static_cast<int>(series[i].name.size()))) + cell;
      times.push_back(r->ns);
    }
    out += "\n";
  }
  if (!o.plot.empty()) {
    const auto code = write(o.plot, curves_svg({.title = "Speed-up over " + series[0].name + ", simulated",
                                                .x_label = sweep.name,
                                                .y_label = "speed-up",
                                                .series = series}));
    if (code != kOk) return code;
  }
  if (o.format == Format::table) return write("-", out);
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& s : series) names.push_back(s.name);
  auto whole = "{\"param\": " + line_of(sweep.name) + ", \"files\": " + line_of(names) + ", \"points\": [";
  for (std::size_t i = 0; i < points.size(); ++i) whole += (i == 0 ? "\n  " : ",\n  ") + line_of(points[i]);
  return write("-", whole + "\n]}\n");
}

int run(const Options& o) {
  const auto m = machine_of(o);
  if (!m) return o.changes.empty() ? kInput : kUsage;
  if (o.show_machine) return write("-", o.format == Format::json ? to_json(*m) : to_table(*m));
  if (o.paths.empty()) return complain("which schedule?", "sdma simulate FILE"), kUsage;
  for (const auto* path : {&o.trace, &o.plot})
    if (*path == "-") return complain("--trace - and --plot - are no files", "standard output has the report"), kUsage;
  auto read = o.paths;
  if (!o.machine.empty()) read.push_back(o.machine);
  if (overwrites({{"--trace", o.trace}, {"--plot", o.plot}}, read)) return kUsage;
  if (!o.sweep.empty()) {
    const auto s = sweep_of(o.sweep);
    if (const auto* why = std::get_if<std::string>(&s))
      return complain("--sweep " + o.sweep + ": " + *why, "write chunk=1K..1G, or chunk=1K..1G*4"), kUsage;
    if (!o.trace.empty() || o.contents)
      return complain("--sweep takes no --trace and no --contents", "one FILE at one value has them"), kUsage;
    if (std::count(o.paths.begin(), o.paths.end(), "-") > 1) return complain("- is read once"), kUsage;
    return sweep(o, *m, std::get<Sweep>(s));
  }
  if (o.paths.size() > 1) return complain("one FILE at a time", "--sweep takes several"), kUsage;
  return one(o, *m);
}

}  // namespace

void add_simulate(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.add_option("FILE", o->paths, "a schedule; with --sweep, several");
  add_settings(verb, o->parse.set);
  verb.add_option("--machine", o->machine, "a machine description; eight MI300X unless given")->type_name("PATH");
  add_pairs(verb, "--parameter", "NAME=VALUE", o->changes,
            "change one of the machine's parameters: engine.poll_ns=1000; several times");
  verb.add_flag("--show-machine", o->show_machine, "list the machine's parameters and where they come from");
  verb.add_option(
          "--sweep", o->sweep,
          "simulate each FILE for each value of a param, and compare: chunk=1K..1G (each twice the one before), "
          "chunk=1K..1G*4")
      ->type_name("NAME=A..B");
  add_choice<Format>(verb, "--format", o->format, {{"table", Format::table}, {"json", Format::json}},
                     "of the report; table unless given");
  add_json(verb, [o] { o->format = Format::json; });
  verb.add_option("--trace", o->trace, kTraceDoc)->type_name("PATH");
  verb.add_option("--plot", o->plot, "draw it as SVG: the timeline, or with --sweep the speed-ups")->type_name("PATH");
  verb.add_flag("--contents", o->contents, "move the bytes too, and check the expectations");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "of random contents, with --contents");
  verb.add_flag("--no-sensitivity", o->no_sensitivity, "leave out what the time hangs on, and its uncertainty");
  verb.footer(
      "Times are of the last round: from its first trigger or submit to the end of its waits.\n"
      "Examples:\n"
      "  sdma simulate --set N=8 --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --trace run.json --plot run.svg examples/schedules/4_broadcast.sdma\n"
      "  sdma simulate --sweep chunk=1K..1G*4 --set N=8 --plot speedup.svg a.sdma b.sdma\n"
      "  sdma simulate --show-machine");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
