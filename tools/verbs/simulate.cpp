// SPDX-License-Identifier: MIT
// sdma simulate: predicts the time of schedules on a described machine.
#include "sdma/simulate/simulate.hpp"
#include "core/csv.hpp"
#include "draw/curves.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "json/explore.hpp"
#include "json/json.hpp"
#include "json/sweep.hpp"
#include "output.hpp"
#include "repeat.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/lower_bound.hpp"
#include "sdma/simulate/power_limit.hpp"
#include "sdma/simulate/sweep.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sdma::tool {
namespace {

/// If the total exceeds the last round by this factor, there were rounds before it.
constexpr double kOneRound = 1.5;

struct SimulateArguments {
  std::vector<std::string> paths;
  ParseOptions parse;
  MachineOptions machine;
  std::string trace, plot, csv, bundle;
  FigureOptions figure;
  std::vector<std::string> sweeps;
  bool json = false, show_machine = false, contents = false, no_sensitivity = false, explain = false, verbose = false;
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> gpus;
  std::optional<double> watts;
  std::optional<PowerPolicy> policy{};
};

constexpr std::size_t kNameWidth = 10, kTimeWidth = 12;

/// The times of a sweep, and how much faster each file is than the first.
class SweepReport {
 public:
  SweepReport(const SimulateArguments& o, const json::Swept& swept, const MachineDescription& m)
      : r_(o), s_(swept), machine_(m) {}

  int write() const {
    if (!r_.csv.empty())
      if (const auto code = write_text(r_.csv, csv()); code != kOk) return code;
    if (!r_.plot.empty())
      if (const auto code = write_text(r_.plot, curves_svg(curves())); code != kOk) return code;
    return write_text("-", r_.json ? json::document(json::of(s_, machine_)) : table());
  }

 private:
  Curves curves() const {
    auto c = json::curves(s_);
    r_.figure.apply(c);
    return c;
  }
  std::string table() const {
    std::string out;
    const auto width = [&](const SweepAxis& a) { return std::max(kNameWidth, a.name.size()); };
    for (const auto& a : s_.axes) out += fmt::format("{}{:<{}}", out.empty() ? "" : " ", a.name, width(a));
    const auto times = s_.intervals ? 2 * kTimeWidth : kTimeWidth;
    const auto column = [&](std::size_t i) { return std::max(times, s_.names[i].size()); };
    for (std::size_t i = 0; i < s_.names.size(); ++i)
      out += fmt::format(" {:>{}}{}", s_.names[i], column(i), i == 0 ? "" : fmt::format(" {:>{}}", "x", gain_width()));
    out += "\n";
    for (const auto& r : s_.rows) {
      for (std::size_t a = 0; a < r.values.size(); ++a)
        out += fmt::format("{}{:<{}}", a == 0 ? "" : " ", s_.axes[a].text(r.values[a]), width(s_.axes[a]));
      for (std::size_t i = 0; i < r.files.size(); ++i) {
        const auto& f = r.files[i];
        const auto time = time_text(f.ns) + (s_.intervals ? " +- " + time_text(f.uncertainty_ns) : "");
        out += fmt::format(" {:>{}}", time, column(i));
        if (i > 0)
          out += fmt::format(" {:>{}}", s_.intervals ? json::text_of(f) : fmt::format("{:.2f}", f.value), gain_width());
      }
      out += "\n";
    }
    for (const auto& note : s_.notes) out += "note: " + note + "\n";
    if (r_.verbose) out += "\n" + machine_text(machine_);
    return out;
  }

  std::size_t gain_width() const { return s_.intervals ? 16 : 5; }

  std::string csv() const {
    std::string out;
    for (const auto& a : s_.axes) out += a.name + ",";
    out += s_.intervals ? "file,ns,uncertainty_ns,speed_up,speed_up_uncertainty,tie\n" : "file,ns,speed_up\n";
    for (const auto& r : s_.rows)
      for (std::size_t i = 0; i < r.files.size(); ++i) {
        const auto& f = r.files[i];
        for (const auto v : r.values) out += fmt::format("{},", v);
        out += fmt::format("{},{},", detail::csv_field(s_.names[i]), f.ns);
        out += s_.intervals ? fmt::format("{},{:.6g},{:.6g},{}\n", f.uncertainty_ns, f.value, f.uncertainty,
                                          f.tie() ? "yes" : "no")
                            : fmt::format("{:.6g}\n", f.value);
      }
    return out;
  }

