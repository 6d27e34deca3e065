// SPDX-License-Identifier: MIT
// The program `sdma`: one file per verb, and one line per verb in the table.
#include "build_info.hpp"
#include "complete.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/core/descriptors.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <new>
#include <span>

namespace sdma::tool {
namespace {

constexpr Verb kVerbs[] = {
    {"dis", "disassemble a ring: dwords to text",
     "0 everything was read; 2 usage error; 3 input or output error, after everything readable was printed", add_dis},
    {"as", "assemble a ring: text to dwords",
     "0 written; 2 usage error; 3 errors in the text, or an input or output error", add_as},
    {"check", "find errors in a ring or a schedule",
     "0 no error and no warning, or exactly the findings that the schedule expects; 1 an error or a warning,\n"
     "or findings other than those that the schedule expects; 2 usage error; 3 input or output error;\n"
     "4 nothing wrong was found, but a note says what is not proved",
     add_check},
    {"doctor", "find out why queues hang",
     "0 nothing hangs; 1 something hangs; 2 usage error; 3 input or output error, or a process that cannot\n"
     "be examined; 4 not decided: too little is known, or the reason is a guess. With a program: its own code, or 1 "
     "if\n"
     "--end ended it",
     add_doctor},
    {"fmt", "format a schedule, or expand it",
     "0 success; 1 a file would change (--check); 2 usage error; 3 errors in a text, or an input or output error",
     add_fmt},
    {"run", "run a schedule and check its expectations",
     "0 all expectations hold; 1 an expectation failed, a wait timed out, a queue stopped, or\n"
     "the schedule does not fit the node; 2 usage error; 3 errors in the schedule, an input or output error, or no\n"
     "device. With --test: 0 all files passed; 1 a file failed",
     add_run},
    {"simulate", "predict how long a schedule takes",
     "0 simulated; 1 the schedule does not end, an engine refuses a packet, or an expectation fails;\n"
     "2 usage error; 3 errors in the schedule or the machine description, or an input or output error",
     add_simulate},
    {"explore", "find the fastest of the schedules that a file leaves open",
     "0 found; 1 no candidate is proved; 2 usage error; 3 errors in the schedule or the machine description, a\n"
     "schedule that leaves nothing open, or an input or output error",
     add_explore},
    {"compare", "compare a measured run with its simulation",
     "0 compared; 1 events were lost during recording, some queue or packet has no counterpart, the time of\n"
     "the run differs by more than --within, or the schedule cannot be simulated; 2 usage error; 3 errors in a\n"
     "trace, the schedule or the machine description, or an input or output error",
     add_compare},
    {"calibrate", "fit a machine to measurements",
     "0 fitted; 1 a measured schedule cannot be simulated, or the limit ended the fit, so no machine is\n"
     "written; 2 usage error; 3 errors in the table or the machine description, or an input or output error",
     add_calibrate},
    {"topology", "show a node's GPUs, engines and links",
     "0 shown; 2 usage error; 3 input or output error, or no device", add_topology},
    {"trace", "convert a trace, or draw it",
     "0 written; 1 written, but events were lost during recording; 2 usage error; 3 input or output error", add_trace},
    {"emulate", "run a program on a software node, without GPUs",
     "the program's own; 2 usage error; 3 the program cannot be run, or its trace cannot be written", add_emulate},
};

using Words = std::vector<std::string>;

/// "'sdma run' has no option '--sed'; did you mean '--seed'?"
void no_such_option(const std::string& program, const CLI::App& app, const std::string& word) {
  Words names;
  for (const auto* o : app.get_options())
    for (const auto& name : o->get_lnames()) names.push_back("--" + name);
  const bool is_long = word.starts_with("--");
  const auto option = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  complain("'" + program + "' has no option '" + option + "'" +
               (is_long ? did_you_mean(option, {names.begin(), names.end()}) : ""),
           program + " --help lists them");
}

/// Reports what the parser explains less well: an unknown option or verb, and "--name=", for which it takes the next word.
/// Returns whether there was such a word.
bool misunderstood(const CLI::App& app, const Words& words) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    if (is_option(unknown[0])) return no_such_option("sdma", app, unknown[0]), true;
    std::vector<std::string_view> names;
    for (const auto& v : kVerbs) names.emplace_back(v.name);
    complain("there is no subcommand '" + unknown[0] + "'" + did_you_mean(unknown[0], names), "sdma --help lists them");
    return true;
  }
  for (const auto* verb : app.get_subcommands()) {
    const auto program = "sdma " + verb->get_name();
    const auto rest = verb->remaining();
    // The words of a program, beginning with its name, belong to it.
    const auto own = words.size() - (verb->get_prefix_command() ? rest.size() : 0);
    for (std::size_t i = 1; i < own && words[i] != "--"; ++i)
      if (words[i].starts_with("--") && words[i].ends_with('=') &&
          verb->get_option_no_throw(words[i].substr(0, words[i].size() - 1)))
        return complain("'" + words[i] + "' needs a value", program + " --help"), true;
    if (!rest.empty() && is_option(rest[0])) return no_such_option(program, *verb, rest[0]), true;
  }
  return false;
}

