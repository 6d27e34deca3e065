// SPDX-License-Identifier: MIT
#include "benchmark.hpp"

#include "axes.hpp"
#include "collectives/plan.hpp"
#include "core/program.hpp"
#include "estimated_progress.hpp"
#include "json/exit.hpp"
#include "modelled.hpp"
#include "others.hpp"
#include "output.hpp"
#include "ranks.hpp"
#include "report.hpp"
#include "schedule_file.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/version.hpp"
#include "sdma/device/open.hpp"
#include "sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <span>

namespace collectives::perf {

using namespace sdma;
using tool::kInput, tool::kOk, tool::kPipe, tool::kRefuted, tool::kUsage;

namespace {

constexpr int kSignal = 128;  ///< the exit code after a signal: plus its number

/// The fixed and the growing part of a row's time.
double weight(std::uint64_t bytes) { return static_cast<double>(bytes) + (256 << 10); }

/// Runs the sweep, and decides the exit code.
class Benchmark {
 public:
  explicit Benchmark(const Settings& s) : settings_(s) {}

  Ended run() {
    const int code = of_rank();
    if (!settings_.ranks) return {code};
    auto end = settings_.ranks->end(code, std::move(error_));
    return {end.code, std::move(end.error), foreign_trouble_};
  }

 private:
  int of_rank() {
    if (settings_.tune) return tune();
    if (settings_.ranks)
      if (auto same = settings_.ranks->agree(settings_, settings_.command); !same)
        return report(same.error()), end_with(kUsage), result();
    if (!open_table() || !open_published() || !open_brought() || !open_schedules() || !open_files() || !open_device() ||
        !open_companions())
      return result();
    const bool nccl = settings_.format == Format::nccl_tests;
    const auto remarks = (companions_ ? companions_->remarks() : "") + (brought_ ? brought_->remark() : "");
    if (say(nccl ? nccl_format::header(settings_, device_text_, remarks) : header(settings_, device_text_, remarks)) &&
        (!csv_ || tell(csv_->write(csv_header()))))
      sweep();
    finish();
    return result();
  }
  int result() const {
    const int code = interrupted != 0 ? kSignal + interrupted : code_;
    if (foreign_trouble_ && !settings_.ranks) end_at_once(code);  // a rank first says why
    return code;
  }
  /// With several ranks, only those of the first one are printed: its notes at once, its error when all have ended.
  void report(const Diagnostic& d) {
    if (!settings_.ranks || (d.severity != Severity::error && prints())) tool::report(d);
    else if (d.severity == Severity::error && !error_) error_ = d;
  }
  bool prints() const noexcept { return !settings_.ranks || settings_.ranks->rank() == 0; }
  /// Keeps the first reason.
  bool fail(int code, const Diagnostic& d) { return report(d), end_with(code), false; }
  bool fail(int code, const std::vector<Diagnostic>& all) {
    for (const auto& d : all) report(d);
    return end_with(code), false;
  }
  void end_with(int code) { code_ = code_ == kOk ? code : code_; }
  bool tell(const Result<void, Diagnostic>& r) {
    if (r) return true;
    if (!reader_gone(r.error())) report(r.error());
    end_with(reader_gone(r.error()) ? kPipe : kInput);
    return false;
  }
  bool as_json() const noexcept { return settings_.format == Format::json; }
  /// Of the table: with --json, there is none.
  bool say(const std::string& text) { return !prints() || as_json() || tell(out_.write(text)); }

  /// What `parse` makes of the text of a file, if an option names one. False: there is an error.
  template <class T, class Parse>
  bool open_given(const std::string& option, const std::string& path, T& to, const Parse& parse) {
    if (path.empty()) return true;
    auto text = read_file(path);
    if (!text) {
      if (text.error().hint.empty()) text.error().hint = "check the path of " + option;
      return fail(kInput, text.error());
    }
    auto made = parse(*text, path);
    if (!made) return fail(kInput, made.error());
    to = *std::move(made);
    return true;
  }

  bool open_machine() {
    auto m = machine_named(settings_.machine);
    if (!m) return fail(kInput, m.error());
    machine_ = *std::move(m);
    return enough_gpus(machine_->topology);
  }

