// SPDX-License-Identifier: MIT
// sdma calibrate: fits a machine's parameters to measurements.
#include "json/calibrate.hpp"
#include "calibrate_joules.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "measure_device.hpp"
#include "output.hpp"
#include "perf/measure_joules.hpp"
#include "sdma/core/number.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <string>

namespace sdma::tool {
namespace {

using namespace std::chrono_literals;

struct CalibrateArguments {
  std::string from, start = "builtin", out, joules;
  std::optional<DeviceKind> device;
  DeviceMeasurement measure;
  std::vector<std::string> free;
  bool predict = false, held_out = false, json = false, energy = false, no_product = false;
  double seconds = 2;
  Through through{};
  std::chrono::nanoseconds limit = 600s;
};

/// The parameters that --free names, with the bounds and notes that the table has for them; otherwise those of the
/// table, otherwise those that are fitted in the machine. Empty after an error, which has been reported.
std::vector<FreeParameter> free_of(const CalibrateArguments& o, const Measurements& m,
                                   const MachineDescription& start) {
  std::vector<FreeParameter> out;
  for (const auto& word : o.free) {
    const auto cost = parameter_named("--free", word);
    if (!cost) return {};
    const auto& all = m.options.free;
    const auto at = std::find_if(all.begin(), all.end(), [&](auto& p) { return p.cost == *cost; });
    out.push_back(at == all.end() ? FreeParameter{.cost = *cost} : *at);
  }
  if (!out.empty()) return out;
  if (!m.options.free.empty()) return m.options.free;
  for (std::size_t i = 0; i < kCosts; ++i)
    if (start.parameters[i].fitted()) out.push_back({.cost = static_cast<Cost>(i)});
  if (out.empty()) complain("no parameter is free", "--free NAME, or a line '#: free NAME START' in the table");
  return out;
}

std::string value_text(const Observation& o, double value) {
  switch (o.kind) {
    case Observation::Kind::time: return fmt::format("{:.2f} us", value / 1000);
    case Observation::Kind::ratio: return fmt::format("{:.2f}", value);
    case Observation::Kind::share: break;
  }
  return fmt::format("{:.1f} %", value);
}

std::string summary(const json::FitErrors& e, const std::string& state = "") {
  std::string out;
  const auto errors = [&](const char* what, const json::FitErrors::Kind& k, const char* unit) {
    if (k.count == 0) return;
    out +=
        fmt::format("{}{} ({}): the mean error is {:.1f} {}, the worst {:.1f} {}\n  worst: {}: measured {}, model {}\n",
                    state, what, k.count, 100 * k.mean, unit, 100 * k.worst, unit, k.at->id,
                    value_text(*k.at, k.at->value), value_text(*k.at, k.predicted));
  };
  errors("times and speed-ups", e.relative, "%");
  errors("shares", e.share, "points");
  return out;
}

std::string percent(double x) { return fmt::format("{:.1f} %", 100 * x); }

void line(std::string& out, const std::string& name, const HeldOutErrors& e) {
  out += fmt::format("| {} | {} | {} | {} | {} | {} | {} +- {} | {} |\n", name, e.cells, percent(e.mean),
                     percent(e.worst), e.after_factor > 0 ? percent(e.after_factor) : "-",
                     e.compared > 0 ? fmt::format("{} of {}", e.best, e.compared) : "-", percent(e.inside_one),
                     percent(e.inside_one_deviation), percent(e.inside_two));
}
void share_line(std::string& out, const std::string& name, const HeldOutErrors& e) {
  out += fmt::format("| {} | {} | {:.1f} | {:.1f} |\n", name, e.cells, 100 * e.mean, 100 * e.worst);
}

/// Errors of a fit at what it has not seen, as Markdown tables.
std::string held_out_report(const Measurements& m, std::span<const HeldOut> parts) {
  std::string ratios =
      "| left out | cells | mean error | worst | after one factor a row | best variant | inside one interval | inside "
      "two "
      "|\n|---|---|---|---|---|---|---|---|\n";
  std::string shares = "| left out: shares | cells | mean error, points | worst |\n|---|---|---|---|\n";
  const auto least = shares.size(), none = ratios.size();
  const auto add = [&](const std::string& name, std::span<const HeldOut* const> of) {
    if (const auto e = errors_of(m, of, false); e.cells > 0) line(ratios, name, e);
    if (const auto e = errors_of(m, of, true); e.cells > 0) share_line(shares, name, e);
  };
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<const HeldOut*> same;
    const auto kind = parts[i].kind;
    for (; i < parts.size() && parts[i].kind == kind; ++i) same.push_back(&parts[i]);
    if (same.size() > 1)
      for (const auto* p : same) add(p->name, {&p, 1});
    add(same.size() > 1 ? fmt::format("**all {}**", name(kind)) : same.front()->name, same);
  }
  return (ratios.size() > none ? ratios : "") +
         (shares.size() > least ? (ratios.size() > none ? "\n" : "") + shares : "");
}

/// Each measurement beside the prediction of a machine to which nothing was fitted here.
std::string predicted_table(const Measurements& all, const std::vector<Fit::Prediction>& predictions,
                            const MachineDescription& m) {
  auto out = fmt::format("{:>12} {:>12} {:>10} {:>9}  {:<9}  measurement\n", "measured", "model", "+-", "error", "");
  std::size_t judged = 0, one = 0, two = 0;
  for (std::size_t i = 0; i < all.observations.size(); ++i) {
    const auto& o = all.observations[i];
    const auto share = o.kind == Observation::Kind::share;
    const auto spread = half_interval(o, m), off = std::abs(predictions[i].value - o.value);
    judged += !share, one += !share && off <= spread, two += !share && off <= 2 * spread;
    out += fmt::format("{:>12} {:>12} {:>10} {:>+7.1f} {}  {:<9}  {}{}\n", value_text(o, o.value),
                       value_text(o, predictions[i].value), share ? "" : value_text(o, spread),
                       100 * predictions[i].error, share ? "p" : "%", json::state_of(all.rows[i], m), o.id,
                       all.rows[i].machine.empty() ? "" : " (" + all.rows[i].machine + ")");
  }
  out += "\n";
  for (const std::string state : {"fitted", "predicted"})
    out += summary(json::fit_errors(all, predictions, [&](auto i) { return json::state_of(all.rows[i], m) == state; }),
                   state + " ");
  if (judged > 0)
    out += fmt::format("of {} times and speed-ups, {} lie inside one interval, and {} inside two\n", judged, one, two);
  return out;
}

std::string table(const Fit& f, const FitOptions& options, const MachineDescription& m, const Measurements& all,
                  const std::vector<Fit::Prediction>& predictions) {
  auto out = fmt::format("{:<29} {:>8} {:>8} {:<9} {}\n", "parameter", "value", "+-", "unit", "source");
  for (const auto& each : options.free) {
    const auto& p = m.parameter(each.cost);
    out += fmt::format("{:<29} {:>8} {:>8} {:<9} {}\n", name(each.cost), p.value, p.uncertainty, unit(each.cost),
                       p.source);
  }
  out += "\n";
  out += summary(json::fit_errors(all, predictions));
  for (std::size_t i = 0; i < all.observations.size(); ++i) {
    const auto& o = all.observations[i];
    if (o.weight == 0)
      out += fmt::format("not fitted to: {}: measured {}, model {}, error {:+.1f} %\n", o.id, value_text(o, o.value),
                         value_text(o, predictions[i].value), 100 * predictions[i].error);
  }
  for (const auto& a : f.alike)
    out += fmt::format("{} and {} cannot be distinguished: correlation {:.3f}\n", name(a.a), name(a.b), a.correlation);
  return out + fmt::format("{} simulations; {}\n", f.simulations, name(f.end));
}

/// The measurements, and the machine whose other parameters are kept. Reports errors.
Measured read(const CalibrateArguments& o) {
  Measured out;
  const auto fail = [&](std::span<const Diagnostic> all) {
    report(all);
    out.code = kInput;
    return std::move(out);
  };
  auto start = machine_named(o.start == "builtin" ? "" : o.start, read_text);
  if (!start) return fail({&start.error(), 1});
  const Doing reading("reading " + shown(o.from));
  auto table = read_measurements(o.from);
  if (!table) return fail(table.error());
  out.start = *std::move(start);
  through(out.start, o.through);
  out.table = *std::move(table);
  return out;
}

/// What the machine predicts as it is.
int predict_only(const CalibrateArguments& o, const Measured& measured) {
  const auto predictions = predict(measured.table.observations, measured.start);
  if (!predictions) return report(predictions.error()), kInput;
  return write_text("-", o.json ? json::document(json::predicted(measured.table, *predictions, measured.start))
                                : predicted_table(measured.table, *predictions, measured.start));
}

int calibrate_verb(const CalibrateArguments& o) {
  if (o.energy) {
    if (!o.device) return complain("--energy needs a device", "--device=cuda; or a table of joules: --joules FILE");
    keep_what_is_known();
    return calibrate_joules(
        {.start = o.start, .out = o.out, .save = o.measure.save, .json = o.json},
        collectives::perf::measure_joules(
            *o.device, {.seconds = o.seconds, .product = !o.no_product, .bytes = o.measure.most_bytes}));
  }
  if (!o.joules.empty()) {
    std::vector<std::string> read{o.joules};
    if (o.start != "builtin") read.push_back(o.start);
    if (!o.out.empty() && overwrites({{"-o", o.out}}, read)) return kUsage;
    return calibrate_joules({.start = o.start, .out = o.out, .save = {}, .json = o.json}, read_joules(o.joules));
  }
  if (o.from.empty() && !o.device)
    return complain("no measurements given",
                    "sdma calibrate --from share/published/dma-latte.csv, or sdma calibrate --device=cuda");
  std::vector<std::string> inputs;
  for (const auto& path : {o.from, o.start})
    if (!path.empty() && path != "builtin") inputs.push_back(path);
  if (!o.out.empty() && overwrites({{"-o", o.out}}, inputs)) return kUsage;
  if (o.device && o.start != "builtin")
    return complain("--start has no meaning with --device",
                    "its start is made from what is measured; --energy takes one");
  auto measured = o.device ? measure_device(*o.device, o.measure) : read(o);
  if (measured.code == kInterrupted && o.json) (void)write_text("-", json::line({{"complete", false}}));
  if (measured.code != kOk) return measured.code;
  if (o.predict) return predict_only(o, measured);
  const auto* const m = &measured.table;
  const auto* const start = &measured.start;
  auto options = m->options;
  options.free = free_of(o, *m, *start);
  if (options.free.empty()) return kUsage;
  options.deadline = Deadline::in(o.limit);
  std::optional<Doing> fitting{std::in_place, o.held_out ? "fitting to parts of the measurements" : "fitting"};
  options.progress = [&](const FitProgress& p) {
    fitting->show([&] {
      return fmt::format("{}{}: {} simulations, the mean error is {:.2f} %",
                         p.parts > 0 ? fmt::format("{} of {} parts, ", p.part, p.parts) : "", p.stage, p.simulations,
                         100 * p.mean_error);
    });
    return interrupted == 0;
  };
  if (o.held_out) {
    const auto parts = held_out(*m, *start, options);
    fitting.reset();
    if (!parts) return report(parts.error()), kInput;
    return write_text("-", o.json ? json::document(json::of(*m, *parts)) : held_out_report(*m, *parts));
  }
  keep_what_is_known();
  const auto f = fit(m->observations, m->from(*start), options);
  fitting.reset();
  if (!f) return report(f.error()), kInput;
  auto machine = rounded(*f, options);
  for (const auto& p : options.free) {
    auto& from = machine.parameter(p.cost).taken_from;
    from.clear();
    for (std::size_t i = 0; i < m->rows.size(); ++i)
      if (m->observations[i].weight > 0 && std::find(from.begin(), from.end(), m->rows[i].source) == from.end())
        from.push_back(m->rows[i].source);
  }
  if (auto judged = judge({m, 1}, machine)) machine.judged = *std::move(judged);
  const auto predictions = predict(m->observations, machine);
  if (!predictions) return report(predictions.error()[0]), kInput;
  const auto finished = f->end == Fit::End::converged;
  // The file first: the reader of the report may exit before its end.
  if (!o.out.empty() && finished)
    if (const auto code = write_text(o.out, to_json(machine)); code != kOk) return code;
  const bool cut = f->end == Fit::End::stopped;
  auto answer = o.json ? json::of(*f, options, machine, *m, *predictions) : json::Json();
  if (o.json && cut) answer["complete"] = false;
  const auto text = o.json ? json::document(answer) : table(*f, options, machine, *m, *predictions);
  if (o.out != "-")
    if (const auto code = write_text("-", text); code != kOk) return code;
  if (finished) return kOk;
  if (cut) return stopped(fmt::format("the fit had made {} simulations, and no machine was written", f->simulations));
  complain(std::string("the fit did not end: ") + std::string(name(f->end)), "--limit gives it more time");
  return kUndecided;
}

}  // namespace

