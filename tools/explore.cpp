// SPDX-License-Identifier: MIT
// sdma explore: the fastest of the schedules that a file leaves open.
#include "explore_report.hpp"
#include "input.hpp"
#include "json/check.hpp"
#include "machine_file.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "schedule_file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/report.hpp"
#include "sdma/simulate/sweep.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

namespace sdma::tool {
namespace {

enum class ExploreFormat { table, json };
enum class Goal { time };

struct ExploreArguments {
  std::string path, folder, sweep;
  ParseOptions parse;
  MachineOptions machine;
  std::optional<std::chrono::nanoseconds> budget;
  std::uint64_t tries = 0, seed = 0, best = 5;
  Goal goal = Goal::time;
  ExploreFormat format = ExploreFormat::table;
  bool force = false;
};

constexpr std::chrono::seconds kBudget{10};
constexpr std::uint64_t kMostTries = 1'000'000'000;

volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C ends the search, and the second the program.
void listen() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

/// "ag" of "schedules/ag.sdma".
std::string stem(const std::string& path) {
  return path == "-" ? "schedule" : std::filesystem::path(path).stem().string();
}

class Exploring {
 public:
  Exploring(const ExploreArguments& o, const MachineDescription& m, std::string text)
      : options_(o), machine_(m), text_(std::move(text)) {}

  int run() {
    std::optional<SweepAxis> axis;
    if (!options_.sweep.empty()) {
      auto a = sweep_axis(options_.sweep);
      if (const auto* why = std::get_if<std::string>(&a))
        return complain("--sweep " + options_.sweep + ": " + *why, "write chunk=1K..1G, or chunk=1K..1G*4"), kUsage;
      axis = std::get<SweepAxis>(std::move(a));
      if (axis->of_machine())
        return complain("--sweep " + axis->name + ": explore sweeps a param of the schedule",
                        "--parameter sets a parameter of the machine"),
               kUsage;
    }
    const auto n = axis ? axis->values.size() : 1;
    std::vector<std::string> left;
    for (std::size_t i = 0; i < n; ++i) {
      auto parse = options_.parse;
      std::string value;
      if (axis) {
        value = axis->text(axis->values[i]);
        parse.set.push_back({axis->name, value});
      }
      const auto title = axis ? axis->name + "=" + value : "";
      if (i > 0 && interrupted) left.push_back(title);
      else if (const auto code = one(parse, title, n - i); code != kOk) return code;
    }
    if (!left.empty())
      report({.severity = Severity::note,
              .where = shown(options_.path),
              .message = fmt::format("interrupted: {} of {} values were not searched", left.size(), n)});
    if (const auto code = write_files(); code != kOk) return code;
    const bool cut = interrupted != 0;
    const auto out = options_.format == ExploreFormat::json ? json::document(json::of(found_, machine_, {cut, left}))
                     : axis                                 ? explore_sweep_table(found_)
                                                            : explore_table(found_.front());
    if (const auto code = write_text("-", out); code != kOk) return code;
    if (cut) return kInterrupted;
    int worst = kOk;
    for (const auto& f : found_)
      if (f.rows.empty())
        worst = worst == kRefuted || (f.result.complete && f.result.unproved == 0) ? kRefuted : kUndecided;
    return worst;
  }

 private:
  /// Searches with these params. `left`: how many searches share the rest of the budget.
  int one(ParseOptions parse, std::string title, std::size_t left) {
    parse.read = files_beside(options_.path);
    const auto whole = options_.budget ? *options_.budget : std::chrono::nanoseconds(kBudget);
    // The default tells whether the text is wrong on purpose; errors of the text are found by the search.
    if (const auto s = parse_schedule(text_, shown(options_.path), parse); s)
      if (const auto why = json::deliberate(*s, shown(options_.path))) return report(*why), kInput;
    SearchOptions o{.parse = parse, .best = options_.best, .seed = options_.seed};
    if (options_.tries > 0) o.tries = options_.tries;
    if (options_.budget || options_.tries == 0)
      o.deadline = Deadline::in((whole - searched_) / static_cast<std::int64_t>(left));
    Progress progress;
    o.proceed = [&](const SearchProgress& p) {
      progress.show([&] {
        return fmt::format("{}{}: {} of {:.0f} candidates, {}", shown(options_.path), title.empty() ? "" : " " + title,
                           p.simulated, p.candidates, p.best_ns > 0 ? "best " + time_text(p.best_ns) : "none proved");
      });
      return interrupted == 0;
    };
    const auto begin = Deadline::Clock::now();
    auto r = search(text_, shown(options_.path), machine_, o);
    searched_ += Deadline::Clock::now() - begin;
    if (!r) {
      for (const auto& d : r.error()) report(d);
      return kInput;
    }
    if (r->candidates <= 1)
      return report({.where = shown(options_.path),
                     .message = "this schedule leaves nothing open",
                     .hint = "write choose n in 1..5 instead of param n = 1 (docs/explore.md)"}),
             kInput;
    found_.push_back(json::explored(std::move(title), *std::move(r), machine_));
    return kOk;
  }

