// The program `sdma`: a verb a file, a line in the table for each.
#include "output.hpp"
#include "sdma/core/version.hpp"
#include "verb.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
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

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> all;
  for (const auto* o : app.get_options()) {
    for (const auto& name : o->get_lnames()) all.push_back("--" + name);
    for (const auto& name : o->get_snames()) all.push_back("-" + name);
  }
  return all;
}

/// Is the word behind this one its value?
bool takes_next(const CLI::App& app, const std::string& word) {
  const auto* option = word.starts_with('-') && word != "-" ? app.get_option_no_throw(word) : nullptr;
  return option && option->get_items_expected_min() > 0;
}

/// Is this word an option of the app, or a value, or a FILE? One that begins like an option and is none has been reported.
bool known_word(const CLI::App& app, const std::string& program, const std::string& word) {
  const bool is_long = word.starts_with("--");
  if (!is_long && (word.size() < 2 || word[0] != '-' || std::isalpha(static_cast<unsigned char>(word[1])) == 0))
    return true;
  const auto option = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const auto known = names_of(app);
  if (std::find(known.begin(), known.end(), option) == known.end()) {
    complain("'" + program + "' has no option '" + option + "'" +
                 (is_long ? did_you_mean(option, {known.begin(), known.end()}) : ""),
             program + " --help lists them");
    return false;
  }
  // The parser would take the next word for it.
  if (word.ends_with('=') && word.size() == option.size() + 1)
    return complain("'" + option + "=' has no value", program + " --help"), false;
  return true;
}

/// Words that begin like options or verbs and are none, before the parser's less helpful words for them.
bool known_words(const CLI::App& app, const Words& words) {
  if (words.empty()) return true;
  if (words[0].starts_with('-')) return known_word(app, "sdma", words[0]);
  std::vector<std::string_view> names;
  for (const auto& v : kVerbs) names.emplace_back(v.name);
  if (std::find(names.begin(), names.end(), words[0]) == names.end()) {
    complain("there is no verb '" + words[0] + "'" + did_you_mean(words[0], names), "sdma --help lists them");
    return false;
  }
  const auto& verb = *app.get_subcommand(words[0]);
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    // Behind its name a program's words are its own.
    if (verb.get_prefix_command() && !words[i].starts_with('-')) break;
    if (!known_word(verb, "sdma " + words[0], words[i])) return false;
    if (takes_next(verb, words[i])) ++i;
  }
  return true;
}

/// A value that is there and empty is no value: nothing has such a name.
bool no_empty_value(const CLI::App& verb) {
  for (const auto* o : verb.get_options())
    for (const auto& value : o->results())
      if (value.empty()) return complain(o->get_name() + " is empty", "sdma " + verb.get_name() + " --help"), false;
  return true;
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
  Action action;
  for (const auto& v : kVerbs) {
    auto* verb = app.add_subcommand(v.name, v.summary);
    const auto mine = std::make_shared<Action>();
    v.add(*verb, *mine);
    verb->footer("Exit codes: " + std::string(v.codes) + ".\n" + verb->get_footer());
    verb->final_callback([mine, &action] { action = *mine; });
  }
  if (!known_words(app, {argv + (argc > 0), argv + argc})) return kUsage;
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
    complain(plainly(e.what()),
             std::string("sdma ") + (argv[1][0] == '-' ? "" : argv[1] + std::string(" ")) + "--help");
    return kUsage;
  }
  if (!action) return complain("which verb?", "sdma --help lists them"), kUsage;
  for (const auto* verb : app.get_subcommands())
    if (!no_empty_value(*verb)) return kUsage;
  return action();
}

/// A descriptor of these three that was closed would be given to the next file that is opened, and messages would be written
/// to it. Now it is one that refuses what it was closed for.
void keep_three_open() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace
}  // namespace sdma::tool

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(), so that it ends the program by its own code.
  std::signal(SIGPIPE, SIG_IGN);
  sdma::tool::keep_three_open();
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
