// SPDX-License-Identifier: MIT
// The program `sdma`: finds the verb, and runs it.
#include "absent_verb.hpp"
#include "build_info.hpp"
#include "complete.hpp"
#include "core/listed.hpp"
#include "core/program.hpp"
#include "findings.hpp"
#include "help_width.hpp"
#include "interrupt.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/schedule/text.hpp"
#include "typed_elsewhere.hpp"
#include "verbs.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <new>
#include <span>

namespace sdma::tool { namespace {

using Words = std::vector<std::string>;

/// ", which compare, explore and simulate have": the verbs that have an option; "" if none has it.
std::string which_have(const CLI::App& app, const std::string& option) {
  Words verbs;
  for (const auto& v : kVerbs)
    if (const auto* o = app.get_subcommand(v.name)->get_option_no_throw(option); o && !o->get_group().empty())
      verbs.emplace_back(v.name);
  if (verbs.empty()) return "";
  if (2 * verbs.size() > std::size(kVerbs)) return ", which most subcommands have";
  if (verbs.size() == 1) return fmt::format(", which 'sdma {}' has", verbs[0]);
  return fmt::format(", which {} have", listed(verbs));
}

/// "'sdma run' has no option '--sed'; did you mean '--seed'?" `all`: the program, with its verbs.
void no_such_option(const std::string& program, const CLI::App& all, const CLI::App& app, const std::string& word) {
  Words names;
  for (const auto* o : app.get_options())
    for (const auto& name : o->get_lnames()) names.push_back("--" + name);
  const bool is_long = word.starts_with("--");
  const auto option = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  // The beginning of an own option is meant; then an option of another verb; then one that is similar.
  const auto begun = [&](const std::string& name) { return name.starts_with(option); };
  const bool own = std::any_of(names.begin(), names.end(), begun);
  auto instead = own && is_long ? "" : which_have(all, option);
  if (is_long && instead.empty()) instead = did_you_mean(option, {names.begin(), names.end()});
  complain("'" + program + "' has no option '" + option + "'" + instead, program + " --help lists them");
}

bool is_verb(std::string_view word) {
  return std::any_of(std::begin(kVerbs), std::end(kVerbs), [&](const Verb& v) { return v.name == word; });
}
void no_such_verb(const std::string& word) {
  std::vector<std::string_view> names;
  for (const auto& v : kVerbs) names.emplace_back(v.name);
  const auto none = "there is no subcommand '" + word + "'";
  if (is_schedule_name(word) || ::access(word.c_str(), F_OK) == 0)
    return void(complain(none, "a subcommand comes before a file: sdma " +
                                   std::string(is_schedule_name(word) ? "check " : "dis ") + word));
  auto small = word;
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const auto habit = detail::meant_by(small, kToolHabits); !habit.empty())
    return void(complain(none, std::string(habit)));
  complain(none + did_you_mean(small, names), "sdma --help lists them");
}

/// Reports what the parser explains less well: an unknown option or verb, and "--name=", for which it takes the next
/// word. Returns whether there was such a word.
bool misunderstood(const CLI::App& app, const Words& words) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    if (is_option(unknown[0])) return no_such_option("sdma", app, app, unknown[0]), true;
    return no_such_verb(unknown[0]), true;
  }
  for (const auto* verb : app.get_subcommands()) {
    const auto program = "sdma " + verb->get_name();
    const auto rest = verb->remaining();
    // The words of a program, beginning with its name, belong to it.
    const auto own = words.size() - (verb->get_prefix_command() ? rest.size() : 0);
    for (std::size_t i = 1; i < own && words[i] != "--"; ++i) {
      const auto equal = words[i].find('=');
      const auto* option = words[i].starts_with("--") && equal != std::string::npos
                               ? verb->get_option_no_throw(words[i].substr(0, equal))
                               : nullptr;
      if (!option) continue;
      const bool flag = option->get_items_expected_max() == 0;
      if (flag) return complain("'" + words[i] + "': this option takes no value", program + " --help"), true;
      if (equal + 1 == words[i].size()) return complain("'" + words[i] + "' needs a value", program + " --help"), true;
    }
    if (!rest.empty() && is_option(rest[0])) return no_such_option(program, app, *verb, rest[0]), true;
    if (rest.empty() || verb->get_prefix_command()) continue;
    const auto first = std::find_first_of(words.begin() + 1, words.end(), rest.begin(), rest.end());
    const auto habit = detail::meant_by(verb->get_name(), kArgumentHabits);
    return complain("unexpected argument '" + *first + "'", habit.empty() ? program + " --help" : std::string(habit)),
           true;
  }
  return false;
}

/// The parser's message, reworded where it uses terms of its own.
std::string plainly(std::string said) {
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  if (const auto at = said.find(kTwice); at != said.npos)
    return said.substr(0, at) + " appears " + said.substr(at + kTwice.size()) + " times: give it once";
  constexpr std::string_view kNone = " is required", kBoth = " excludes ";
  if (said.ends_with(kNone)) return "no " + said.substr(0, said.size() - kNone.size()) + " given";
  if (const auto at = said.find(kBoth); at != said.npos)
    return said.substr(0, at) + " and " + said.substr(at + kBoth.size()) + " cannot be given together";
  constexpr std::string_view kMissing = " missing", kRequired = ": 1 required ";
  if (const auto at = said.find(kRequired); at != said.npos && said.ends_with(kMissing))
    return said.substr(0, at) + " needs a value";
  return said;
}

