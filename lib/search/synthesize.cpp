// SPDX-License-Identifier: MIT
#include "sdma/search/synthesize.hpp"

#include "routed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace sdma { inline namespace v0_3 {

namespace {

using detail::Item;
using detail::kElement;
using detail::kGranule;
using detail::kNoEdge;
using detail::Net;
using detail::QueueForm;
using detail::Routes;
using detail::Task;
using detail::Threads;
constexpr std::uint32_t kMostGpus = 64;
/// A schedule with more copies than this takes too long to simulate again and again.
constexpr std::uint64_t kMostCopies = 15'000;
/// A simpler schedule is preferred to one that is faster by less.
constexpr double kHardlyFaster = 1e-3;

constexpr std::array<std::string_view, 4> kNames{"all_gather", "all_to_all", "broadcast", "reduce_scatter"};

std::vector<Diagnostic> refusal(std::string message, std::string hint = "") {
  return {{.where = "synthesize", .message = std::move(message), .hint = std::move(hint)}};
}

/// A schedule that was simulated.
struct Tried {
  Schedule schedule{};
  std::string how{};
  bool rival{};
  double ns{};
};

class Synthesizing {
 public:
  Synthesizing(const SynthesizeOptions& o, const MachineDescription& m)
      : o_(o), m_(m), task_{&m, o.collective, static_cast<std::uint32_t>(m.topology.gpus.size()), o.bytes, o.root} {}

  Result<Synthesis, std::vector<Diagnostic>> run() {
    if (auto why = wrong()) return *std::move(why);
    net_ = detail::net_of(m_, task_.gpus);
    if (const auto pair = detail::unreachable(net_))
      return refusal(
          fmt::format("gpu{} cannot be reached from gpu{}: no way of links leads there", pair->second, pair->first),
          "every GPU has to be reached from every other one, by links whose rates the machine states");
    items_ = detail::items_of(task_);
    for (const auto& other : o_.others) add(other.schedule, other.name, true);
    const auto forward = o_.collective != Synthesized::reduce_scatter;
    const auto routed_on = forward ? net_ : net_.reversed();
    if (auto direct = detail::direct_routes(routed_on, items_)) shapes("direct copies", *direct);
    else shapes("the shortest ways", detail::shortest_routes(routed_on, items_));
    std::set<std::vector<std::uint64_t>> known;
    for (const auto units : {1, 2, 4, 12, 60, 240}) {
      const auto trees = std::uint64_t{task_.gpus - 1} * static_cast<std::uint64_t>(units);
      for (const auto n : {std::uint64_t(units), trees}) {
        if (!goes_on()) break;
        auto routes = detail::balanced_routes(routed_on, items_, kGranule, n);
        if (known.insert(key(routes)).second) shapes(fmt::format("trees of {} units", n), routes);
      }
    }
    return best();
  }

 private:
  std::optional<std::vector<Diagnostic>> wrong() const {
    const auto n = task_.gpus;
    if (n < 2 || n > kMostGpus)
      return refusal(fmt::format("a collective needs 2 to {} GPUs, and the machine has {}", kMostGpus, n));
    if (o_.bytes == 0) return refusal("a collective moves at least one byte");
    if (o_.root >= n) return refusal(fmt::format("root {} is not one of the {} GPUs", o_.root, n));
    if (o_.collective == Synthesized::reduce_scatter && o_.bytes % kElement != 0)
      return refusal(fmt::format("{} bytes are not a whole number of elements of {} bytes", o_.bytes, kElement));
    return {};
  }

  /// Two sets of routes with the same key are the same.
  static std::vector<std::uint64_t> key(const Routes& all) {
    std::vector<std::uint64_t> out;
    for (const auto& item : all) {
      for (const auto& r : item) {
        out.insert(out.end(), r.edge.begin(), r.edge.end());
        out.push_back(r.bytes);
      }
      out.push_back(~std::uint64_t{});
    }
    return out;
  }

  std::optional<double> fastest_so_far() const {
    const auto faster = [](const Tried& a, const Tried& b) { return a.ns < b.ns; };
    const auto best = std::min_element(tried_.begin(), tried_.end(), faster);
    return best == tried_.end() ? std::nullopt : std::optional(best->ns);
  }
  bool goes_on() {
    if (stopped_) return false;
    const auto fastest = fastest_so_far();
    stopped_ = (o_.deadline && o_.deadline->passed()) || (o_.proceed && !o_.proceed(simulated_, fastest.value_or(0)));
    return !stopped_;
  }

  /// The time of a schedule, which is kept.
  std::optional<double> add(Schedule s, std::string how, bool rival) {
    ++simulated_;
    const auto t = simulate(s, m_);
    if (!t || t->rounds.size() != 1) {
      ++refused_;
      if (!t && !rival && reasons_.empty()) reasons_ = t.error();
      return {};
    }
    const auto ns = t->total_ns - t->rounds.front().begin_ns;
    tried_.push_back({std::move(s), std::move(how), rival, ns});
    return ns;
  }