  /// Prints only the table of auto on standard output.
  int tune() {
    if (!open_machine()) return code_;
    Progress progress{1};
    const auto table = tuned(*machine_, settings_, [&](std::size_t number, std::size_t of) {
      progress.show("size " + std::to_string(number) + " of " + std::to_string(of));
      progress.done(1.0 / static_cast<double>(of));
      return interrupted == 0;
    });
    progress.clear();
    if (!table) {
      for (const auto& d : table.error()) report(d);
      return kInput;
    }
    if (interrupted != 0) return kSignal + interrupted;
    say(to_text(*table, "Simulated by sdma perf --tune " + std::string(version().string) + ": " + machine_->name +
                            ", " + size_text(settings_.least) + " to " + size_text(settings_.most) + "."));
    return code_;
  }

  bool open_table() { return open_given("--table", settings_.table, table_, parse_table); }

  bool open_published() {
    if (settings_.published.empty()) return true;
    const auto table = read_measurements(settings_.published);
    if (!table) return fail(kInput, table.error());
    elsewhere_ = elsewhere_of(*table, settings_);
    if (elsewhere_.empty())
      settings_.remarks.push_back(fmt::format("{} has no time of {} on {} GPUs", settings_.published,
                                              name(settings_.options.collective), settings_.options.gpus));
    return true;
  }

  bool open_brought() { return open_given("--against", settings_.brought, brought_, brought); }
  /// The row of a file's time, or that it is not known.
  bool add_brought(std::uint64_t bytes) {
    const auto us = brought_->at(bytes);
    if (!us)
      return --rows_, say(fmt::format("# {} is not known at {}: {} has {} to {}\n", name(Rival::brought),
                                      size_text(bytes), brought_->file, size_text(brought_->us.front().first),
                                      size_text(brought_->us.back().first)));
    const auto options = options_of(settings_, settings_.ways.front(), bytes);
    Point p{.bytes = bytes,
            .count = count_of(options) / settings_.type.bytes,
            .type = settings_.type.name,
            .way = {.rival = Rival::brought},
            .us = times_of({*us})};
    set_bandwidths(p, bus_factor(options));
    points_.push_back(p);
    return say(row(p, variant_width(settings_), machine_.has_value(), settings_.energy.has_value())) && keep(p);
  }

  /// Reads the schedule files, and refuses what the first or the last size shows to be wrong.
  bool open_schedules() {
    for (const auto& file : settings_.files) {
      auto text = file->text.empty() ? read_file(file->path) : Result<std::string, Diagnostic>(file->text);
      if (!text) return fail(kInput, text.error());
      if (auto r = load(*file, *std::move(text)); !r) return fail(kInput, r.error());
      for (const auto bytes : {settings_.least, settings_.most})
        if (auto s = schedule_of(*file, options_of(settings_, {.file = file.get()}, bytes)); !s)
          return fail(kInput, s.error());
    }
    return true;
  }

  bool open_files() {
    return open(saved_, settings_.save) && open(plot_, settings_.plot) && open(best_, settings_.best) &&
           open(csv_, settings_.csv, FileWriter::Kind::live);
  }
  /// Opens the files first, so that a missing folder is reported before the sweep.
  bool open(std::optional<FileWriter>& file, const std::string& path, FileWriter::Kind kind = FileWriter::Kind::whole) {
    return path.empty() || !prints() || tell(file.emplace(path, kind).open());
  }
  void save(std::optional<FileWriter>& file, const std::string& text) {
    if (tell(file->write(text))) tell(file->close());
  }

  bool open_companions() {
    if (!settings_.where || (settings_.rivals.empty() && !settings_.energy && !settings_.beside)) return true;
    auto opened = OpenCompanions::open(*device_, settings_);
    if (!opened) return foreign_trouble_ = true, fail(kInput, opened.error());
    companions_ = *std::move(opened);
    settings_.rivals = companions_->rivals();
    return true;
  }

  bool open_device() {
    if (auto r = OpenCompanions::prepare(settings_); !r) return foreign_trouble_ = true, fail(kInput, r.error());
    if (!settings_.where) {
      if (!open_machine()) return false;
      device_text_ = machine_->name + " simulated";
      return links_suffice();
    }
    auto opened = sdma::open_device(*settings_.where, {.gpus = settings_.options.gpus,
                                                       .soft = {.ordering = settings_.order, .seed = settings_.seed}});
    if (!opened) return fail(kInput, opened.error());
    device_ = *std::move(opened);
    settings_.caveat = caveat(*device_);
    if (!settings_.caveat.empty())
      report({.severity = Severity::note, .where = "--device", .message = settings_.caveat});
    if (is_amd(settings_.where) && sdma::emulated())
      settings_.caveat = "the node is that of sdma emulate, and times are those of this machine's CPUs, not of a GPU";
    if (!enough_gpus(device_->topology())) return false;
    device_text_ = device_->topology().name;
    if (!settings_.completion_given &&
        device_->topology().completion(GpuId{0}, std::nullopt) == sdma::Completion::fence)
      settings_.options.completion = Completion::fence;
    if (settings_.where == sdma::DeviceKind::soft)
      device_text_ +=
          " in software (" + std::string(name(settings_.order)) + ", seed " + std::to_string(settings_.seed) + ")";
    return true;
  }

