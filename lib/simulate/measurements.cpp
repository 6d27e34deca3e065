// SPDX-License-Identifier: MIT
#include "sdma/simulate/measurements.hpp"
#include "sdma/core/number.hpp"

#include "../core/csv.hpp"
#include "settings.hpp"

#include "../core/nearest.hpp"
#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::settings_of, detail::take_line, detail::trimmed;
using Words = std::vector<std::string>;
constexpr std::size_t kMostErrors = 100;

enum Column : std::size_t {
  kSchedule,
  kSettings,
  kWhat,
  kBaseline,
  kBaselineSettings,
  kValue,
  kSpread,
  kWeight,
  kSource,
  kId,
  kMachine,
  kIncludes,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kColumnNames{
    "schedule", "settings", "what",   "baseline", "baseline_settings", "value",
    "spread",   "weight",   "source", "id",       "machine",           "includes"};
constexpr std::string_view kShare = "share.", kFree = "free", kPower = "power", kCommon = "common", kUnlike = "unlike";

std::string mean_to_say(std::string_view word, std::span<const std::string_view> known, const std::string& otherwise) {
  Nearest n{word};
  for (const auto k : known) n.offer(k);
  return meant_hint(n, otherwise);
}

class Table {
 public:
  Table(std::string_view file, const ReadText& read) : file_(file), read_(read) {}

  Result<Measurements, std::vector<Diagnostic>> run(std::string_view text) {
    while (!text.empty() && errors_.size() < kMostErrors) {
      ++line_;
      const auto line = trimmed(take_line(text));
      if (line.starts_with("#:")) directive(detail::words_of(line.substr(2)));
      else if (!line.empty() && line[0] != '#') row(line);
    }
    if (errors_.empty() && out_.observations.empty())
      complain("the table has no measurements", "its first line names the columns; each further line is a measurement");
    if (errors_.size() >= kMostErrors && !text.empty())
      errors_.push_back(
          {.where = std::string(file_),
           .message = fmt::format("after {} errors, the lines from {} on were not read", kMostErrors, line_ + 1),
           .hint = "correct these first"});
    if (!errors_.empty()) return std::move(errors_);
    return std::move(out_);
  }

 private:
  void complain(std::string message, std::string hint) {
    errors_.push_back(error_at({.file = file_, .line = line_}, std::move(message), std::move(hint)));
  }

  void directive(const Words& w) {
    if (w.empty() || (w[0] != kFree && w[0] != kPower && w[0] != kCommon && w[0] != kUnlike))
      return complain(
          fmt::format("'{}' is not a setting of a fit", w.empty() ? "" : w[0]),
          "write '#: free PARAMETER START', '#: power P', '#: common C' or '#: unlike U'; a comment begins with '# '");
    if (w[0] == kFree) return free(w);
    const auto p = w.size() == 2 ? parse_real(w[1]) : std::nullopt;
    if (!p && w[0] == kPower)
      return complain("this is not '#: power P'", "2 gives least squares; 4 weakens the worst errors");
    if (!p && w[0] == kUnlike)
      return complain("this is not '#: unlike U'", "0.1: schedules unlike those of the fit may be off by 10 % more");
    if (!p)
      return complain("this is not '#: common C'", "1: ratios to one baseline share an error as large as their own");
    auto& to = out_.options;
    (w[0] == kPower ? to.power : w[0] == kUnlike ? to.unlike : to.common) = *p;
  }

  void free(const Words& w) {
    const auto start = w.size() > 2 ? parse_real(w[2]) : std::nullopt;
    if (!start)
      return complain("this is not '#: free PARAMETER START [LOW HIGH] [NOTE]'", "#: free engine.poll_ns 3000");
    const auto cost = cost_named(w[1]);
    if (cost == kCosts) {
      std::vector<std::string_view> known;
      for (std::size_t i = 0; i < kCosts; ++i) known.push_back(name(static_cast<Cost>(i)));
      return complain(fmt::format("'{}' is not a parameter", w[1]),
                      mean_to_say(w[1], known, "sdma simulate --show-machine lists them"));
    }
    FreeParameter p{.cost = static_cast<Cost>(cost)};
    std::size_t word = 3;
    const auto low = w.size() > 3 ? parse_real(w[3]) : std::nullopt,
               high = w.size() > 4 ? parse_real(w[4]) : std::nullopt;
    if (low && !high) return complain("the lower bound has no upper bound", "write both, or neither");
    if (low) p.low = *low, p.high = *high, word = 5;
    for (; word < w.size(); ++word) p.note += (p.note.empty() ? "" : " ") + w[word];
    MachineDescription m;
    if (m.set(w[1], *start) != Errc::ok || (low && (*start < *low || *start > *high)))
      return complain(fmt::format("{} cannot start at {}", w[1], w[2]),
                      "the start lies within the bounds, and is possible");
    out_.options.free.push_back(std::move(p));
    out_.start.emplace_back(static_cast<Cost>(cost), *start);
  }

