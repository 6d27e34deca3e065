// SPDX-License-Identifier: MIT
// What is still pending when the last host thread or kernel has ended: stores that nothing has waited for, and signals
// that a queue may still poll or store to.
#include "edits.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class PendingAtEnd {
 public:
  PendingAtEnd(const Model& m, Reporter& r) : m_(m), r_(r), end_(m.width(), 0) {}

  void run() {
    for (std::uint32_t a = m_.queue_count(); a < m_.agents.size(); ++a) {
      const auto& agent = m_.agents[a];
      if (agent.kind == Agent::Kind::queue || agent.steps.empty()) continue;
      const auto* row = m_.row(agent.steps.back().row);
      for (std::size_t i = 0; i < end_.size(); ++i) end_[i] = std::max(end_[i], row[i]);
    }
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      if (!report_data(q)) report_signals(q);
  }

 private:
  bool report_data(std::uint32_t q) {
    const auto last = m_.agents[q].submits * static_cast<std::uint32_t>(m_.programs[q].items.size());
    for (auto p = m_.profile.fence_covers_writes ? end_[q] + 1 : 1; p <= last; ++p) {
      const auto& item = *m_.item_at(q, p);
      const bool data = item.what == What::copy || item.what == What::write || item.what == What::stamp;
      if (!data || m_.landed(end_.data(), end_[q], q, p)) continue;
      // A flag that has been seen has landed.
      if (item.what == What::write && item.flag() && m_.landed(end_.data(), q, *m_.post_at(q, p))) continue;
      report(q, p);
      return true;
    }
    return false;
  }

  void report(std::uint32_t q, std::uint32_t p) {
    const Position here{q, p};
    Finding f{.rule = "unawaited",
              .places = {here},
              .hint = "end " + r_.agent(q) + " with a fence or an atomic, and let the host wait for it",
              .rests_on = {"Q3"}};
    const auto* next = m_.next_post(q, p);
    const auto* previous = m_.previous_post(q, p);
    const auto data = r_.place(here);
    if (next) {
      f.places.push_back({q, next->position});
      f.message = "nothing waits for " + r_.place({q, next->position}) + ", which announces " + data;
      const auto& w = m_.words[next->sync->word];
      f.hint = "let the host wait for it: " + wait_for(m_, r_, w).value_or("wait " + r_.word(w) + " == VALUE");
      if (const auto less = short_count()) f.hint = *less + ", or " + f.hint;
    } else if (previous) {
      f.rule = "early-completion";
      f.places.insert(f.places.begin(), {q, previous->position});
      f.message = r_.place({q, previous->position}) + " comes before " + data + " and does not announce it";
      f.hint = "move the fence or atomic after the last packet that it announces";
    } else if (host_waits()) {
      f.rule = "foreign-completion";
      f.message = "no signal of the same queue announces " + data + ": the host waits for a signal of another queue";
      f.rests_on = {"X5", "Q3"};
    } else {
      f.message = "nothing announces that " + data + " is complete";
    }
    r_.add(std::move(f));
  }
  /// A hint about a host's last wait for a counter, if posts to the counter are still outstanding when the wait is
  /// satisfied.
  std::optional<std::string> short_count() const {
    for (std::uint32_t a = m_.queue_count(); a < m_.agents.size(); ++a) {
      const auto& steps = m_.agents[a].steps;
      const auto last =
          std::find_if(steps.rbegin(), steps.rend(), [](const Step& s) { return s.kind == Step::Kind::poll; });
      if (m_.agents[a].kind != Agent::Kind::host || last == steps.rend()) continue;
      const auto& w = m_.words[last->sync->word];
      const auto all = last_count(w);
      if (!w.adds || !all || last->value == *all) continue;
      return r_.place({a, last->position}) + " waits for " + std::to_string(last->value) + ", but " + r_.word(w) +
             " ends at " + std::to_string(*all) + ": wait for " + std::to_string(*all);
    }
    return {};
  }
  bool host_waits() const {
    return std::any_of(
        m_.agents.begin() + static_cast<std::ptrdiff_t>(m_.queue_count()), m_.agents.end(), [](const Agent& a) {
          return std::any_of(a.steps.begin(), a.steps.end(), [](const Step& s) { return s.kind == Step::Kind::poll; });
        });
  }

  void report_signals(std::uint32_t q) {
    for (const auto& s : m_.agents[q].steps) {
      if (!s.sync || s.kind == Step::Kind::read || (s.posts() ? m_.landed(end_.data(), q, s) : s.position <= end_[q]))
        continue;
      const bool poll = s.kind == Step::Kind::poll;
      r_.add({.rule = "freed-while-polled",
              .places = {{q, s.position}},
              .message = r_.agent(q) + " may still " + (poll ? "poll " : "store to ") +
                         r_.word(m_.words[s.sync->word]) +
                         " after the last host thread has ended and the signal is freed",
              .hint = "let the host wait for a later fence or atomic",
              .rests_on = {"E4"}});
      return;
    }
  }

  const Model& m_;
  Reporter& r_;
  std::vector<std::uint32_t> end_;
};

}  // namespace

void find_unawaited(const Model& m, Reporter& r) {
  // A thread that is stuck has no end.
  const bool ends = std::none_of(m.stuck.begin(), m.stuck.end(),
                                 [&](const auto& s) { return m.agents[s.agent].kind != Agent::Kind::queue; });
  if (ends && !m.truncated && detail::submits_queues(m.schedule)) PendingAtEnd{m, r}.run();
}

}}}  // namespace sdma::v0_3::check_detail
