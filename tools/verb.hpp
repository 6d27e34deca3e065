#pragma once
// A verb of the tool: a line in main.cpp's table, and a file with its options and its action.
//
//   void add_dis(CLI::App& verb, Action& action);     declares options; `action` runs if the verb was chosen
//
// All verbs use the same exit codes.
#include "report.hpp"
#include "sdma/core/nearest.hpp"
#include "sdma/core/number.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::tool {

enum Exit : int {
  kOk = 0,
  kFindings = 1,  ///< the input was read, and something is wrong with it
  kUsage = 2,
  kInput = 3,   ///< something cannot be read or written, or has the wrong form
  kPipe = 141,  ///< the reader of the output has exited: the code that a shell reports for SIGPIPE
};

using Action = std::function<int()>;
struct Verb {
  const char *name, *summary;
  const char* codes;  ///< its exit codes and their meanings
  void (*add)(CLI::App&, Action&);
};

void add_dis(CLI::App&, Action&);
void add_as(CLI::App&, Action&);
void add_check(CLI::App&, Action&);
void add_fmt(CLI::App&, Action&);
void add_run(CLI::App&, Action&);
void add_simulate(CLI::App&, Action&);
void add_topology(CLI::App&, Action&);
void add_trace(CLI::App&, Action&);
void add_emulate(CLI::App&, Action&);

/// The text of each verb's --trace: the suffix of the file's name selects the form.
inline constexpr const char* kTraceDoc = "write a trace: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev";

/// Replaces "--" before a program's words: the parser would consume "--", and then read "[a]" as a list.
inline constexpr const char* kProgramFollows = "\x01--";

/// An option whose value is one of a few words: "--format text|json|hex".
template <class E>
CLI::Option* add_choice(CLI::App& app, const std::string& name, E& value, std::vector<std::pair<std::string, E>> words,
                        const std::string& doc) {
  std::string list;
  for (const auto& w : words) list += (list.empty() ? "" : "|") + w.first;
  const auto parse = [&value, words, name, list](const CLI::results_t& given) {
    for (const auto& w : words)
      if (w.first == given.back()) return value = w.second, true;
    std::vector<std::string_view> known(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) known[i] = words[i].first;
    throw CLI::ValidationError(name,
                               "'" + given.back() + "' is not one of " + list + did_you_mean(given.back(), known));
  };
  return app.add_option(name, parse, doc)->type_name(list);
}

/// "--json", short for "--format=json".
inline void add_json(CLI::App& app, std::function<void()> choose) {
  app.add_flag_callback("--json", std::move(choose), "short for --format=json");
}

/// An option whose text `parse` turns into a value. If it returns nothing, the text is not `wanted`.
template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, T& value, Parse parse, const std::string& wanted,
                        const std::string& doc) {
  const auto take = [&value, name, parse, wanted](const CLI::results_t& given) {
    auto parsed = parse(given.back());
    if (!parsed) throw CLI::ValidationError(name, "'" + given.back() + "' is not " + wanted);
    return value = static_cast<T>(*std::move(parsed)), true;
  };
  return app.add_option(name, take, doc);
}

/// A number without a unit, from `least` to `most`. Any other value is an error.
template <class T>
CLI::Option* add_count(CLI::App& app, const std::string& name, T& value, std::uint64_t least, std::uint64_t most,
                       const std::string& doc) {
  const auto parse = [least, most](const std::string& text) {
    const auto n = parse_count(text);
    return n && *n >= least && *n <= most ? n : std::nullopt;
  };
  const auto wanted = "a number from " + std::to_string(least) + " to " + std::to_string(most);
  return add_parsed(app, name, value, parse, wanted, doc)->type_name("N")->default_str(std::to_string(value));
}

}  // namespace sdma::tool