  void header(const Words& w) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const auto at =
          static_cast<std::size_t>(std::find(kColumnNames.begin(), kColumnNames.end(), w[i]) - kColumnNames.begin());
      if (at == kColumns)
        return complain(fmt::format("'{}' is not a column", w[i]),
                        mean_to_say(w[i], kColumnNames, "sdma/simulate/measurements.hpp lists the columns"));
      if (at_[at]) return complain(fmt::format("the column '{}' appears twice", w[i]), "name each column once");
      at_[at] = i;
    }
    for (const auto c : {kSchedule, kWhat, kValue, kSource})
      if (!at_[c])
        complain(fmt::format("the column '{}' is missing", kColumnNames[c]), "the first line names the columns");
    columns_ = w.size();
  }

  std::string field(Column c) const { return at_[c] ? fields_[*at_[c]] : ""; }

  void row(std::string_view line) {
    auto split = detail::csv_fields(line);
    if (!split) return complain("a quote is not closed, or is inside a field", "write a quote in a quoted field twice");
    if (columns_ == 0) return header(*split);
    if (split->size() != columns_)
      return complain(fmt::format("this line has {} fields, and the table has {} columns", split->size(), columns_),
                      "a field with a comma needs double quotes; an empty field still needs its comma");
    fields_ = std::move(*split);
    Observation o{.id = field(kId)};
    const auto settings = field(kSettings);
    if (o.id.empty())
      o.id = fmt::format("{}{}{} {}", field(kSchedule), settings.empty() ? "" : " ", settings, field(kWhat));
    const auto before = errors_.size();
    const auto factor = kind(o);
    const auto n = [&](Column c, double otherwise) {
      const auto text = field(c);
      if (text.empty() && c != kValue) return otherwise;
      const auto v = parse_real(text);
      if (!v)
        complain(fmt::format("the {} '{}' is not a number", kColumnNames[c], text),
                 "write it without a unit, such as 2.58");
      return v.value_or(otherwise);
    };
    o.value = factor * n(kValue, 0);
    o.spread = factor * n(kSpread, 0);
    o.weight = n(kWeight, 1);
    if (field(kSource).empty())
      complain("there is no source", "write where the value was published, or who measured it when");
    if (errors_.size() != before) return;
    o.schedule = schedule(field(kSchedule), field(kSettings));
    const auto ratio = o.kind == Observation::Kind::ratio;
    const auto base = field(kBaselineSettings);
    if (ratio) o.baseline = schedule(field(kBaseline), base.empty() ? field(kSettings) : base);
    if (ratio) o.group = field(kBaseline) + " " + (base.empty() ? field(kSettings) : base);
    if (!o.schedule || (ratio && !o.baseline)) return;
    out_.observations.push_back(std::move(o));
    out_.rows.push_back({field(kSchedule), field(kSettings), field(kWhat), field(kBaseline), field(kSource),
                         field(kMachine), field(kIncludes), line_});
  }

  /// Sets the kind. Returns the factor of value and spread.
  double kind(Observation& o) {
    const auto what = field(kWhat);
    if (what == "time_us" || what == "time_ns") return what == "time_us" ? 1000 : 1;
    std::vector<std::string_view> known{"time_us", "time_ns", "speed_up"};
    std::vector<std::string> shares;
    for (std::size_t i = 0; i < kPhases; ++i) shares.push_back(std::string(kShare).append(name(static_cast<Phase>(i))));
    known.insert(known.end(), shares.begin(), shares.end());
    if (what == "speed_up") {
      o.kind = Observation::Kind::ratio;
      if (field(kBaseline).empty())
        complain("this speed-up has no baseline", "name the .sdma file whose time is divided");
      return 1;
    }
    o.kind = Observation::Kind::share;
    const auto at = static_cast<std::size_t>(std::find(shares.begin(), shares.end(), what) - shares.begin());
    if (at == kPhases)
      complain(fmt::format("'{}' is not a measure", what),
               mean_to_say(what, known, "time_us, speed_up, share.copy, ..."));
    else o.phase = static_cast<Phase>(at);
    return 1;
  }

  std::shared_ptr<const Schedule> schedule(const std::string& path, const std::string& settings) {
    const auto [at, fresh] = schedules_.try_emplace({path, settings});
    if (!fresh) return at->second;
    auto text = texts_.find(path);
    if (text == texts_.end()) text = texts_.emplace(path, read_(path)).first;
    if (!text->second) {
      auto d = text->second.error();
      complain(d.where + ": " + d.message, d.hint.empty() ? "name a .sdma file, relative to the table" : d.hint);
      return {};
    }
    const auto options = settings_of(settings);
    if (!options) {
      complain(options.error().message, options.error().hint);
      return {};
    }
    auto parsed = parse_schedule(*text->second, path, *options);
    if (parsed) return at->second = std::make_shared<const Schedule>(std::move(*parsed));
    for (auto& d : parsed.error()) {
      // A file's own errors appear once, however many lines name it.
      if (!reported_.insert(to_string(d)).second) continue;
      d.at = {.file = file_, .line = line_};
      d.where = to_string(d.at) + ": " + d.where;
      errors_.push_back(std::move(d));
    }
    return {};
  }

  std::string file_;
  const ReadText& read_;
  std::size_t line_ = 0, columns_ = 0;
  std::array<std::optional<std::size_t>, kColumns> at_{};  // the position of each column
  Words fields_{};
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Schedule>> schedules_{};
  std::map<std::string, Result<std::string, Diagnostic>> texts_{};
  std::set<std::string> reported_{};
  Measurements out_{};
  std::vector<Diagnostic> errors_{};
};

}  // namespace

