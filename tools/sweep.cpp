#include "sweep.hpp"

#include "input.hpp"
#include "output.hpp"
#include "report.hpp"
#include "schedule_file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/draw/curves.hpp"
#include "sdma/simulate/report.hpp"
#include "verb.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace sdma::tool {
namespace {

constexpr std::size_t kNameWidth = 10, kTimeWidth = 16;

/// A file's name without folder and suffix, or the whole path if two names are equal.
std::string short_name(const std::string& path, const std::vector<std::string>& all) {
  const auto stem = [](const std::string& p) { return std::filesystem::path(p).stem().string(); };
  const auto same = std::count_if(all.begin(), all.end(), [&](const auto& p) { return stem(p) == stem(path); });
  return same == 1 ? stem(path) : path;
}

std::string line_of(const nlohmann::ordered_json& j) {
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string csv_word(const std::string& s) {
  if (s.find_first_of(",\"\n\r") == s.npos) return s;
  std::string text = "\"";
  for (const char c : s) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

/// The values of one row, one per axis, and the time of each file.
struct Row {
  std::vector<double> values{};
  std::vector<double> ns{};
  double gain(std::size_t file) const { return ns[0] == ns[file] ? 1 : ns[0] / ns[file]; }
};

class Sweeping {
 public:
  explicit Sweeping(const SweepRequest& r) : r_(r) {}

  int run() {
    for (const auto& path : r_.paths) {
      auto text = read_text(path);
      if (!text) return report(text.error()), kInput;
      texts_.push_back(std::move(*text));
      names_.push_back(short_name(path, r_.paths));
    }
    const auto& axes = r_.axes;
    for (const auto v : axes[0].values)
      for (const auto w : axes.size() > 1 ? axes[1].values : std::vector<double>{0})
        if (const auto code = row(axes.size() > 1 ? std::vector{v, w} : std::vector{v}); code != kOk) return code;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (const auto code = caps(a); code != kOk) return code;
    if (!r_.csv.empty())
      if (const auto code = write_text(r_.csv, csv()); code != kOk) return code;
    if (!r_.plot.empty())
      if (const auto code = write_text(r_.plot, curves_svg(curves())); code != kOk) return code;
    return write_text("-", r_.json ? json() : table());
  }

 private:
  int failed(std::size_t file, const std::vector<Diagnostic>& all) const {
    for (auto d : all) {
      d.where = shown(r_.paths[file]) + (d.where.empty() ? "" : ": " + d.where);
      report(d);
    }
    return kFindings;
  }

  /// The machine and the schedule of a file at these values.
  std::optional<MachineDescription> machine(const std::vector<double>& values) const {
    auto m = r_.machine;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const auto& axis = r_.axes[a];
      if (!axis.of_machine() || m.set(axis.name, values[a]) == Errc::ok) continue;
      complain("--sweep " + axis.name + ": the machine has no such parameter, or it cannot be " + axis.text(values[a]),
               "sdma simulate --show-machine lists them; xgmi.rate and pcie.rate are the rates of links in GB/s");
      return {};
    }
    return m;
  }
  std::optional<Schedule> schedule(std::size_t file, const std::vector<double>& values) const {
    auto parse = r_.parse;
    for (std::size_t a = 0; a < values.size(); ++a)
      if (!r_.axes[a].of_machine()) parse.set.push_back({r_.axes[a].name, r_.axes[a].text(values[a])});
    return load_schedule(r_.paths[file], texts_[file], parse);
  }

  int row(std::vector<double> values) {
    const auto m = machine(values);
    if (!m) return kUsage;
    Row row{.values = std::move(values)};
    std::uint32_t gpus = 0;
    for (std::size_t i = 0; i < r_.paths.size(); ++i) {
      const auto s = schedule(i, row.values);
      if (!s) return kInput;
      if (i == 0) gpus = s->gpus;
      if (s->gpus != gpus)
        return complain(fmt::format("{} has {} GPUs, and {} has {}: their times cannot be compared", shown(r_.paths[0]),
                                    gpus, shown(r_.paths[i]), s->gpus),
                        "give all the same number, such as --set N=8"),
               kUsage;
      const auto t = simulate(*s, *m);
      if (!t) return failed(i, t.error());
      row.ns.push_back(t->ns);
    }
    rows_.push_back(std::move(row));
    return kOk;
  }

  /// Finds what caps an axis where no file's time changes from one value to the next.
  int caps(std::size_t a) {
    const auto& axis = r_.axes[a];
    if (!axis.of_machine()) return kOk;
    std::string said;
    double since = 0;
    const auto end = [&](double until) {
      if (!said.empty())
        notes_.push_back(
            fmt::format("{} from {} to {} changes nothing: {}", axis.name, axis.text(since), axis.text(until), said));
      said.clear();
    };
    for (std::size_t i = 0; i + 1 < axis.values.size(); ++i) {
      const auto from = axis.values[i], to = axis.values[i + 1];
      std::string why;
      if (flat(a, from, to)) {
        // At the first and the last value of the other axis.
        std::vector<std::string> found;
        for (auto at : {rows_.front().values, rows_.back().values}) {
          at[a] = from;
          const auto m = machine(at);
          for (std::size_t f = 0; f < r_.paths.size(); ++f) {
            const auto s = schedule(f, at);
            if (!m || !s) return kInput;
            const auto caps = caps_of(*s, *m, axis.name, from, to);
            if (!caps) return failed(f, caps.error());
            for (const auto& c : *caps)
              if (std::find(found.begin(), found.end(), c) == found.end()) found.push_back(c);
          }
          if (r_.axes.size() == 1) break;
        }
        why = caps_text(found);
      }
      if (why == said) continue;
      end(from);
      said = why;
      since = from;
    }
    end(axis.values.back());
    return kOk;
  }

  /// True if no time changes between the two values of this axis.
  bool flat(std::size_t a, double from, double to) const {
    for (const auto& r : rows_) {
      if (r.values[a] != from) continue;
      auto values = r.values;
      values[a] = to;
      const auto other = std::find_if(rows_.begin(), rows_.end(), [&](const Row& o) { return o.values == values; });
      for (std::size_t f = 0; f < r.ns.size(); ++f)
        if (!same_time(r.ns[f], other->ns[f])) return false;
    }
    return true;
  }

  std::string table() const {
    std::string out;
    const auto width = [&](const SweepAxis& a) { return std::max(kNameWidth, a.name.size()); };
    for (const auto& a : r_.axes) out += fmt::format("{}{:<{}}", out.empty() ? "" : " ", a.name, width(a));
    for (const auto& name : names_) out += fmt::format(" {:>{}}     x", name, kTimeWidth);
    out += "\n";
    for (const auto& r : rows_) {
      for (std::size_t a = 0; a < r.values.size(); ++a)
        out += fmt::format("{}{:<{}}", a == 0 ? "" : " ", r_.axes[a].text(r.values[a]), width(r_.axes[a]));
      for (std::size_t i = 0; i < r.ns.size(); ++i)
        out += fmt::format(" {:>{}} {:5.2f}", time_text(r.ns[i]), std::max(kTimeWidth, names_[i].size()), r.gain(i));
      out += "\n";
    }
    for (const auto& note : notes_) out += "note: " + note + "\n";
    return out;
  }

  std::string csv() const {
    std::string out;
    for (const auto& a : r_.axes) out += a.name + ",";
    out += "file,ns,speed_up\n";
    for (const auto& r : rows_)
      for (std::size_t i = 0; i < r.ns.size(); ++i) {
        for (const auto v : r.values) out += fmt::format("{},", v);
        out += fmt::format("{},{},{:.6g}\n", csv_word(names_[i]), r.ns[i], r.gain(i));
      }
    return out;
  }

  /// A whole number as such.
  static nlohmann::ordered_json number(double v) {
    const auto whole = static_cast<std::uint64_t>(v);
    return v >= 0 && static_cast<double>(whole) == v ? nlohmann::ordered_json(whole) : nlohmann::ordered_json(v);
  }
  std::string json() const {
    nlohmann::ordered_json params = nlohmann::ordered_json::array(), names = nlohmann::ordered_json::array();
    for (const auto& a : r_.axes) params.push_back(a.name);
    for (const auto& n : names_) names.push_back(n);
    auto whole = "{\"param\": " + line_of(params.size() == 1 ? params[0] : params) + ", \"files\": " + line_of(names) +
                 ", \"points\": [";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      nlohmann::ordered_json values = nlohmann::ordered_json::array(), point;
      for (const auto v : rows_[i].values) values.push_back(number(v));
      point["value"] = values.size() == 1 ? values[0] : values;
      point["ns"] = rows_[i].ns;
      whole += (i == 0 ? "\n  " : ",\n  ") + line_of(point);
    }
    whole += "\n]";
    if (!notes_.empty()) whole += ", \"notes\": " + line_of(notes_);
    return whole + "}\n";
  }

  /// Speed-ups over the first file; the times of a single one.
  Curves curves() const {
    const bool one = names_.size() == 1;
    const auto& x = r_.axes[0];
    Curves c{.title = one ? names_[0] + ", simulated" : "Speed-up over " + names_[0] + ", simulated",
             .x_label = x.name,
             .y_label = one ? "time, us" : "speed-up",
             .bytes = !x.of_machine() || x.name.ends_with("_bytes")};
    const auto others = r_.axes.size() > 1 ? r_.axes[1].values : std::vector<double>{0};
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (const auto w : others) {
        auto name = names_[i];
        if (r_.axes.size() > 1) name += fmt::format(", {}={}", r_.axes[1].name, r_.axes[1].text(w));
        Curves::Series series{.name = std::move(name)};
        for (const auto& r : rows_)
          if (r.values.size() == 1 || r.values[1] == w)
            series.points.emplace_back(r.values[0], one ? r.ns[0] / 1e3 : r.gain(i));
        c.series.push_back(std::move(series));
      }
    return c;
  }

  const SweepRequest& r_;
  std::vector<std::string> texts_{}, names_{};
  std::vector<Row> rows_{};
  std::vector<std::string> notes_{};
};

}  // namespace

int sweep(const SweepRequest& r) { return Sweeping(r).run(); }

}  // namespace sdma::tool
