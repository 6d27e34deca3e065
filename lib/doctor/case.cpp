// SPDX-License-Identifier: MIT
#include "case.hpp"

#include "sdma/stream/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::inline v0::doctor {

Place Case::place(const Post& p) const {
  const auto& packet = this->packet(p);
  return {.queue = p.queue, .position = packet.position, .packet = packet_text(packet.view)};
}

std::string Case::at(const Post& p) const {
  const auto& packet = this->packet(p);
  return fmt::format("{} at {:#x} ({}{})", name(p.queue), packet.position, packet_text(packet.view),
                     packet.inside ? ", in an indirect buffer" : "");
}

const Range* Case::range(GpuVa va) const {
  for (const auto& r : snapshot.ranges)
    if (va - r.va < r.bytes) return &r;
  return nullptr;
}

std::string Case::range_name(GpuVa va) const {
  const auto* r = range(va);
  return r ? r->name : std::string();
}

bool Case::same_engine(std::size_t a, std::size_t b) const {
  const auto &x = snapshot.queues[a], &y = snapshot.queues[b];
  return a != b && x.gpu && y.gpu && x.engine && y.engine && *x.gpu == *y.gpu && *x.engine == *y.engine;
}

void say(Finding& f, Basis basis, std::string text, std::string rests_on) {
  f.statements.push_back({std::move(text), basis, std::move(rests_on)});
}

void doubt(const Case& c, Finding& f) {
  if (f.what == HangClass::beyond_mask) return;
  const bool incomplete =
      std::any_of(c.lines.begin(), c.lines.end(), [](const Line& l) { return l.incomplete || l.unread_buffer(); });
  if (incomplete)
    say(f, Basis::guessed, "A packet that the snapshot does not have may satisfy the wait.",
        "the snapshot: packets are missing");
  if (c.snapshot.others_run)
    say(f, Basis::guessed, "A queue that was not examined may be executing a kernel, and may satisfy the wait.",
        "the first pending packet of each such queue; once it waits or is complete, the reason is certain");
  if (incomplete || c.snapshot.others_run) f.basis = Basis::guessed;
}

std::string packet_text(const PacketView& v) {
  constexpr std::size_t kLongest = 160;
  std::string s;
  if (v.info && !v.whole()) s = fmt::format("{}, cut off after {} dwords", v.info->name, v.dwords.size());
  else if (!v.info) s = fmt::format("{:#x}, which begins no packet", v.dwords.front());
  else s = to_text(v);
  if (const auto comment = s.find("  #"); comment != s.npos) s.erase(comment);
  if (s.size() > kLongest) s.replace(kLongest, s.npos, "..");
  return s;
}

std::string word_text(const Case& c, GpuVa va) {
  const auto name = c.range_name(va);
  return name.empty() ? fmt::format("{:#x}", va.value) : fmt::format("{:#x} ({})", va.value, name);
}

}  // namespace sdma::inline v0::doctor
