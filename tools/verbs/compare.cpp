// SPDX-License-Identifier: MIT
// sdma compare: a measured run beside its simulation, queue by queue and phase by phase.
#include "sdma/trace/compare.hpp"
#include "compare_recording.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "recordings.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace sdma::tool {
namespace {

struct CompareArguments {
  std::string path, measured, with, page;
  ParseOptions parse;
  MachineOptions machine;
  std::optional<double> within;
  bool json = false;
};

/// A trace to compare with, and the exit code if there is none.
struct Other {
  std::string name{}, column{};
  std::optional<trace::Trace> trace{};
  int code = kOk;
  std::vector<std::string> defaults{};  ///< of the machine
};

Other recorded(const CompareArguments& o) {
  const Doing reading("reading " + shown(o.with));
  auto t = trace::load_json_lines(o.with);
  if (!t) return report(t.error()), Other{.code = kInput};
  return {.name = shown(o.with), .column = "other", .trace = *std::move(t)};
}

Other simulated(const CompareArguments& o) {
  const auto m = load_machine(o.machine);
  if (!m) return {.code = exit_code(o.machine)};
  const auto text = read_text(o.path);
  if (!text) return report(text.error()), Other{.code = kInput};
  SourceMap map;
  const auto s = load_schedule(o.path, *text, o.parse, &map);
  if (!s) return {.code = kInput};
  if (const auto why = json::deliberate(*s, shown(o.path))) return report(*why), Other{.code = kInput};
  const Doing simulating("simulating " + shown(o.path));
  trace::Recorder recorder(trace::Recorder::kGrows, "virtual");
  const auto r = simulate(*s, *m, {.recorder = &recorder, .map = &map});
  if (r)
    return {.name = "the simulation", .column = "simulated", .trace = recorder.snapshot(), .defaults = defaults_of(*m)};
  report(in_file(o.path, r.error()));
  return {.code = can_begin(*s, *m) ? kRefuted : kInput};
}

std::optional<double> parse_percent(const std::string& text) {
  char* end = nullptr;
  const auto value = std::strtod(text.c_str(), &end);
  return *end == 0 && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

/// A recording of another tool beside what the machine needs for each copy alone.
int recording(const CompareArguments& o) {
  constexpr double kSlower = 10;  // percent
  if (!o.parse.set.empty()) return complain("--set is for the schedule FILE", "omit it");
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  const auto copies = load_copies(o.measured, {});
  if (!copies) return report(copies.error()), kInput;
  const Doing comparing("comparing " + shown(o.measured) + " and " + m->name);
  const auto b = beside_machine(*copies, *m, o.within.value_or(kSlower));
  if (!b) return report(b.error()), kInput;
  if (!o.page.empty())
    if (const int code = write_text(o.page, trace::to_page(pictures(*b, *copies))); code != kOk) return code;
  const auto text = o.json ? json::document(to_json(*b, *copies, *m)) : to_table(*b, *copies, *m);
  if (const int code = write_text("-", text); code != kOk) return code;
  if (!o.json) tell_assumed(*copies);
  if (b->not_compared > 0)
    report({.severity = Severity::warning,
            .where = shown(o.measured),
            .message = fmt::format(
                "not compared, because a size or a time is not recorded, or there are more than {} pairs of "
                "a size and a link: {} of {} copies",
                kMostKinds, b->not_compared, copies->copies.size())});
  return o.within && b->slower() > 0 ? kRefuted : b->not_compared > 0 ? kUndecided : kOk;
}

/// Is it a trace of this SDK?
bool is_own(const std::string& path) {
  const auto begin = beginning_of(path);
  return !begin || begin->starts_with("{\"sdma_trace\":");
}

/// Of a recording of another tool, which has no packets to compare with those of a schedule or of a trace.
std::optional<Diagnostic> recorded_elsewhere(const std::string& path) {
  if (!begins_recording(beginning_of(path).value_or(""))) return {};
  return Diagnostic{.where = shown(path),
                    .message = "this is a recording in the form of another tool, which has no packets",
                    .hint =
                        "sdma compare --measured FILE, with nothing else, compares its copies with the machine; sdma "
                        "trace --schedule FILE writes a schedule of them"};
}

int compare_verb(const CompareArguments& o) {
  if (o.path.empty() && o.with.empty() && !is_own(o.measured)) return recording(o);
  if (!o.page.empty())
    return complain("--page goes with a recording of another tool, without a FILE or --with",
                    "sdma trace --format=html shows two traces of this SDK");
  if (o.path.empty() == o.with.empty())
    return complain(o.path.empty() ? "nothing to compare with" : "both a schedule and --with",
                    "give the FILE of the schedule, or a second trace with --with");
  if (!o.with.empty() && (!o.parse.set.empty() || !o.machine.path.empty() || !o.machine.changes.empty()))
    return complain("--with does not take --set, --machine or --parameter", "they are for the simulation of a FILE");
  if (reads_stdin_twice({o.measured, o.path, o.with})) return kUsage;
  Doing comparing("reading " + shown(o.measured));
  const auto measured = trace::load_json_lines(o.measured);
  if (!measured) return report(recorded_elsewhere(o.measured).value_or(measured.error())), kInput;
  const auto other = o.with.empty() ? simulated(o) : recorded(o);
  if (!other.trace) return other.code;
  comparing.now("comparing " + shown(o.measured) + " and " + other.name);
  const auto c = trace::compare({shown(o.measured), *measured}, {other.name, *other.trace});
  if (!c) return report(c.error()), kInput;
  const auto error = c->run.error();
  const bool within = !o.within || (error && std::abs(*error) <= *o.within);
  const int verdict = !within ? kRefuted : c->differences.empty() ? kOk : kUndecided;
  if (o.json) {
    auto j = json::of(*c, other.column);
    if (o.with.empty()) j["defaults"] = other.defaults;
    if (o.within) j["within"] = {{"percent", *o.within}, {"holds", within}};
    const int code = write_text("-", json::document(j));
    return code != kOk ? code : verdict;
  }
  if (const int code = write_text("-", to_table(*c, other.column)); code != kOk) return code;
  report(c->differences);
  if (!within)
    report({.where = shown(o.measured),
            .message = fmt::format("the time of the run differs by {}, more than --within {}",
                                   error ? fmt::format("{:+.1f} %", *error) : "more than any percentage", *o.within)});
  return verdict;
}

}  // namespace

void add_compare(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<CompareArguments>();
  verb.value("FILE", o->path, "the schedule that was run, to be simulated; - is standard input").type("");
  verb.value(
          "--measured", o->measured,
          "the trace of the run, as `sdma run --trace NAME.jsonl` writes it; without FILE and --with, also a recording "
          "of another tool (sdma trace --schedule)")
      .type("PATH")
      .required();
  verb.value("--with", o->with, "compare with this trace of the same schedule, instead of a simulation").type("PATH");
  verb.value("--page", o->page, "of a recording: an HTML page of its copies over time, beside the machine's")
      .type("PATH");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  add_parsed(
      verb, "--within", o->within, parse_percent, "a number of percent, such as 10",
      "exit with 1 if the simulated time of the run differs by more than this from the measured time, or a copy of a "
      "recording is slower by more than this")
      .type("PERCENT");
  add_format(verb, "table", o->json, "form of the report (default: table)");
  verb.exits(
      {{kRefuted, "the time of the run differs by more than --within, or the schedule does not end"},
       {kInput, "errors in a trace, the schedule or the machine description, or an error of the input or output"},
       {kUndecided, "events were lost during recording, or a queue, packet or copy could not be compared"}});
  verb.manual("docs/trace.md#a-run-and-its-simulation");
  verb.footer(
      "The last round of each queue is compared. Times count from the trigger, if both traces have one: the first "
      "store of "
      "a host thread after the last doorbell. Otherwise they count from the first doorbell or, if a trace has no "
      "doorbells, "
      "from the first packet.\n"
      "Each moment until a queue's end belongs to one phase:\n"
      "  schedule   until the queue's first packet begins\n"
      "  copy       a data packet is in flight\n"
      "  sync       no data packet is in flight, but a fence, an atomic, a trap or a timestamp is\n"
      "  wait       none of these is in flight, but a poll runs\n"
      "  rest       everything else: conditions, gaps between packets\n"
      "An error is the time that the simulation takes longer, in percent of the measured time. Only the compared "
      "packets count.\n"
      "Examples:\n"
      "  sdma run --device=kfd --trace run.jsonl copy.sdma\n"
      "  sdma compare --measured run.jsonl copy.sdma\n"
      "  sdma compare --measured run.jsonl --machine mine.json --within 10 copy.sdma\n"
      "  sdma compare --measured monday.jsonl --with tuesday.jsonl\n"
      "  sdma compare --measured rocprof_results.json --page copies.html");
  action = [o] { return compare_verb(*o); };
}

}  // namespace sdma::tool
