// SPDX-License-Identifier: MIT
// sdma simulate: predicts the time of schedules on a described machine.
#include "input.hpp"
#include "json/check.hpp"
#include "json/library.hpp"
#include "machine_file.hpp"
#include "output.hpp"
#include "schedule_file.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/trace/form.hpp"
#include "sdma/trace/write.hpp"
#include "sweep.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

namespace sdma::tool {
namespace {

enum class SimulateFormat { table, json };
/// If the total exceeds the last round by this factor, there were rounds before it.
constexpr double kOneRound = 1.5;

struct SimulateArguments {
  std::vector<std::string> paths;
  ParseOptions parse;
  MachineOptions machine;
  std::string trace, plot, csv;
  std::vector<std::string> sweeps;
  SimulateFormat format = SimulateFormat::table;
  bool show_machine = false, contents = false, no_sensitivity = false, explain = false;
  std::uint64_t seed = 0;
};

/// The same with the file, which the simulator does not know.
std::vector<Diagnostic> in_file(const std::string& path, std::vector<Diagnostic> all) {
  for (auto& d : all) d.where = shown(path) + (d.where.empty() ? "" : ": " + d.where);
  return all;
}
void say(const std::string& path, const std::vector<Diagnostic>& all) {
  for (const auto& d : in_file(path, all)) report(d);
}

/// The picture shows all rounds, but the time is that of the last one.
std::string title(const std::string& path, const Simulation& r) {
  return shown(path) + ", " + time_text(r.ns) +
         (r.total_ns > r.ns * kOneRound ? " for the last round of " + time_text(r.total_ns) : "");
}

int one(const SimulateArguments& o, const MachineDescription& m) {
  const auto& path = o.paths[0];
  const auto text = read_text(path);
  if (!text) return report(text.error()), kInput;
  SourceMap map;
  const auto s = load_schedule(path, *text, o.parse, &map);
  if (!s) return kInput;
  if (const auto why = json::deliberate(*s, shown(path))) return report(*why), kInput;
  std::optional<trace::Recorder> recorder;
  if (!o.trace.empty() || !o.plot.empty()) recorder.emplace(trace::Recorder::kDefaultEvents, "virtual");
  auto r = simulate(*s, m,
                    {.recorder = recorder ? &*recorder : nullptr, .contents = o.contents, .seed = o.seed, .map = &map});
  if (!r) return say(path, r.error()), can_begin(*s, m) ? kRefuted : kInput;
  r->findings = in_file(path, std::move(r->findings));
  std::optional<Sensitivity> found;
  if (!o.no_sensitivity) {
    auto h = sensitivity(*s, m);
    if (!h) return say(path, h.error()), kInput;
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
  const bool json = o.format == SimulateFormat::json;
  auto answer = json ? json::document(json::of(*r, why)) : to_table(*r, why);
  if (o.explain && !json) answer += "\n" + explain(*r, *why);
  if (const auto code = write_text("-", std::move(answer)); code != kOk) return code;
  if (!json)
    for (const auto& d : r->findings) report(d);
  return std::any_of(r->findings.begin(), r->findings.end(),
                     [](const auto& d) { return d.severity == Severity::error; })
             ? kRefuted
             : kOk;
}

/// The request of these texts; nothing after a usage error.
std::optional<SweepRequest> request_of(const SimulateArguments& o, const MachineDescription& m) {
  SweepRequest r{.paths = o.paths,
                 .parse = o.parse,
                 .machine = m,
                 .csv = o.csv,
                 .plot = o.plot,
                 .json = o.format == SimulateFormat::json};
  for (const auto& text : o.sweeps) {
    auto axis = sweep_axis(text);
    if (const auto* why = std::get_if<std::string>(&axis)) {
      complain("--sweep " + text + ": " + *why, "write chunk=1K..1G, chunk=1K..1G*4, or xgmi.rate=48,61,100");
      return {};
    }
    r.axes.push_back(std::get<SweepAxis>(std::move(axis)));
  }
  if (r.axes.size() > 2) return complain("more than two --sweep", "sweep two, and set the others"), std::nullopt;
  if (r.axes.size() == 2 && r.axes[0].name == r.axes[1].name)
    return complain("--sweep " + r.axes[0].name + " appears twice", "write a list: NAME=A,B,C"), std::nullopt;
  if (r.axes.size() == 2 && r.axes[0].values.size() * r.axes[1].values.size() > kMostSwept)
    return complain(fmt::format("the two sweeps have more than {} pairs of values", kMostSwept),
                    "give a larger factor"),
           std::nullopt;
  return r;
}

int simulate_verb(const SimulateArguments& o) {
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  if (o.show_machine) return write_text("-", o.format == SimulateFormat::json ? to_json(*m) : to_table(*m));
  if (o.paths.empty()) return complain("no schedule given", "sdma simulate FILE"), kUsage;
  for (const auto* path : {&o.trace, &o.plot, &o.csv})
    if (*path == "-")
      return complain("--trace, --plot and --csv need a file, not -", "standard output is for the report"), kUsage;
  auto read = o.paths;
  if (!o.machine.path.empty()) read.push_back(o.machine.path);
  if (overwrites({{"--trace", o.trace}, {"--plot", o.plot}, {"--csv", o.csv}}, read)) return kUsage;
  if (!o.sweeps.empty()) {
    if (!o.trace.empty() || o.contents || o.explain)
      return complain("--sweep does not take --trace, --contents or --explain",
                      "simulate one FILE at one value to use them"),
             kUsage;
    if (std::count(o.paths.begin(), o.paths.end(), "-") > 1) return complain("- can be read only once"), kUsage;
    const auto request = request_of(o, *m);
    return request ? sweep(*request) : kUsage;
  }
  if (!o.csv.empty()) return complain("--csv needs --sweep", "--json prints the report of one FILE"), kUsage;
  if (o.explain && o.no_sensitivity)
    return complain("--explain needs the sensitivity", "omit --no-sensitivity"), kUsage;
  if (o.paths.size() > 1) return complain("more than one FILE", "--sweep takes several"), kUsage;
  return one(o, *m);
}

}  // namespace

void add_simulate(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<SimulateArguments>();
  verb.values("FILE", o->paths, "a schedule, or several with --sweep");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  verb.flag("--show-machine", o->show_machine, "list the machine's parameters and their sources");
  verb.repeated(
          "--sweep", [o](const std::string& text) { return o->sweeps.push_back(text), std::string(); },
          "simulate and compare each FILE for each value of a param, or of a parameter of the machine: chunk=1K..1G "
          "doubles it "
          "at each step, engine.window_bytes=16K..1M*4 multiplies it by 4, xgmi.rate=48,61,100 (GB/s) is a list; may "
          "be given "
          "twice, for all pairs")
      .type("NAME=A..B");
  verb.value("--csv", o->csv, "write the times of --sweep as CSV").type("PATH");
  add_choice<SimulateFormat>(verb, "--format", o->format,
                             {{"table", SimulateFormat::table}, {"json", SimulateFormat::json}},
                             "form of the report (default: table)");
  add_json(verb, [o] { o->format = SimulateFormat::json; });
  verb.value("--trace", o->trace, kTraceDoc).type("PATH");
  verb.value("--plot", o->plot, "draw an SVG: the timeline, or with --sweep the speed-ups, or the times of one FILE")
      .type("PATH");
  verb.flag("--contents", o->contents, "also move the bytes, and check the expectations");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed for random contents, with --contents");
  verb.flag("--no-sensitivity", o->no_sensitivity, "omit the sensitivity and the uncertainty from the report");
  verb.flag(
      "--explain", o->explain,
      "also print, for each phase of the critical path, the machine's parameters that it depends on most; JSON always "
      "has them");
  verb.footer(
      "Times cover the last round, from its first trigger or submit to the end of its waits.\n"
      "Examples:\n"
      "  sdma simulate --set N=8 --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --trace run.json --plot run.svg examples/schedules/4_broadcast.sdma\n"
      "  sdma simulate --sweep chunk=1K..1G*4 --set N=8 --plot speedup.svg a.sdma b.sdma\n"
      "  sdma simulate --sweep bytes=64K,1M --sweep engine.window_bytes=16K..256K --csv window.csv a.sdma\n"
      "  sdma simulate --explain --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --show-machine");
  action = [o] { return simulate_verb(*o); };
}

}  // namespace sdma::tool