/// Do these words ask for this form, "json" or "sarif"? `words` ends where those of a program begin.
bool ask_for(std::string_view form, std::span<const char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i], before = i > 0 ? words[i - 1] : "";
    if (word == fmt::format("--{}", form) || word == fmt::format("--format={}", form)) return true;
    if (word == form && before == "--format") return true;
  }
  return false;
}

int run(int argc, char** argv) {
  CLI::App app{"Assembles, disassembles, checks, runs, simulates and draws DMA schedules for AMD Instinct MI300X."};
  app.name("sdma");
  app.set_version_flag("-V,--version", version_text,
                       "print the version and the build's options; with --json, as an object");
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(kHelpColumn);
  app.footer(exit_codes({}, true) +
             "\nWith --json, each subcommand answers in JSON, and its messages are JSON, too.\n"
             "Examples:\n"
             "  sdma dis ring.bin\n"
             "  sdma check --ring-bytes=1M ring.bin\n"
             "  sdma help SUBCOMMAND");
  app.require_subcommand(0, 1);  // a FILE may have the name of another verb
  std::vector<const char*> words(argv, argv + argc);
  Words after;
  if (const auto dashes = std::find(words.begin(), words.end(), std::string_view("--"));
      argc > 1 && words[1] == std::string_view("doctor") && dashes != words.end()) {
    after.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  // sdma help VERB is sdma VERB --help.
  if (words.size() > 1 && words[1] == std::string_view("help")) {
    if (words.size() == 2) words[1] = "--help";
    else if (!is_verb(words[2])) return no_such_verb(words[2]), kUsage;
    else if (words.size() > 3)
      return complain("unexpected argument '" + std::string(words[3]) + "'", "sdma help SUBCOMMAND");
    else words[1] = words[2], words[2] = "--help";
  }
  if (words.size() > 1 && words[1][0] != '-' && !is_verb(words[1])) {
    if (ask_for("json", words)) report_as_json();
    return no_such_verb(words[1]), kUsage;
  }
  Action action;
  Words present;
  for (const auto& v : kVerbs)
    if (v.add) present.emplace_back(v.name);
  for (const auto& v : kVerbs) {
    auto* verb = app.add_subcommand(v.name, v.summary);
    const auto mine = std::make_shared<Action>();
    VerbOptions options{*verb, after};
    if (v.add) v.add(options, *mine);
    else add_absent(options, *mine, present);
    verb->final_callback([mine, &action] { action = *mine; });
    for (auto* o : verb->get_options())
      o->check([](const std::string& value) { return value.empty() ? "the value is empty" : ""; });
  }
  if (argc > 1 && words[1] == std::string_view("--complete")) {
    std::string text;
    for (const auto& w : completions(app, Words(words.begin() + 2, words.end()))) text += w + "\n";
    return write_text("-", text);
  }
  if (argc < 2) return complain("no subcommand given", "sdma --help lists them");
  if (words[1] == std::string_view("emulate")) {
    const auto end = std::find(words.begin(), words.end(), std::string_view("--"));
    if (end != words.end()) *end = kProgramFollows;
  }
  // Before the parser, because its own complaints are to be JSON,
  // too. The words of a program that emulate runs are not ours.
  auto* const emulate = app.get_subcommand("emulate");
  bool json = false;
  if (words.size() < 2 || words[1] != emulate->get_name())
    if (const auto own = std::find(words.begin() + 1, words.end(), std::string_view("--"));
        ask_for("json", std::span(words).first(static_cast<std::size_t>(own - words.begin())).subspan(1)))
      report_as_json(), json = true;
  const auto json_of_emulate = [&] {
    if (emulate->get_option("--json")->count() > 0) report_as_json();
  };
  try {
    app.parse(static_cast<int>(words.size()), words.data());
    json_of_emulate();
  } catch (const CLI::CallForVersion&) {
    return write_text("-", ask_for("json", words) ? json::line(version_json()) : version_text());
  } catch (const CLI::ParseError& e) {
    json_of_emulate();
    if (e.get_exit_code() == 0) return write_text("-", fitted(app.help(), help_columns()));
    if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
    complain(plainly(e.what()),
             std::string("sdma ") + (argv[1][0] == '-' ? "" : argv[1] + std::string(" ")) + "--help");
    return kUsage;
  }
  if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
  if (!action) return complain("no subcommand given", "sdma --help lists them");
  // Programs that a verb runs get Ctrl-C themselves.
  if (emulate->count() == 0 && after.empty()) end_at_interrupt(json);
  return action();
}

}}  // namespace sdma::tool

int main(int argc, char** argv) {
  using namespace sdma::tool;
  // A wrong option and a lack of memory are in a log, too.
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  const bool log = argc > 1 && words[1] == std::string_view("check") && ask_for("sarif", words);
  if (log) keep_reports();
  // If the reader exits, write() fails, and the program ends with a code of its own.
  std::signal(SIGPIPE, SIG_IGN);
  sdma::keep_standard_descriptors();
  int code = kInput;
  try {
    code = run(argc, argv);
  } catch (const std::bad_alloc&) {
    complain("out of memory", "free some memory, or process less at a time");
  } catch (const std::exception& e) {
    complain(e.what());
  }
  return log ? end_of_log(code) : code;
}
