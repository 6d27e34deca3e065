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
    {"wide", family::wide},
    {"noise", family::noise},
};
constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kFamilies)> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kFamilies[i].name;
  return out;
}();

}  // namespace

std::span<const std::string_view> families() noexcept { return kNames; }

Generated generate(Random& r, std::string_view name, std::uint32_t most_mutations) {
  const auto* f = &kFamilies[below(r, static_cast<std::uint32_t>(std::size(kFamilies)))];
  if (!name.empty())
    f = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const auto& x) { return x.name == name; });
  if (f == std::end(kFamilies)) return {};
  Generated g{f->name, f->make(r)};
  for (auto n = below(r, most_mutations + 1); n-- > 0;) mutate(g.schedule, r);
  return g;
}

}  // namespace sdma::explore