void add_calibrate(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<CalibrateArguments>();
  const auto from = verb.value("--from", o->from,
                               "fit to a table: one line per time, speed-up or share, and the schedules next to it")
                        .type("CSV");
  verb.value("--start", o->start, "machine that provides all other parameters; builtin: eight MI300X")
      .type("PATH")
      .shown("builtin");
  auto device = add_device(verb, o->device, "measure single mechanisms on a device, and fit to their times", "",
                           "none: fit to the table of --from");
  auto only = verb.flag("--predict", o->predict,
                        "fit nothing: print what the machine of --start predicts for each line of the table");
  add_through(verb, o->through);
  auto unseen =
      verb.flag("--held-out", o->held_out,
                "judge the fit: leave out each column, half, quarter and source of the table in turn, fit to the "
                "rest, and print the errors at what was left out");
  auto joules = verb.value("--joules", o->joules,
                           "fit what the machine's work costs in joules to a table of measured joules, and print what "
                           "it predicts for rows that it has not seen")
                    .type("CSV");
  verb.flag(
      "--energy", o->energy,
      "with --device: measure joules instead of times, by NVML or the kernel's hardware monitor; --save then names "
      "the file of the table, and --start the machine whose energy is replaced");
  add_parsed(verb, "--energy-seconds", o->seconds, parse_real, "a number of seconds",
             "with --energy: time of each row (default: 2)")
      .type("SECONDS");
  verb.flag("--no-product", o->no_product, "with --energy: no matrix products, which need cuBLAS or hipBLAS");
  device.excludes(from).excludes(only).excludes(unseen);
  joules.excludes(from).excludes(device).excludes(only).excludes(unseen);
  unseen.excludes(only);
  verb.value("--save", o->measure.save,
             "with --device: also write the table, its schedules and the start of the fit here")
      .type("FOLDER");
  add_count(verb, "--passes", o->measure.passes, 1, 1000, "with --device: number of passes over all measurements");
  add_parsed(verb, "--most", o->measure.most_bytes, parse_size, "a size such as 64M",
             "with --device: size of the largest copy")
      .type("SIZE")
      .shown("64M");
  add_texts(verb, "--also", o->measure.also,
            "with --device: also measure this schedule, and print the error of the fitted machine for its time; may be "
            "repeated")
      .type("FILE");
  verb.flag("--busy", o->measure.busy, "with --device: accept times that vary by more than 10 % between passes");
  add_texts(verb, "--free", o->free,
            "parameter to fit, such as engine.poll_ns; may be repeated (default: the free parameters of the table, or "
            "the fitted ones of the machine)")
      .type("NAME");
  verb.value("-o,--output", o->out,
             "write the machine to a file for sdma simulate --machine; -: to standard output, without the report")
      .type("PATH");
  add_format(verb, "table", o->json, "form of the report (default: table)");
  add_parsed(verb, "--limit", o->limit, parse_time, "a time from 1 to 1,000,000 s, ms or us, such as 60s",
             "end the fit after this time")
      .type("TIME")
      .shown("600s");
  verb.exits(
      {{kInput,
        "errors in the table or the machine description, a measured schedule that cannot be simulated or run, or an\n"
        "error of the input or output"},
       {kUndecided, "the limit ended the fit, or the measured machine is busy; no machine is written"},
       {kInterrupted, "Ctrl-C ended the fit; no machine is written"}});
  verb.manual("docs/simulate.md#fitting-a-machine");
  verb.footer(
      "A fit finds the values with which the simulator comes closest to the measurements. The report lists each free\n"
      "parameter with its uncertainty (one standard deviation), and names those that the measurements cannot decide.\n"
      "sdma/simulate/measurements.hpp describes the table; share/published/dma-latte.csv is one.\n"
      "--device takes seconds on hardware. It measures no collectives, so predictions of collectives test its machine.\n"
      "Examples:\n"
      "  sdma calibrate --from share/published/dma-latte.csv -o mi300x.json\n"
      "  sdma calibrate --device=cuda --save two-h200 -o machine.json\n"
      "  sdma calibrate --device=cuda --energy --start old.json -o new.json\n"
      "  sdma calibrate --joules share/measured/h200/energy.csv\n"
      "  sdma calibrate --from mine.csv --start mi300x.json --free engine.poll_ns\n"
      "  sdma calibrate --from share/published/dma-latte.csv --held-out\n"
      "  sdma calibrate --from mine.csv --start mi355x.json --predict\n"
      "  sdma simulate --machine mi300x.json --show-machine");
  action = [o] { return calibrate_verb(*o); };
}

}  // namespace sdma::tool
