// SPDX-License-Identifier: MIT
// Rings of the driver that a log of the same file calls timed out.
#include "case.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// The line of the file of a queue that says that the driver gave up on a ring. The name of a ring of the driver is
/// that of its file and its own.
const LogEvent* timeout_in_file_of(const Case& c, std::size_t q) {
  const auto& name = c.name(q);
  const auto blank = name.rfind(' ');
  if (blank == name.npos) return nullptr;
  const auto file = name.substr(0, blank);
  for (const auto& e : c.snapshot.events)
    if (e.from == file && !e.ring.empty() &&
        (e.said.find("Ring Name: ") != e.said.npos || e.said.find(" timeout, signaled seq") != e.said.npos))
      return &e;
  return nullptr;
}
bool is_its_ring(const Case& c, std::size_t q, const LogEvent& e) {
  return c.name(q) == fmt::format("{} {}", e.from, e.ring);
}
std::string quoted(const LogEvent& e) { return fmt::format("{}: \"{}\"", e.from, e.said); }

}  // namespace

void add_timeout(const Case& c, std::size_t q, std::optional<Finding>& found) {
  const auto* const e = timeout_in_file_of(c, q);
  if (!e || !is_its_ring(c, q, *e)) return;
  const auto& line = c.lines[q];
  const auto basis = line.pending() ? Basis::seen : Basis::guessed;  // it may have been late
  if (!found) {
    found.emplace();
    found->queue = q;
    if (line.head < line.packets.size()) found->at = c.place({q, line.head});
    found->basis = Basis::guessed;
    found->to_do = "look in the kernel's log for what came before: a page fault, an error of memory or of a link";
  }
  auto& f = *found;
  if (f.basis == Basis::guessed) f.what = HangClass::unknown, f.basis = basis;
  const bool first = line.queue->rptr && *line.queue->rptr == 0;
  f.statements.insert(f.statements.begin(),
                      {fmt::format("Ring {} of the driver timed out{}.", e->ring, first ? " at its first packet" : ""),
                       Basis::seen, quoted(*e)});
}

bool explain_timeout_beside(const Case& c, std::size_t q, std::optional<Finding>& found) {
  const auto* const e = timeout_in_file_of(c, q);
  if (!e || is_its_ring(c, q, *e)) return e != nullptr;
  auto& f = found.emplace();
  f.basis = Basis::guessed;
  f.queue = q;
  if (const auto at = c.lines[q].head; at < c.lines[q].packets.size()) f.at = c.place({q, at});
  say(f, Basis::guessed,
      fmt::format("Ring {} timed out, and this one may have been executing its packet when the dump was made.",
                  e->ring),
      quoted(*e));
  f.to_do = fmt::format("find out why ring {} timed out", e->ring);
  return true;
}

}}}  // namespace sdma::v0_3::doctor
