// SPDX-License-Identifier: MIT
// A completion that satisfies a wait, and that went to a word for which nothing waits.
#include "../engine/execute.hpp"
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

#include <set>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

bool is_mailbox(const Line& line, std::size_t i) {
  const auto fence = line.packets[i].view;
  if (i + 1 >= line.packets.size() || !fence.is<Fence>()) return false;
  const auto& next = line.packets[i + 1].view;
  return next.is<Trap>() &&
         decode<Trap>(next.dwords, *next.info).context == decode<Fence>(fence.dwords, *fence.info).value;
}

}  // namespace

bool explain_other_word(const Case& c, const Wait& w, Finding& f) {
  const auto held = c.followed.now.word(w.va.value, w.bytes);
  if (w.bytes != 4 && w.bytes != 8) return false;
  std::set<std::uint64_t> waited;
  for (const auto& line : c.lines)
    for (const auto& p : line.packets)
      if (const auto own = wait_of(p.view)) waited.insert(own->va.value);
  for (const auto& h : c.snapshot.waits) waited.insert(h.signal.value);
  const auto* mine = c.range(w.va);
  struct Candidate {
    Post post;
    GpuVa va;
    std::string why, rests_on;
  };
  std::vector<Candidate> found;
  std::size_t pages = 0;
  for (const auto& line : c.lines)
    for (std::size_t i = 0; i < line.packets.size(); ++i) {
      const Post p{line.index, i};
      const auto& v = c.packet(p).view;
      std::optional<std::uint64_t> value;
      GpuVa va{};
      if (v.is<Fence>()) {
        const auto fence = decode<Fence>(v.dwords, *v.info);
        va = fence.addr, value = fence.value;
      } else if (v.is<Atomic>()) {
        const auto a = decode<Atomic>(v.dwords, *v.info);
        va = a.addr;
        if (a.op == AtomicOp::write_64) value = a.value;
        else if (held) value = apply(a.op, *held, a.value, a.compare);
      }
      if (!value || waited.contains(va.value) || va == w.va || !w.met(*value) || !c.followed.executed(p)) continue;
      if (is_mailbox(line, i)) continue;
      const auto* theirs = c.range(va);
      if (!theirs && c.snapshot.ranges_complete) {
        found.push_back({p, va, "which is not mapped in this process", "the address ranges of the process"});
      } else if (mine && theirs && mine != theirs && mine->bytes > 8 && va - theirs->va == w.va - mine->va) {
        // In a range of one word, every offset is the same.
        found.push_back({p, va,
                         fmt::format("which is in {}, at the same offset as the word in {}", theirs->name, mine->name),
                         "the address ranges of the process"});
      } else if ((va.value - w.va.value) % 4096 == 0 && v.is<Fence>() && *value == w.reference) {
        // The addresses alone are weak evidence: the value has to be exactly the one that is waited for.
        found.push_back({p, va, "which is a whole number of pages away from the word", "the addresses and the value"});
        ++pages;
      }
    }
  if (found.empty() || (pages == found.size() && pages > 1)) return false;
  const auto& best = found.front();
  f.what = HangClass::wrong_word;
  say(f, Basis::inferred,
      fmt::format("{} stored a value that would satisfy the wait, but to {}, {}. No packet waits for that word.",
                  c.at(best.post), word_text(c, best.va), best.why),
      best.rests_on);
  if (c.range(best.va) || !c.snapshot.ranges_complete) {
    f.basis = Basis::guessed;
    say(f, Basis::guessed, "Or it is the completion of something else, which a host thread reads.",
        "what the program uses that word for");
  }
  f.to_do = "give the packet the address of the word that is waited for: that of this process, and of this GPU";
  return true;
}

}}}  // namespace sdma::v0_3::doctor
