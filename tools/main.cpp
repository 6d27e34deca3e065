// The program `sdma`: a verb a file, a line in the table for each.
#include "output.hpp"
#include "sdma/core/version.hpp"
#include "verb.hpp"

#include <algorithm>
#include <csignal>

namespace sdma::tool {
namespace {

constexpr Verb kVerbs[] = {
    {"dis", "read a ring: dwords to text", add_dis},
    {"as", "write a ring: text to dwords", add_as},
    {"check", "find what is wrong with a ring or a schedule", add_check},
    {"fmt", "lay out a schedule, or expand it", add_fmt},
    {"run", "run a schedule and judge it", add_run},
    {"simulate", "predict how long a schedule takes", add_simulate},
    {"topology", "show a node's GPUs, engines and links", add_topology},
    {"trace", "draw what happened when", add_trace},
    {"emulate", "run a program on a node without GPUs", add_emulate},
};

/// Words that begin like options or verbs and are none, before the parser's less helpful words for them.
bool known_words(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return true;
  const Verb* verb = nullptr;
  std::vector<std::string_view> names;
  for (const auto& v : kVerbs) {
    names.emplace_back(v.name);
    if (words[0] == v.name) verb = &v;
  }
  if (!verb) {
    complain("there is no verb '" + words[0] + "'" + did_you_mean(words[0], names), "sdma --help lists them");
    return false;
  }
  std::vector<std::string> options;
  for (const auto* o : app.get_subcommand(verb->name)->get_options())
    for (const auto& name : o->get_lnames()) options.push_back("--" + name);
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const auto word = words[i].substr(0, words[i].find('='));
    if (!word.starts_with("--") || std::find(options.begin(), options.end(), word) != options.end()) continue;
    complain(
        "'sdma " + words[0] + "' has no option '" + word + "'" + did_you_mean(word, {options.begin(), options.end()}),
        "sdma " + words[0] + " --help lists them");
    return false;
  }
  return true;
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
    complain(e.what(), std::string("sdma ") + (argv[1][0] == '-' ? "" : argv[1] + std::string(" ")) + "--help");
    return kUsage;
  }
  if (!action) return complain("which verb?", "sdma --help lists them"), kUsage;
  return action();
}

}  // namespace
}  // namespace sdma::tool

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(), so that it ends the program by its own code.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return sdma::tool::run(argc, argv);
  } catch (const std::exception& e) {
    sdma::tool::complain(e.what());
    return sdma::tool::kInput;
  }
}
