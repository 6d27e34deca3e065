// SPDX-License-Identifier: MIT
// What is the order: the litmus programs, as often as the time allows, beside the rules of docs/ordering.md.
//
//   state          a program
//   refuted        an outcome that the rule excludes was seen: "excluded" has them
//   weaker         an outcome that an ordering of the software engine does not have: "breaks" names the ordering
//   confirmed      the rule excludes every other outcome, and none was seen
//   open           the rule permits other outcomes, which every ordering has or which were not seen
#include "contact/steps.hpp"
#include "litmus/device.hpp"

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

Json judge(const litmus::Program& p, const std::map<std::string, std::uint64_t>& seen) {
  Json j = with_state("open"), excluded = Json::array();
  std::string breaks;
  for (const auto& one : seen) {
    const auto* at = p.find(one.first);
    if (!at) excluded.push_back(one.first);
    else if (!at->rocr) breaks = "rocr";
    else if (!at->strict && breaks.empty()) breaks = "strict";
  }
  const bool guaranteed = p.outcomes.size() == 1;
  j["state"] = !excluded.empty() ? "refuted" : !breaks.empty() ? "weaker" : guaranteed ? "confirmed" : "open";
  if (!excluded.empty()) j["excluded"] = excluded;
  if (!breaks.empty()) j["breaks"] = breaks;
  return j;
}

Json run_program(Device& d, const Settings& s, const litmus::Program& p, std::chrono::nanoseconds share) {
  if (const auto why = litmus::DeviceWorld::refused(d, p); !why.empty()) return with_state("left out", why);
  std::map<std::string, std::uint64_t> seen;
  std::uint64_t runs = 0;
  const auto end = Deadline::in(share);
  do {
    const auto world = litmus::DeviceWorld::on(d, p, s.still);
    if (!world) return with_state("left out", to_string(world.error()));
    ++seen[(*world)->run()];
    ++runs;
  } while (runs < s.runs && !end.passed());
  auto j = judge(p, seen);
  j["rule"] = p.rule;
  j["question"] = p.question;
  j["runs"] = runs;
  j["outcomes"] = seen;
  return j;
}

}  // namespace

Json what_order(const Settings& s, const Topology&, Deadline end) {
  auto programs = litmus::shipped_programs();
  std::erase_if(programs, [](const auto& p) { return p.kernel; });
  const auto share = end.left() / static_cast<int>(programs.size());
  std::vector<Item> items;
  for (const auto& p : programs)
    items.push_back({.id = p.name,
                     .group = "litmus programs",
                     .work = [&s, &p, share](Device* d) { return run_program(*d, s, p, share); },
                     .limit = share + 2 * s.patience});
  return perform(s, "order", items, end);
}

}  // namespace sdma::tool::contact
