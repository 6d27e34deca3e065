// SPDX-License-Identifier: MIT
#include "ring_text.hpp"

#include "core/plural.hpp"
#include "sdma/stream/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace sdma::tool {
namespace {

/// How many packets before rptr are shown: rptr may already be past a poll that waits.
constexpr std::size_t kBefore = 4;

bool is_nop(const PacketView& v) noexcept { return v.is<Nop>(); }

struct Counts {
  std::size_t packets = 0, nops = 0, unknown = 0;

  void add(const PacketView& v) noexcept {
    if (!v.info) ++unknown;
    else if (is_nop(v)) ++nops;
    else ++packets;
  }
};
Counts count(const RingPart& part, Generation g) {
  Counts c;
  each_packet(part, g, [&](const PacketView& v) { c.add(v); });
  return c;
}
std::string in_words(const Counts& c) {
  auto text = plural(c.packets, "packet");
  if (c.nops > 0) text += fmt::format(" and {}", plural(c.nops, "nop"));
  if (c.unknown > 0) text += fmt::format(", {} that begin no packet", plural(c.unknown, "dword"));
  return text;
}

class Printer {
 public:
  explicit Printer(const RingTextOptions& o) : o_(o) {}

  void packets(const RingPart& part) {
    auto options = o_.text;
    options.base += part.at;
    Disassembler d{options};
    auto gap = part.gaps.begin();
    each_packet(part, o_.text.generation, [&](const PacketView& v) {
      if (gap != part.gaps.end() && v.dwords.data() == part.dwords.data() + gap->at) {
        d.end(out_);
        mark(describe(part, *gap++, o_.text.base));
      }
      d.append(out_, v);
      if (!v.is<Indirect>()) return;
      d.end(out_);
      indirect(decode<Indirect>(v.dwords));
    });
    d.end(out_);
  }
  void comments(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      out_ += "#   " + std::string(text.substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
  }
  void mark(std::string text) { out_ += "# " + std::move(text) + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  void indirect(const Indirect& p) {
    for (const auto& b : o_.buffers) {
      const auto bytes = std::uint64_t{b.dwords.size()} * 4;
      if (p.base.value < b.va || p.base.value - b.va >= bytes) continue;
      const auto from = static_cast<std::size_t>((p.base.value - b.va) / 4);
      const auto there = std::span(b.dwords).subspan(from);
      const auto n = std::min<std::size_t>(there.size(), p.dwords);
      mark(fmt::format("ib {:#x}, {} of {}{}:", p.base.value, plural(n, "dword"), b.file,
                       n < p.dwords ? fmt::format("; {} are not in the file", plural(p.dwords - n, "dword")) : ""));
      comments(disassemble(there.first(n), {.generation = o_.text.generation}));
      return;
    }
    if (!o_.buffers.empty()) mark(fmt::format("ib {:#x} is not in a file of --ib", p.base.value));
  }

  const RingTextOptions& o_;
  std::string out_;
};

/// "" of a part without positions.
std::string_view name_of(RingPartKind k) noexcept {
  switch (k) {
    case RingPartKind::consumed: return "consumed";
    case RingPartKind::pending: return "pending";
    case RingPartKind::after: return "after";
    case RingPartKind::stale: return "stale";
    case RingPartKind::whole: break;
  }
  return {};
}

/// The members of a packet's object that the part adds to it.
std::string members_of(const RingPart& part, const PacketView& v, std::uint64_t base) {
  std::string out;
  const auto at = static_cast<std::size_t>(v.dwords.data() - part.dwords.data());
  for (const auto& g : part.gaps)
    if (g.at == at)
      out += fmt::format(R"(,"gap":{{"dwords":{},"why":"{}","next":{},"guess":"{}"}})", g.dwords, g.why,
                         base + part.at + (g.at + g.dwords) * 4, g.rests_on);
  const auto name = name_of(part.kind);
  if (name.empty()) return out;
  out += fmt::format(R"(,"part":"{}")", name);
  if (at == 0 && (part.kind == RingPartKind::pending || part.kind == RingPartKind::after)) out += R"(,"at_rptr":true)";
  return out;
}

}  // namespace

bool is_shown(const RingPart& p, const RingTextOptions& o) noexcept { return o.consumed || !p.is_old(); }

std::string ring_text(const PlacedRing& ring, const RingPositions& at, const RingTextOptions& o) {
  Printer print{o};
  const auto position = [&](std::uint64_t p) { return fmt::format("{:#x}", p + o.text.base); };
  bool pending = false;
  for (const auto& part : ring.parts) {
    const auto counted = [&] { return count(part, o.text.generation); };
    switch (part.kind) {
      case RingPartKind::whole: print.packets(part); break;
      case RingPartKind::consumed: {
        if (o.consumed) {
          print.mark(fmt::format("consumed, the oldest first: {}", in_words(counted())));
          print.packets(part);
          break;
        }
        std::deque<PacketView> last;
        Counts all;
        each_packet(part, o.text.generation, [&](const PacketView& v) {
          all.add(v);
          if (is_nop(v) || !v.info) return;
          last.push_back(v);
          if (last.size() > kBefore) last.pop_front();
        });
        if (last.empty()) break;
        print.mark(fmt::format("consumed before rptr: {}{}:", in_words(all),
                               last.size() < all.packets ? fmt::format("; the last {}", last.size()) : ""));
        for (const auto& v : last) print.comments(to_text(v));
        break;
      }
      case RingPartKind::pending:
        pending = true;
        print.mark(fmt::format("rptr {}: the engine stands here; this packet hangs, or is next", position(*at.rptr)));
        print.packets(part);
        print.mark(fmt::format("wptr {}: {} pending", position(*at.wptr), in_words(counted())));
        break;
      case RingPartKind::after:
        print.mark(fmt::format("rptr {}: the engine stands here; wptr is not known, so what follows may be old",
                               position(*at.rptr)));
        print.packets(part);
        break;
      case RingPartKind::stale:
        if (!o.consumed) break;
        print.mark(fmt::format("after wptr, old or never written: {}", in_words(counted())));
        print.packets(part);
        break;
    }
  }
  if (at.rptr && at.wptr && !pending)
    print.mark(fmt::format("rptr and wptr are {}: nothing is pending", position(*at.rptr)));
  return print.take();
}

std::string ring_json(const PlacedRing& ring, const RingTextOptions& o) {
  std::string out;
  for (const auto& part : ring.parts) {
    if (!is_shown(part, o)) continue;
    auto offset = part.at + o.text.base;
    each_packet(part, o.text.generation, [&](const PacketView& v) {
      append_json(out, v, offset, members_of(part, v, o.text.base));
      out += '\n';
      offset += v.dwords.size() * 4;
    });
  }
  return out;
}

}  // namespace sdma::tool
