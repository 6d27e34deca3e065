// SPDX-License-Identifier: MIT
#include "options.hpp"

#include "json/exit.hpp"
#include "output.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace sdma::tool {
namespace {

/// CLI11 does not know that a program and its arguments follow.
struct ProgramHelp : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string name) const override {
    return "Usage: " + name + " [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
  }
};

/// "--minbytes" of "-b,--minbytes", which is what messages call it.
std::string long_name(const std::string& names) {
  const auto begin = names.find("--");
  return begin == names.npos ? names : names.substr(begin, names.find(',', begin) - begin);
}

CLI::callback_t checked(const std::string& names, VerbOptions::Take take) {
  return [name = long_name(names), take](const CLI::results_t& given) {
    for (const auto& text : given)
      if (const auto wrong = take(text); !wrong.empty()) throw CLI::ValidationError(name, wrong);
    return true;
  };
}

/// In --help, the name of a positional argument says what it is; an option's value has a type of its own.
Option described(CLI::Option* o) { return Option{o->get_positional() ? o->type_name("") : o}; }

}  // namespace

Option Option::type(const std::string& name) { return option_->type_name(name), *this; }
Option Option::shown(const std::string& value) {
  // Not default_str(), which versions of CLI11 print differently.
  auto type = option_->get_type_name();
  type.resize(std::min(type.find('='), type.size()));
  return option_->type_name(value.empty() ? type : type + "=" + value), *this;
}
Option Option::hidden() { return option_->group(""), *this; }
Option Option::required() { return option_->required(), *this; }
Option Option::excludes(Option other) { return option_->excludes(other.option_), *this; }
bool Option::given() const { return option_->count() > 0; }

VerbOptions::VerbOptions(CLI::App& app, std::vector<std::string> after)
    : app_(app), exits_(exit_codes({}, false)), after_(std::move(after)) {
  end_help();
}

std::string VerbOptions::name() const { return app_.get_name(); }

std::function<std::string()> VerbOptions::given_but(const std::string& left_out) const {
  return [&app = app_, left_out] {
    std::string line;
    for (const auto* o : app.get_options())
      for (const auto& value : o->results())
        if (o->get_name() != left_out) line += (line.empty() ? "" : " ") + o->get_name() + "=" + value;
    return line;
  };
}

Option VerbOptions::value(const std::string& name, std::string& to, const std::string& doc) {
  return described(app_.add_option(name, to, doc));
}

Option VerbOptions::values(const std::string& name, std::vector<std::string>& to, const std::string& doc) {
  return described(app_.add_option(name, to, doc));
}

Option VerbOptions::flag(const std::string& name, bool& to, const std::string& doc) {
  return Option{app_.add_flag(name, to, doc)};
}

void VerbOptions::call(const std::string& name, std::function<void()> fn, const std::string& doc) {
  app_.add_flag_callback(name, std::move(fn), doc);
}

Option VerbOptions::parsed(const std::string& name, Take take, const std::string& doc) {
  takes_[name] = take;
  return Option{app_.add_option(name, checked(name, std::move(take)), doc)};
}

Option VerbOptions::repeated(const std::string& name, Take take, const std::string& doc) {
  auto* const o = app_.add_option(name, checked(name, std::move(take)), doc);
  return Option{o->type_size(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)};
}

void VerbOptions::renamed(const std::string& before, const std::string& now) {
  const auto said = [before, now, take = takes_.at(now)](const std::string& text) {
    report({.severity = Severity::note, .where = before, .message = "this option is called " + now + " now"});
    return take(text);
  };
  Option{app_.add_option(before, checked(now, said), "")}.hidden();
}

void VerbOptions::program(std::vector<std::string>& words) {
  // Not an option of its own: "[a]" would be a list.
  app_.prefix_command();
  const auto help = std::make_shared<ProgramHelp>();
  help->column_width(app_.get_formatter()->get_column_width());
  app_.formatter(help);
  app_.parse_complete_callback([this_app = &app_, &words] {
    words = this_app->remaining();
    const auto mark = std::find(words.begin(), words.end(), kProgramFollows);
    if (mark != words.end() && mark != words.begin()) *mark = "--";  // the program's own
    else if (mark != words.end()) words.erase(mark);
    if (words.empty()) throw CLI::RequiredError("PROGRAM");
    if (words[0].starts_with('-')) throw CLI::ExtrasError(this_app->get_name(), {words[0]});
  });
}

void VerbOptions::exits(std::initializer_list<ExitMeaning> meanings) {
  exits_ = exit_codes({meanings.begin(), meanings.size()}, false), end_help();
}
void VerbOptions::manual(const std::string& pages) { manual_ = "Manual: " + pages + "\n", end_help(); }
void VerbOptions::footer(const std::string& text) { footer_ = text, end_help(); }
void VerbOptions::end_help() { app_.footer(exits_ + "\n" + manual_ + footer_); }

}  // namespace sdma::tool
