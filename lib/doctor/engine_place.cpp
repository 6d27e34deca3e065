// SPDX-License-Identifier: MIT
// Where an engine may be: rptr says what was read, and not what was executed.
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// How many fences store the same to the same word, or atomics perhaps.
std::size_t fences(const Case& c, const Fence& f) {
  std::size_t n = 0;
  for (const auto& line : c.lines)
    for (const auto& p : line.packets)
      if (p.view.is<Fence>()) {
        const auto other = decode<Fence>(p.view.dwords, *p.view.info);
        n += other.addr == f.addr && other.value == f.value;
      } else if (p.view.is<Atomic>()) {
        n += decode<Atomic>(p.view.dwords, *p.view.info).addr.value / 8 == f.addr.value / 8;
      }
  return n;
}

/// A fence after packet `i`, which rptr has passed too, has left its value in memory, and no other packet stores it.
bool has_posted_after(const Case& c, std::size_t q, std::size_t i) {
  const auto& packets = c.lines[q].packets;
  for (auto k = i + 1; k < c.lines[q].head; ++k) {
    if (!packets[k].view.is<Fence>()) continue;
    const auto fence = decode<Fence>(packets[k].view.dwords, *packets[k].view.info);
    std::uint32_t value = 0;
    if (fence.value != 0 &&
        read_memory(c.snapshot, fence.addr, std::as_writable_bytes(std::span(&value, 1))) == Errc::ok &&
        value == fence.value && fences(c, fence) == 1)
      return true;
  }
  return false;
}

/// It seems to be over: an atomic that waited replaces the value for which it waited; or a packet that was executed
/// had stored the value, and the word has changed since.
bool was_met(const Case& c, std::size_t q, std::size_t i, const Wait& w) {
  const auto& view = c.lines[q].packets[i].view;
  if (view.is<Atomic>() && c.followed.now.word(w.va.value, w.bytes) == decode<Atomic>(view.dwords, *view.info).value)
    return true;
  const auto found = c.followed.posts.find(w.va.value);
  return found != c.followed.posts.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Post& p) {
           if (!c.packet(p).consumed || c.followed.skipped[p.queue][p.packet]) return false;
           const auto v = c.followed.now.after(c.packet(p).view, w.va.value);
           return v && w.met(*v);
         });
}

}  // namespace

std::optional<Wait> may_wait(const Case& c, std::size_t q, std::size_t i) {
  const auto w = wait_of(c.lines[q].packets[i].view);
  return !w || w->met(c.followed.now).value_or(false) || has_posted_after(c, q, i) ? std::nullopt : w;
}

std::optional<std::size_t> poll_before(const Case& c, std::size_t q) {
  const auto& line = c.lines[q];
  if (!line.placed || c.moved(q)) return {};
  for (auto i = line.last_read(); i < line.head; ++i) {
    const auto w = c.followed.skipped[q][i] ? std::nullopt : may_wait(c, q, i);
    // At one moment, a queue that has work is taken to be past a wait that was satisfied once.
    if (!w || (line.pending() && (!w->met(c.followed.now) || (!c.watched() && was_met(c, q, i, *w))))) continue;
    return i;
  }
  return {};
}

std::size_t end_of_next(const Case& c, std::size_t q) {
  const auto& packets = c.lines[q].packets;
  auto i = c.lines[q].head;
  while (i < packets.size() && packets[i].view.is<Nop>()) ++i;
  i += i < packets.size();
  while (i < packets.size() && packets[i].inside) ++i;
  return i;
}

bool waits_at_rptr(const Case& c, std::size_t q) {
  const auto& line = c.lines[q];
  for (auto i = line.head; i < line.packets.size(); ++i) {
    if (line.packets[i].view.is<Nop>() || c.followed.skipped[q][i]) continue;
    if (line.packets[i].view.is<CondExec>()) continue;
    // The engine may be anywhere in a buffer.
    for (auto k = i; k < line.packets.size() && (k == i || line.packets[k].inside); ++k)
      if (const auto w = wait_of(line.packets[k].view); w && !w->met(c.followed.now).value_or(false)) return true;
    return false;
  }
  return false;
}

}}}  // namespace sdma::v0_3::doctor
