// SPDX-License-Identifier: MIT
#include "axes.hpp"

#include "checked.hpp"
#include "schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace collectives::perf {

using namespace sdma;

namespace {

bool is_option(std::string_view name) {
  return std::find(std::begin(kScheduleOptions), std::end(kScheduleOptions), name) != std::end(kScheduleOptions);
}

}  // namespace

void read_axes(Checked& c, Settings& s) {
  for (const auto& text : c.asked.sweep) {
    auto axis = sweep_axis(text);
    if (const auto* why = std::get_if<std::string>(&axis))
      return c.refuse("--sweep", text + ": " + *why, "write engine.window_bytes=16K..256K*2, or xgmi.rate=48,61,100");
    s.axes.push_back(std::get<SweepAxis>(std::move(axis)));
    const auto& name = s.axes.back().name;
    if (s.axes.back().of_machine() && s.where)
      c.refuse("--sweep", in_quotes(name) + " is a parameter of a simulated machine", "use it with --device=simulate");
    if (name == "bytes") c.refuse("--sweep", "the table has a row for each size already", "use -b, -e and -f");
    if (!s.axes.back().of_machine() && !is_option(name) && s.files.empty())
      c.refuse(
          "--sweep", in_quotes(name) + " is neither a parameter of a machine nor an option of the schedules",
          "sdma simulate --show-machine lists parameters; a param belongs to a schedule file: --variant=ring.sdma");
  }
  if (s.axes.empty()) return;
  if (s.axes.size() > 2 || (s.axes.size() == 2 && s.axes[0].name == s.axes[1].name))
    c.refuse("--sweep", "at most two different names can be swept", "set the others, or write a list: NAME=A,B,C");
  if (combinations(s.axes).size() > kMostSwept)
    c.refuse("--sweep", fmt::format("there are more than {} combinations", kMostSwept), "give a larger factor");
  if (s.tune || !s.rivals.empty() || !s.brought.empty() || s.format == Format::nccl_tests)
    c.refuse("--sweep", "not allowed with --tune, --against or --format=nccl-tests",
             "run the program once for each value");
}

std::vector<std::vector<double>> combinations(const std::vector<SweepAxis>& axes) {
  std::vector<std::vector<double>> all{{}};
  for (const auto& axis : axes) {
    std::vector<std::vector<double>> longer;
    for (const auto& values : all)
      for (const auto v : axis.values) longer.push_back(values), longer.back().push_back(v);
    all = std::move(longer);
  }
  return all;
}

std::string at_text(const std::vector<SweepAxis>& axes, const std::vector<double>& values) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a == 0 ? "" : ", ") + axes[a].name + "=" + axes[a].text(values[a]);
  return text;
}

Result<void, Diagnostic> apply(Settings& s, MachineDescription* machine, const std::vector<double>& values) {
  for (std::size_t a = 0; a < s.axes.size(); ++a) {
    const auto& axis = s.axes[a];
    const auto text = axis.text(values[a]);
    const auto refuse = [&](std::string why, std::string hint) {
      return Diagnostic{.where = "--sweep " + axis.name, .message = std::move(why), .hint = std::move(hint)};
    };
    if (axis.of_machine()) {
      if (!machine) return refuse("there is no machine to simulate", "");
      if (auto is = set(*machine, axis, values[a]); !is) return refuse(is.error().message, is.error().hint);
    } else if (is_option(axis.name)) {
      if (auto why = set(s.options, axis.name, text); !why.empty()) return refuse(why, "");
    } else {
      bool any = false;
      for (const auto& f : s.files) any = set_param(*f, axis.name, text) || any;
      if (!any) return refuse("no schedule file has this param", "the name is that of a line 'param NAME = value'");
    }
  }
  return {};
}

Result<std::string, std::vector<Diagnostic>> caps(const Settings& given, const Table& table,
                                                  const MachineDescription& machine, std::span<const Point> points) {
  std::string text;
  const auto all = combinations(given.axes);
  std::map<std::string, std::vector<double>> times;  // the sizes and ways are in the same order at all values
  for (const auto& p : points) times[p.at].push_back(p.us.mean);
  for (std::size_t a = 0; a < given.axes.size(); ++a) {
    const auto& axis = given.axes[a];
    for (std::size_t i = 0; axis.of_machine() && i + 1 < axis.values.size(); ++i) {
      const auto from = axis.values[i], to = axis.values[i + 1];
      const bool flat = std::all_of(all.begin(), all.end(), [&](std::vector<double> values) {
        if (values[a] != from) return true;
        const auto before = times.find(at_text(given.axes, values));
        values[a] = to;
        const auto after = times.find(at_text(given.axes, values));
        return before != times.end() && after != times.end() &&
               std::equal(before->second.begin(), before->second.end(), after->second.begin(), after->second.end(),
                          same_time);
      });
      if (!flat) continue;
      std::vector<std::string> found;
      for (auto values : {all.front(), all.back()})
        for (const auto bytes : {given.least, sizes(given).back()})
          for (const auto& way : given.ways) {
            auto s = given;
            auto m = machine;
            values[a] = from;
            if (auto r = apply(s, &m, values); !r) return std::vector{r.error()};
            const auto schedule = schedule_of_way(s, table, way, bytes);
            if (!schedule) return schedule.error();
            const auto some = caps_of(*schedule, m, axis.name, from, to);
            if (!some) return some.error();
            for (const auto& c : *some)
              if (std::find(found.begin(), found.end(), c) == found.end()) found.push_back(c);
          }
      text += fmt::format("# {} from {} to {} changes nothing: {}\n", axis.name, axis.text(from), axis.text(to),
                          caps_text(found));
    }
  }
  return text;
}

}  // namespace collectives::perf
