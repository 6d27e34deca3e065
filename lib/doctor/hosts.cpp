// SPDX-License-Identifier: MIT
// Host threads that wait for words: a lost wake-up, a trap without its mailbox, a completion that does not come.
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

class HostExplainer {
 public:
  HostExplainer(const Case& c, std::vector<Finding>& out) : c_(c), out_(out) {}

  void run(const HostWait& h) {
    const auto w = wait_of(h);
    std::uint64_t now = 0;
    const bool read =
        read_memory(c_.snapshot, h.signal, std::as_writable_bytes(std::span(&now, 1)).first(h.bytes)) == Errc::ok;
    Finding f{.word = WordSeen{.va = h.signal,
                               .name = c_.range_name(h.signal),
                               .func = h.func,
                               .reference = h.reference,
                               .mask = ~0u,
                               .value = read ? std::optional(now) : std::nullopt}};
    if (!read) {
      f.what = HangClass::unknown;
      say(f, Basis::seen, fmt::format("{} waits for {}, which could not be read.", h.name, word_text(c_, h.signal)),
          "memory");
      f.to_do = "give the value of the word";
      out_.push_back(std::move(f));
      return;
    }
    if (w.met(now)) return arrived(h, std::move(f));
    if (const auto end = w.met(c_.followed.now); end && *end) return;  // queues that make progress will satisfy it
    say(f, Basis::seen, fmt::format("{} waits for {}.", h.name, condition(h, now)),
        fmt::format("the {}", h.asleep ? name(h.asleep.from) : "snapshot"));
    if (const auto helpers = helpers_of(c_, w); !helpers.empty()) {
      if (std::any_of(helpers.begin(), helpers.end(), [&](const Post& p) { return c_.moved(p.queue); })) return;
      f.what = HangClass::follows;
      f.release = {Release::By::packet, c_.place(helpers.front())};
      say(f, Basis::inferred, fmt::format("{} would satisfy it, and is not executed.", c_.at(helpers.front())),
          "the rings");
      f.to_do = fmt::format("find out why {} makes no progress", c_.name(helpers.front().queue));
    } else {
      explain_unmet(c_, w, std::nullopt, f);
      doubt(c_, f);
      if (f.what == HangClass::never_written) unpublished(f);
    }
    doubt_order(c_, w, {}, f);
    for (std::size_t q = 0; q < c_.lines.size(); ++q)
      if (c_.moved(q) && f.basis != Basis::guessed) {
        say(f, Basis::guessed, fmt::format("{} moves: what it still stores may satisfy the wait.", c_.name(q)),
            "the packets that come later");
        f.basis = Basis::guessed;
      }
    out_.push_back(std::move(f));
  }

 private:
  std::string condition(const HostWait& h, std::uint64_t now) const {
    return fmt::format("{} {} {}, and the word holds {}", word_text(c_, h.signal), compare_text(h.func),
                       number_text(h.reference), number_text(now));
  }

  /// The value is there, but the thread still waits.
  void arrived(const HostWait& h, Finding f) {
    if (!h.asleep || !*h.asleep) return;
    say(f, Basis::seen, fmt::format("{} waits for {}: the wait is satisfied.", h.name, condition(h, now_of(f))),
        fmt::format("memory, and the {}", name(h.asleep.from)));
    std::optional<Post> post;
    if (const auto found = c_.followed.posts.find(h.signal.value); found != c_.followed.posts.end())
      for (const auto& p : found->second)
        if (c_.packet(p).consumed) post = p;
    bool traps = false;
    std::optional<std::size_t> trap;
    if (post) trap = trap_without_mailbox(c_.lines[post->queue], post->packet, traps);
    if (trap) {
      const Post at{post->queue, *trap};
      f.what = HangClass::no_mailbox;
      f.queue = at.queue;
      f.at = c_.place(at);
      say(f, Basis::seen,
          fmt::format("{} interrupts the host, but no fence before it fills the mailbox of the event.", c_.at(at)),
          "the rings");
      say(f, Basis::inferred, "The kernel ignores an interrupt whose mailbox is not filled.", "rule Q11");
      f.to_do = "put a fence with the event's id to the event's mailbox before the TRAP (sdma::interrupt does both)";
    } else {
      f.what = HangClass::lost_wakeup;
      say(f, Basis::inferred,
          !post   ? "No packet in the rings stored the value, so a host thread or an overwritten packet did."
          : traps ? "The packets interrupt the host after the completion, so the interrupt came before the thread "
                    "slept, or was "
                    "lost."
                  : fmt::format("{} stored the value, and no TRAP follows it: nothing wakes the thread.", c_.at(*post)),
          "the rings");
      f.to_do =
          "check the word after the thread is registered as a waiter and before it sleeps; interrupt the host after "
          "the "
          "completion; let the sleep end at a deadline";
    }
    out_.push_back(std::move(f));
  }
  static std::uint64_t now_of(const Finding& f) { return f.word->value.value_or(0); }

  /// A slot that was reserved and not published holds back all later ones.
  void unpublished(Finding& f) const {
    for (const auto& q : c_.snapshot.queues) {
      if (!q.reserved || !q.committed || *q.reserved <= *q.committed || !q.rptr || *q.rptr != *q.committed) continue;
      f.what = HangClass::unpublished;
      f.release.by = Release::By::unknown;
      f.queue = static_cast<std::size_t>(&q - c_.snapshot.queues.data());
      say(f, Basis::seen,
          fmt::format("{} has executed everything, but {:#x} bytes are reserved and not published.", q.name,
                      *q.reserved - *q.committed),
          fmt::format("the {}", name(q.reserved.from)));
      f.to_do = "publish the slot, or give it back with publish(slot, 0)";
      return;
    }
  }

  const Case& c_;
  std::vector<Finding>& out_;
};

}  // namespace

std::optional<std::size_t> trap_without_mailbox(const Line& line, std::size_t after, bool& traps) {
  for (std::size_t i = after + 1; i < line.packets.size() && line.packets[i].consumed; ++i) {
    const auto& v = line.packets[i].view;
    if (!v.is<Trap>()) continue;
    traps = true;
    const auto context = decode<Trap>(v.dwords, *v.info).context;
    const auto begin = line.packets.begin();
    const bool filled = std::any_of(
        begin + static_cast<std::ptrdiff_t>(after) + 1, begin + static_cast<std::ptrdiff_t>(i), [&](const Packet& p) {
          return p.view.is<Fence>() && decode<Fence>(p.view.dwords, *p.view.info).value == context;
        });
    return filled ? std::nullopt : std::optional(i);
  }
  return {};
}

void explain_hosts(const Case& c, std::vector<Finding>& out) {
  HostExplainer all{c, out};
  for (const auto& h : c.snapshot.waits) all.run(h);
}

}}}  // namespace sdma::v0_3::doctor
