// SPDX-License-Identifier: MIT
#include "sweep.hpp"

#include <fmt/format.h>
#include "check.hpp"
#include "core/time_unit.hpp"
#include "explore.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace sdma::json {
namespace {

std::string name_of(const std::string& path) { return path == "-" ? "stdin" : path; }

/// A file's name without folder and suffix, or the whole path if two names are equal.
std::string short_name(const std::string& path, const std::vector<SweepFile>& all) {
  const auto stem = [](const std::string& p) { return std::filesystem::path(p).stem().string(); };
  const auto same = std::count_if(all.begin(), all.end(), [&](const auto& f) { return stem(f.path) == stem(path); });
  return same == 1 ? stem(path) : path;
}

/// More digits of an uncertainty mean nothing, and differ between processors.
double six_digits(double v) { return parse_real(fmt::format("{:.6g}", v)).value_or(v); }

class Sweeping {
 public:
  explicit Sweeping(const SweepInput& in)
      : in_(in), out_{.axes = in.axes, .intervals = in.intervals, .machine = in.machine.name} {}

  Result<Swept, SweepError> run() {
    for (const auto& f : in_.files) out_.names.push_back(short_name(f.path, in_.files));
    const auto& axes = in_.axes;
    for (const auto v : axes[0].values)
      for (const auto w : axes.size() > 1 ? axes[1].values : std::vector<double>{0})
        if (auto at = axes.size() > 1 ? std::vector{v, w} : std::vector{v}; !stopped_ && !row(at)) keep_error(at);
    if (out_.rows.empty() && !stopped_) return std::move(first_error_);
    out_.complete = !stopped_ && out_.refused.all.empty();
    for (std::size_t a = 0; a < axes.size() && out_.complete; ++a)
      if (!caps(a)) return std::move(error_);
    for (const auto& [key, o] : others_)
      out_.notes.push_back(fmt::format("{} takes {} instead of {} at {} if {}", out_.names[key.first],
                                       time_text(o.other_ns), time_text(o.ns), o.at, o.when));
    for (const auto c : at_bound_) out_.notes.push_back(bound_text(c));
    return std::move(out_);
  }

 private:
  using Kind = SweepError::Kind;
  bool fail(Kind kind, std::vector<Diagnostic> all) { return error_ = {kind, std::move(all)}, false; }
  /// Of a simulation.
  bool fail(std::size_t file, const Schedule& s, const MachineDescription& m, std::vector<Diagnostic> all) {
    for (auto& d : all) d.where = name_of(in_.files[file].path) + (d.where.empty() ? "" : ": " + d.where);
    return fail(can_begin(s, m) ? Kind::run : Kind::schedule, std::move(all));
  }
  bool refuse(std::string message, std::string hint) {
    return fail(Kind::request, {{.where = "sdma", .message = std::move(message), .hint = std::move(hint)}});
  }

  /// Each error once, with all values that have it.
  void keep_error(const std::vector<double>& at) {
    if (first_error_.all.empty()) {
      first_error_ = error_;
      out_.refused.kind = error_.kind;
    }
    for (auto& d : error_.all) {
      const auto same = std::find_if(refused_.begin(), refused_.end(), [&](const auto& r) {
        return r.message == d.message && r.where == d.where && r.at.line == d.at.line;
      });
      auto& all = out_.refused.all;
      const auto text = value_text(at);
      if (same != refused_.end()) {
        auto& message = all[static_cast<std::size_t>(same - refused_.begin())].message;
        message.insert(message.size() - 1, "; " + text);
        continue;
      }
      refused_.push_back(d);
      all.push_back(std::move(d));
      all.back().message += " (" + text + ")";
    }
  }
  /// "N=8, chunk=4K"
  std::string value_text(const std::vector<double>& at) const {
    std::string out;
    for (std::size_t i = 0; i < at.size(); ++i)
      out += fmt::format("{}{}={}", out.empty() ? "" : ", ", in_.axes[i].name, in_.axes[i].text(at[i]));
    return out;
  }

