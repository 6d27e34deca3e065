// SPDX-License-Identifier: MIT
// Why an engine does not proceed at a packet that it cannot execute: an unknown opcode, a header that was overwritten,
// a packet that wptr or the end of the ring cuts, an address that is not mapped.
#include "../dump/plausible.hpp"
#include "../packets/overlap.hpp"
#include "case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// A header that makes packets of dwords that otherwise begin none.
struct Lost {
  std::uint64_t position{};    ///< of the header
  std::uint32_t found{};       ///< what is there
  const PacketInfo* packet{};  ///< what was there, to judge by the dwords after it
};

class PacketExplainer {
 public:
  PacketExplainer(const Case& c, std::size_t queue)
      : c_(c), line_(c.lines[queue]), stop_(c.followed.stops[queue]), packets_(catalogue(line_.queue->generation)) {
    f_.queue = queue;
    f_.at = c.place({queue, stop_.packet});
  }

  Finding take() {
    const auto& p = line_.packets[stop_.packet];
    switch (stop_.why) {
      case StopWhy::cut_off: cut_off(p); break;
      case StopWhy::wraps: wraps(p); break;
      case StopWhy::unmapped: unmapped(p); break;
      default: no_packet(p); break;
    }
    if (ahead()) {
      say(f_, Basis::inferred,
          fmt::format("rptr {:#x} is before it: the engine will stop there, or rptr lags.", *line_.queue->rptr),
          "the packets between rptr and this one do not wait");
    }
    return std::move(f_);
  }

 private:
  static constexpr std::size_t kLongestBody = 15;  // the longest fixed packet has 16 dwords

  bool ahead() const {
    const auto first = line_.packets.begin() + static_cast<std::ptrdiff_t>(line_.head);
    const auto last = line_.packets.begin() + static_cast<std::ptrdiff_t>(std::max(line_.head, stop_.packet));
    return std::any_of(first, last, [](const Packet& p) { return !p.view.is<Nop>(); });
  }

  void cut_off(const Packet& p) {
    if (p.wraps) return wraps(p);
    f_.what = HangClass::wptr_inside_packet;
    const auto* d = p.view.dwords.data();
    const auto n = p.view.info->head <= p.view.dwords.size() ? p.view.info->length(d) : p.view.info->head;
    say(f_, Basis::seen,
        fmt::format("The packet has {} dwords, but wptr {:#x} allows the engine to read only {} of them.", n,
                    *line_.queue->wptr, p.view.dwords.size()),
        fmt::format("wptr in the {}", name(line_.queue->wptr.from)));
    say(f_, Basis::inferred, "The engine waits for the rest.", "an engine does not execute a part of a packet");
    f_.to_do = "publish whole packets: check the length of the slot, and whether wptr is counted in bytes";
  }

  void wraps(const Packet& p) {
    f_.what = HangClass::cut_by_wrap;
    f_.basis = ahead() ? Basis::guessed : Basis::inferred;
    const auto offset = p.position % line_.bytes;
    say(f_, Basis::seen,
        fmt::format("The packet begins at offset {:#x} of a ring of {:#x} bytes and ends after the ring's end.", offset,
                    line_.bytes),
        "the dwords of the ring");
    say(f_, Basis::inferred, "Whether an engine can read a packet that wraps is documented nowhere.",
        "public headers and drivers, which pad the end of a ring with NOPs");
    f_.to_do = "fill the rest of the ring with NOPs and begin the packet at its start, as Ring::reserve does";
  }

  void unmapped(const Packet& p) {
    f_.what = HangClass::fault;
    footprint(*p.view.info, p.view.dwords, [&](const Region& r) {
      if (r.bytes == 0 || (c_.range(r.va) && c_.range(r.va + (r.bytes - 1)))) return;
      say(f_, Basis::inferred,
          fmt::format("The packet {} [{:#x}, {:#x}), which is not mapped in the process.",
                      r.access == Access::read ? "reads" : "writes", r.va.value, r.va.value + r.bytes),
          "the address ranges of the process; a fault itself was not seen");
    });
    f_.to_do = "look for a VM fault in the kernel's log; map the memory for this GPU before you submit the packet";
  }

