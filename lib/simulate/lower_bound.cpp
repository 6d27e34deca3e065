// SPDX-License-Identifier: MIT
// The least time for what a schedule's expectations ask to be moved: its cuts, and its longest way.
#include "sdma/simulate/lower_bound.hpp"

#include "../schedule/symbols.hpp"
#include "data_rate.hpp"
#include "needed.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::PlaceSet;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kMostInRuns = 32;
constexpr std::uint64_t kMostWork = 20'000'000;  ///< parts that cuts along runs examine

/// A link as the simulator uses it: between places, with the rate that is left for data.
struct Way {
  std::uint32_t from{}, to{};
  std::optional<double> rate{};
  bool network{};
  double flight{};  ///< of a word
  const std::vector<std::uint32_t>* shares{};
};

class Bounding {
 public:
  Bounding(const Schedule& s, const MachineDescription& m) : s_(s), m_(m), needs_(s), host_(s.gpus) { ways(); }

  std::optional<LowerBound> bound() {
    if (needs_.all().empty()) return {};
    LowerBound best;
    if (!longest_way(best)) return {};
    PlaceSet in(s_.gpus + std::size_t{1});
    for (std::uint32_t g = 0; g < s_.gpus; ++g) {
      in[g] = true;
      cut(in, to_string(Place::gpu(g)), best);
      in[g] = false;
    }
    if (needs_.host()) {
      in[host_] = true;
      cut(in, "the host", best);
      in[host_] = false;
    }
    nodes(best);
    runs(best);
    return best;
  }

 private:
  double cost(Cost c) const { return m_[c]; }

  void ways() {
    std::vector<bool> known((s_.gpus + std::size_t{1}) * (s_.gpus + std::size_t{1}));
    for (const auto& l : m_.topology.links) {
      const auto place = [&](LinkEnd e) { return e.kind == LinkEnd::Kind::cpu ? host_ : e.index; };
      const auto from = place(l.from), to = place(l.to);
      if (from > host_ || to > host_ || from == to) continue;
      if ((from == host_ || to == host_) && !needs_.host()) continue;
      if (l.from.kind == LinkEnd::Kind::gpu && from >= s_.gpus) continue;
      if (l.to.kind == LinkEnd::Kind::gpu && to >= s_.gpus) continue;
      const auto at = from * (s_.gpus + std::size_t{1}) + to;
      if (known[at]) continue;
      known[at] = true;
      const bool network = from != host_ && to != host_ && m_.topology.gpus[from].node != m_.topology.gpus[to].node;
      const auto flight = l.type == LinkType::other      ? Cost::nic_flight
                          : from == host_ || to == host_ ? Cost::pcie_flight
                                                         : Cost::xgmi_flight;
      ways_.push_back({from, to, detail::data_rate(m_, l.type, l.rate), network, cost(flight), &l.shares});
    }
    leaving_.resize(s_.gpus + std::size_t{1});
    for (const auto& w : ways_) leaving_[w.from].push_back(&w);
  }

  /// From the beginning of the round until an engine has its first packet.
  double start() const {
    const auto fetch = 2 * cost(Cost::pcie_flight) + cost(Cost::engine_fetch);
    auto least =
        cost(Cost::host_build) + cost(Cost::host_submit) + cost(Cost::host_doorbell) + cost(Cost::pcie_flight) + fetch;
    if (needs_.kernels_submit()) least = std::min(least, cost(Cost::host_build) + cost(Cost::kernel_release) + fetch);
    if (needs_.triggered())
      least =
          std::min(least, cost(Cost::host_store) + (needs_.all_wait_at_head()
                                                        ? cost(Cost::engine_poll) + cost(Cost::pcie_flight)
                                                        : cost(Cost::engine_control) + 2 * cost(Cost::pcie_flight)));
    return least;
  }
  /// A copy, until its release leaves; over a network, until the word is there.
  double copy(const Way& w) const {
    return w.network ? cost(Cost::nic_message) + cost(Cost::nic_flight)
                     : cost(Cost::engine_packet) + cost(Cost::engine_latency) + cost(Cost::engine_release);
  }
  /// Then, until an engine or a kernel at its destination could see the word.
  double seen(const Way& w) const { return w.network ? 0 : w.flight; }
  /// From the release of the last copy until a thread knows that all is done.
  double noticed(const Way& w) const {
    const auto by_host = cost(Cost::host_poll) + (w.network ? 0 : cost(Cost::pcie_flight));
    if (needs_.only_sums())
      return seen(w) + cost(Cost::kernel_poll) +
             (needs_.kernels_report() ? cost(Cost::kernel_release) + cost(Cost::pcie_flight) + cost(Cost::host_poll)
                                      : 0);
    return needs_.kernels() ? std::min(by_host, cost(Cost::kernel_poll)) : by_host;
  }

