// SPDX-License-Identifier: MIT
#include "explore.hpp"

#include "reduce.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>

#include <cstring>

namespace sdma::explore {
namespace {

/// Hashes of states. Clearing it costs nothing.
class Visited {
 public:
  void clear() noexcept {
    used_ = 0;
    if (++round_ != 0) return;
    std::fill(rounds_.begin(), rounds_.end(), 0u);
    round_ = 1;
  }
  /// True if it is new.
  bool insert(std::uint64_t h) {
    if (used_ * 2 >= keys_.size()) grow();
    for (auto i = h & (keys_.size() - 1);; i = (i + 1) & (keys_.size() - 1)) {
      if (rounds_[i] != round_) {
        rounds_[i] = round_;
        keys_[i] = h;
        ++used_;
        return true;
      }
      if (keys_[i] == h) return false;
    }
  }

 private:
  void grow() {
    std::vector<std::uint64_t> old;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (rounds_[i] == round_) old.push_back(keys_[i]);
    keys_.assign(std::max<std::size_t>(1024, keys_.size() * 2), 0);
    rounds_.assign(keys_.size(), 0);
    round_ = 1;
    used_ = 0;
    for (const auto h : old) insert(h);
  }
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> rounds_;
  std::uint32_t round_ = 1;
  std::size_t used_ = 0;
};

std::uint64_t hash(const std::uint64_t* s, std::size_t n) noexcept {
  std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  for (std::size_t i = 0; i < n; ++i) {
    a = (a ^ s[i]) * 0x9fb21c651e98df25;
    b += a ^ a >> 29;
    a ^= a >> 32;
  }
  return a ^ b * 0xff51afd7ed558ccd;
}

class Search {
 public:
  Search(const Program& p, const ExploreOptions& o) : p_(p), o_(o), machine_(p), reduction_(machine_) {}

  Outcome run() {
    // The first state is a frame of its own, so that unknown values are tried one after another.
    grow(0);
    machine_.reset(at(0));
    unknown(0);
    return std::move(out_);
  }

 private:
  std::uint64_t* at(std::size_t depth) { return states_.data() + depth * machine_.words(); }
  void grow(std::size_t depth) {
    if (states_.size() < (depth + 2) * machine_.words()) states_.resize((depth + 64) * machine_.words());
    if (choices_.size() < depth + 2) choices_.resize(depth + 64);
  }

  void unknown(std::size_t cell) {
    for (; cell < p_.cells.size(); ++cell)
      if (p_.cells[cell].unknown) break;
    if (out_.broken()) return;
    if (cell < p_.cells.size()) {
      for (const auto v : p_.cells[cell].candidates) {
        at(0)[cell] = v;
        unknown(cell + 1);
        if (out_.broken() || !out_.complete) return;
      }
      return;
    }
    if (out_.states >= o_.max_states) {
      out_.complete = false;
      return;
    }
    visited().clear();
    ends_ = 0;
    grow(1);
    std::memcpy(at(1), at(0), machine_.words() * sizeof(std::uint64_t));
    path_.clear();
    if (const auto v = machine_.present(at(1)); v.kind != Violation::Kind::none) return violated(v);
    visit(1);
  }
  static Visited& visited() {
    thread_local Visited v;
    return v;
  }

  void visit(std::size_t depth) {
    if (!visited().insert(hash(at(depth), machine_.words()))) return;
    if (++out_.states > o_.max_states) {
      out_.complete = false;
      return;
    }
    if (machine_.ended(at(depth))) return end(at(depth));
    grow(depth + 1);
    if (o_.reduce && !p_.has_kernels && !p_.has_network && p_.lives.all.empty())
      reduction_.choose(at(depth), choices_[depth]);
    else {
      choices_[depth].clear();
      machine_.steps(at(depth), [&](const Step& step) { choices_[depth].push_back(step); });
    }
    if (choices_[depth].empty()) return stuck(at(depth));
    for (std::size_t i = 0; i < choices_[depth].size(); ++i) {
      grow(depth + 1);
      std::memcpy(at(depth + 1), at(depth), machine_.words() * sizeof(std::uint64_t));
      const auto step = choices_[depth][i];
      path_.push_back(step);
      if (const auto* e = expected(at(depth), step); e && !holds(*e, at(depth)))
        return fail(Ending::unmet,
                    [&] { return action(step.agent, machine_.position(at(depth), step.agent)) + " does not hold"; });
      const auto v = machine_.apply(at(depth + 1), step);
      if (v.kind != Violation::Kind::none) violated(v);
      else visit(depth + 1);
      if (out_.broken() || !out_.complete) return;
      path_.pop_back();
    }
  }

