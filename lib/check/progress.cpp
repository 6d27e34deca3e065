// SPDX-License-Identifier: MIT
// Follows one execution to its end: every agent that can proceed does, and a poll is satisfied as soon as its word
// allows.
#include "values.hpp"

#include <deque>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Execution {
 public:
  explicit Execution(Model& m) : m_(m), cursors_(m.agents.size()), states_(m.agents.size(), State::ready), values_(m) {
    waiting_.resize(m.words.size());
    published_.resize(m.queue_count());
    for (std::uint32_t a = m.queue_count(); a < m.agents.size(); ++a) ready_.push_back(a);
    for (std::uint32_t q = 0; q < m.queue_count(); ++q) ready_.push_back(q);
  }

  void run() {
    do {
      while (!ready_.empty()) {
        const auto a = ready_.front();
        ready_.pop_front();
        go(a);
      }
    } while (assume());
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a)
      if (cursors_[a] < m_.agents[a].steps.size()) m_.stuck.push_back({a, cursors_[a]});
  }

 private:
  enum class State : std::uint8_t { ready, polling, unpublished };

  void happen(std::uint32_t a, Step& s) {
    s.time = time_++;
    if (s.kind == Step::Kind::begin || s.kind == Step::Kind::poll) m_.acquires.push_back({a, cursors_[a]});
  }
  /// Records that the agent has executed everything up to `until`.
  void note(std::uint32_t a, std::uint32_t until) {
    if (!m_.runs.empty() && m_.runs.back().agent == a) m_.runs.back().until = until;
    else m_.runs.push_back({a, until});
  }

  void go(std::uint32_t a) {
    auto& agent = m_.agents[a];
    auto& at = cursors_[a];
    for (; at < agent.steps.size(); ++at) {
      auto& s = agent.steps[at];
      if (s.sample != kNone) s.value += agent.steps[std::exchange(s.sample, kNone)].value;
      if (agent.kind != Agent::Kind::queue && s.sync && s.sync->bytes == 4 && s.kind != Step::Kind::sample)
        s.too_wide = s.value > ~std::uint32_t{};
      switch (s.kind) {
        case Step::Kind::begin:
          if (s.target != kNone && published_[a] < s.epoch) return stop(a, s, State::unpublished);
          break;
        case Step::Kind::poll:
          if (s.time == kNone && !s.assumed_satisfied && !values_.met(s)) {
            waiting_[s.sync->word].push_back(a);
            return stop(a, s, State::polling);
          }
          break;
        case Step::Kind::submit:
          ++published_[s.target];
          if (states_[s.target] == State::unpublished) wake(s.target);
          break;
        case Step::Kind::sample: s.value = values_.now(s); break;
        case Step::Kind::post:
        case Step::Kind::flag:
        case Step::Kind::read:
        case Step::Kind::life:
        case Step::Kind::touch: break;
      }
      if (s.time == kNone) happen(a, s);
      if (s.posts()) post(a, s);
    }
    if (at == 0) return;
    note(a, agent.kind == Agent::Kind::queue ? agent.submits * static_cast<std::uint32_t>(m_.programs[a].items.size())
                                             : agent.steps.back().position);
  }
  void stop(std::uint32_t a, const Step& s, State why) {
    states_[a] = why;
    if (const auto until = s.kind == Step::Kind::begin ? s.position : s.position - 1; until > 0) note(a, until);
  }
  void wake(std::uint32_t a) {
    states_[a] = State::ready;
    ready_.push_back(a);
  }

  void post(std::uint32_t a, Step& s) {
    const auto w = s.sync->word;
    s.left = values_.post(s);
    auto& waiting = waiting_[w];
    if (waiting.empty()) return;
    // Everything that the posting agent did before comes before everything that the satisfied polls release.
    note(a, s.position);
    for (std::size_t i = 0; i < waiting.size();) {
      const auto other = waiting[i];
      auto& poll = m_.agents[other].steps[cursors_[other]];
      if (!values_.met(poll)) {
        ++i;
        continue;
      }
      happen(other, poll);
      waiting[i] = waiting.back();
      waiting.pop_back();
      wake(other);
    }
  }

  /// Assumes that a poll is satisfied if it is not known when it will be. Does so for one poll at a time, after
  /// everything else has been tried.
  bool assume() {
    for (std::uint32_t a = 0; a < m_.agents.size(); ++a) {
      if (states_[a] != State::polling || cursors_[a] >= m_.agents[a].steps.size()) continue;
      auto& s = m_.agents[a].steps[cursors_[a]];
      const auto& w = m_.words[s.sync->word];
      const bool unknown = m_.open ? !helped(s, w) : !values_.known(s.sync->word);
      if (!(s.sync->finite || w.unmodelled || w.copied || unknown)) continue;
      s.assumed_satisfied = true;
      std::erase(waiting_[s.sync->word], a);
      wake(a);
      return true;
    }
    return false;
  }
  /// Is a post still outstanding that would help to satisfy this poll?
  bool helped(const Step& poll, const Word& w) const {
    for (const auto& c : w.chains)
      for (auto i = c.steps.rbegin(); i != c.steps.rend(); ++i) {
        const auto& post = m_.agents[c.agent].steps[*i];
        if (post.time != kNone) break;
        if (contributes(poll, w, post)) return true;
      }
    return false;
  }

  Model& m_;
  std::vector<std::uint32_t> cursors_;
  std::vector<State> states_;
  std::vector<std::uint32_t> published_;
  Values values_;
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::deque<std::uint32_t> ready_;
  std::uint32_t time_ = 0;
};

}  // namespace

void execute(Model& m) { Execution{m}.run(); }

}}}  // namespace sdma::v0_3::check_detail