MachineDescription Measurements::from(MachineDescription initial) const {
  for (const auto& [cost, value] : start) initial.parameter(cost).value = value;
  return initial;
}

const Observation* Measurements::find(std::string_view schedule, std::string_view settings,
                                      std::string_view what) const noexcept {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].schedule == schedule && rows[i].settings == settings && rows[i].what == what) return &observations[i];
  return nullptr;
}

std::string to_csv(const Measurements& m, std::string_view comment) {
  auto out = fmt::format("# {}\n#: {} {}\n", comment, kPower, m.options.power);
  if (m.options.common > 0) out += fmt::format("#: {} {}\n", kCommon, m.options.common);
  if (m.options.unlike > 0) out += fmt::format("#: {} {}\n", kUnlike, m.options.unlike);
  for (const auto& p : m.options.free) {
    const auto at = std::find_if(m.start.begin(), m.start.end(), [&](const auto& s) { return s.first == p.cost; });
    out += fmt::format("#: {} {} {} {} {} {}\n", kFree, name(p.cost), at == m.start.end() ? p.low : at->second, p.low,
                       p.high, p.note);
  }
  out += "schedule,settings,what,value,spread,weight,source\n";
  for (std::size_t i = 0; i < m.rows.size(); ++i)
    out += fmt::format("{},{},time_us,{:.6g},{:.2g},{},{}\n", detail::csv_field(m.rows[i].schedule),
                       detail::csv_field(m.rows[i].settings), m.observations[i].value / 1000,
                       m.observations[i].spread / 1000, m.observations[i].weight, detail::csv_field(m.rows[i].source));
  return out;
}

Result<Measurements, std::vector<Diagnostic>> measurements_from_csv(std::string_view text, std::string_view file,
                                                                    const ReadText& read) {
  return Table{file, read}.run(text);
}

Result<Measurements, std::vector<Diagnostic>> read_measurements(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::vector{text.error()};
  const auto folder = std::filesystem::path(path).parent_path();
  return measurements_from_csv(*text, path == "-" ? "stdin" : path,
                               [&](const std::string& name) { return read_file((folder / name).string()); });
}

}}  // namespace sdma::v0_3
