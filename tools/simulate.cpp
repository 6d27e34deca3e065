// sdma simulate: the time of schedules on a described machine.
#include "input.hpp"
#include "output.hpp"
#include "schedule_file.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace sdma::tool {
namespace {

enum class Format { table, json };

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

std::optional<std::uint64_t> size_of(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit == "" ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc{} || shift < 0 || n == 0 || n > (~std::uint64_t{} >> 1 >> shift)) return {};
  return n << shift;
}

std::optional<Sweep> sweep_of(const std::string& text) {
  const auto equal = text.find('='), dots = text.find("..");
  if (equal == text.npos || equal == 0 || dots == text.npos || dots < equal) return {};
  auto last = text.substr(dots + 2);
  std::uint64_t factor = 2;
  if (const auto star = last.find('*'); star != last.npos) {
    const auto f = size_of(last.substr(star + 1));
    if (!f || *f < 2) return {};
    factor = *f;
    last.resize(star);
  }
  const auto from = size_of(text.substr(equal + 1, dots - equal - 1)), to = size_of(last);
  if (!from || !to || *from > *to) return {};
  Sweep s{.name = text.substr(0, equal)};
  for (auto v = *from; v <= *to && s.values.size() < 1000; v *= factor) s.values.push_back(v);
  return s;
}

std::string size_text(std::uint64_t v) {
  const char* const units[] = {"", "K", "M", "G"};
  std::size_t unit = 0;
  while (unit < 3 && v >= 1024 && v % 1024 == 0) v /= 1024, ++unit;
  return std::to_string(v) + units[unit];
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
    if (*end == 0 && !value.empty() && m->set(name, v) == Errc::ok) continue;
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < kCosts; ++i) known.push_back(sdma::name(static_cast<Cost>(i)));
    complain("--parameter " + name + "=" + value + ": no such parameter, or no such value" + did_you_mean(name, known),
             "sdma simulate --show-machine lists them");
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
  if (const auto code = write("-", o.format == Format::json ? to_json(*r, why) : to_table(*r, why)); code != kOk)
    return code;
  if (recorder) {
    const auto t = recorder->snapshot();
    if (!o.trace.empty()) {
      const auto saved =
          o.trace.ends_with(".jsonl") ? trace::save_json_lines(t, o.trace) : trace::save_perfetto(t, o.trace);
      if (!saved) return report(saved.error()), kInput;
    }
    if (!o.plot.empty())
      if (const auto code = write(o.plot, timeline_svg(t, {.title = shown(path) + ", " + time_text(r->ns)}));
          code != kOk)
        return code;
  }
  say(path, r->findings);
  return r->findings.empty() ? kOk : kFindings;
}

/// Every file at every value: times, and how much faster each file is than the first.
int sweep(const Options& o, const MachineDescription& m, const Sweep& sweep) {
  std::vector<Curves::Series> series;
  std::vector<std::string> texts;
  for (const auto& path : o.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    texts.push_back(std::move(*text));
    series.push_back({.name = std::filesystem::path(path).stem().string()});
  }
  std::string out;
  char cell[64];
  std::snprintf(cell, sizeof cell, "%-10s", sweep.name.c_str());
  out += cell;
  for (const auto& s : series) std::snprintf(cell, sizeof cell, " %16.16s %5s", s.name.c_str(), "x"), out += cell;
  out += "\n";
  std::string json;
  for (const auto value : sweep.values) {
    auto parse = o.parse;
    parse.set.push_back({sweep.name, size_text(value)});
    std::snprintf(cell, sizeof cell, "%-10s", size_text(value).c_str());
    out += cell;
    json += (json.empty() ? "  {" : ",\n  {") + std::string("\"value\": ") + std::to_string(value) + ", \"ns\": [";
    double first = 0;
    for (std::size_t i = 0; i < o.paths.size(); ++i) {
      const auto s = load_schedule(o.paths[i], texts[i], parse);
      if (!s) return kInput;
      const auto r = simulate(*s, m);
      if (!r) return say(o.paths[i], r.error()), kFindings;
      if (i == 0) first = r->ns;
      series[i].points.emplace_back(static_cast<double>(value), first / r->ns);
      std::snprintf(cell, sizeof cell, " %16s %5.2f", time_text(r->ns).c_str(), first / r->ns);
      out += cell;
      std::snprintf(cell, sizeof cell, "%s%.1f", i == 0 ? "" : ", ", r->ns);
      json += cell;
    }
    out += "\n";
    json += "]}";
  }
  std::string names;
  for (const auto& s : series) names += (names.empty() ? "\"" : ", \"") + s.name + "\"";
  const auto whole =
      "{\"param\": \"" + sweep.name + "\", \"files\": [" + names + "], \"points\": [\n" + json + "\n]}\n";
  if (const auto code = write("-", o.format == Format::json ? whole : out); code != kOk) return code;
  if (o.plot.empty()) return kOk;
  return write(o.plot, curves_svg({.title = "Speed-up over " + series[0].name + ", simulated",
                                   .x_label = sweep.name,
                                   .y_label = "speed-up",
                                   .series = series}));
}

int run(const Options& o) {
  const auto m = machine_of(o);
  if (!m) return o.changes.empty() ? kInput : kUsage;
  if (o.show_machine) return write("-", o.format == Format::json ? to_json(*m) : to_table(*m));
  if (o.paths.empty()) return complain("which schedule?", "sdma simulate FILE"), kUsage;
  if (!o.sweep.empty()) {
    const auto s = sweep_of(o.sweep);
    if (!s) return complain("--sweep '" + o.sweep + "' is none", "write chunk=1K..1G, or chunk=1K..1G*4"), kUsage;
    if (!o.trace.empty() || o.contents) return complain("--sweep takes no --trace and no --contents"), kUsage;
    return sweep(o, *m, *s);
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
  add_paths(verb, "--parameter", o->changes,
            "change one of the machine's parameters: engine.poll_ns=1000; several times");
  verb.add_flag("--show-machine", o->show_machine, "list the machine's parameters and where they come from");
  verb.add_option("--sweep", o->sweep, "simulate each FILE for each value of a param, and compare: chunk=1K..1G*4")
      ->type_name("NAME=A..B");
  add_choice<Format>(verb, "--format", o->format, {{"table", Format::table}, {"json", Format::json}}, "of the report");
  verb.add_option("--trace", o->trace, "write what happened when: .jsonl, else for ui.perfetto.dev")->type_name("PATH");
  verb.add_option("--plot", o->plot, "draw it as SVG: the timeline, or with --sweep the speed-ups")->type_name("PATH");
  verb.add_flag("--contents", o->contents, "move the bytes too, and check the expectations");
  verb.add_option("--seed", o->seed, "of random contents")->type_name("N");
  verb.add_flag("--no-sensitivity", o->no_sensitivity, "leave out what the time hangs on, and its uncertainty");
  verb.footer(
      "Times are of the last round: from its first trigger or submit to the end of its waits. Exit code 1: the "
      "schedule\n"
      "does not end, an engine refuses a packet, an expectation fails.\n"
      "Examples:\n"
      "  sdma simulate --set N=8 --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --trace run.json --plot run.svg examples/schedules/4_broadcast.sdma\n"
      "  sdma simulate --sweep chunk=1K..1G*4 --set N=8 --plot speedup.svg a.sdma b.sdma\n"
      "  sdma simulate --show-machine");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
