// SPDX-License-Identifier: MIT
// sdma explore: the best variant of a schedule with open choices: the fastest, or the one that takes least energy.
#include "json/explore.hpp"
#include "core/aligned.hpp"
#include "core/plural.hpp"
#include "core/time_unit.hpp"
#include "draw/curves.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/simulate/sweep.hpp"
#include "shared_options.hpp"
#include "verb.hpp"
#include "verbs/explore_advised.hpp"
#include "verbs/explore_synthesized.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sdma::tool {
namespace {

struct ExploreArguments {
  std::string path, folder, sweep, front;
  FigureOptions figure;
  ParseOptions parse;
  MachineOptions machine;
  Profile profile;
  std::optional<std::chrono::nanoseconds> budget;
  std::uint64_t tries = 0, seed = 0, best = 5;
  Goal goal = Goal::time;
  bool force = false, json = false, verbose = false;
  SynthesizeArguments made;
  AdviseArguments advised;
  std::function<std::string()> given{};                      ///< the options on the command line
  std::vector<Option> of_search{}, of_made{}, of_advised{};  ///< options for one of the three alone
};

using json::Explored;

std::string time_of(const Explored& e, std::size_t i) {
  const auto& u = e.rows[i].uncertainty_ns;
  return time_text(e.result.best[i].ns) + " +- " + (u ? time_text(*u) : "?");
}

/// "?" if the interval is missing, and "-" if there is nothing to compare with.
std::string ratio(const std::optional<SpeedUp>& s, const Candidate* base, const Candidate& c) {
  if (s) return json::text_of(*s);
  return base ? fmt::format("{:.2f} +- ?", base->ns / c.ns) : "-";
}

const Candidate* initial(const Explored& e) { return e.result.initial ? &*e.result.initial : nullptr; }

/// In joules, if that is what is asked for; "tie" if the bounds of the terms leave open which candidate takes less.
std::string energy_of(const Explored& e, std::size_t i) {
  const auto& less = e.rows[i].over_best_joules;
  return to_text(e.result.best[i].energy.joules) + (i > 0 && less && less->low <= 0 && less->high >= 0 ? " tie" : "");
}

std::string choices(const Candidate& c) {
  const auto text = decisions_text(c.decisions);
  return text.empty() ? "the default" : text;
}

std::string others(const Candidate& c) {
  return c.same == 0 ? "" : fmt::format(" ({} more with this time, not checked)", c.same);
}

/// How much was searched, and what the checker refused.
std::string sentences(const Explored& e) {
  const auto& r = e.result;
  const auto prefix = e.title.empty() ? "" : e.title + ": ";
  std::string out;
  out += prefix + (r.complete ? fmt::format("searched: all {}\n", plural(r.simulated, "candidate"))
                              : fmt::format("searched: {} of about {:.3g} candidates{}, so a faster one may exist\n",
                                            r.simulated, r.candidates,
                                            r.stopped ? ", and one that the end of the budget stopped" : ""));
  const auto without = std::count_if(r.best.begin(), r.best.end(), [](const Candidate& c) { return !c.spread; });
  if (without > 0)
    out += prefix + fmt::format("the budget ended before {} of {} intervals: +- ?\n", without, r.best.size());
  if (const auto& first = r.first_refused) {
    const auto open = decisions_text(first->decisions);
    out += prefix + fmt::format("refused: {} of them{}; the first{}:\n{}\n", r.refused,
                                r.unproved > 0 ? fmt::format(", {} without an error", r.unproved) : "",
                                open.empty() ? ", which is the default" : ", with " + open, to_string(first->reason));
  }
  return out;
}

/// How far the best is from what any schedule needs.
std::string bound_note(const Explored& e) {
  const auto times = e.least ? times_of(*e.least, e.result.best.front().simulation) : std::nullopt;
  return times ? "the best: at least " + to_text(*e.least, *times) + "\n" : "";
}

/// What the joules leave out, and what a tie of them is.
std::string energy_note(const Explored& e) {
  if (!e.energy) return "";
  return "Joules are those of the last round, with their bounds. A tie of joules: terms within their bounds change the "
         "order.\n" +
         missing_text(e.result.best.front().energy);
}

std::string proved(const std::vector<std::string>& assumes) {
  return fmt::format(
      "Each of these is proved{}: no race, no deadlock, no missing wait. Times are predictions, +- half of a 68 % "
      "interval.\n",
      assumes.empty() ? "" : fmt::format(", assuming {}", fmt::join(assumes, ", ")));
}

/// The best candidates, one per line, and sentences about the search.
std::string explore_table(const Explored& e) {
  if (e.rows.empty()) return "no candidate is proved\n" + sentences(e);
  std::vector<std::vector<std::string>> rows{{"", "time", "x the default", "x the best", "choices"}};
  if (e.energy) rows.front().insert(rows.front().begin() + 2, "energy");
  for (std::size_t i = 0; i < e.rows.size(); ++i) {
    const auto& c = e.result.best[i];
    rows.push_back({std::to_string(i + 1), time_of(e, i), ratio(e.rows[i].over_default, initial(e), c),
                    ratio(e.rows[i].over_best, &e.result.best.front(), c), choices(c) + others(c)});
    if (e.energy) rows.back().insert(rows.back().begin() + 2, energy_of(e, i));
  }
  return detail::aligned(rows) + "\n" + bound_note(e) + sentences(e) + proved(e.result.assumes) + energy_note(e);
}

/// The best candidate of each search, one per line, and sentences about the searches.
std::string explore_sweep_table(const std::vector<Explored>& all) {
  const auto& title = all.front().title;
  std::vector<std::vector<std::string>> rows{{title.substr(0, title.find('=')), "time", "x the default", "choices"}};
  const bool joules = all.front().energy;
  if (joules) rows.front().insert(rows.front().begin() + 2, "energy");
  std::string notes;
  bool complete = true;
  std::uint64_t simulated = 0;
  std::vector<std::string> assumes;
  for (const auto& e : all) {
    if (assumes.empty()) assumes = e.result.assumes;
    const auto value = e.title.substr(e.title.find('=') + 1);
    if (e.rows.empty()) rows.push_back({value, "-", "-", "no candidate is proved"});
    else
      rows.push_back({value, time_of(e, 0), ratio(e.rows.front().over_default, initial(e), e.result.best.front()),
                      choices(e.result.best.front()) + others(e.result.best.front())});
    if (joules) rows.back().insert(rows.back().begin() + 2, e.rows.empty() ? "-" : energy_of(e, 0));
    complete = complete && e.result.complete;
    simulated += e.result.simulated;
    const bool unknown = !e.rows.empty() && !e.result.best.front().spread;
    if (!e.result.complete || e.result.first_refused || unknown) notes += sentences(e);
  }
  if (complete) notes = fmt::format("searched: all {}\n", plural(simulated, "candidate")) + notes;
  return detail::aligned(rows) + "\n" + notes + proved(assumes);
}

/// Candidate i as FLAT, after a comment that says where it comes from.
std::string explore_file(const Explored& e, std::size_t i, const std::string& command, const MachineDescription& m) {
  const auto& c = e.result.best[i];
  const auto& over = e.rows[i].over_default;
  return fmt::format("# Number {} of {}: {}\n# found by {}\n# {} predicted for {}{}; proved by sdma check\n", i + 1,
                     e.rows.size(), choices(c), command, time_of(e, i), m.name,
                     over ? ", " + json::text_of(*over) + " times as fast as the default" : "") +
         to_text(c.schedule);
}

/// Time and energy of each search's front; a point's band has the bounds of its joules.
std::string front_svg(const std::vector<Explored>& all, const std::string& file, const MachineDescription& m,
                      const FigureOptions& figure) {
  double ns = 0, joules = 0;
  for (const auto& e : all)
    for (const auto& c : e.result.front) ns = std::max(ns, c.ns), joules = std::max(joules, c.energy.joules.value);
  const auto time = detail::time_unit(ns);
  const auto energy = joules_unit(joules);
  Curves out{.title = fmt::format("{}: no candidate is faster and takes less energy, {}", file, m.name),
             .x_label = fmt::format("time, {}", time.name),
             .y_label = fmt::format("energy of the round, {}", energy.name),
             .bytes = false,
             .log_y = all.size() > 1};
  for (const auto& e : all) {
    auto& s = out.series.emplace_back();
    s.name = e.title.empty() ? "front" : e.title;
    for (const auto& c : e.result.front) {
      s.points.emplace_back(c.ns / time.ns, c.energy.joules.value / energy.joules);
      s.band.emplace_back(c.energy.joules.low / energy.joules, c.energy.joules.high / energy.joules);
    }
  }
  figure.apply(out);
  return curves_svg(out);
}

constexpr std::chrono::seconds kBudget{10};
constexpr std::uint64_t kMostTries = 1'000'000'000;

/// "ag" of "schedules/ag.sdma".
std::string stem(const std::string& path) {
  return path == "-" ? "schedule" : std::filesystem::path(path).stem().string();
}

class Exploring {
 public:
  Exploring(const ExploreArguments& o, const MachineDescription& m, std::string text)
      : options_(o), machine_(m), text_(std::move(text)) {}

