// SPDX-License-Identifier: MIT
#include "verbs/explore_synthesized.hpp"

#include "collectives/plan.hpp"
#include "collectives/source.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace sdma::tool {
namespace {

constexpr std::chrono::seconds kTimeToMake{50};

void add_text(std::vector<Rival>& all, std::string name, const collectives::Source& text) {
  if (auto s = parse_schedule(text.text, text.name, {.set = text.set})) all.push_back({std::move(name), *std::move(s)});
}

/// In one node: each variant with and without prelaunch.
void add_variants(std::vector<Rival>& all, const SynthesizeArguments& o, std::uint32_t gpus) {
  const auto collective = collectives::collective_named(name(*o.collective));
  if (!collective || gpus > collectives::kMostGpus) return;
  for (const auto variant : collectives::kVariants)
    for (const auto prelaunch : {collectives::Prelaunch::off, collectives::Prelaunch::shared}) {
      const auto p = collectives::plan({.collective = *collective,
                                        .variant = variant,
                                        .prelaunch = prelaunch,
                                        .gpus = gpus,
                                        .bytes = o.bytes,
                                        .root = o.root});
      if (!p) continue;
      const auto ahead = prelaunch == collectives::Prelaunch::off ? "" : std::string(collectives::kPrelaunched);
      all.push_back({std::string(collectives::name(variant)) + ahead, p->schedule});
    }
}

/// Each variant of the texts that add.
void add_reductions(std::vector<Rival>& all, const SynthesizeArguments& o, std::uint32_t gpus) {
  for (const auto* variant : {"ring", "halving", "swing"}) {
    auto text = collectives::reduction(name(*o.collective));
    if (!text) return;
    set_param(*text, "N", std::to_string(gpus));
    set_param(*text, "bytes", size_text(o.bytes));
    set_param(*text, "variant", variant);
    add_text(all, variant, *text);
  }
}

void add_over_nodes(std::vector<Rival>& all, const SynthesizeArguments& o, std::uint32_t gpus, const NodeSizes& nodes) {
  for (const auto* algorithm : {"hierarchical", "flat", "ring"})
    for (const auto* pieces : {"1", "4", "16"}) {
      auto text = collectives::over_nodes(name(*o.collective));
      if (!text) return;
      set_param(*text, "N", std::to_string(gpus));
      set_param(*text, "per_node", fmt::format("[{}]", fmt::join(nodes.sizes, ", ")));
      set_param(*text, "bytes", size_text(o.bytes));
      set_param(*text, "root", std::to_string(o.root));
      set_param(*text, "algorithm", algorithm);
      set_param(*text, "pieces", pieces);
      add_text(all, fmt::format("{} over nodes, {} pieces", algorithm, pieces), *text);
    }
}

std::vector<Rival> rivals(const SynthesizeArguments& o, const Topology& t) {
  std::vector<Rival> all;
  const auto gpus = static_cast<std::uint32_t>(t.gpus.size());
  const auto nodes = collectives::nodes_of(t);
  if (nodes.sizes.size() > 1) add_over_nodes(all, o, gpus, nodes);
  else if (*o.collective == Synthesized::reduce_scatter) add_reductions(all, o, gpus);
  else add_variants(all, o, gpus);
  return all;
}

std::string beside(const Synthesis& r) {
  if (!r.best_other) return "no hand-written variant fits this node";
  return fmt::format("the fastest hand-written variant that fits takes {}: {}", time_text(r.other_ns), *r.best_other);
}

std::string text_of(const SynthesizeArguments& o, const MachineDescription& m, const Synthesis& r) {
  const auto assumes = r.assumes.empty() ? "" : fmt::format(", assuming {}", fmt::join(r.assumes, ", "));
  return fmt::format(
             "# {} of {} on {}, made by {}\n"
             "# {} predicted: at least {}\n"
             "# {}{}; {}\n"
             "# simulated: {} schedules; sdma check proves this one{}\n",
             name(*o.collective), size_text(o.bytes), m.name, o.command, time_text(r.ns),
             to_text(r.bound, r.ns / r.bound.ns), r.rival ? "hand-written: " : "", r.how, beside(r), r.simulated,
             assumes) +
         to_text(r.schedule);
}

json::Json json_of(const SynthesizeArguments& o, const MachineDescription& m, const Synthesis& r) {
  json::Json j{{"collective", name(*o.collective)},
               {"bytes", o.bytes},
               {"machine", m.name},
               {"ns", r.ns},
               {"at_least", json::of(r.bound, r.ns / r.bound.ns)},
               {"how", r.how},
               {"hand_written", r.rival}};
  j["best_hand_written"] = r.best_other ? json::Json{{"name", *r.best_other}, {"ns", r.other_ns}} : json::Json();
  j["simulated"] = r.simulated;
  j["refused"] = r.refused;
  j["assumes"] = r.assumes;
  j["defaults"] = defaults_of(m);
  j["schedule"] = to_text(r.schedule);
  return j;
}

}  // namespace

int explore_synthesized(const SynthesizeArguments& o, const MachineDescription& m) {
  SynthesizeOptions options{.collective = *o.collective,
                            .bytes = o.bytes,
                            .root = o.root,
                            .profile = o.profile,
                            .others = rivals(o, m.topology),
                            .deadline = Deadline::in(o.budget.value_or(std::chrono::nanoseconds(kTimeToMake)))};
  const auto made = [&] {
    Doing searching("searching");
    options.proceed = [&](std::size_t done, double best_ns) {
      searching.show([&] {
        return fmt::format("{}: {} schedules, {}", name(*o.collective), done,
                           best_ns > 0 ? "best " + time_text(best_ns) : "none yet");
      });
      return interrupted == 0;
    };
    return synthesize(options, m);
  }();
  if (!made) {
    auto why = made.error();
    for (auto& d : why)
      if (d.where == "synthesize") d.where = "--synthesize " + std::string(name(*o.collective));
    return report(why), kInput;
  }
  const auto code = write_text("-", o.json ? json::document(json_of(o, m, *made)) : text_of(o, m, *made));
  return code == kOk && interrupted != 0 ? kInterrupted : code;
}

}  // namespace sdma::tool
