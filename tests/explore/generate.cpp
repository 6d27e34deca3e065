// SPDX-License-Identifier: MIT
#include "generate.hpp"

#include "families.hpp"

#include <algorithm>
#include <array>

namespace sdma::explore {
namespace {

struct Family {
  std::string_view name;
  Schedule (*make)(Random&);
};
constexpr Family kFamilies[] = {
    {"ring", family::ring},
    {"counter", family::counter},
    {"barrier", family::barrier},
    {"prelaunch", family::prelaunch},
    {"pingpong", family::pingpong},
    {"hosts", family::hosts},
    {"shared", family::shared},
    {"engine", family::engine},
    {"alias", family::alias},
    {"unknown", family::unknown},
    {"condition", family::condition},
    {"flag", family::flag},
    {"box", family::box},
    {"capacity", family::capacity},
    {"words", family::words},
    {"credit", family::credit},
    {"pipeline", family::pipeline},
    {"tree", family::tree},
    {"ahead", family::ahead},
    {"wide", family::wide},
    {"atomics", family::atomics},
    {"halves", family::halves},
    {"mixed", family::mixed},
    {"compare", family::compare},
    {"packets", family::packets},
    {"reads", family::reads},
    {"bytes", family::bytes},
    {"samples", family::samples},
    {"kernel", family::kernel},
    {"sums", family::sums},
    {"scopes", family::scopes},
    {"vram", family::vram},
    {"lifetimes", family::lifetimes},
    {"pool", family::pool},
    {"lent", family::lent},
    {"gates", family::gates},
    {"network", family::network},
    {"places", family::places},
    {"values", family::values},
    {"results", family::results},
    {"noise", family::noise},
};
constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kFamilies)> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kFamilies[i].name;
  return out;
}();

}  // namespace

std::span<const std::string_view> families() noexcept { return kNames; }

namespace {

const Family* find(Random& r, std::string_view names) {
  if (names.empty()) return &kFamilies[below(r, static_cast<std::uint32_t>(std::size(kFamilies)))];
  std::vector<const Family*> found;
  for (const auto& f : kFamilies)
    for (auto rest = names; !rest.empty();) {
      const auto comma = std::min(rest.find(','), rest.size());
      if (rest.substr(0, comma) == f.name) found.push_back(&f);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  return found.empty() ? nullptr : found[below(r, static_cast<std::uint32_t>(found.size()))];
}

}  // namespace

Generated generate(Random& r, std::string_view names, std::uint32_t most_mutations) {
  const auto* f = find(r, names);
  if (!f) return {};
  Generated g{f->name, f->make(r)};
  if (below(r, 8) == 0) {
    auto other = find(r, names)->make(r);
    // Mostly on engines of its own.
    if (below(r, 4) != 0)
      for (auto& q : other.queues) q.engine += 6;
    combine(g.schedule, std::move(other), below(r, 2) == 0);
  }
  for (auto n = below(r, most_mutations + 1); n-- > 0;) mutate(g.schedule, r);
  return g;
}

}  // namespace sdma::explore
