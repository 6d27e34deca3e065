// SPDX-License-Identifier: MIT
#include "complete.hpp"

#include "sdma/device/topology.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/machine.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sdma::tool {
namespace {

using Words = std::vector<std::string>;

/// What the type of a list with commas ends with: "pcpy|b2b,..".
constexpr std::string_view kList = ",..";

/// "text|json|hex" -> its words; nothing for the form of any other value, such as PATH.
Words choices(std::string type) {
  if (type.ends_with(kList)) type.resize(type.size() - kList.size());
  if (type.find('|') == type.npos) return {};
  Words out{""};
  for (const auto c : type) {
    if (c == '|') out.emplace_back();
    else if (c >= 'A' && c <= 'Z') return {};
    else out.back() += c;
  }
  return out;
}

/// The params of the first schedule among the words, as "N=". It needs values only for params without a default.
Words params(std::span<const std::string> words) {
  constexpr std::uintmax_t kLargest = 1 << 20;  // bytes: the user is waiting for the answer
  for (const auto& word : words) {
    std::error_code e;
    if (!word.ends_with(".sdma") || !std::filesystem::is_regular_file(word, e) ||
        std::filesystem::file_size(word, e) > kLargest)
      continue;
    std::ifstream in(word, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    SourceMap map;
    if (!parse_schedule(text, word, {.read = files_beside(word), .map = &map})) continue;
    Words out;
    for (const auto& p : map.params) out.push_back(p + "=");
    return out;
  }
  return {};
}

Words parameters() {
  Words out;
  for (std::size_t i = 0; i < kCosts; ++i) out.push_back(std::string(name(static_cast<Cost>(i))) + "=");
  for (const auto& rate : kLinkRates) out.push_back(std::string(rate.name) + "=");
  return out;
}

Words values(const CLI::Option& o, std::span<const std::string> words) {
  const auto& names = o.get_lnames();
  const auto is = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (is("machine") || is("topology")) return {std::begin(kLayoutExamples), std::end(kLayoutExamples)};
  if (is("parameter")) return parameters();
  if (is("set")) return params(words);
  if (is("sweep")) {
    auto all = params(words);
    for (auto& p : parameters()) all.push_back(std::move(p));
    return all;
  }
  return choices(o.get_type_name());
}

Words names_of(const CLI::App& app) {
  Words out;
  for (const auto* o : app.get_options())
    if (!o->get_group().empty())
      for (const auto& name : o->get_lnames()) out.push_back("--" + name);
  return out;
}

const CLI::Option* long_option(const CLI::App& app, const std::string& word) {
  return word.starts_with("--") ? app.get_option_no_throw(word) : nullptr;
}

/// The candidates that begin with `begun`, each after `before`.
Words those(Words all, const std::string& begun, const std::string& before = {}) {
  Words out;
  for (auto& w : all)
    if (w.starts_with(begun)) out.push_back(before + w);
  std::sort(out.begin(), out.end());
  return out;
}

/// What may stand for the value of which `begun` is there, after `before`; in a list, that is its last element.
Words of_value(const CLI::Option& o, std::span<const std::string> words, std::string begun, std::string before = {}) {
  if (const auto comma = begun.rfind(','); comma != begun.npos && o.get_type_name().ends_with(kList)) {
    before += begun.substr(0, comma + 1);
    begun.erase(0, comma + 1);
  }
  return those(values(o, words), begun, before);
}

}  // namespace

Words completions(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return {};
  const auto last = words.back();
  if (words.size() == 1) {
    Words all = last.starts_with('-') ? names_of(app) : Words{};
    if (all.empty())
      for (const auto* verb : app.get_subcommands({})) all.push_back(verb->get_name());
    return those(std::move(all), last);
  }
  const auto verbs = app.get_subcommands({});
  const auto named = std::find_if(verbs.begin(), verbs.end(), [&](auto* v) { return v->get_name() == words[0]; });
  const auto* verb = named == verbs.end() ? nullptr : *named;
  const auto given = words.subspan(1, words.size() - 2);
  // After "--", and after the name of a program, the words are another program's.
  if (!verb || std::find(given.begin(), given.end(), "--") != given.end()) return {};
  if (verb->get_prefix_command())
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto* before =
          i > 0 && given[i - 1].find('=') == std::string::npos ? long_option(*verb, given[i - 1]) : nullptr;
      if (!given[i].starts_with('-') && !(before && before->get_items_expected_max() > 0)) return {};
    }
  if (const auto equals = last.find('='); last.starts_with("--") && equals != last.npos) {
    const auto* o = long_option(*verb, last.substr(0, equals));
    return o ? of_value(*o, words, last.substr(equals + 1), last.substr(0, equals + 1)) : Words{};
  }
  if (!given.empty())
    if (const auto* o = long_option(*verb, given.back()); o && o->get_items_expected_max() > 0)
      return of_value(*o, words, last);
  return last.starts_with('-') ? those(names_of(*verb), last) : Words{};
}

}  // namespace sdma::tool
