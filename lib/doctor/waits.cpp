// SPDX-License-Identifier: MIT
// Which packets store to the word of a wait, which of them would satisfy it, and what a wait of a queue means.
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

bool is_condition(const Wait& w) noexcept { return w.bytes == 4; }
Condition condition_of(const Wait& w) noexcept {
  return {w.func, static_cast<std::uint32_t>(w.reference), static_cast<std::uint32_t>(w.mask)};
}

bool has_low_bits(const Wait& w) noexcept { return w.va.value % w.bytes != 0; }
Wait without_low_bits(Wait w) noexcept {
  w.va = GpuVa{w.va.value / w.bytes * w.bytes};
  return w;
}
/// Says that the address is that of no word. Returns whether the word at its other bits satisfies the wait.
bool misses_the_word(const Case& c, const Wait& w, Finding& f) {
  const auto at = without_low_bits(w).va;
  std::uint64_t value = 0;
  const bool known =
      read_memory(c.snapshot, at, std::as_writable_bytes(std::span(&value, 1)).first(w.bytes)) == Errc::ok;
  say(f, Basis::seen,
      fmt::format(
          "The address {:#x} is not a multiple of {}: its low bits select no word, and what an engine does with "
          "them is documented nowhere.",
          w.va.value, w.bytes),
      "the packet");
  if (!known || !w.met(value)) return false;
  f.what = HangClass::wrong_word;
  f.basis = c.watched() ? Basis::inferred : Basis::guessed;
  say(f, Basis::seen,
      fmt::format("The word {} holds {}, which satisfies the wait.", word_text(c, at), number_text(value)), "memory");
  f.to_do = fmt::format("wait for {:#x}", at.value);
  return true;
}

/// What becomes of the word of a wait, if packets are executed that store to it.
class Helpers {
 public:
  Helpers(const Case& c, const Wait& w, std::optional<Post> self)
      : c_(c), w_(w), self_(self), now_(c.followed.now.part(w.va.value / 8 * 8, 8)) {
    for (const auto& p : posts_of(c, w))
      if (c.followed.pending(p) && p != self) {
        if (queues_.empty() || queues_.back().front().queue != p.queue) queues_.emplace_back();
        queues_.back().push_back(p);
      }
  }

  std::vector<Post> take() {
    for (std::size_t by = 0; by < queues_.size(); ++by) {
      for (const auto& p : queues_[by]) {
        // What comes before it may be skipped.
        auto alone = now_;
        if (!execute(alone, p)) continue;
        if (w_.met(alone).value_or(true) && !comes_after(p)) out_.push_back(p);
      }
      if (out_.empty() || out_.back().queue != queues_[by].front().queue) together(by);
    }
    return std::move(out_);
  }

 private:
  /// The packets of a queue one after the other, and then those of the others: several additions may reach the value.
  void together(std::size_t by) {
    auto m = now_;
    std::vector<Post> adds;
    for (const auto& p : queues_[by]) {
      if (execute(m, p) && adds_to(p)) adds.push_back(p);
      if (w_.met(m).value_or(false) && !comes_after(p)) return out_.push_back(p);
    }
    // What the waiting queue has to add itself comes too late.
    if (adds.empty() || (self_ && queues_[by].front().queue == self_->queue)) return;
    for (std::size_t other = 0; other < queues_.size(); ++other) {
      if (other == by || (self_ && queues_[other].front().queue == self_->queue)) continue;
      for (const auto& p : queues_[other]) {
        execute(m, p);
        if (w_.met(m).value_or(false)) return void(out_.insert(out_.end(), adds.begin(), adds.end()));
      }
    }
  }
  /// Returns whether the word changes, or may do so. An atomic that waits replaces its word once it has the value.
  bool execute(Memory& m, const Post& p) const {
    const auto before = m.word(w_.va.value, w_.bytes);
    const auto& v = c_.packet(p).view;
    if (v.is<Atomic>() && wait_of(v)) {
      const auto a = decode<Atomic>(v.dwords, *v.info);
      m.store(a.addr.value, a.value, width(a.op));
    } else {
      m.post(v, m.touches(v));
    }
    const auto after = m.word(w_.va.value, w_.bytes);
    return !before || !after || *before != *after;
  }
  /// An atomic that waits for what satisfies this wait comes after what satisfies it.
  bool comes_after(const Post& p) const {
    const auto& v = c_.packet(p).view;
    const auto own = v.is<Atomic>() ? wait_of(v) : std::nullopt;
    return own && own->va == w_.va && own->bytes == w_.bytes && w_.met(own->reference);
  }
  bool adds_to(const Post& p) const {
    const auto& v = c_.packet(p).view;
    return (v.is<Atomic>() && !wait_of(v)) || v.is<Semaphore>() || v.is<MemIncr>();
  }