  void no_packet(const Packet& p) {
    const auto dword = p.view.dwords.front();
    if (p.view.info && p.view.info->privilege == Privilege::kernel) {
      f_.what = HangClass::unknown_opcode;
      say(f_, Basis::seen, fmt::format("The packet {} is reserved for the kernel.", p.view.info->name), "its opcode");
      f_.to_do = "remove the packet: an engine refuses it in a user queue, and does not report it";
      return;
    }
    if (p.view.info && p.view.info->foreign) {
      f_.what = HangClass::unknown_opcode;
      say(f_, Basis::seen, fmt::format("The packet is {}; this engine does not have it.", label(*p.view.info)),
          "its opcode");
      f_.to_do = "use the packets of this engine's generation (--gfx says which it is)";
      return;
    }
    if (in_a_nop()) return;
    const auto writer = overwriter();
    const auto lost = find_lost();
    if (writer || lost) {
      f_.what = HangClass::header_overwritten;
      if (lost) {
        f_.at = Place{line_.index, lost->position, fmt::format("{:#x}, which begins no packet", lost->found)};
        say(f_, Basis::inferred,
            fmt::format("The header at {:#x} was overwritten with {:#x}: the dwords after it are those of a packet {}.",
                        lost->position, lost->found, lost->packet->name),
            "with that header, they read as valid packets up to wptr");
      }
      if (writer)
        say(f_, Basis::seen, fmt::format("{} writes to this part of the ring.", c_.at(*writer)),
            "the footprints of the packets in the rings");
      f_.to_do = "find what stores to the ring: a copy past its buffer, a second producer, or memory that was freed";
      return;
    }
    f_.what = HangClass::unknown_opcode;
    say(f_, Basis::seen,
        fmt::format("The dword {:#x} begins no packet of SDMA {}.", dword, name_of(line_.queue->generation)),
        "the registry of packets");
    say(f_, Basis::inferred, "An engine stops at such a dword, and does not report it.", "rule X9");
    f_.to_do =
        "check what was submitted: data instead of packets, a packet of another generation, or a length that does not "
        "match the header";
  }

  /// The header of a packet lies in the payload of the NOP before the stop: with it, the rest reads as packets.
  bool in_a_nop() {
    if (stop_.packet == 0) return false;
    const auto& nop = line_.packets[stop_.packet - 1];
    const auto& at = line_.packets[stop_.packet];
    if (!nop.view.is<Nop>() || nop.inside != at.inside || nop.view.dwords.size() < 2) return false;
    const auto payload = nop.view.dwords.subspan(1);
    const auto* const first = at.view.dwords.data();
    std::span<const std::uint32_t> rest;
    for (const auto& d : line_.dwords)
      if (first >= d.data() && first < d.data() + d.size())
        rest = std::span(d).subspan(static_cast<std::size_t>(first - d.data()));
    for (std::size_t k = 1; k <= std::min(payload.size(), kLongestBody); ++k) {
      const auto tail = payload.last(k);
      std::vector<std::uint32_t> dwords(tail.begin(), tail.end());
      dwords.insert(dwords.end(), rest.begin(), rest.end());
      const auto v = Reader{dwords, packets_}.next();
      if (!v.info || v.is<Nop>() || v.dwords.size() <= k || !v.whole() || !is_valid(v.dwords) ||
          addresses(*v.info, v.dwords) == 0 || !reads(std::span(dwords).subspan(v.dwords.size())))
        continue;
      f_.what = HangClass::unknown_opcode;
      say(f_, Basis::inferred,
          fmt::format(
              "The NOP at {:#x} has {} dwords, and the last {} of them begin a packet: {}. The engine skips its "
              "header, and reads its rest as a packet.",
              nop.position, nop.view.dwords.size(), k, packet_text(v)),
          "without them in the NOP, everything up to wptr reads as packets");
      f_.to_do = "correct the count of the NOP: it counts the dwords after its header";
      return true;
    }
    return false;
  }

  /// A packet of any ring that writes to the dwords where this queue stopped.
  std::optional<Post> overwriter() const {
    const auto& q = *line_.queue;
    if (!q.ring_va || line_.bytes == 0) return {};
    const auto offset = line_.packets[stop_.packet].position % line_.bytes;
    const Region here{.va = *q.ring_va + offset, .bytes = 4};
    for (const auto& line : c_.lines)
      for (std::size_t i = 0; i < line.packets.size(); ++i) {
        const Post post{line.index, i};
        const auto& v = line.packets[i].view;
        if (!v.whole() || !c_.followed.executed(post)) continue;
        bool writes = false;
        footprint(*v.info, v.dwords, [&](const Region& r) {
          writes = writes || (allows(r.access, Access::write) && detail::meet(r, here));
        });
        if (writes) return post;
      }
    return {};
  }

  bool is_valid(std::span<const std::uint32_t> packet) const {
    return detail::plausibility(packet, packets_) == static_cast<std::int64_t>(packet.size());
  }
  /// Do these dwords read as packets, without one that nobody would write?
  bool reads(std::span<const std::uint32_t> dwords) const {
    for (Reader r{dwords, packets_}; r;) {
      const auto v = r.next();
      if (v.is<Nop>() ? v.cut_off : !v.whole() || !is_valid(v.dwords)) return false;
    }
    return true;
  }