  const SimulateArguments& r_;
  const json::Swept& s_;
  const MachineDescription& machine_;
};

/// If a parameter of the machine changes no time between two of its values, names what caps it.
int sweep(const SimulateArguments& o, const MachineDescription& m, std::vector<SweepAxis> axes) {
  json::SweepInput in{.parse = o.parse, .machine = m, .axes = std::move(axes), .intervals = !o.no_sensitivity};
  for (const auto& path : o.paths) {
    auto text = read_text(path);
    if (!text) return report(text.error()), kInput;
    // What is wrong with every value, and notes, are reported once.
    auto once = *text;
    auto set = in.parse.set;
    if (!make_schedule(path, once, set)) return kInput;
    in.files.push_back({path, std::move(*text)});
  }
  in.read = [](const json::SweepFile& f, const ParseOptions& parse) {
    return msccl::read_schedule(f.text, shown(f.path), parse);
  };
  std::size_t all = in.files.size(), done = 0;
  for (const auto& a : in.axes) all *= a.values.size();
  keep_what_is_known();
  const auto swept = [&] {
    Doing sweeping("sweeping");
    in.proceed = [&] {
      ++done;
      sweeping.show([&] { return fmt::format("{} of {} simulations", done, all); });
      return interrupted == 0;
    };
    return json::swept(in);
  }();
  if (swept)
    if (const int code = SweepReport(o, *swept, m).write(); code != kOk || swept->complete) return code;
  const auto& refused = swept ? swept->refused : swept.error();
  report(refused.all);
  if (interrupted != 0)
    return stopped(
        fmt::format("{} of {} values were simulated", swept ? swept->rows.size() : 0, all / in.files.size()));
  switch (refused.kind) {
    case json::SweepError::Kind::request: return kUsage;
    case json::SweepError::Kind::schedule: return kInput;
    case json::SweepError::Kind::run: break;
  }
  return kRefuted;
}

/// The picture shows all rounds, but the time is that of the last one.
std::string title(const std::string& path, const std::vector<std::uint32_t>& gpus, const Simulation& r,
                  const MachineDescription& m) {
  return shown(path) + (gpus.empty() ? "" : fmt::format(", GPU {}", fmt::join(gpus, ", "))) + ", " + time_text(r.ns) +
         (r.total_ns > r.ns * kOneRound ? " for the last round of " + time_text(r.total_ns) : "") + ", simulated on " +
         m.name;
}

/// What the schedule takes through each runtime, if it has a batch: several packets for one doorbell.
std::vector<std::pair<std::string, double>> runtimes(const SimulateArguments& o, const Schedule& s,
                                                     const Simulation& r) {
  std::vector<std::pair<std::string, double>> out;
  if (o.machine.through == Through::rings || r.packets <= 2 * r.doorbells) return out;
  for (const auto& [key, how] :
       {std::pair{"hip_ns", Through::hip}, {"hip_calls_ns", Through::hip_calls}, {"hsa_ns", Through::hsa}}) {
    auto machine = o.machine;
    machine.through = how;
    const auto m = load_machine(machine);
    auto calls = s;
    for (auto& q : calls.queues) q.doorbell_each = q.doorbell_each || how == Through::hip_calls;
    const auto t = m ? simulate(calls, *m) : Result<Simulation, std::vector<Diagnostic>>{std::vector<Diagnostic>{}};
    if (t) out.emplace_back(key, t->ns);
  }
  return out;
}
std::string runtimes_text(const std::vector<std::pair<std::string, double>>& all) {
  if (all.size() != 3) return "";
  const auto& [batch, calls, hsa] = std::tie(all[0].second, all[1].second, all[2].second);
  return fmt::format(
      "\nbatch       HIP: {}, or {} with a call for each packet, which is {:.2f} times as long\n"
      "            hsa_amd_memory_async_batch_copy: {}, by assumed costs\n",
      time_text(batch), time_text(calls), calls / batch, time_text(hsa));
}

/// What one FILE adds to the output.
struct Reported {
  std::string text{};                  ///< its report
  std::vector<Diagnostic> findings{};  ///< after the report
  std::string title{};                 ///< of its timeline
  std::optional<trace::Trace> trace{};
};

/// The round under --power-limit, and how much longer or shorter it is than without.
int limited(const SimulateArguments& o, const MachineDescription& m, const Schedule& s, const SourceMap& map,
            Reported& out) {
  const auto& path = o.paths[0];
  const PowerLimit limit{*o.watts, o.policy.value_or(PowerPolicy::component)};
  const auto free = simulate(s, m, {.map = &map});
  if (!free) return report(in_file(path, free.error())), can_begin(s, m) ? kRefuted : kInput;
  auto r = limit_power(s, m, limit, {.map = &map});
  if (!r) return report(in_file(path, r.error())), kInput;
  r->simulation.findings = in_file(path, std::move(r->simulation.findings));
  if (o.json) {
    auto j = json::of(r->simulation, m);
    j["energy"] = json::of(r->energy);
    j["power_limit"] = {{"watts", limit.watts},
                        {"mhz", r->mhz},
                        {"held", r->held},
                        {"ns", json::of(r->ns)},
                        {"unlimited_ns", free->ns}};
    return out.text = json::document(j), kOk;
  }
  out.text = to_text(*r, limit, free->ns) + "\n" + to_table(r->simulation) + "\n" + to_table(r->energy);
  out.findings = std::move(r->simulation.findings);
  return kOk;
}

constexpr const char* kOutOfMemory = "there was no memory for them, and nothing is written: simulate fewer packets";

int one(const SimulateArguments& o, const MachineDescription& m, const std::string& path, Reported& out) {
  const auto text = read_text(path);
  if (!text) return report(text.error()), kInput;
  if (is_bundle(*text)) {
    if (o.machine.given() || !o.parse.set.empty() || !o.trace.empty() || !o.plot.empty() || !o.bundle.empty() ||
        o.contents || o.explain || o.watts)
      return complain("a bundle has its own machine and values, and is only repeated",
                      "sdma simulate BUNDLE, without other options but --json");
    return repeat(shown(path), *text, o.json);
  }
  SourceMap map;
  const auto s = load_schedule(path, *text, o.parse, &map);
  if (!s) return kInput;
  if (const auto why = json::deliberate(*s, shown(path))) return report(*why), kInput;
  const Doing simulating("simulating " + shown(path));
  if (o.watts) return limited(o, m, *s, map, out);
  std::optional<trace::Recorder> recorder;
  if (!o.trace.empty() || !o.plot.empty()) recorder.emplace(trace::Recorder::kGrows, "virtual");
  auto r = simulate(*s, m,
                    {.recorder = recorder ? &*recorder : nullptr, .contents = o.contents, .seed = o.seed, .map = &map});
  if (!r) return report(in_file(path, r.error())), can_begin(*s, m) ? kRefuted : kInput;
  r->findings = in_file(path, std::move(r->findings));
  std::optional<Sensitivity> found;
  if (!o.no_sensitivity) {
    auto h = sensitivity(*s, m);
    if (!h) return report(in_file(path, h.error())), kInput;
    found = std::move(*h);
  }
  const auto* const why = found ? &*found : nullptr;
  if (recorder) {
    auto all = recorder->snapshot();
    if (all.lost != 0) return report(lost_events(o.trace.empty() ? o.plot : o.trace, all.lost, kOutOfMemory)), kInput;
    out.trace = o.gpus.empty() ? std::move(all) : trace::of_gpus(std::move(all), o.gpus);
    out.title = title(path, o.gpus, *r, m);
  }
  if (!o.bundle.empty()) {
    auto bundle = bundle_text(*s, shown(path), m);
    if (!bundle) return report(in_file(path, bundle.error())), kInput;
    if (const auto code = write_text(o.bundle, *std::move(bundle)); code != kOk) return code;
  }
  const auto batches = runtimes(o, *s, *r);
  const auto least = lower_bound(*s, m);
  auto& answer = out.text;
  if (o.json) {
    auto j = json::of(*r, m, why);
    j["at_least"] = json::of(least, *r);
    for (const auto& [key, ns] : batches) j["through"][key] = ns;
    answer = json::document(j);
  } else {
    answer =
        to_table(*r, why, &m, least ? &*least : nullptr) + runtimes_text(batches) + "\n" + to_table(energy(*r, m, why));
  }
  if (o.explain && !o.json) answer += "\n" + explain(*r, *why);
  if (!o.json) out.findings = r->findings;
  return std::any_of(r->findings.begin(), r->findings.end(),
                     [](const auto& d) { return d.severity == Severity::error; })
             ? kRefuted
             : kOk;
}

/// The files that are asked for, then the reports: the reader of the reports may exit before their end.
int write(const SimulateArguments& o, const MachineDescription& m, const std::vector<Reported>& all) {
  if (!o.trace.empty())
    if (const auto code = write_text(o.trace, trace::to_string(*all[0].trace, trace::form_of(o.trace), o.trace));
        code != kOk)
      return code;
  if (!o.plot.empty()) {
    std::vector<trace::Titled> traces;
    for (const auto& r : all) traces.push_back({all.size() > 1 ? r.title : "", &*r.trace});
    trace::TimelineOptions picture{.title = all.size() > 1 ? fmt::format("{} schedules over one axis", all.size())
                                                           : all[0].title};
    o.figure.apply(picture);
    if (const auto code = write_text(o.plot, trace::timelines_svg(traces, picture)); code != kOk) return code;
  }
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > 1 && !o.json) text += (i > 0 ? "\n" : "") + shown(o.paths[i]) + ":\n";
    text += all[i].text;
  }
  if (o.verbose && !o.json && !o.watts) text += "\n" + machine_text(m);
  if (const auto code = write_text("-", std::move(text)); code != kOk) return code;
  for (const auto& r : all) report(r.findings);
  return kOk;
}

