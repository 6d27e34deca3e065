// SPDX-License-Identifier: MIT
// A packet that would satisfy a wait, and that the count of a NOP covers.
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// A NOP up to the end of the ring, over what an earlier lap has left there.
bool pads_the_end(const Line& line, const Packet& p) {
  return !p.inside && line.bytes != 0 && (p.position + p.view.dwords.size() * 4) % line.bytes == 0;
}

}  // namespace

bool explain_covered(const Case& c, const Wait& w, Finding& f) {
  for (const auto& line : c.lines)
    for (std::size_t i = 0; i < line.packets.size(); ++i) {
      const auto& p = line.packets[i];
      if (!p.view.is<Nop>() || p.view.dwords.size() < 5 || pads_the_end(line, p)) continue;
      const auto payload = p.view.dwords.subspan(1);
      for (std::size_t k = 0; k < payload.size(); ++k) {
        const auto v = Reader{payload.subspan(k), catalogue(line.queue->generation)}.next();
        if (!v.is<Fence>() || !v.whole()) continue;
        const auto fence = decode<Fence>(v.dwords, *v.info);
        if (fence.addr != w.va || !w.met(fence.value)) continue;
        // From the second lap on, a payload that nobody has written holds what was there before.
        const bool first_lap = !line.queue->positions_wrap && line.queue->wptr && *line.queue->wptr <= line.bytes;
        if (!first_lap) f.basis = Basis::guessed;
        f.release.by = Release::By::nobody;
        say(f, first_lap ? Basis::inferred : Basis::guessed,
            fmt::format(
                "The NOP of {} at {:#x} has {} dwords, and covers {:#x}: {}. It would satisfy the wait, and the "
                "engine skips it.",
                c.name(line.index), p.position, p.view.dwords.size(), p.position + (p.inside ? 0 : 4 * (k + 1)),
                packet_text(v)),
            first_lap ? "the count of the NOP" : "the count of the NOP; or an earlier lap has left that packet there");
        f.to_do = "correct the count of the NOP: it counts the dwords after its header";
        return true;
      }
    }
  return false;
}

}}}  // namespace sdma::v0_3::doctor