  /// The shortest ways from a place, without their beginnings: until the bytes can go on, and
  /// until they are noticed, with the number of copies until then.
  struct Ways {
    std::vector<double> on{}, noticed{};
    std::vector<std::uint32_t> hops{};
  };
  Ways from(std::uint32_t place) const {
    const auto n = s_.gpus + std::size_t{1};
    Ways out{std::vector<double>(n, kNever), std::vector<double>(n, kNever), std::vector<std::uint32_t>(n)};
    std::vector<bool> done(n);
    std::vector<std::uint32_t> copies(n);
    out.on[place] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t next = n;
      for (std::size_t k = 0; k < n; ++k)
        if (!done[k] && (next == n || out.on[k] < out.on[next])) next = k;
      if (out.on[next] == kNever) break;
      done[next] = true;
      for (const auto* w : leaving_[next]) {
        const auto released = out.on[next] + copy(*w);
        if (const auto ns = released + noticed(*w); ns < out.noticed[w->to])
          out.noticed[w->to] = ns, out.hops[w->to] = copies[next] + 1;
        if (released + seen(*w) >= out.on[w->to]) continue;
        out.on[w->to] = released + seen(*w);
        copies[w->to] = copies[next] + 1;
      }
    }
    return out;
  }

  /// False if there is no way for some bytes.
  bool longest_way(LowerBound& best) {
    std::vector<std::optional<Ways>> known(s_.gpus + std::size_t{1});
    for (const auto& n : needs_.all())
      for (const auto& p : n.parts) {
        if (p.place == n.to) continue;
        auto& w = known[p.place];
        if (!w) w = from(p.place);
        const auto ns = w->noticed[n.to];
        if (ns == kNever) return false;
        const auto whole = needs_.others_move() ? 0 : start() + ns;
        if (whole > best.ns || best.hops == 0) best.ns = best.latency_ns = whole, best.hops = w->hops[n.to];
      }
    return true;
  }

  /// The most that all ways out of `in` carry together; nothing if a rate is unknown.
  std::optional<double> rate_of(const PlaceSet& in, bool out, double& latency) const {
    std::vector<std::pair<std::uint32_t, double>> crossing;  // the path that a way is counted at, and its rate
    std::vector<std::uint32_t> count(m_.topology.shared.size());
    const auto crosses = [&](const Way& w) { return out ? in[w.from] && !in[w.to] : !in[w.from] && in[w.to]; };
    for (const auto& w : ways_) {
      if (!crosses(w)) continue;
      if (!w.rate) return {};
      latency = std::min(latency, start() + copy(w) + noticed(w));
      for (const auto i : *w.shares)
        if (i < count.size()) ++count[i];
    }
    // A way is counted at the path that it shares with most others.
    double all = 0;
    std::vector<double> through(count.size());
    for (const auto& w : ways_) {
      if (!crosses(w)) continue;
      std::optional<std::uint32_t> at;
      for (const auto i : *w.shares)
        if (i < count.size() && m_.topology.shared[i].rate.known() && (!at || count[i] > count[*at])) at = i;
      if (at) through[*at] += *w.rate;
      else all += *w.rate;
    }
    for (std::size_t i = 0; i < through.size(); ++i)
      if (const auto& path = m_.topology.shared[i]; through[i] > 0)
        all += std::min(through[i], *detail::data_rate(m_, path.type, path.rate));
    return all;
  }

  void cut(const PlaceSet& in, const std::string& name, LowerBound& best) {
    const auto which = needs_.at(in);
    for (const bool out : {false, true}) {
      const auto bytes = needs_.crossing(in, out, which);
      if (bytes == 0) continue;
      auto latency = needs_.others_move() ? 0 : kNever;
      const auto rate = rate_of(in, out, latency);
      if (!rate || *rate == 0) continue;
      const auto ns = latency + static_cast<double>(bytes) / *rate;
      // A sum of rates in another order is the same rate.
      if (ns <= best.ns * (1 + 1e-9)) continue;
      best.ns = ns;
      best.latency_ns = latency;
      best.cut = (out ? "out of " : "into ") + name;
      best.bytes = bytes;
      best.rate = *rate;
    }
  }

  void nodes(LowerBound& best) {
    std::uint32_t last = 0;
    for (std::uint32_t g = 0; g < s_.gpus; ++g) last = std::max(last, m_.topology.gpus[g].node);
    for (std::uint32_t n = 0; n <= last && last > 0; ++n) {
      PlaceSet in(s_.gpus + std::size_t{1});
      for (std::uint32_t g = 0; g < s_.gpus; ++g) in[g] = m_.topology.gpus[g].node == n;
      cut(in, fmt::format("node {}", n), best);
    }
  }

  void runs(LowerBound& best) {
    const auto n = s_.gpus;
    if (n < 4 || n > kMostInRuns || std::uint64_t{n} * n * needs_.parts() > kMostWork) return;
    for (std::uint32_t length = 2; length <= n / 2; ++length)
      for (std::uint32_t first = 0; first < n; ++first) {
        PlaceSet in(n + std::size_t{1});
        for (std::uint32_t k = 0; k < length; ++k) in[(first + k) % n] = true;
        cut(in, fmt::format("gpu{} to gpu{}", first, (first + length - 1) % n), best);
      }
  }

  const Schedule& s_;
  const MachineDescription& m_;
  const detail::Needed needs_;
  const std::uint32_t host_;
  std::vector<Way> ways_{};
  std::vector<std::vector<const Way*>> leaving_{};
};

}  // namespace

std::optional<LowerBound> lower_bound(const Schedule& s, const MachineDescription& m) {
  if (s.gpus == 0 || s.gpus > m.topology.gpus.size()) return {};
  return Bounding(s, m).bound();
}

std::optional<double> times_of(const LowerBound& b, const Simulation& t) {
  if (t.rounds.size() != 1 || b.ns <= 0) return {};
  const auto times = (t.total_ns - t.rounds.front().begin_ns) / b.ns;
  // Rounding alone may make a schedule that reaches the bound faster than it.
  constexpr double kRounding = 1e-9;
  return times < 1 - kRounding ? std::nullopt : std::optional(times);
}

std::string to_text(const LowerBound& b, double times) {
  const auto why =
      b.cut.empty() ? fmt::format("latency: {} in a row", b.hops == 1 ? "one copy" : fmt::format("{} copies", b.hops))
                    : fmt::format("cut: {} {} at {:.0f} GB/s, beside {} of latency", size_text(b.bytes), b.cut, b.rate,
                                  time_text(b.latency_ns));
  return fmt::format("{} ({}): this is {:.2f} times that", time_text(b.ns), why, times);
}

}}  // namespace sdma::v0_3