  void end(Machine::Const s) {
    const auto left = machine_.pending(s);
    if (left.data) {
      fail(Ending::incomplete,
           [&] { return packet(left.queue, left.packet) + " has not completed when the last host ends"; });
      return;
    }
    out_.posts_pending = out_.posts_pending || left.posts;
    for (std::size_t q = 0; q < p_.queues.size(); ++q) {
      const auto at = machine_.next(s, q);
      if (at == machine_.published(s, q)) continue;
      const auto& k = p_.queues[q].packets[at];
      if (k.kind == Packet::Kind::poll && !machine_.satisfied(s, k)) out_.polls_pending = true;
    }
    if (out_.last.empty()) out_.last.assign(s, s + p_.cells.size());
    for (const auto& e : p_.expectations)
      if (!machine_.has(s, e.lives))
        return fail(Ending::gone,
                    [&] { return to_text(*p_.schedule, *e.expectation) + " is about memory that is gone"; });
    for (const auto& e : p_.expectations)
      if (!holds(e, s))
        return fail(Ending::unmet, [&] { return to_text(*p_.schedule, *e.expectation) + " does not hold"; });
    if (ends_++ == 0) {
      first_.assign(s, s + p_.cells.size());
      if (o_.trace) first_path_ = path_;
      return;
    }
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      if (first_[c] == s[c]) continue;
      if (!p_.cells[c].buffer) {
        out_.signals_differ = true;
        continue;
      }
      fail(Ending::different, [&] {
        return fmt::format("{} ends as {:#x} in this execution, and as {:#x} in the second one below",
                           name_of(*p_.schedule, GpuVa{p_.cells[c].va}), s[c], first_[c]);
      });
      if (o_.trace) out_.text += "the second execution:\n" + text(first_path_);
      return;
    }
  }

  /// Does an expectation hold at this end? The state at depth 0 has the first contents.
  bool holds(const Expected& e, Machine::Const s) {
    if (e.expectation && e.expectation->kind == Schedule::Expectation::Kind::value)
      return machine_.read(s, e.left) ==
             (e.left.bytes == 4 ? static_cast<std::uint32_t>(e.expectation->value) : e.expectation->value);
    const auto* right = e.old ? at(0) : s;
    for (std::size_t i = 0; i < e.left.cells; ++i) {
      const auto part = [&](const Word& p) { return right[p.first + i]; };
      auto wanted = part(e.parts.empty() ? e.right : e.parts.front());
      for (std::size_t n = 1; n < e.parts.size(); ++n)
        wanted = plus(e.type, static_cast<std::uint32_t>(wanted), static_cast<std::uint32_t>(part(e.parts[n])));
      if (s[e.left.first + i] != wanted) return false;
    }
    return true;
  }

  /// What has to hold when a thread takes this step; null if nothing has to.
  const Expected* expected(Machine::Const s, const Step& step) const {
    const auto* a = step.host ? &p_.hosts[step.agent].actions[machine_.position(s, step.agent)] : nullptr;
    return a && a->kind == Action::Kind::access && a->expected >= 0
               ? &p_.now_expected[static_cast<std::size_t>(a->expected)]
               : nullptr;
  }

  void stuck(Machine::Const s) {
    for (std::size_t q = 0; q < p_.queues.size(); ++q) out_.held = out_.held || machine_.holds_engine(s, q);
    fail(Ending::stuck, [&] {
      std::string who;
      for (std::size_t h = 0; h < p_.hosts.size(); ++h)
        if (machine_.position(s, h) < p_.hosts[h].actions.size())
          who += fmt::format("{} stays at {}; ", host(h), action(h, machine_.position(s, h)));
      for (std::size_t q = 0; q < p_.queues.size(); ++q)
        if (machine_.next(s, q) < machine_.published(s, q))
          who += fmt::format("{}{}; ", packet(q, machine_.next(s, q)),
                             machine_.holds_engine(s, q) ? " waits and holds its engine" : " waits");
      return who;
    });
  }

  void violated(const Violation& v) {
    if (v.kind == Violation::Kind::undefined) fail(Ending::undefined, [&] { return place(v.at) + " is undefined"; });
    else if (v.kind == Violation::Kind::gone)
      fail(Ending::gone, [&] { return place(v.at) + ": the memory is not there, or it is still in use"; });
    else if (v.kind == Violation::Kind::stale)
      fail(Ending::race, [&] { return place(v.at) + " may read old contents from an L2"; });
    else fail(Ending::race, [&] { return place(v.at) + " starts while " + place(v.other) + " may be in flight"; });
  }
  std::string place(Violation::Place p) const {
    return p.host ? host(p.agent) + ": " + action(p.agent, p.index) : packet(p.agent, p.index);
  }
  std::string host(std::size_t h) const { return thread_name(*p_.schedule, h); }

