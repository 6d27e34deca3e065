// SPDX-License-Identifier: MIT
#include "litmus.hpp"
#include "texts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sdma::litmus {

std::string Program::outcome(World& w) const {
  for (const auto& o : outcomes)
    if (std::all_of(o.conditions.begin(), o.conditions.end(), [&](const auto& holds) { return holds(w); }))
      return o.name;
  std::string all = "no outcome:";
  for (const auto& [word_name, word] : words) all += " " + word_name + "=" + std::to_string(w.load(word));
  return all;
}

const Expected* Program::find(std::string_view outcome) const {
  const auto at = std::find_if(outcomes.begin(), outcomes.end(), [&](const auto& o) { return o.name == outcome; });
  return at == outcomes.end() ? nullptr : &*at;
}

std::vector<Program> shipped_programs() {
  std::vector<Program> all;
  for (const auto& t : kProgramTexts) {
    auto p = read_program(t.text, t.file);
    if (!p) std::fprintf(stderr, "%s\n", to_string(p.error().front()).c_str()), std::abort();
    all.push_back(std::move(*p));
  }
  return all;
}

}  // namespace sdma::litmus