  /// Refuses, before anything is printed, what the machine has no links for.
  bool links_suffice() {
    const auto all = sizes(settings_);
    for (const auto& values : combinations(settings_.axes)) {
      auto s = settings_;
      auto m = *machine_;
      if (auto r = apply(s, &m, values); !r) return fail(kUsage, r.error());
      for (const auto& way : s.ways) {
        // Of these, only auto uses other links at other sizes.
        const std::size_t n = way.variant == Variant::automatic && !way.file ? all.size() : 1;
        for (const auto bytes : std::span(all).first(n))
          if (const auto p = modelled(s, table_, m, way, bytes); !p) return fail(kRefuted, p.error());
      }
    }
    return true;
  }

  bool enough_gpus(const Topology& node) {
    const auto have = node.gpus.size();
    const auto refuse = [&](const char* option, const std::string& what) {
      return fail(kUsage, {.where = option,
                           .message = what + ": the node has " + std::to_string(have),
                           .hint = "GPUs are numbered from 0; sdma topology shows them"});
    };
    for (const auto g : settings_.gpus)
      if (g.value >= have) return refuse("--gpus", "there is no GPU " + std::to_string(g.value));
    const bool all = settings_.tune && settings_.tune->gpus == 0;
    const auto& ranks = settings_.processes;
    const auto needed = settings_.options.gpus / ranks * settings_.ranks_per_node.most(ranks);
    if (!all && needed > have) return refuse("--ngpus", "there are fewer than " + std::to_string(needed) + " GPUs");
    return true;
  }

  void sweep() {
    const auto all = sizes(settings_);
    // With a rival, all ways of a size take turns; otherwise they follow one another.
    std::vector<std::vector<Way>> groups;
    for (const auto& way : settings_.ways) {
      if (groups.empty() || settings_.rivals.empty()) groups.emplace_back();
      groups.back().push_back(way);
    }
    for (const auto& way : settings_.rivals) groups.back().push_back(way);
    const auto ways = settings_.ways.size() + settings_.rivals.size();
    double whole = 0;
    for (const auto bytes : all) whole += weight(bytes) * static_cast<double>(ways);
    const auto swept = combinations(settings_.axes);
    rows_ = all.size() * (ways + (brought_ ? 1 : 0)) * swept.size();
    Progress progress{whole * static_cast<double>(swept.size())};
    const auto given = settings_;
    const auto machine = machine_;
    bool more = true;
    for (auto values = swept.begin(); values != swept.end() && more; ++values) {
      settings_ = given;
      machine_ = machine;
      more = begin_values(*values);
      const auto first = points_.size();
      for (const auto bytes : all) {
        const auto of_size = points_.size();
        for (const auto& group : groups) {
          more = more && some(group, bytes, progress);
          if (more) progress.done(weight(bytes) * static_cast<double>(group.size()));
        }
        if (machine_) more = compare_last(of_size) && more;
        if (brought_) more = more && add_brought(bytes);
      }
      if (more && !settings_.axes.empty()) say(summary(std::span(points_).subspan(first), comparable(settings_)));
    }
    settings_ = given;
    machine_ = machine;
    if (!more || settings_.axes.empty() || !machine_) return;
    const auto capped = caps(settings_, table_, *machine_, points_);
    if (capped) say(*capped);
    else
      for (const auto& d : capped.error()) report(d);
  }

  /// Compares the last points, which are simulated; the lines of the CSV file say what results.
  bool compare_last(std::size_t first) {
    const auto last = std::span(points_).subspan(first);
    compare(*machine_, last);
    return std::all_of(last.begin(), last.end(), [&](const Point& p) { return keep(p); });
  }
  bool keep(const Point& p) { return !csv_ || tell(csv_->write(csv_line(settings_, p))); }

  /// Prints and applies the next values of --sweep.
  bool begin_values(const std::vector<double>& values) {
    at_ = at_text(settings_.axes, values);
    if (at_.empty()) return true;
    if (auto r = apply(settings_, machine_ ? &*machine_ : nullptr, values); !r) return fail(kUsage, r.error());
    return say("# " + at_ + "\n");
  }

