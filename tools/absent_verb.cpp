// SPDX-License-Identifier: MIT
#include "absent_verb.hpp"

#include "core/listed.hpp"

#include <memory>

namespace sdma::tool {

void add_absent(VerbOptions& verb, Action& action, const std::vector<std::string>& present) {
  // They live as long as the action, which the program keeps until it ends.
  struct Ignored {
    std::vector<std::string> words{};
    bool json = false;
  };
  const auto ignored = std::make_shared<Ignored>();
  verb.values("WORDS", ignored->words, "ignored");
  verb.flag("--json", ignored->json, "ignored");
  action = [ignored, names = listed(present), name = verb.name()] {
    complain("the playground has no sdma " + name, "it has " + names + "; the installed program has all subcommands");
    return kUsage;
  };
}

}  // namespace sdma::tool