  int run() {
    if (options_.budget || options_.tries == 0) deadline_ = Deadline::in(options_.budget.value_or(kBudget));
    std::optional<SweepAxis> axis;
    if (!options_.sweep.empty()) {
      auto a = sweep_axis(options_.sweep);
      if (const auto* why = std::get_if<std::string>(&a))
        return complain("--sweep " + options_.sweep + ": " + *why, "write chunk=1K..1G, or chunk=1K..1G*4");
      axis = std::get<SweepAxis>(std::move(a));
      if (axis->of_machine())
        return complain("--sweep " + axis->name + ": explore sweeps a param of the schedule",
                        "--parameter sets a parameter of the machine");
    }
    std::error_code error;
    if (!options_.folder.empty()) std::filesystem::create_directories(options_.folder, error);
    if (error)
      return complain(options_.folder + ": cannot be created: " + error.message(), "name another folder"), kInput;
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
    if (!options_.front.empty())
      if (const auto code =
              write_text(options_.front, front_svg(found_, shown(options_.path), machine_, options_.figure));
          code != kOk)
        return code;
    const bool cut = interrupted != 0;
    auto out = options_.json ? json::document(json::of(found_, machine_, {cut, left}))
               : axis        ? explore_sweep_table(found_)
                             : explore_table(found_.front());
    if (options_.verbose && !options_.json) out += "\n" + machine_text(machine_);
    if (const auto code = write_text("-", std::move(out)); code != kOk) return code;
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
    // The default tells whether the text is wrong on purpose; errors of the text are found by the search.
    if (const auto s = parse_schedule(text_, shown(options_.path), parse); s)
      if (const auto why = json::deliberate(*s, shown(options_.path))) return report(*why), kInput;
    SearchOptions o{.parse = parse,
                    .profile = options_.profile,
                    .goal = options_.goal,
                    .front = !options_.front.empty(),
                    .best = options_.best,
                    .spreads = true,
                    .seed = options_.seed};
    if (options_.tries > 0) o.tries = options_.tries;
    if (deadline_) o.deadline = Deadline::in(deadline_->left() / static_cast<std::int64_t>(left));
    Doing searching("searching");
    o.proceed = [&](const SearchProgress& p) {
      searching.show([&] {
        return fmt::format("{}{}: {} of {:.0f} candidates, {}", shown(options_.path), title.empty() ? "" : " " + title,
                           p.simulated, p.candidates, p.best_ns > 0 ? "best " + time_text(p.best_ns) : "none proved");
      });
      return interrupted == 0;
    };
    auto r = search(text_, shown(options_.path), machine_, o);
    if (!r) return report(r.error()), kInput;
    open_ = open_ || r->candidates > 1;
    // One value of several may leave only the default, as N=2 leaves engines in 1..N.
    if (!open_ && left == 1)
      return report({.where = shown(options_.path),
                     .message = "this schedule leaves nothing open",
                     .hint = "write choose n in 1..5 instead of param n = 1 (docs/explore.md)"}),
             kInput;
    found_.push_back(json::explored(std::move(title), *std::move(r), machine_));
    found_.back().energy = options_.goal != Goal::time || o.front;
    return kOk;
  }

