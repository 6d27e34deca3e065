// SPDX-License-Identifier: MIT
// Calculations about schedules: check, simulate, sweep, explore, reduce.
#include "answer.hpp"
#include "draw/curves.hpp"
#include "json/check.hpp"
#include "json/explore.hpp"
#include "json/json.hpp"
#include "json/sweep.hpp"
#include "module.hpp"
#include "msccl/check_source.hpp"
#include "picture.hpp"
#include "schedule.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <optional>
#include <tuple>
#include <utility>

namespace sdma::python {
namespace {

using Diagnostics = std::vector<Diagnostic>;
using json::Json;

Profile profile_of(const std::string& word, const std::vector<std::string>& assume) {
  auto p = one_of<Profile>(word, "a profile",
                           {{"conservative", Profile::conservative()},
                            {"rocr", Profile::rocr()},
                            {"strict", Profile::strict()},
                            {"cuda", Profile::cuda()}});
  for (const auto& option : assume)
    if (!p.set(option)) {
      std::string all;
      for (const auto known : profile_options()) all += fmt::format(" {}", known);
      throw py::value_error(fmt::format("'{}' cannot be assumed: pass some of{}", option, all));
    }
  return p;
}

/// The text of a schedule; that of XML of MSCCL is made, with its choices among the params.
Result<std::string, Diagnostics> made_of(std::string text, const std::string& file, ParseOptions& parse) {
  msccl::Made made;
  if (auto wrong = msccl::make_schedule(text, file, parse.set, made)) return std::move(wrong->all);
  return text;
}

py::object check_schedule(Box& box, const std::string& profile, const std::vector<std::string>& assume,
                          const std::string& device, const std::string& text, const std::string& file,
                          std::size_t max_findings, bool open, bool strict) {
  const auto s = box.snapshot();
  const auto p = profile_of(profile, assume);
  const auto node = topology_of(device, text, file);
  const auto found = long_call([=](const Stop&) {
    CheckOptions options{.profile = p,
                         .file = s->file,
                         .topology = node ? &*node : nullptr,
                         .max_findings = max_findings,
                         .open = open,
                         .strict = strict};
    // All alternatives of a text, as the program checks them. It was read before, so it has no errors.
    if (s->source) {
      const msccl::Text written{.text = *s->source};
      const auto& text_of = s->made ? *s->made : written;
      auto parse = s->parse;
      if (s->made) std::erase_if(parse.set, [](const auto& each) { return msccl::is_choice(each.name); });
      if (auto t = msccl::check_source({text_of.text, text_of.made}, s->file, parse, options)) {
        options.map = &t->map;
        for (const auto& note : text_of.made.notes) t->report.findings.push_back({.diagnostic = note});
        return json::of(t->report, options, t->schedule);
      }
    }
    return json::of(check(s->schedule, options), options, s->schedule);
  });
  return to_python(found);
}

py::object simulated(Box& box, const MachineDescription& machine, bool sensitive, bool contents, std::uint64_t seed) {
  const auto s = box.snapshot();
  const auto found = value_or_fail(long_call([=](const Stop&) -> Result<Json, Diagnostics> {
    const auto r = simulate(s->schedule, machine, {.contents = contents, .seed = seed, .map = s->lines()});
    if (!r) return of_file(s->file, r.error());
    std::optional<Sensitivity> why;
    if (sensitive) {
      auto h = sensitivity(s->schedule, machine);
      if (!h) return of_file(s->file, h.error());
      why = *std::move(h);
    }
    auto j = json::of(*r, machine, why ? &*why : nullptr);
    j["at_least"] = json::of(lower_bound(s->schedule, machine), *r);
    return j;
  }));
  return to_python(found);
}

Recording recorded(Box& box, const MachineDescription& machine) {
  const auto s = box.snapshot();
  auto t = value_or_fail(long_call([=](const Stop&) -> Result<trace::Trace, Diagnostics> {
    trace::Recorder recorder(trace::Recorder::kGrows, "virtual");
    const auto r = simulate(s->schedule, machine, {.recorder = &recorder, .map = s->lines()});
    if (!r) return of_file(s->file, r.error());
    return recorder.snapshot();
  }));
  return {s->file + ", simulated", std::make_shared<const trace::Trace>(std::move(t))};
}

/// (speed-up, half of its 68 % interval, tie) of each schedule over the baseline.
py::object faster(Box& baseline, const std::vector<std::shared_ptr<Box>>& others, const MachineDescription& machine) {
  std::vector<Snapshot> all{baseline.snapshot()};
  for (const auto& o : others) all.push_back(o->snapshot());
  const auto found = value_or_fail(long_call([=](const Stop&) -> Result<Json, Diagnostics> {
    std::vector<const Schedule*> schedules;
    for (const auto& s : all) schedules.push_back(&s->schedule);
    const auto r = speed_ups(*schedules[0], std::span(schedules).subspan(1), machine);
    if (!r) return r.error();
    auto j = Json::array();
    for (const auto& each : *r) j.push_back(json::of(each));
    return j;
  }));
  return to_python(found);
}

/// `files`: (path, text) of each schedule. Returns the answer, and a function that draws its curves: (title, size) to
/// SVG.
py::object sweep(const Words& files, const std::vector<std::string>& axes, const MachineDescription& machine,
                 const Words& params) {
  json::SweepInput in{.parse = parse_options(params, ""), .machine = machine};
  for (const auto& [path, text] : files) in.files.push_back({path, text});
  for (const auto& text : axes) {
    auto axis = sweep_axis(text);
    if (const auto* why = std::get_if<std::string>(&axis))
      fail(fmt::format("{}: {}", text, *why), "write chunk=1K..1G, chunk=1K..1G*4, or xgmi.rate=48,61,100");
    in.axes.push_back(std::get<SweepAxis>(std::move(axis)));
  }
  in.read = [](const json::SweepFile& f, const ParseOptions& parse) {
    return msccl::read_schedule(f.text, f.path, parse);
  };
  if (in.files.empty() || in.axes.empty() || in.axes.size() > 2)
    fail("a sweep has at least one schedule, and one or two axes", "sweep('a.sdma', 'chunk=1K..1M')");
  std::size_t points = 1;
  for (const auto& a : in.axes) points *= a.values.size();
  if (points > kMostSwept) fail(fmt::format("the sweep has more than {} points", kMostSwept), "give a larger factor");
  if (in.axes.size() == 2 && in.axes[0].name == in.axes[1].name)
    fail(fmt::format("{} appears twice", in.axes[0].name), "write a list: NAME=A,B,C");
  using Found = Result<std::pair<Json, Curves>, Diagnostics>;
  const auto found = value_or_fail(long_call([=](const Stop& stop) -> Found {
    auto request = in;
    request.proceed = [&] { return !stop; };
    const auto r = json::swept(request);
    if (!r) return r.error().all;
    return std::pair{json::of(*r, request.machine), json::curves(*r)};
  }));
  const auto draw = [curves = found.second](const std::string& title,
                                            const std::optional<std::pair<double, double>>& size) {
    auto picture = curves;
    if (!title.empty()) picture.title = title;
    if (size) std::tie(picture.width, picture.height) = pixels(*size);
    return curves_svg(picture);
  };
  return py::make_tuple(to_python(found.first), py::cpp_function(draw));
}

/// `budget`: seconds; 0: none.
py::object explore(const std::string& text, const std::string& file, const MachineDescription& machine,
                   const Words& params, std::uint64_t tries, double budget, std::size_t best, std::uint64_t seed,
                   const std::string& profile, const std::vector<std::string>& assume) {
  const auto given = parse_options(params, file);
  const auto proofs = profile_of(profile, assume);
  const auto found =
      value_or_fail(long_call([=](const Stop& stop) -> Result<std::pair<Json, std::vector<std::string>>, Diagnostics> {
        auto parse = given;
        const auto made = made_of(text, file, parse);
        if (!made) return made.error();
        SearchOptions o{.parse = parse,
                        .profile = proofs,
                        .best = best,
                        .spreads = true,
                        .seed = seed,
                        .proceed = [&](const auto&) { return !stop; }};
        if (tries > 0) o.tries = tries;
        if (budget > 0) o.deadline = Deadline::in(std::chrono::nanoseconds(static_cast<std::int64_t>(budget * 1e9)));
        auto r = search(*made, file, machine, o);
        if (!r) return r.error();
        if (r->candidates <= 1)
          return Diagnostics{{.where = file,
                              .message = "this schedule leaves nothing open",
                              .hint = "write choose n in 1..5 instead of param n = 1 (docs/explore.md)"}};
        std::vector<std::string> texts;
        for (const auto& c : r->best) texts.push_back(to_text(c.schedule));
        const auto e = json::explored("", *std::move(r), machine);
        return std::pair{json::of({&e, 1}, machine), texts};
      }));
  return py::make_tuple(to_python(found.first), found.second);
}

py::object reduced(const std::string& text, const std::string& file, const Words& params, const std::string& profile,
                   const std::vector<std::string>& assume, const std::string& rule, std::size_t tries) {
  const auto given = parse_options(params, file);
  const CheckOptions check{.profile = profile_of(profile, assume)};
  const auto found = value_or_fail(long_call([=](const Stop&) -> Result<Json, Diagnostics> {
    auto parse = given;
    const auto made = made_of(text, file, parse);
    if (!made) return made.error();
    const auto r = reduce_text(*made, file, parse, check, {.rule = rule, .max_tries = tries});
    if (!r) return r.error();
    return json::of(*r, file);
  }));
  return to_python(found);
}

}  // namespace

void add_verbs(py::module_& m) {
  m.def("check", check_schedule);
  m.def("simulate", simulated);
  m.def("simulate_trace", recorded);
  m.def("speed_ups", faster);
  m.def("sweep", sweep);
  m.def("explore", explore);
  m.def("reduce", reduced);
}

}  // namespace sdma::python
