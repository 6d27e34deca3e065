// SPDX-License-Identifier: MIT
#include "schedule_file.hpp"

#include "input.hpp"
#include "verb.hpp"

namespace sdma::tool {

namespace {

/// An option that may be repeated, whose values are NAME=SOMETHING. Any other form is a usage error.
template <class Take>
void add_repeated(VerbOptions& verb, const std::string& option, const std::string& form, const std::string& doc,
                  Take take) {
  const auto split = [take, form](const std::string& given) -> std::string {
    const auto at = given.find('=');
    if (at == 0 || at == given.npos || at + 1 == given.size()) return "'" + given + "' is not " + form;
    take(given.substr(0, at), given.substr(at + 1));
    return "";
  };
  verb.repeated(option, split, doc).type(form);
}

}  // namespace

void add_settings(VerbOptions& verb, std::vector<ParseOptions::Setting>& set) {
  add_repeated(verb, "--set", "NAME=VALUE", "set a param of the schedule; may be repeated",
               [&set](std::string name, std::string value) {
                 set.push_back({std::move(name), std::move(value)});
               });
}

void add_pairs(VerbOptions& verb, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>& pairs, const std::string& doc) {
  add_repeated(verb, option, form, doc, [&pairs](std::string name, std::string value) {
    pairs.emplace_back(std::move(name), std::move(value));
  });
}

std::optional<Schedule> load_schedule(const std::string& path, const std::string& text, ParseOptions options,
                                      SourceMap* map) {
  options.map = map;
  options.read = files_beside(path);
  auto s = parse_schedule(text, shown(path), options);
  if (s) return std::move(*s);
  for (const auto& e : s.error()) report(e);
  return {};
}

}  // namespace sdma::tool