  /// The command line that finds it again, but for a budget.
  std::string command(const std::string& title, const SearchResult& r) const {
    std::string out = "sdma explore";
    for (const auto& s : options_.parse.set) out += " --set " + s.name + "=" + s.value;
    if (!title.empty()) out += " --set " + title;
    if (!options_.machine.path.empty()) out += " --machine " + options_.machine.path;
    for (const auto& [name, value] : options_.machine.changes) out += " --parameter " + name + "=" + value;
    for (const auto& option : r.assumes) out += " --assume " + option;
    if (options_.tries > 0) out += fmt::format(" --tries {}", options_.tries);
    if (options_.goal != Goal::time) out += options_.goal == Goal::energy ? " --goal=energy" : " --goal=edp";
    if (options_.seed > 0) out += fmt::format(" --seed {}", options_.seed);
    return out + " " + shown(options_.path);
  }

  /// Each of the best as a file.
  int write_files() {
    if (options_.folder.empty()) return kOk;
    std::error_code error;
    std::vector<std::pair<std::string, std::string>> files;
    for (const auto& f : found_)
      for (std::size_t i = 0; i < f.rows.size(); ++i) {
        const auto name = stem(options_.path) + (f.title.empty() ? "" : "_" + f.title.substr(f.title.find('=') + 1)) +
                          fmt::format("_{}.sdma", i + 1);
        files.emplace_back((std::filesystem::path(options_.folder) / name).string(),
                           explore_file(f, i, command(f.title, f.result), machine_));
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
  bool open_ = false;                   // has a search had more than one candidate?
  std::optional<Deadline> deadline_{};  // of all searches together
};

bool given(const std::vector<Option>& all) {
  return std::any_of(all.begin(), all.end(), [](const Option& o) { return o.given(); });
}

/// A schedule from the topology alone.
int synthesize_verb(const ExploreArguments& o, const MachineDescription& m) {
  if (given(o.of_search) || !o.parse.set.empty() || o.verbose)
    return complain(
        "--synthesize makes a schedule: it takes no FILE, --set, --sweep, --goal, --pareto, --tries, --seed, "
        "--best, --write, --force or --verbose",
        "sdma explore --synthesize all_gather --machine=ring:8 > ring.sdma");
  if (o.made.root > 0 && o.made.collective != Synthesized::broadcast)
    return complain("--root is for a broadcast", "leave it out");
  auto made = o.made;
  made.profile = o.profile;
  made.budget = o.budget;
  made.json = o.json;
  made.command = "sdma explore " + o.given();
  keep_what_is_known();
  return explore_synthesized(made, m);
}

/// No search at all.
int advise_verb(const ExploreArguments& o, const MachineDescription& m) {
  if (given(o.of_search) || given(o.of_made) || o.made.collective || !o.parse.set.empty() || o.budget ||
      o.profile != Profile{} || o.machine.through != Through::rings || o.verbose)
    return complain("--advise takes --machine, --parameter, --gemm-times and --json, and no other option or FILE",
                    "sdma explore --advise=8192x1024x8192 --machine=mesh:8");
  auto advised = o.advised;
  advised.json = o.json;
  advised.given = o.machine;
  return explore_advised(advised, m);
}

int explore_verb(const ExploreArguments& o) {
  const bool advises = !o.advised.shapes.empty();
  if (o.path.empty() && !o.made.collective && !advises) return complain("no FILE given", "sdma explore --help");
  if (!advises && given(o.of_advised))
    return complain("--gemm-times is for --advise", "a FILE has the times of its kernels itself");
  if (!advises && !o.made.collective && given(o.of_made))
    return complain("--bytes and --root are for --synthesize", "--set gives a param of a FILE its value");
  const auto m = load_machine(o.machine);
  if (!m) return exit_code(o.machine);
  if (advises) return advise_verb(o, *m);
  if (o.made.collective) return synthesize_verb(o, *m);
  if (o.front == "-") return complain("--pareto needs a file, not -", "standard output is for the report");
  if (o.figure.given() && o.front.empty())
    return complain("--title and --size need --pareto", "they say how its picture is drawn");
  if (overwrites({{"--pareto", o.front}}, {o.path})) return kUsage;
  auto text = read_text(o.path);
  if (!text) return report(text.error()), kInput;
  auto made = o;
  if (!make_schedule(o.path, *text, made.parse.set)) return kInput;
  keep_what_is_known();
  return Exploring(made, *m, *std::move(text)).run();
}

}  // namespace

void add_explore(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<ExploreArguments>();
  auto& search = o->of_search;
  search.push_back(verb.value("FILE", o->path, "a schedule with open choices (choose)"));
  std::vector<std::pair<std::string, Synthesized>> collectives;
  for (const auto c : kSynthesized) collectives.emplace_back(name(c), c);
  add_choice<std::optional<Synthesized>>(verb, "--synthesize", o->made.collective,
                                         {collectives.begin(), collectives.end()},
                                         "instead of a FILE: make a schedule for this collective from the machine's "
                                         "links, and print it with its distance from the least time");
  o->of_made = {
      add_size(verb, "--bytes", o->made.bytes, "with --synthesize: size of the collective (default: 1M)"),
      add_count(verb, "--root", o->made.root, 0, 63, "with --synthesize broadcast: the GPU that has the bytes")};
  add_parsed(verb, "--advise", o->advised.shapes, parse_shapes, "shapes: write 8192x1024x8192, or 1K..16Kx1024x8192",
             "instead of a FILE: how an all-gather should overlap a product of M rows that it gathers, N columns and "
             "an inner side of K, in bf16; several with commas, and M as a range that doubles")
      .type("MxNxK,..");
  o->of_advised = {verb.value("--gemm-times", o->advised.times,
                              "with --advise: a table of products' times, such as share/measured/h200/gemm.csv "
                              "(default: a model of an MI300X)")
                       .type("PATH")};
  o->given = verb.given_but("");
  search.push_back(add_choice<Goal>(
      verb, "--goal", o->goal, {{"time", Goal::time}, {"energy", Goal::energy}, {"edp", Goal::edp}},
      "what to minimise: the time, the joules of the last round, or the product of both (default: time)"));
  search.push_back(
      add_picture(verb, "--pareto", o->front,
                  "draw an SVG: time and joules of the candidates that no other beats in both. All of them are proved")
          .type("PATH"));
  add_figure(verb, o->figure, "--pareto");
  add_settings(verb, o->parse.set);
  add_machine(verb, o->machine);
  const auto assumed = add_profile(verb, o->profile);
  add_parsed(
      verb, "--budget", o->budget, parse_time, "a time: write 10s, 250ms or 50us",
      "time for the search and its intervals, for all values of --sweep together (default: 10s, or no limit with "
      "--tries; 50s with --synthesize). What is under way at its end is stopped")
      .type("TIME");
  search.push_back(
      add_count(verb, "--tries", o->tries, 1, kMostTries,
                "maximum number of candidates to simulate; without --budget, the result is always the same")
          .shown(""));
  search.push_back(add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed of the random candidates"));
  search.push_back(add_count(verb, "--best", o->best, 1, 100, "number of candidates to print and write"));
  search.push_back(verb.value("--sweep", o->sweep, "search for each value of a param, and print the best for each")
                       .type("NAME=A..B"));
  search.push_back(verb.value("--write", o->folder,
                              "write the best candidates as schedules into this folder: FILE_1.sdma, FILE_2.sdma, ..")
                       .type("FOLDER"));
  search.push_back(verb.flag("--force", o->force, "allow --write to replace files"));
  add_format(verb, "table", o->json, "form of the report (default: table)");
  add_verbose(verb, o->verbose);
  verb.exits({{kOk, "a proved candidate was found, or the advice is printed"},
              {kRefuted, "every candidate is refuted"},
              {kInput,
               "errors in the schedule or the machine description, a schedule that leaves nothing open, a product or\n"
               "a node that --advise knows nothing of, or an error of the input or output"},
              {kUndecided, "no candidate is proved, but not all are refuted, or not all were searched"},
              {kInterrupted, "Ctrl-C ended the search; the best so far is printed"}});
  verb.manual("docs/explore.md");
  verb.footer(
      "Times are predictions (docs/simulate.md). Only schedules that sdma check proves are printed.\n"
      "Ctrl-C ends the search and prints the best so far.\n"
      "Examples:\n"
      "  sdma explore --set N=8 examples/schedules/9_allgather_open.sdma\n"
      "  sdma explore --sweep chunk=128..128M*4 ag.sdma\n"
      "  sdma explore --goal=energy --pareto front.svg ag.sdma\n"
      "  sdma explore --budget 60s --best 3 --write found ag.sdma\n"
      "  sdma explore --synthesize broadcast --machine=mesh:8 --bytes 256M\n"
      "  sdma explore --advise=1K..16Kx1024x8192 --machine=mesh:8\n"
      "  sdma explore --tries 500 --seed 7 --json ag.sdma");
  action = [o, assumed] {
    assumed();
    return explore_verb(*o);
  };
}

}  // namespace sdma::tool