  /// The command line that finds it again, but for a budget.
  std::string command(const std::string& title) const {
    std::string out = "sdma explore";
    for (const auto& s : options_.parse.set) out += " --set " + s.name + "=" + s.value;
    if (!title.empty()) out += " --set " + title;
    if (!options_.machine.path.empty()) out += " --machine " + options_.machine.path;
    for (const auto& [name, value] : options_.machine.changes) out += " --parameter " + name + "=" + value;
    if (options_.tries > 0) out += fmt::format(" --tries {}", options_.tries);
    if (options_.seed > 0) out += fmt::format(" --seed {}", options_.seed);
    return out + " " + shown(options_.path);
  }

  /// Each of the best as a file.
  int write_files() {
    if (options_.folder.empty()) return kOk;
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    if (error)
      return complain(options_.folder + ": cannot be created: " + error.message(), "name another folder"), kInput;
    std::vector<std::pair<std::string, std::string>> files;
    for (const auto& f : found_)
      for (std::size_t i = 0; i < f.rows.size(); ++i) {
        const auto name = stem(options_.path) + (f.title.empty() ? "" : "_" + f.title.substr(f.title.find('=') + 1)) +
                          fmt::format("_{}.sdma", i + 1);
        files.emplace_back((std::filesystem::path(options_.folder) / name).string(),
                           explore_file(f, i, command(f.title), machine_));
      }
    for (const auto& [path, text] : files)
      if (!options_.force && std::filesystem::exists(path, error))
        return complain(path + " exists, and nothing was written", "--force replaces it"), kInput;
    for (const auto& [path, text] : files)
      if (const auto code = write_text(path, text); code != kOk) return code;
    return kOk;
  }

  const ExploreArguments& options_;
  const MachineDescription& machine_;
  const std::string text_;
  std::vector<Explored> found_{};
  std::chrono::nanoseconds searched_{};
};

int explore_verb(const ExploreArguments& o) {
  listen();
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  auto text = read_text(o.path);
  if (!text) return report(text.error()), kInput;
  return Exploring(o, *m, *std::move(text)).run();
}

}  // namespace

void add_explore(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<ExploreArguments>();
  verb.value("FILE", o->path, "a schedule that leaves something open (choose)").required();
  add_choice<Goal>(verb, "--goal", o->goal, {{"time", Goal::time}}, "what to minimise (default: time)");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  add_parsed(verb, "--budget", o->budget, parse_time, "a time: write 10s, 250ms or 50us",
             "how long to search, all values of --sweep together (default: 10s, or no limit with --tries)")
      .type("TIME");
  add_count(verb, "--tries", o->tries, 1, kMostTries,
            "the most candidates to simulate; without --budget, the result is always the same")
      .shown("");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed of the random candidates");
  add_count(verb, "--best", o->best, 1, 100, "how many candidates to print and write");
  verb.value("--sweep", o->sweep, "search for each value of a param, and print the best of each").type("NAME=A..B");
  verb.value("--write", o->folder, "write the best as schedules into this folder: FILE_1.sdma, FILE_2.sdma, ..")
      .type("FOLDER");
  verb.flag("--force", o->force, "let --write replace files");
  add_choice<ExploreFormat>(verb, "--format", o->format,
                            {{"table", ExploreFormat::table}, {"json", ExploreFormat::json}},
                            "form of the report (default: table)");
  add_json(verb, [o] { o->format = ExploreFormat::json; });
  verb.footer(
      "Times are predictions (docs/simulate.md). Only schedules that sdma check proves are printed.\n"
      "Ctrl-C ends the search and prints the best so far.\n"
      "Examples:\n"
      "  sdma explore --set N=8 --set chunk=64K examples/schedules/9_allgather_open.sdma\n"
      "  sdma explore --set N=8 --sweep chunk=128..128M*4 examples/schedules/9_allgather_open.sdma\n"
      "  sdma explore --budget 60s --best 3 --write found ag.sdma\n"
      "  sdma explore --tries 500 --seed 7 --json ag.sdma");
  action = [o] { return explore_verb(*o); };
}

}  // namespace sdma::tool
