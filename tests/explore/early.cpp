// SPDX-License-Identifier: MIT
#include "early.hpp"

#include "machine.hpp"
#include "sdma/schedule/text.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace sdma::explore {
namespace {

/// A packet of a queue's stream, or an action of a host's script.
struct Site {
  bool host{};
  std::size_t agent{}, index{};
};

class EarlySearch {
 public:
  EarlySearch(const Program& p, const ExploreOptions& o) : p_(p), machine_(p), most_(o.max_states) {}

  std::vector<Site> sites(const CheckFinding::Location& at) const {
    const auto& s = *p_.schedule;
    std::vector<Site> out;
    for (std::size_t q = 0; q < p_.queues.size(); ++q)
      if (at.agent == to_string(s.queues[q].place) + "." + s.queues[q].name)
        for (std::size_t i = 0; i < p_.queues[q].packets.size(); ++i)
          if (const auto& k = p_.queues[q].packets[i]; k.dword * 4ull == at.offset && k.epoch == at.epoch)
            out.push_back({false, q, i});
    for (std::size_t h = 0; h < p_.hosts.size(); ++h)
      if (at.agent == thread_name(s, h))
        for (std::size_t i = 0; i < p_.hosts[h].actions.size(); ++i)
          if (text(p_.hosts[h].actions[i]) == at.text) out.push_back({true, h, i});
    return out;
  }

  std::optional<bool> run(std::vector<Site> waits, std::vector<Site> posts) {
    waits_ = std::move(waits);
    posts_ = std::move(posts);
    State first(machine_.words());
    machine_.reset(first.data());
    begin(first, 0);
    while (!open_.empty() && !found_) {
      if (seen_.size() > most_) return {};
      const auto s = std::move(open_.back());
      open_.pop_back();
      expand(s);
    }
    return found_;
  }

 private:
  using State = std::vector<std::uint64_t>;

  std::string text(const Action& a) const {
    using What = Schedule::Action::Kind;
    if (a.kind != Action::Kind::wait && a.kind != Action::Kind::set) return {};
    return to_text(*p_.schedule, {.kind = a.kind == Action::Kind::wait ? What::wait : What::set,
                                  .signal = GpuVa{p_.cells[a.word.first].va},
                                  .func = a.func,
                                  .value = a.value});
  }

  /// Every first state: unknown cells hold one of their candidates.
  void begin(State& s, std::size_t cell) {
    while (cell < p_.cells.size() && !p_.cells[cell].unknown) ++cell;
    if (cell == p_.cells.size()) return add(s);
    for (const auto v : p_.cells[cell].candidates) {
      s[cell] = v;
      begin(s, cell + 1);
    }
  }
  void add(const State& s) {
    const std::string_view bytes(reinterpret_cast<const char*>(s.data()), s.size() * sizeof s[0]);
    if (seen_.insert(std::hash<std::string_view>{}(bytes)).second) open_.push_back(s);
  }

  void expand(const State& s) {
    machine_.steps(s.data(), [&](const Step& step) {
      found_ = found_ || (passes(s, step) && !std::ranges::all_of(posts_, [&](const Site& p) { return landed(s, p); }));
      auto next = s;
      if (machine_.apply(next.data(), step).kind == Violation::Kind::none) add(next);
    });
  }
  bool passes(const State& s, const Step& step) const {
    return step.kind == Step::Kind::pass && std::ranges::any_of(waits_, [&](const Site& w) {
             return w.host == step.host && w.agent == step.agent &&
                    w.index == (w.host ? machine_.position(s.data(), w.agent) : step.index);
           });
  }
  bool landed(const State& s, const Site& p) const {
    if (p.host) return machine_.position(s.data(), p.agent) > p.index;
    const auto& k = p_.queues[p.agent].packets[p.index];
    bool moves = false;
    each_bit(machine_.moving(s.data()) & p_.queues[p.agent].moves,
             [&](std::size_t m) { moves = moves || (m >= k.later && m < std::size_t{k.later} + k.laters); });
    const bool open = machine_.open(s.data(), p.agent) >> p.index & 1;
    return machine_.next(s.data(), p.agent) > p.index && !moves && !(k.kind == Packet::Kind::release && open);
  }

  const Program& p_;
  Machine machine_;
  std::size_t most_;
  std::vector<Site> waits_, posts_;
  std::vector<State> open_;
  std::unordered_set<std::size_t> seen_;
  bool found_ = false;
};

}  // namespace

std::optional<bool> passes_early(const Schedule& s, const CheckFinding& f, const ExploreOptions& o) {
  const auto p = compile(s, o.profile);
  if (!p.unsupported.empty() || f.locations.size() < 2) return {};
  EarlySearch search{p, o};
  auto waits = search.sites(f.locations.back()), posts = search.sites(f.locations[f.locations.size() - 2]);
  if (waits.empty() || posts.empty()) return {};
  return search.run(std::move(waits), std::move(posts));
}

}  // namespace sdma::explore