  /// The machine and the schedule of a file at these values.
  std::optional<MachineDescription> machine(const std::vector<double>& values) {
    auto m = in_.machine;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const auto& axis = in_.axes[a];
      if (!axis.of_machine()) continue;
      if (auto is = set(m, axis, values[a]); !is) {
        refuse("--sweep " + axis.name + ": " + is.error().message, is.error().hint);
        return {};
      }
    }
    return m;
  }
  std::optional<Schedule> schedule(std::size_t file, const std::vector<double>& values) {
    const auto& f = in_.files[file];
    auto parse = in_.parse;
    parse.read = files_beside(f.path);
    for (std::size_t a = 0; a < values.size(); ++a)
      if (!in_.axes[a].of_machine()) parse.set.push_back({in_.axes[a].name, in_.axes[a].text(values[a])});
    auto s = in_.read ? in_.read(f, parse) : parse_schedule(f.text, name_of(f.path), parse);
    if (!s) {
      fail(Kind::schedule, std::move(s.error()));
      return {};
    }
    if (auto why = deliberate(*s, name_of(f.path))) {
      fail(Kind::schedule, {*std::move(why)});
      return {};
    }
    return *std::move(s);
  }

  bool row(std::vector<double> values) {
    const auto m = machine(values);
    if (!m) return false;
    Swept::Row row{.values = std::move(values)};
    std::vector<Schedule> all;
    Spread first;
    for (std::size_t i = 0; i < in_.files.size(); ++i) {
      auto s = schedule(i, row.values);
      if (!s) return false;
      all.push_back(*std::move(s));
      if (all[i].gpus != all[0].gpus)
        return refuse(fmt::format("{} has {} GPUs, and {} has {}: their times cannot be compared",
                                  name_of(in_.files[0].path), all[0].gpus, name_of(in_.files[i].path), all[i].gpus),
                      "give all the same number, such as --set N=8");
      SpeedUp now;
      if (in_.intervals) {
        auto found = spread(all[i], *m);
        if (!found) return fail(i, all[i], *m, std::move(found.error()));
        if (i == 0) first = *found;
        now = speed_up(first, *found, *m);
        if (i == 0) now.uncertainty = 0;  // it is as fast as itself
        for (auto* u : {&now.uncertainty, &now.uncertainty_ns}) *u = six_digits(*u);
        note_alternatives(i, *found, row);
        for (const auto c : found->at_bound) at_bound_.insert(c);
      } else {
        auto t = simulate(all[i], *m);
        if (!t) return fail(i, all[i], *m, std::move(t.error()));
        now = {.value = i == 0 || t->ns == row.files[0].ns ? 1 : row.files[0].ns / t->ns, .ns = t->ns};
      }
      row.files.push_back(now);
      if (in_.proceed && !in_.proceed()) return stopped_ = true;
    }
    out_.rows.push_back(std::move(row));
    return true;
  }

  /// Keeps, for each alternative of the machine, where it changes the time of a file the most.
  void note_alternatives(std::size_t file, const Spread& found, const Swept::Row& row) {
    const auto ns = found.ns;
    for (const auto& a : found.alternatives) {
      auto& most = others_[{file, a.cost}];
      if (most.ns != 0 && std::abs(a.ns / ns - 1) <= std::abs(most.other_ns / most.ns - 1)) continue;
      most = {ns, a.ns, value_text(row.values), a.when};
    }
  }

  /// Finds what caps an axis where no file's time changes from one value to the next.
  bool caps(std::size_t a) {
    const auto& axis = in_.axes[a];
    if (!axis.of_machine()) return true;
    std::string said;
    double since = 0;
    const auto end = [&](double until) {
      if (!said.empty())
        out_.notes.push_back(
            fmt::format("{} from {} to {} changes nothing: {}", axis.name, axis.text(since), axis.text(until), said));
      said.clear();
    };
    for (std::size_t i = 0; i + 1 < axis.values.size(); ++i) {
      const auto from = axis.values[i], to = axis.values[i + 1];
      std::string why;
      if (flat(a, from, to)) {
        // At the first and the last value of the other axis.
        std::vector<std::string> found;
        for (auto at : {out_.rows.front().values, out_.rows.back().values}) {
          at[a] = from;
          const auto m = machine(at);
          for (std::size_t f = 0; f < in_.files.size(); ++f) {
            const auto s = schedule(f, at);
            if (!m || !s) return false;
            auto caps = caps_of(*s, *m, axis.name, from, to);
            if (!caps) return fail(f, *s, *m, std::move(caps.error()));
            for (const auto& c : *caps)
              if (std::find(found.begin(), found.end(), c) == found.end()) found.push_back(c);
          }
          if (in_.axes.size() == 1) break;
        }
        why = caps_text(found);
      }
      if (why == said) continue;
      end(from);
      said = why;
      since = from;
    }
    end(axis.values.back());
    return true;
  }