/// The report of each FILE: several share a picture.
int each(const SimulateArguments& o, const MachineDescription& m) {
  std::vector<Reported> all;
  int worst = kOk;
  for (const auto& path : o.paths) {
    auto& r = all.emplace_back();
    const auto code = one(o, m, path, r);
    if (r.text.empty()) return code;
    worst = std::max(worst, code);
  }
  const auto code = write(o, m, all);
  return code != kOk ? code : worst;
}

/// One axis or two; nothing after a usage error.
std::optional<std::vector<SweepAxis>> axes_of(const SimulateArguments& o) {
  std::vector<SweepAxis> axes;
  for (const auto& text : o.sweeps) {
    auto axis = sweep_axis(text);
    if (const auto* why = std::get_if<std::string>(&axis)) {
      complain("--sweep " + text + ": " + *why, "write chunk=1K..1G, chunk=1K..1G*4, or xgmi.rate=48,61,100");
      return {};
    }
    axes.push_back(std::get<SweepAxis>(std::move(axis)));
  }
  if (axes.size() > 2) return complain("more than two --sweep", "sweep two, and set the others"), std::nullopt;
  if (axes.size() == 2 && axes[0].name == axes[1].name)
    return complain("--sweep " + axes[0].name + " appears twice", "write a list: NAME=A,B,C"), std::nullopt;
  if (axes.size() == 2 && axes[0].values.size() * axes[1].values.size() > kMostSwept)
    return complain(fmt::format("the two sweeps have more than {} pairs of values", kMostSwept),
                    "give a larger factor"),
           std::nullopt;
  return axes;
}