  Result<std::vector<Point>, std::vector<Diagnostic>> points(std::span<const Way> ways, std::uint64_t bytes,
                                                             Progress& progress) {
    const auto go_on = [&] {
      progress.show(std::to_string(points_.size() + 1) + " of " + std::to_string(rows_) + ": " + size_text(bytes) +
                    " " + (ways.size() == 1 ? name(ways.front()) : "in " + std::to_string(ways.size()) + " ways"));
      if (!settings_.ranks) return interrupted == 0;
      const auto all = settings_.ranks->all(std::to_string(interrupted));
      if (!all) return fail(kRefuted, all.error());
      for (const auto& one : *all)
        if (one != "0") interrupted = std::stoi(one);
      return interrupted == 0;
    };
    if (settings_.where)
      return measure(settings_, table_, *device_, ways, bytes, companions_ ? companions_->all() : Companions{}, go_on);
    if (!go_on()) return std::vector<Point>{};
    auto p = modelled(settings_, table_, *machine_, ways.front(), bytes, true);
    if (!p) return std::move(p.error());
    return std::vector<Point>{*std::move(p)};
  }

  /// False: the sweep is over.
  bool some(std::span<const Way> ways, std::uint64_t bytes, Progress& progress) {
    const auto measured = points(ways, bytes, progress);
    progress.clear();
    if (!measured) {
      foreign_trouble_ = companions_ != nullptr;
      return fail(kRefuted, measured.error());
    }
    bool told = !measured->empty();
    const bool nccl = settings_.format == Format::nccl_tests;
    for (auto p : *measured) {
      p.at = at_;
      points_.push_back(p);
      if (p.wrong.value_or(0) != 0) end_with(kRefuted);
      told = say((nccl ? nccl_format::row(settings_, p)
                       : row(p, variant_width(settings_), machine_.has_value(), settings_.energy.has_value())) +
                 notes(p, said_)) &&
             told;
      told = (machine_ || keep(p)) && told;
    }
    return told;
  }

  void finish() {
    const bool complete = points_.size() == rows_;
    if (code_ != kPipe && !points_.empty()) {
      if (!complete) say("# The sweep was not finished.\n");
      if (settings_.format == Format::nccl_tests) say(nccl_format::footer(points_));
      else
        say(footer(points_) + (settings_.axes.empty() ? summary(points_, comparable(settings_)) : "") +
            rests_on(points_) + against(points_) + elsewhere_text(elsewhere_));
    }
    if (csv_) tell(csv_->close());
    if (saved_ || (as_json() && prints() && code_ != kPipe)) {
      const auto text = json::document(to_json(settings_, device_text_, points_, complete,
                                               companions_ ? companions_->idle_watts() : std::nullopt, elsewhere_,
                                               machine_ ? &*machine_ : nullptr));
      if (saved_) save(saved_, text);
      if (as_json() && prints()) tell(out_.write(text));
    }
    if (best_ && complete)
      save(best_,
           to_text(rows_of_sweep(settings_.options, points_),
                   fmt::format("{} by sdma perf {}: {}, {} to {}.", machine_ ? "Simulated" : "Measured",
                               version().string, device_text_, size_text(settings_.least), size_text(settings_.most))));
    if (plot_ && !points_.empty()) save(plot_, plot_svg(settings_, device_text_, points_, elsewhere_));
  }

  std::optional<Diagnostic> error_{};
  Settings settings_;  ///< `completion` as the device needs it
  FileWriter out_{"-", FileWriter::Kind::live};
  std::optional<FileWriter> csv_, saved_, plot_, best_;
  Table table_ = default_table();
  std::unique_ptr<Device> device_;
  std::unique_ptr<OpenCompanions> companions_;
  std::optional<MachineDescription> machine_;
  std::string device_text_, at_;
  std::size_t rows_ = 0;
  std::vector<Point> points_;
  std::vector<Elsewhere> elsewhere_;
  std::optional<Brought> brought_;
  std::vector<std::string> said_;
  int code_ = kOk;
  bool foreign_trouble_ = false;  ///< another library may have left something on a GPU that never ends
};

}  // namespace

void listen() { keep_what_is_known({SIGINT, SIGTERM}); }

Ended perform(const Settings& s) {
  auto benchmark = std::make_unique<Benchmark>(s);
  auto ended = benchmark->run();
  if (ended.at_once) (void)benchmark.release();
  return ended;
}

}  // namespace collectives::perf