  /// Looks for a header at or before the dword that begins no packet, with which all up to wptr reads as packets.
  std::optional<Lost> find_lost() const {
    const auto& all = line_.dwords;
    const auto& consumed = all.front();
    // Dwords around the stop, contiguous: the end of what was consumed, then what is pending.
    std::vector<std::uint32_t> around;
    const auto kept = std::min(kLongestBody, consumed.size());
    around.insert(around.end(), consumed.end() - static_cast<std::ptrdiff_t>(kept), consumed.end());
    const auto pending = pending_index();
    around.insert(around.end(), all[pending].begin(), all[pending].end());
    const auto begin = *line_.queue->rptr - kept * 4;
    const auto stop = static_cast<std::size_t>((line_.packets[stop_.packet].position - begin) / 4);
    if (stop >= around.size()) return {};
    const std::span<const std::uint32_t> dwords{around};
    if (dwords.size() > stop + 1 && reads(dwords.subspan(stop + 1))) return {};  // a single dword too many
    for (std::size_t back = 0; back <= std::min(stop, kLongestBody); ++back) {
      const auto at = stop - back;
      // A header before this one was read as something else: as a NOP, if it is zero.
      if (back > 0 && !is_nop(begin + at * 4)) continue;
      for (const auto& info : packets_.packets()) {
        if (info.counted || info.foreign || info.fields_unknown || info.privilege == Privilege::kernel ||
            info.fixed < 3 || info.fixed <= back || at + info.fixed > dwords.size())
          continue;
        std::vector<std::uint32_t> mended(dwords.begin() + static_cast<std::ptrdiff_t>(at), dwords.end());
        mended[0] = info.pattern.value[0];
        if (const auto v = Reader{mended, packets_}.next(); v.info != &info || !is_valid(v.dwords)) continue;
        if (addresses(info, mended) == 0) continue;
        if (!reads(std::span(mended).subspan(info.fixed))) continue;
        return Lost{begin + at * 4, dwords[at], &info};
      }
    }
    return {};
  }
  static std::size_t addresses(const PacketInfo& info, std::span<const std::uint32_t> d) {
    return static_cast<std::size_t>(std::count_if(info.fields.begin(), info.fields.end(), [&](const FieldInfo& f) {
      return f.kind == Kind::address && value_of(f, d.data()) > 0xffffffff;
    }));
  }
  bool is_nop(std::uint64_t position) const {
    return std::any_of(line_.packets.begin(), line_.packets.end(),
                       [&](const Packet& p) { return p.position == position && !p.inside && p.view.is<Nop>(); });
  }
  /// Which of the line's dwords are the pending ones: those of the ring come before and after indirect buffers.
  std::size_t pending_index() const {
    for (std::size_t i = 1; i < line_.dwords.size(); ++i)
      if (line_.head < line_.packets.size() && line_.packets[line_.head].view.dwords.data() == line_.dwords[i].data())
        return i;
    return 0;
  }

  const Case& c_;
  const Line& line_;
  const Stop& stop_;
  const Catalogue& packets_;
  Finding f_;
};

}  // namespace

std::optional<std::size_t> unexamined(const Case& c, std::size_t queue) {
  const auto& line = c.lines[queue];
  for (auto i = line.last_read(); i < std::min(c.followed.stops[queue].packet, line.packets.size()); ++i)
    if (const auto* p = line.packets[i].view.info;
        p && ((!p->typed && !p->foreign) || line.packets[i].view.is<PollReg>()))
      return i;
  return {};
}

std::string what_is_unknown(const PacketView& v) {
  if (v.is<PollReg>()) return "what the register holds for which it waits is not in the snapshot";
  if (v.info->doubt) return "no source settles its length, so neither it nor what follows it is examined";
  if (!v.info->fields_unknown) return "what it reads and writes is not examined";
  return fmt::format("it is not described for this generation ({}); whether it waits, and what it stores, is not known",
                     name_of(v.info->generation));
}

Finding explain_unexamined(const Case& c, const Post& p) {
  Finding f{.what = HangClass::unknown, .basis = Basis::guessed, .queue = p.queue, .at = c.place(p)};
  f.to_do = "examine this packet by hand; --gfx says whose packets these are, if the dump does not";
  const auto& v = c.packet(p).view;
  say(f, Basis::seen, fmt::format("Nothing else holds up the queue. Of {}: {}.", v.info->name, what_is_unknown(v)),
      "its opcode");
  return f;
}

Finding explain_unread(const Case& c, const Post& p) {
  Finding f{.what = HangClass::unknown, .basis = Basis::guessed, .queue = p.queue, .at = c.place(p)};
  if (c.packet(p).beyond) {
    f.to_do = "disassemble the buffer by itself (sdma dis FILE), and read what it waits for";
    say(f, Basis::guessed,
        fmt::format(
            "The engine may be in this indirect buffer, which is not read: of all indirect buffers of a queue, {} "
            "dwords are.",
            kMostIndirect),
        "the contents of the buffer");
    return f;
  }
  f.to_do = "give the contents of the buffer (--ib FILE@VA)";
  say(f, Basis::guessed,
      "The engine may be in this indirect buffer, whose contents the snapshot does not have: whether they wait is not "
      "known.",
      "the contents of the buffer");
  return f;
}

Finding explain_packet(const Case& c, std::size_t queue) { return PacketExplainer{c, queue}.take(); }

}}}  // namespace sdma::v0_3::doctor
