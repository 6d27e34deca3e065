// SPDX-License-Identifier: MIT
#pragma once
// The options of a verb, in the words of the tool. CLI11 parses them; only options.cpp and main.cpp include it, because
// its headers add seconds to each compilation.
//
//   verb.value("--machine", o->machine, "file that describes the machine").type("PATH");
//   verb.flag("--kernel", o->kernel, "check a queue of the kernel");
//   add_choice<Format>(verb, "--format", o->format, {{"text", Format::text}, {"hex", Format::hex}}, "output form");
//
// A name without dashes, such as FILE, is a positional argument. Variables are set while the command line is parsed, so
// they must live until the verb runs. Errors: a usage error names the option, the value and what is wrong with it.
#include "core/nearest.hpp"
#include "sdma/core/number.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sdma::tool {

struct ExitMeaning;

/// A declared option. The methods return it, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* o) : option_(o) {}

  Option type(const std::string& name);    ///< the name of its value in --help
  Option shown(const std::string& value);  ///< its default in --help
  Option required();
  Option hidden();  ///< not in --help, man page and completion
  Option excludes(Option other);
  bool given() const;  ///< is it on the command line? Known when the verb runs.

 private:
  CLI::Option* option_;
};

class VerbOptions {
 public:
  /// Takes a value. Returns what is wrong with it, or "".
  using Take = std::function<std::string(const std::string&)>;

  /// `after`: the words after "--", which the parser does not see.
  explicit VerbOptions(CLI::App& app, std::vector<std::string> after = {});

  std::string name() const;
  /// For when the verb runs: the options that were given and their values, in one line, but for one of them.
  std::function<std::string()> given_but(const std::string& left_out) const;

  Option value(const std::string& name, std::string&, const std::string& doc);
  Option values(const std::string& name, std::vector<std::string>&, const std::string& doc);
  Option flag(const std::string& name, bool&, const std::string& doc);
  /// A flag that calls a function.
  void call(const std::string& name, std::function<void()>, const std::string& doc);
  /// An option whose text `take` parses.
  Option parsed(const std::string& name, Take take, const std::string& doc);
  /// The same for an option that may be repeated.
  Option repeated(const std::string& name, Take take, const std::string& doc);
  /// An option's old name, which still works and prints a note. The option takes a text that is parsed.
  void renamed(const std::string& before, const std::string& now);
  /// The first word that is not an option, and all words after it: a program
  /// and its arguments, which are passed on unchanged. "--" may come first.
  void program(std::vector<std::string>& words);
  /// The words after "--", for a verb whose other words have a meaning of their own.
  const std::vector<std::string>& after_dashes() const noexcept { return after_; }

  /// The end of --help has three parts. What exit codes mean for this verb, where they mean more than kExits says;
  /// without an entry for 1 or 4, it never ends so.
  void exits(std::initializer_list<ExitMeaning>);
  /// The pages that are its manual: "docs/text.md, docs/dumps.md". README.md links to them.
  void manual(const std::string& pages);
  /// What remains to be said, and examples.
  void footer(const std::string& text);

 private:
  void end_help();

  CLI::App& app_;
  std::string exits_, manual_{}, footer_{};
  std::vector<std::string> after_;
  std::map<std::string, Take> takes_{};  ///< of the options whose texts are parsed
};

/// Replaces "--" before a program's words: the parser would consume "--", and then read "[a]" as a list.
inline constexpr const char* kProgramFollows = "\x01--";

/// An option whose value is one of a few words: "--format text|json|hex".
template <class E>
Option add_choice(VerbOptions& verb, const std::string& name, E& value, std::vector<std::pair<std::string, E>> words,
                  const std::string& doc) {
  std::string list;
  for (const auto& w : words) list += (list.empty() ? "" : "|") + w.first;
  const auto take = [&value, words, list](const std::string& given) -> std::string {
    std::vector<std::string_view> known;
    for (const auto& [word, meaning] : words) {
      if (word == given) return value = meaning, "";
      known.push_back(word);
    }
    return "'" + given + "' is not one of " + list + did_you_mean(given, known);
  };
  return verb.parsed(name, take, doc).type(list);
}

/// "--json", short for "--format=json".
inline void add_json(VerbOptions& verb, std::function<void()> choose) {
  verb.call("--json", std::move(choose), "short for --format=json");
}
/// The same with "--format", where an answer has one form for people: "text", "table".
inline void add_format(VerbOptions& verb, const std::string& people, bool& json, const std::string& doc) {
  add_choice<bool>(verb, "--format", json, {{people, false}, {"json", true}}, doc);
  add_json(verb, [&json] { json = true; });
}

/// An option whose text `parse` turns into a value. If it returns nothing, the text is not `wanted`.
template <class T, class Parse>
Option add_parsed(VerbOptions& verb, const std::string& name, T& value, Parse parse, const std::string& wanted,
                  const std::string& doc) {
  const auto take = [&value, parse, wanted](const std::string& given) -> std::string {
    auto parsed = parse(given);
    if (!parsed) return "'" + given + "' is not " + wanted;
    value = static_cast<T>(*std::move(parsed));
    return "";
  };
  return verb.parsed(name, take, doc);
}

/// The same for an option that may be repeated.
template <class T, class Parse>
Option add_each(VerbOptions& verb, const std::string& name, std::vector<T>& all, Parse parse, const std::string& wanted,
                const std::string& doc) {
  const auto take = [&all, parse, wanted](const std::string& given) -> std::string {
    auto parsed = parse(given);
    if (!parsed) return "'" + given + "' is not " + wanted;
    return all.push_back(*std::move(parsed)), "";
  };
  return verb.repeated(name, take, doc);
}
inline Option add_texts(VerbOptions& verb, const std::string& name, std::vector<std::string>& all,
                        const std::string& doc) {
  return add_each(
      verb, name, all, [](const std::string& text) { return std::optional(text); }, "", doc);
}

/// A number without a unit, from `least` to `most`. Any other value is an error.
template <class T>
Option add_count(VerbOptions& verb, const std::string& name, T& value, std::uint64_t least, std::uint64_t most,
                 const std::string& doc) {
  const auto parse = [least, most](const std::string& text) {
    const auto n = parse_count(text);
    return n && *n >= least && *n <= most ? n : std::nullopt;
  };
  const auto wanted = "a number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto option = add_parsed(verb, name, value, parse, wanted, doc).type("N");
  if constexpr (std::is_integral_v<T>) return Option(option).shown(std::to_string(value));
  else return option;
}

}  // namespace sdma::tool