/// The parser's message, reworded where it uses terms of its own.
std::string plainly(std::string said) {
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  if (const auto at = said.find(kTwice); at != said.npos)
    return said.substr(0, at) + " appears " + said.substr(at + kTwice.size()) + " times: give it once";
  constexpr std::string_view kMissing = " missing", kRequired = ": 1 required ";
  if (const auto at = said.find(kRequired); at != said.npos && said.ends_with(kMissing))
    return said.substr(0, at) + " needs a value";
  return said;
}

/// Do these words ask for JSON? `words` ends where those of a program begin.
bool ask_for_json(std::span<const char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i], before = i > 0 ? words[i - 1] : "";
    if (word == "--json" || word == "--format=json" || (word == "json" && before == "--format")) return true;
  }
  return false;
}

int run(int argc, char** argv) {
  CLI::App app{"Assembles, disassembles, checks, runs, simulates and draws DMA schedules for AMD Instinct MI300X."};
  app.name("sdma");
  app.set_version_flag("--version", version_text,
                       "print the version and the build's options; with --json, as an object");
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 success; 1 findings; 2 usage error; 3 input or output error.\n"
      "With --json, each subcommand answers in JSON, and its messages are JSON, too.\n"
      "Examples:\n"
      "  sdma dis ring.bin\n"
      "  sdma check --ring-bytes=1M ring.bin\n"
      "  sdma SUBCOMMAND --help");
  app.require_subcommand(0, 1);  // a FILE may have the name of another verb
  std::vector<const char*> words(argv, argv + argc);
  Words after;
  if (const auto dashes = std::find(words.begin(), words.end(), std::string_view("--"));
      argc > 1 && words[1] == std::string_view("doctor") && dashes != words.end()) {
    after.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  Action action;
  for (const auto& v : kVerbs) {
    auto* verb = app.add_subcommand(v.name, v.summary);
    const auto mine = std::make_shared<Action>();
    VerbOptions options{*verb, after};
    v.add(options, *mine);
    verb->footer("Exit codes: " + std::string(v.codes) + ".\n" + verb->get_footer());
    verb->final_callback([mine, &action] { action = *mine; });
    for (auto* o : verb->get_options())
      o->check([](const std::string& value) { return value.empty() ? "the value is empty" : ""; });
  }
  if (argc > 1 && words[1] == std::string_view("--complete")) {
    std::string text;
    for (const auto& w : completions(app, Words(words.begin() + 2, words.end()))) text += w + "\n";
    return write_text("-", text);
  }
  if (argc < 2) return complain("no subcommand given", "sdma --help lists them"), kUsage;
  if (words[1] == std::string_view("emulate")) {
    const auto end = std::find(words.begin(), words.end(), std::string_view("--"));
    if (end != words.end()) *end = kProgramFollows;
  }
  // Before the parser, because its own complaints are to be JSON, too. The words of a program that emulate runs are not ours.
  auto* const emulate = app.get_subcommand("emulate");
  if (words.size() < 2 || words[1] != emulate->get_name())
    if (const auto own = std::find(words.begin() + 1, words.end(), std::string_view("--"));
        ask_for_json(std::span(words).first(static_cast<std::size_t>(own - words.begin())).subspan(1)))
      report_as_json();
  const auto json_of_emulate = [&] {
    if (emulate->get_option("--json")->count() > 0) report_as_json();
  };
  try {
    app.parse(static_cast<int>(words.size()), words.data());
    json_of_emulate();
  } catch (const CLI::CallForVersion&) {
    return write_text("-", ask_for_json(words) ? json::line(version_json()) : version_text());
  } catch (const CLI::ParseError& e) {
    json_of_emulate();
    if (e.get_exit_code() == 0) return write_text("-", app.help());
    if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
    complain(plainly(e.what()),
             std::string("sdma ") + (argv[1][0] == '-' ? "" : argv[1] + std::string(" ")) + "--help");
    return kUsage;
  }
  if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
  if (!action) return complain("no subcommand given", "sdma --help lists them"), kUsage;
  return action();
}

}  // namespace
}  // namespace sdma::tool

int main(int argc, char** argv) {
  // If the reader exits, write() fails, and the program ends with a code of its own.
  std::signal(SIGPIPE, SIG_IGN);
  sdma::keep_standard_descriptors();
  try {
    return sdma::tool::run(argc, argv);
  } catch (const std::bad_alloc&) {
    sdma::tool::complain("out of memory", "free some memory, or process less at a time");
    return sdma::tool::kInput;
  } catch (const std::exception& e) {
    sdma::tool::complain(e.what());
    return sdma::tool::kInput;
  }
}