  /// Changes one property of a shape at a time, as long as that helps.
  void shapes(const std::string& what, const Routes& routes) {
    std::uint64_t copies = 0;
    bool relays = false;
    std::uint32_t degree = 0;
    std::vector<std::set<std::uint32_t>> leaving(task_.gpus);
    for (const auto& item : routes)
      for (const auto& r : item) {
        std::uint32_t edges = 0;
        for (const auto e : r.edge) {
          if (e == kNoEdge) continue;
          ++edges;
          leaving[net_.edges[e].from].insert(e);
          relays = relays || r.edge[net_.edges[e].from] != kNoEdge;
        }
        copies += edges;
      }
    for (const auto& l : leaving) degree = std::max(degree, static_cast<std::uint32_t>(l.size()));
    const bool adds = o_.collective == Synthesized::reduce_scatter;
    using Change = std::pair<std::uint32_t QueueForm::*, std::vector<std::uint32_t>>;
    std::vector<Change> changes;
    if (relays || adds) changes.push_back({&QueueForm::pieces, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}});
    changes.push_back({&QueueForm::queues, {0}});
    for (const auto q : {1u, 2u, 3u, 4u, 5u, 7u, 10u})
      if (q < degree) changes.back().second.push_back(q);
    if (relays) changes.push_back({&QueueForm::ways, {1, 2, 3}});
    if (relays) changes.push_back({&QueueForm::apart, {0, 1}});
    if (adds) changes.push_back({&QueueForm::kernels, {1, 2, 4}});
    changes.push_back({&QueueForm::words, {1, 2, 3, 4, 6, 8}});
    QueueForm best;
    auto least = one(what, routes, best);
    const auto attempt = [&](const QueueForm& s) {
      if (copies * s.pieces > kMostCopies || !goes_on()) return false;
      const auto ns = one(what, routes, s);
      if (!ns || (least && *ns >= *least * (1 - kHardlyFaster))) return false;
      least = ns;
      best = s;
      return true;
    };
    if (relays) {
      auto s = best;
      s.pieces = 16;
      s.ways = 2;
      attempt(s);
    }
    const auto fastest = fastest_so_far();
    constexpr double kHopeless = 1.5;
    if (!least || (fastest && *least > kHopeless * *fastest)) return;
    for (bool better = true; better;) {
      better = false;
      for (const auto& [member, values] : changes)
        for (const auto v : values) {
          auto s = best;
          if (std::exchange(s.*member, v) == v) continue;
          better = attempt(s) || better;
        }
      auto s = best;
      s.threads = s.threads == Threads::each_gpu ? Threads::each_queue : Threads::each_gpu;
      better = attempt(s) || better;
      s = best;
      s.pairs = !s.pairs;
      if (o_.collective == Synthesized::all_gather || o_.collective == Synthesized::broadcast)
        better = attempt(s) || better;
    }
  }
  std::optional<double> one(const std::string& what, const Routes& routes, const QueueForm& shape) {
    return add(detail::routed(task_, net_, items_, routes, shape), what + ": " + detail::to_text(shape), false);
  }

  /// The fastest that is proved.
  Result<Synthesis, std::vector<Diagnostic>> best() {
    std::stable_sort(tried_.begin(), tried_.end(), [](const auto& a, const auto& b) { return a.ns < b.ns; });
    Synthesis out;
    bool found = false;
    for (auto& t : tried_) {
      if (found && (out.best_other || !t.rival)) continue;
      const auto r = check(t.schedule, {.profile = o_.profile, .topology = &m_.topology});
      if (r.verdict() != Verdict::proved) {
        ++refused_;
        for (const auto& f : r.findings)
          if (reasons_.empty() && !t.rival) reasons_ = {f.diagnostic};
        continue;
      }
      if (t.rival && !out.best_other) out.best_other = t.how, out.other_ns = t.ns;
      if (std::exchange(found, true)) continue;
      out.how = t.how;
      out.rival = t.rival;
      out.ns = t.ns;
      out.assumes = r.assumes;
      if (const auto least = lower_bound(t.schedule, m_)) out.bound = *least;
      out.schedule = t.schedule;
    }
    out.simulated = simulated_;
    out.refused = refused_;
    if (found) return out;
    if (reasons_.empty()) return refusal("no schedule is proved");
    return std::move(reasons_);
  }

  const SynthesizeOptions& o_;
  const MachineDescription& m_;
  const Task task_;
  Net net_{};
  std::vector<Item> items_{};
  std::vector<Tried> tried_{};
  std::vector<Diagnostic> reasons_{};
  std::size_t simulated_ = 0, refused_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::string_view name(Synthesized c) noexcept { return kNames[static_cast<std::size_t>(c)]; }

Result<Synthesis, std::vector<Diagnostic>> synthesize(const SynthesizeOptions& o, const MachineDescription& m) {
  return Synthesizing(o, m).run();
}

}}  // namespace sdma::v0_3
