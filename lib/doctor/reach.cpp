// SPDX-License-Identifier: MIT
// Whether the packets that are pending can satisfy a wait, in whatever order their engines execute them.
#include "case.hpp"
#include "sdma/packets/sync.hpp"

#include <set>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// Tries the orders of the packets that store to the word, of which each may be left out: an engine may not get there,
/// and a condition may skip it. So it finds at least what is possible.
class Reach {
 public:
  Reach(const Case& c, const Wait& w, std::optional<Post> self)
      : c_(c), w_(w), begin_(c.followed.at_first.part(w.va.value / 8 * 8, 8)) {
    Wait whole = w;
    whole.va = GpuVa{w.va.value / 8 * 8};
    whole.bytes = 8;
    for (const auto& p : posts_of(c, whole)) {
      // What was executed has landed, and what the waiting queue stores later comes too late.
      const bool executed = p.packet < c.followed.starts[p.queue];
      if (executed || (self && p.queue == self->queue && p.packet >= self->packet)) continue;
      if (streams_.empty() || streams_.back().front().queue != p.queue) streams_.emplace_back();
      streams_.back().push_back(p);
      ++posts_;
    }
  }

  bool run() {
    constexpr std::size_t kMostPosts = 64, kMostStates = 1024;
    if (posts_ > kMostPosts) return true;
    for (const auto& h : c_.snapshot.posts)
      if (!h.happened && h.signal.value / 8 == w_.va.value / 8) return true;
    open_.push_back({begin_, std::vector<std::size_t>(streams_.size())});
    while (!open_.empty()) {
      const auto now = std::move(open_.back());
      open_.pop_back();
      if (w_.met(now.memory).value_or(true) || seen_.size() > kMostStates) return true;
      for (std::size_t s = 0; s < streams_.size(); ++s)
        for (auto i = now.next[s]; i < streams_[s].size(); ++i) add(now, s, i);
    }
    return false;
  }

 private:
  struct State {
    Memory memory;
    std::vector<std::size_t> next;  ///< of each stream
  };
  void add(const State& now, std::size_t s, std::size_t i) {
    auto after = now;
    const auto& v = c_.packet(streams_[s][i]).view;
    if (v.is<Atomic>() && wait_of(v)) {  // something else may let it through
      const auto a = decode<Atomic>(v.dwords, *v.info);
      after.memory.store(a.addr.value, a.value, width(a.op));
    } else {
      after.memory.post(v, after.memory.touches(v));
    }
    after.next[s] = i + 1;
    const auto at = begin_at();
    if (seen_.insert({after.next, {after.memory.dword(at), after.memory.dword(at + 4)}}).second)
      open_.push_back(std::move(after));
  }
  std::uint64_t begin_at() const noexcept { return w_.va.value / 8 * 8; }

  const Case& c_;
  const Wait& w_;
  const Memory begin_;
  std::vector<std::vector<Post>> streams_{};  ///< the packets that store to the word, by queue
  std::size_t posts_ = 0;
  std::vector<State> open_{};
  std::set<std::pair<std::vector<std::size_t>, std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>>>
      seen_{};
};

}  // namespace

bool may_be_satisfied(const Case& c, const Wait& w, std::optional<Post> self) { return Reach{c, w, self}.run(); }

}}}  // namespace sdma::v0_3::doctor