int simulate_verb(const SimulateArguments& o) {
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  if (o.show_machine) return write_text("-", o.json ? to_json(*m) : to_table(*m));
  if (o.paths.empty()) return complain("no schedule given", "sdma simulate FILE");
  for (const auto* path : {&o.trace, &o.plot, &o.csv, &o.bundle})
    if (*path == "-")
      return complain("--trace, --plot, --csv and --bundle need a file, not -", "standard output is for the report");
  auto read = o.paths;
  if (!o.machine.path.empty()) read.push_back(o.machine.path);
  if (overwrites({{"--trace", o.trace}, {"--plot", o.plot}, {"--csv", o.csv}, {"--bundle", o.bundle}}, read))
    return kUsage;
  if (o.watts &&
      (!o.sweeps.empty() || !o.trace.empty() || !o.plot.empty() || !o.bundle.empty() || o.contents || o.explain))
    return complain("--power-limit does not take --sweep, --trace, --plot, --bundle, --contents or --explain",
                    "the report is about the round at the clock that follows");
  if (o.policy && !o.watts)
    return complain("--policy needs --power-limit", "it says who keeps which part of the limit");
  if (o.figure.given() && o.plot.empty())
    return complain("--title and --size need --plot", "they say how its picture is drawn");
  if (!o.sweeps.empty()) {
    if (!o.trace.empty() || !o.bundle.empty() || o.contents || o.explain || !o.gpus.empty())
      return complain("--sweep does not take --trace, --bundle, --contents, --explain or --gpu",
                      "simulate one FILE at one value to use them");
    if (reads_stdin_twice(o.paths)) return kUsage;
    auto axes = axes_of(o);
    return axes ? sweep(o, *m, *std::move(axes)) : kUsage;
  }
  if (!o.gpus.empty() && o.plot.empty() && o.trace.empty())
    return complain("--gpu needs --plot or --trace", "the report is about all GPUs");
  if (!o.csv.empty()) return complain("--csv needs --sweep", "--json prints the report of one FILE");
  if (o.explain && o.no_sensitivity) return complain("--explain needs the sensitivity", "omit --no-sensitivity");
  if (o.paths.size() > 1 && (o.plot.empty() || !o.trace.empty() || !o.bundle.empty() || o.watts))
    return complain("more than one FILE",
                    "--sweep takes several, and --plot without --trace and --bundle draws them over one axis");
  if (reads_stdin_twice(o.paths)) return kUsage;
  return each(o, *m);
}

}  // namespace