  const Case& c_;
  const Wait& w_;
  const std::optional<Post> self_;
  const Memory now_;
  std::vector<std::vector<Post>> queues_{};  ///< the packets that store to the word, by queue
  std::vector<Post> out_{};
};

}  // namespace

std::vector<Post> posts_of(const Case& c, const Wait& w) {
  std::vector<Post> out;
  for (auto at = w.va.value; at < w.va.value + w.bytes; at += 4) {
    const auto found = c.followed.posts.find(at);
    if (found == c.followed.posts.end()) continue;
    std::vector<Post> all;
    std::set_union(out.begin(), out.end(), found->second.begin(), found->second.end(), std::back_inserter(all));
    out = std::move(all);
  }
  return out;
}

std::vector<Post> helpers_of(const Case& c, const Wait& w, std::optional<Post> self) {
  return Helpers{c, w, self}.take();
}

bool is_settled(const Case& c, const Post& condition) {
  const auto& v = c.packet(condition).view;
  return c.followed.holds_now(v) && !c.followed.posts.contains(decode<CondExec>(v.dwords, *v.info).addr.value);
}

void doubt_order(const Case& c, const Wait& w, std::optional<Post> self, Finding& f) {
  if (f.what == HangClass::beyond_mask) return;
  if (f.release.by != Release::By::packet && !may_be_satisfied(c, w, self)) return;
  for (const auto& p : posts_of(c, w)) {
    const bool skipped = c.followed.skipped[p.queue][p.packet];
    if (c.packet(p).consumed || (!skipped && !c.followed.executed(p))) continue;
    say(f, Basis::guessed,
        fmt::format("{} {}: in another order, the wait may see another value.", c.at(p),
                    skipped ? "is skipped, if its condition stays false" : "is yet to be executed"),
        "the order of packets in different queues");
    f.basis = Basis::guessed;
    return;
  }
}

Finding explain_wait(const Case& c, std::size_t queue, const std::vector<Post>& helpers) {
  const auto stop = c.followed.stops[queue];
  const Post here{queue, stop.packet};
  const auto w = *wait_of(c.packet(here).view);
  Finding f{.queue = queue, .at = c.place(here)};
  const auto value = c.followed.now.word(w.va.value, w.bytes);
  f.word = WordSeen{.va = w.va,
                    .name = c.range_name(w.va),
                    .func = w.func,
                    .reference = w.reference,
                    .mask = static_cast<std::uint32_t>(w.mask),
                    .value = value};
  if (!value)
    say(f, Basis::seen, fmt::format("The word {} could not be read.", word_text(c, w.va)),
        "memory; without its value, another packet may be the one that waits");
  const bool misses = has_low_bits(w) && misses_the_word(c, w, f);
  if (is_condition(w) && !can_hold(condition_of(w))) {
    f.what = HangClass::beyond_mask;
    f.basis = Basis::seen;
    f.release.by = Release::By::nobody;
    say(f, Basis::seen,
        fmt::format("No value can satisfy the condition: (value & {:#x}) {} {:#x}.", f.word->mask, compare_text(w.func),
                    w.reference),
        "the packet");
    f.to_do = "correct the mask or the reference";
    return f;
  }
  if (misses) return f;
  if (!helpers.empty()) {
    f.release = {Release::By::packet, c.place(helpers.front())};
    return f;
  }
  explain_unmet(c, has_low_bits(w) ? without_low_bits(w) : w, queue, f);
  if (w.finite) {
    f.what = HangClass::poll_expired;
    f.release = {};
    say(f, Basis::inferred,
        "The poll has a finite number of retries and gives up; user space is not notified, and whether the queue "
        "continues "
        "is not known.",
        "rule Q9");
    f.to_do = "let polls retry forever (retry=forever), and put the deadline on the host's wait";
  }
  if (!value) f.basis = Basis::guessed;
  return f;
}

}}}  // namespace sdma::v0_3::doctor