  /// True if no time changes between the two values of this axis.
  bool flat(std::size_t a, double from, double to) const {
    for (const auto& r : out_.rows) {
      if (r.values[a] != from) continue;
      auto values = r.values;
      values[a] = to;
      const auto other =
          std::find_if(out_.rows.begin(), out_.rows.end(), [&](const auto& o) { return o.values == values; });
      for (std::size_t f = 0; f < r.files.size(); ++f)
        if (!same_time(r.files[f].ns, other->files[f].ns)) return false;
    }
    return true;
  }

  struct Other {
    double ns{}, other_ns{};
    std::string at{}, when{};
  };

  const SweepInput& in_;
  Swept out_;
  std::map<std::pair<std::size_t, Cost>, Other> others_{};  // by file and parameter
  std::set<Cost> at_bound_{};
  SweepError error_{}, first_error_{};
  std::vector<Diagnostic> refused_{};  ///< those of Swept::refused, without the values
  bool stopped_ = false;               ///< by `proceed`
};

/// A whole number as such.
Json number(double v) {
  const auto whole = static_cast<std::uint64_t>(v);
  return v >= 0 && static_cast<double>(whole) == v ? Json(whole) : Json(v);
}

}  // namespace

Result<Swept, SweepError> swept(const SweepInput& in) { return Sweeping(in).run(); }

Curves curves(const Swept& s) {
  const bool one = s.names.size() == 1;
  const auto& x = s.axes[0];
  double longest = 0;
  for (const auto& r : s.rows)
    for (const auto& f : r.files) longest = std::max(longest, f.ns);
  const auto time = detail::time_unit(longest);
  const auto cost = cost_named(x.name);
  const auto of_x = cost != kCosts ? unit(static_cast<Cost>(cost)) : x.of_machine() ? "GB/s" : "";
  Curves c{.title = (one ? s.names[0] : "Speed-up over " + s.names[0]) + ", simulated on " + s.machine,
           .x_label = x.name + (of_x.empty() || of_x == "bytes" ? "" : fmt::format(", {}", of_x)),
           .y_label = one ? fmt::format("time, {}", time.name) : "speed-up",
           .bytes = !x.of_machine() || of_x == "bytes",
           .ratios = !one};
  const auto others = s.axes.size() > 1 ? s.axes[1].values : std::vector<double>{0};
  for (std::size_t i = 0; i < s.names.size(); ++i)
    for (const auto w : others) {
      auto name = s.names[i];
      if (s.axes.size() > 1) name += fmt::format(", {}={}", s.axes[1].name, s.axes[1].text(w));
      Curves::Series series{.name = std::move(name)};
      for (const auto& r : s.rows)
        if (r.values.size() == 1 || r.values[1] == w) {
          const auto& f = r.files[i];
          const auto y = one ? f.ns / time.ns : f.value, off = one ? f.uncertainty_ns / time.ns : f.uncertainty;
          series.points.emplace_back(r.values[0], y);
          if (s.intervals) series.band.emplace_back(y - off, y + off);
        }
      c.series.push_back(std::move(series));
    }
  return c;
}

Json of(const Swept& s, const MachineDescription& m) {
  Json params = Json::array(), points = Json::array();
  for (const auto& a : s.axes) params.push_back(a.name);
  for (const auto& r : s.rows) {
    Json values = Json::array();
    for (const auto v : r.values) values.push_back(number(v));
    Json point{{"value", values.size() == 1 ? values[0] : values}, {"ns", Json::array()}};
    for (const auto& f : r.files) {
      point["ns"].push_back(f.ns);
      if (!s.intervals) continue;
      point["uncertainty_ns"].push_back(f.uncertainty_ns);
      point["speed_up"].push_back(of(f));
    }
    points.push_back(std::move(point));
  }
  Json j{{"param", params.size() == 1 ? params[0] : params}, {"files", s.names}, {"points", std::move(points)}};
  j["defaults"] = defaults_of(m);
  if (!s.notes.empty()) j["notes"] = s.notes;
  if (!s.complete) j["complete"] = false;
  return j;
}

}  // namespace sdma::json
