#include "schedule_file.hpp"

#include "input.hpp"
#include "verb.hpp"

namespace sdma::tool {

namespace {

/// An option that may be repeated, whose values are NAME=SOMETHING. Any other form is a usage error.
template <class Take>
void add_repeated(CLI::App& app, const std::string& option, const std::string& form, const std::string& doc,
                  Take take) {
  const auto parse = [take, option, form](const CLI::results_t& given) {
    for (const auto& g : given) {
      const auto at = g.find('=');
      if (at == 0 || at == g.npos || at + 1 == g.size())
        throw CLI::ValidationError(option, "'" + g + "' is not " + form);
      take(g.substr(0, at), g.substr(at + 1));
    }
    return true;
  };
  app.add_option(option, parse, doc)
      ->type_name(form)
      ->type_size(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void add_settings(CLI::App& app, std::vector<ParseOptions::Setting>& set) {
  add_repeated(app, "--set", "NAME=VALUE", "set a param of the schedule; may be repeated",
               [&set](std::string name, std::string value) {
                 set.push_back({std::move(name), std::move(value)});
               });
}

void add_pairs(CLI::App& app, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>& pairs, const std::string& doc) {
  add_repeated(app, option, form, doc, [&pairs](std::string name, std::string value) {
    pairs.emplace_back(std::move(name), std::move(value));
  });
}

std::optional<Schedule> load_schedule(const std::string& path, const std::string& text, ParseOptions options,
                                      SourceMap* map) {
  options.map = map;
  auto s = parse_schedule(text, shown(path), options);
  if (s) return std::move(*s);
  for (const auto& e : s.error()) report(e);
  return {};
}

std::vector<std::string> expected_findings(const Schedule& s) {
  std::vector<std::string> rules;
  for (const auto& e : s.expectations)
    if (e.kind == Schedule::Expectation::Kind::finding) rules.push_back(e.rule);
  return rules;
}

}  // namespace sdma::tool
