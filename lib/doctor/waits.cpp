// SPDX-License-Identifier: MIT
// Which packets store to the word of a wait, which of them would satisfy it, and what a wait of a queue means.
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma::inline v0::doctor {
namespace {

bool is_condition(const Wait& w) noexcept { return w.bytes == 4; }
Condition condition_of(const Wait& w) noexcept {
  return {w.func, static_cast<std::uint32_t>(w.reference), static_cast<std::uint32_t>(w.mask)};
}

/// The dword at `va` after an atomic that waits: it replaces its word once it has the value.
std::uint32_t part_of(const Atomic& a, std::uint64_t va) noexcept {
  return static_cast<std::uint32_t>(a.value >> (8 * (va - a.addr.value)));
}

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
  const auto& now = c.followed.now;
  const auto value = now.word(w.va.value, w.bytes);
  std::vector<Post> out, adds;
  std::uint64_t sum = 0;
  bool reached = false;
  for (const auto& p : posts_of(c, w)) {
    if (!c.followed.pending(p) || p == self) continue;
    const auto& v = c.packet(p).view;
    const auto own = v.is<Atomic>() ? wait_of(v) : std::nullopt;
    // An atomic that waits for what satisfies this wait comes after what satisfies it.
    if (own && own->va == w.va && own->bytes == w.bytes && w.met(own->reference)) continue;
    const bool is_wait = own.has_value();
    bool changes = false, known = true;
    std::uint64_t then = 0;
    for (std::uint32_t i = 0; i < w.bytes; i += 4) {
      const auto at = w.va.value + i;
      const auto before = now.dword(at);
      const auto touched = now.touches(v);
      const bool stores = std::find(touched.begin(), touched.end(), at) != touched.end();
      const auto after = !stores ? before : is_wait ? part_of(decode<Atomic>(v.dwords, *v.info), at) : now.after(v, at);
      changes = changes || !after || !before || *after != *before;
      known = known && after;
      then |= std::uint64_t{after.value_or(0)} << (8 * i);
    }
    if (!changes) continue;
    if (!known || w.met(then)) {
      out.push_back(p);
    } else if ((v.is<Atomic>() && !is_wait) || v.is<Semaphore>() || v.is<MemIncr>()) {
      // Several additions together may reach the value.
      adds.push_back(p);
      sum += then - value.value_or(0);
      reached = reached ||
                w.met(w.bytes == 4 ? static_cast<std::uint32_t>(value.value_or(0) + sum) : value.value_or(0) + sum);
    }
  }
  if (reached) {
    out.insert(out.end(), adds.begin(), adds.end());
    std::sort(out.begin(), out.end());
  }
  return out;
}

bool is_settled(const Case& c, const Post& condition) {
  const auto& v = c.packet(condition).view;
  return c.followed.holds_now(v) && !c.followed.posts.contains(decode<CondExec>(v.dwords, *v.info).addr.value);
}

void doubt_order(const Case& c, const Wait& w, Finding& f) {
  if (f.what == HangClass::beyond_mask) return;
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
  if (!helpers.empty()) {
    f.release = {Release::By::packet, c.place(helpers.front())};
    return f;
  }
  explain_unmet(c, w, queue, f);
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

}  // namespace sdma::inline v0::doctor
