// The program `sdma`: a verb a file, a line in the table for each.
#include "output.hpp"
#include "sdma/core/descriptors.hpp"
#include "sdma/core/version.hpp"
#include "verb.hpp"

#include <algorithm>
#include <csignal>
#include <new>

namespace sdma::tool {
namespace {

constexpr Verb kVerbs[] = {
    {"dis", "read a ring: dwords to text",
     "0 all of it was read, 2 usage, 3 input or output: what could be read is on standard output", add_dis},
    {"as", "write a ring: text to dwords", "0 written, 2 usage, 3 the text has errors, or input or output", add_as},
    {"check", "find what is wrong with a ring or a schedule",
     "0 nothing was found, or what the schedule expects; 1 an error or a warning was found, or\n"
     "not what the schedule expects; 2 usage; 3 input or output",
     add_check},
    {"fmt", "lay out a schedule, or expand it",
     "0 done, 1 with --check: a file would change, 2 usage, 3 a text has errors, or input or output", add_fmt},
    {"run", "run a schedule and judge it",
     "0 all expectations hold; 1 an expectation failed, a wait did not end, a queue stopped, or\n"
     "the schedule does not fit the node; 2 usage; 3 the schedule has errors, or input or output, or there is no "
     "device.\n"
     "--test: 0 all files passed, 1 one did not",
     add_run},
    {"simulate", "predict how long a schedule takes",
     "0 simulated, 1 the schedule does not end, an engine refuses a packet, or an expectation fails,\n"
     "2 usage, 3 the schedule or the machine has errors, or input or output",
     add_simulate},
    {"topology", "show a node's GPUs, engines and links", "0 shown, 2 usage, 3 input or output, or there is no device",
     add_topology},
    {"trace", "draw what happened when",
     "0 drawn, 1 drawn, and events had been lost when it was recorded, 2 usage, 3 input or output", add_trace},
    {"emulate", "run a program on a node without GPUs",
     "those of the program; 2 usage, 3 it cannot be run, or what it did cannot be written", add_emulate},
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

/// Reports the words for which the parser's own message is less helpful, and returns true if there was one: an unknown option or
/// verb, and "--name=", after which the parser takes the next word as the value.
bool misunderstood(const CLI::App& app, const Words& words) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    if (is_option(unknown[0])) return no_such_option("sdma", app, unknown[0]), true;
    std::vector<std::string_view> names;
    for (const auto& v : kVerbs) names.emplace_back(v.name);
    complain("there is no verb '" + unknown[0] + "'" + did_you_mean(unknown[0], names), "sdma --help lists them");
    return true;
  }
  for (const auto* verb : app.get_subcommands()) {
    const auto program = "sdma " + verb->get_name();
    const auto rest = verb->remaining();
    // The words of a program belong to the program.
    const auto own = words.size() - (verb->get_prefix_command() ? rest.size() : 0);
    for (std::size_t i = 1; i < own && words[i] != "--"; ++i)
      if (words[i].starts_with("--") && words[i].ends_with('=') &&
          verb->get_option_no_throw(words[i].substr(0, words[i].size() - 1)))
        return complain("'" + words[i] + "' has no value", program + " --help"), true;
    if (!rest.empty() && is_option(rest[0])) return no_such_option(program, *verb, rest[0]), true;
  }
  return false;
}

/// The parser's words, but for those that only it understands.
std::string plainly(std::string said) {
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  if (const auto at = said.find(kTwice); at != said.npos)
    return said.substr(0, at) + " is given " + said.substr(at + kTwice.size()) + " times, and means one thing";
  return said;
}

int print(const std::string& text) {
  Output out{"-"};
  out.text() = text;
  return out.close() ? kOk : out.exit_code();
}

int run(int argc, char** argv) {
  CLI::App app{"Reads, writes, proves, runs, predicts and draws DMA schedules of AMD Instinct MI300X."};
  app.name("sdma");
  app.set_version_flag("--version", std::string("sdma ") + std::string(runtime_version()), "which sdma this is");
  app.set_help_flag("-h,--help", "this text");
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 nothing to say, 1 findings, 2 usage, 3 input or output.\n"
      "Examples:\n"
      "  sdma dis ring.bin\n"
      "  sdma check --ring-bytes=1M ring.bin\n"
      "  sdma VERB --help");
  app.require_subcommand(0, 1);  // a FILE may have the name of another verb
  Action action;
  for (const auto& v : kVerbs) {
    auto* verb = app.add_subcommand(v.name, v.summary);
    const auto mine = std::make_shared<Action>();
    v.add(*verb, *mine);
    verb->footer("Exit codes: " + std::string(v.codes) + ".\n" + verb->get_footer());
    verb->final_callback([mine, &action] { action = *mine; });
    for (auto* o : verb->get_options())
      o->check([](const std::string& value) { return value.empty() ? "its value is empty" : ""; });
  }
  if (argc < 2) return complain("which verb?", "sdma --help lists them"), kUsage;
  std::vector<const char*> words(argv, argv + argc);
  if (words[1] == std::string_view("emulate")) {
    const auto end = std::find(words.begin(), words.end(), std::string_view("--"));
    if (end != words.end()) *end = kProgramFollows;
  }
  try {
    app.parse(argc, words.data());
  } catch (const CLI::CallForVersion&) {
    return print(app.version() + "\n");
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return print(app.help());
    if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
    complain(plainly(e.what()),
             std::string("sdma ") + (argv[1][0] == '-' ? "" : argv[1] + std::string(" ")) + "--help");
    return kUsage;
  }
  if (misunderstood(app, {words.begin() + 1, words.end()})) return kUsage;
  if (!action) return complain("which verb?", "sdma --help lists them"), kUsage;
  return action();
}

}  // namespace
}  // namespace sdma::tool

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(), so that it ends the program by its own code.
  std::signal(SIGPIPE, SIG_IGN);
  sdma::keep_standard_descriptors();
  try {
    return sdma::tool::run(argc, argv);
  } catch (const std::bad_alloc&) {
    sdma::tool::complain("there is not enough memory for this", "free some, or ask for less at a time");
    return sdma::tool::kInput;
  } catch (const std::exception& e) {
    sdma::tool::complain(e.what());
    return sdma::tool::kInput;
  }
}
