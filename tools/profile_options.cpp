// SPDX-License-Identifier: MIT
#include "profile_options.hpp"

#include "options.hpp"

#include <memory>

namespace sdma::tool {

/// The options with the same name, or all options if no name matches.
static std::string options_like(std::string_view given) {
  const auto name = given.substr(0, given.find('='));
  std::string same, all;
  for (const auto x : profile_options()) {
    all += (all.empty() ? "" : " ") + std::string(x);
    if (x.substr(0, x.find('=')) == name) same += (same.empty() ? "" : " ") + std::string(x);
  }
  return same.empty() ? all : same;
}

std::function<void()> add_profile(VerbOptions& verb, Profile& profile) {
  add_choice<Profile>(
      verb, "--profile", profile,
      {{"conservative", Profile::conservative()},
       {"rocr", Profile::rocr()},
       {"strict", Profile::strict()},
       {"cuda", Profile::cuda()}},
      "ordering that a schedule may rely on: the rules of docs/ordering.md (default), the rules that ROCr relies on, "
      "strict queue order, or the order of CUDA streams");
  const auto assumed = std::make_shared<std::vector<std::string>>();
  const auto assume = [assumed](const std::string& given) -> std::string {
    if (Profile{}.set(given)) return assumed->push_back(given), "";
    const auto all = profile_options();
    return "'" + given + "' is not one of " + options_like(given) + did_you_mean(given, {all.begin(), all.end()});
  };
  verb.repeated("--assume", assume, "assume one more guarantee, such as fence=full; may be repeated")
      .type("OPTION=VALUE");
  return [assumed, &profile] {
    // The parser has already refused invalid assumptions.
    for (const auto& a : *assumed) (void)profile.set(a);
  };
}

}  // namespace sdma::tool
