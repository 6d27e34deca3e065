// SPDX-License-Identifier: MIT
#include "plan.hpp"

#include "builder.hpp"
#include "table.hpp"

namespace collectives {

sdma::Result<Plan, sdma::Diagnostic> plan(const Options& asked) {
  if (auto why = refusal(asked)) return *std::move(why);
  auto o = asked;
  if (o.variant == Variant::automatic) o.variant = choose(default_table(), o);
  Builder b{o};
  switch (o.collective) {
    case Collective::all_gather: all_gather(b); break;
    case Collective::all_to_all: all_to_all(b); break;
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::gather: rooted(b); break;
  }
  return std::move(b).finish();
}

double bus_factor(Collective c, std::uint32_t gpus) noexcept {
  return c == Collective::broadcast ? 1 : static_cast<double>(gpus - 1) / gpus;
}

}  // namespace collectives