void add_simulate(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<SimulateArguments>();
  verb.values("FILE", o->paths, "a schedule, or several with --sweep or --plot");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  verb.flag("--show-machine", o->show_machine, "list the machine's parameters and their sources");
  add_texts(verb, "--sweep", o->sweeps,
            "simulate and compare each FILE for each value of a param, or of a parameter of the machine. chunk=1K..1G "
            "doubles the value at each step, engine.window_bytes=16K..1M*4 multiplies it by 4, and xgmi.rate=48,61,100 "
            "(GB/s) is a list. Give it twice for all pairs of values")
      .type("NAME=A..B");
  verb.value("--csv", o->csv, "write the times of --sweep as CSV").type("PATH");
  add_format(verb, "table", o->json, "form of the report (default: table)");
  verb.value("--bundle", o->bundle,
             "also write one file with the schedule, the machine, the verdict of sdma check, the prediction and the "
             "version. sdma check and sdma simulate repeat such a file, and say what differs")
      .type("PATH");
  verb.value("--trace", o->trace, kTraceDoc).type("PATH");
  add_picture(
      verb, "--plot", o->plot,
      "draw an SVG: the timeline, of several FILEs over one axis; with --sweep the speed-ups, or the times of one "
      "FILE")
      .type("PATH");
  add_figure(verb, o->figure, "--plot");
  add_shown_gpus(verb, o->gpus);
  verb.flag("--contents", o->contents, "also move the bytes, and check the expectations");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed for random contents, with --contents");
  add_parsed(
      verb, "--power-limit", o->watts, parse_real, "a number of watts",
      "limit the power of each GPU's board; the clock of the compute dies follows, and the report is that of the "
      "round at this clock")
      .type("WATTS");
  add_choice<std::optional<PowerPolicy>>(
      verb, "--policy", o->policy, {{"uniform", PowerPolicy::uniform}, {"component", PowerPolicy::component}},
      "with --power-limit: each part of a GPU keeps its part of the limit, or kernels get what the "
      "others leave (default: component)");
  verb.flag("--no-sensitivity", o->no_sensitivity,
            "omit the sensitivity and the uncertainty from the report or the sweep");
  verb.flag(
      "--explain", o->explain,
      "also print the parameters of the machine on which each phase of the critical path depends most; JSON always "
      "has them");
  add_verbose(verb, o->verbose);
  verb.exits(
      {{kRefuted,
        "the schedule does not end, an engine refuses a packet, or an expectation fails; of a bundle, something differs"},
       {kInput,
        "errors in the schedule or the machine description, a schedule that is wrong on purpose or does not fit the\n"
        "machine, a link of unknown rate that bytes cross, or an error of the input or output"},
       {kInterrupted, "Ctrl-C; the values of a sweep so far are printed"}});
  verb.manual("docs/simulate.md");
  verb.footer(
      "Times cover the last round, from its first trigger or submit to the end of its waits.\n"
      "Examples:\n"
      "  sdma simulate --set chunk=64K examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma simulate --trace run.html --plot run.svg copy.sdma\n"
      "  sdma simulate --plot both.svg --title 'a and b' --size 900x500 a.sdma b.sdma\n"
      "  sdma simulate --sweep chunk=1K..1G*4 --plot speedup.svg a.sdma b.sdma\n"
      "  sdma simulate --sweep engine.window_bytes=16K..256K --csv window.csv a.sdma\n"
      "  sdma simulate --explain copy.sdma\n"
      "  sdma simulate --bundle cite.json copy.sdma; sdma simulate cite.json\n"
      "  sdma simulate --show-machine");
  action = [o] { return simulate_verb(*o); };
}

}  // namespace sdma::tool
