#include "schedule_file.hpp"

#include "verb.hpp"

namespace sdma::tool {

namespace {

/// Splits "NAME=VALUE". Any other form is a usage error.
std::pair<std::string, std::string> name_and_value(const std::string& option, const std::string& given,
                                                   const std::string& form) {
  const auto at = given.find('=');
  if (at == 0 || at == given.npos || at + 1 == given.size())
    throw CLI::ValidationError(option, "'" + given + "' is not " + form);
  return {given.substr(0, at), given.substr(at + 1)};
}

}  // namespace

void add_settings(CLI::App& app, std::vector<ParseOptions::Setting>& set) {
  const auto parse = [&set](const CLI::results_t& given) {
    for (const auto& g : given) {
      auto [name, value] = name_and_value("--set", g, "NAME=VALUE");
      set.push_back({std::move(name), std::move(value)});
    }
    return true;
  };
  app.add_option("--set", parse, "set a param of the schedule; may be repeated")
      ->type_name("NAME=VALUE")
      ->type_size(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_pairs(CLI::App& app, const std::string& option, const std::string& form,
               std::vector<std::pair<std::string, std::string>>& pairs, const std::string& doc) {
  const auto parse = [&pairs, option, form](const CLI::results_t& given) {
    for (const auto& g : given) pairs.push_back(name_and_value(option, g, form));
    return true;
  };
  app.add_option(option, parse, doc)
      ->type_name(form)
      ->type_size(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string shown(const std::string& path) { return path == "-" ? "stdin" : path; }

std::optional<Schedule> load_schedule(const std::string& path, const std::string& text, const ParseOptions& options) {
  auto s = parse_schedule(text, shown(path), options);
  if (s) return std::move(*s);
  for (const auto& e : s.error()) report(e);
  return {};
}

}  // namespace sdma::tool