  template <class Fn> void fail(Ending v, Fn&& why) {
    out_.verdict = v;
    if (o_.trace) out_.text = std::string(why()) + "\n" + text(path_);
  }

  std::string packet(std::size_t q, std::size_t i) const {
    const auto& queue = p_.schedule->queues[q];
    const auto& k = p_.queues[q].packets[i];
    return fmt::format("{}.{} epoch {}: {}", to_string(queue.place), queue.name, k.epoch,
                       to_text(*p_.schedule, queue, k.dword));
  }
  std::string action(std::size_t h, std::size_t i) const {
    if (i == p_.hosts[h].actions.size()) return "its end";
    const auto& a = p_.hosts[h].actions[i];
    if (a.kind == Action::Kind::life) return "allocates, frees, maps or exports";
    if (a.kind == Action::Kind::accessed) return "has accessed these bytes";
    if (a.kind == Action::Kind::access) {
      std::string cells;
      for (std::size_t c = 0; c < p_.cells.size(); ++c)
        if (((a.data_read | a.data_write) >> c & 1) != 0)
          cells += (a.data_write >> c & 1 ? " stores " : " loads ") + name_of(*p_.schedule, GpuVa{p_.cells[c].va});
      return "accesses:" + cells;
    }
    if (a.kind == Action::Kind::submit) return fmt::format("submit {}", p_.schedule->queues[a.queue].name);
    if (a.kind == Action::Kind::rptr) return fmt::format("wait {}.rptr", p_.schedule->queues[a.queue].name);
    const auto word = name_of(*p_.schedule, GpuVa{p_.cells[a.word.first].va});
    const auto* scope = a.agent_scope ? " scope=agent" : "";
    if (a.kind == Action::Kind::sample) return fmt::format("sample {}{}", word, scope);
    return fmt::format("{} {} {} {}{}{}", a.kind == Action::Kind::wait ? "wait" : "set", word,
                       a.kind == Action::Kind::set   ? "="
                       : a.kind == Action::Kind::add ? "+="
                                                     : to_string_of(a.func),
                       a.sample < 0 ? "" : "sample + ", static_cast<std::int64_t>(a.value), scope);
  }
  static const char* to_string_of(Compare f) {
    constexpr const char* kSigns[] = {"?", "<", "<=", "==", "!=", ">=", ">"};
    return kSigns[static_cast<std::size_t>(f)];
  }

  /// An execution, as one line per step: replays it to know where each host and front end was.
  std::string text(const std::vector<Step>& path) {
    constexpr const char* kNames[] = {"passes", "executes", "skips", "holds its engine at", "lands", "loads", "stores"};
    std::string out;
    std::vector<std::uint64_t> s(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(machine_.words()));
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].unknown)
        out += fmt::format("  {} holds {:#x} at first\n", name_of(*p_.schedule, GpuVa{p_.cells[c].va}), s[c]);
    for (const auto& step : path) {
      if (step.host) {
        out += fmt::format("  {}: {}\n", host(step.agent), action(step.agent, machine_.position(s.data(), step.agent)));
      } else {
        const bool move = step.kind >= Step::Kind::load;
        out += fmt::format("  {} {}\n", kNames[static_cast<std::size_t>(step.kind)],
                           packet(step.agent, move ? p_.later[step.index].packet : step.index));
      }
      machine_.apply(s.data(), step);
    }
    return out;
  }

  const Program& p_;
  ExploreOptions o_;
  Machine machine_;
  Reduction reduction_;
  Outcome out_;
  std::vector<std::uint64_t> states_, first_;
  std::vector<std::vector<Step>> choices_;
  std::vector<Step> path_, first_path_;
  std::size_t ends_ = 0;
};

}  // namespace

const char* name(Ending v) noexcept {
  constexpr const char* kNames[] = {"clean",      "stuck",     "race", "different",  "unmet",
                                    "incomplete", "undefined", "gone", "unsupported"};
  return kNames[static_cast<std::size_t>(v)];
}

Outcome explore(const Schedule& s, const ExploreOptions& o) {
  const auto p = compile(s, o.profile);
  if (!p.unsupported.empty()) return {.verdict = Ending::unsupported, .text = p.unsupported};
  if (!p.refused.empty()) return {.verdict = Ending::undefined, .text = p.refused};
  return Search{p, o}.run();
}

}  // namespace sdma::explore
