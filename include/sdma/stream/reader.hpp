// SPDX-License-Identifier: MIT
#pragma once
// Reads dwords as packets, one after another, from any source: a ring, a dump, a fuzzer.
//
//   for (Reader r{dwords}; r;) {
//     PacketView v = r.next();
//     if (!v.info) ...                    // one dword that does not begin a known packet
//     else if (v.cut_off) ...             // the span ends inside this packet: the view holds all that is left
//     else use(*v.info, v.dwords);        // a whole packet, reserved bits included
//   }
//   Reader gfx11{dwords, catalogue(Generation::v6_0)};     // packets of another generation; the default is 4.4.2
//
// The length of a packet follows from its header and count bits alone. A Reader never reads past the end of the span,
// and each call of next advances by at least one dword, so the loop ends on any input. Views refer to the span and keep
// every bit. A Reader belongs to one thread; the dwords must not change while it reads them. No errors, no allocation.
//
// Public sources give a few packets of 7.0 and 7.1 several lengths (PacketInfo::doubt). A Reader takes the first of
// these after which a packet of this generation begins, or the span ends; if there is none, the packet takes all that
// is left. Views after it are not `certain`: nothing proves that they begin with a packet, so no error follows from
// them.
#include "sdma/packets/catalogue.hpp"

namespace sdma { inline namespace v0_3 {

/// One packet, in place.
struct PacketView {
  const PacketInfo* info{};  ///< an entry of kPackets or of a catalogue; null: one dword that begins no known packet
  std::span<const std::uint32_t> dwords{};  ///< the whole packet, reserved bits included
  bool cut_off{};                           ///< the span ends inside this packet
  bool certain = true;                      ///< false: a packet before it has a length that no source settles

  /// Is it a known packet, with all of its dwords in the span?
  [[nodiscard]] constexpr bool whole() const noexcept { return info && !cut_off; }
  /// Is it a whole packet of this type?
  template <Packet P> [[nodiscard]] constexpr bool is() const noexcept {
    return whole() && sdma::is<P>(*info) && !info->foreign;
  }
};

class Reader {
 public:
  constexpr explicit Reader(std::span<const std::uint32_t> in) noexcept : in_(in) {}
  constexpr Reader(std::span<const std::uint32_t> in, const Catalogue& packets) noexcept
      : in_(in), packets_(&packets) {}
  constexpr explicit operator bool() const noexcept { return at_ < in_.size(); }
  /// How many dwords come before the next packet.
  [[nodiscard]] constexpr std::size_t position_dwords() const noexcept { return at_; }
  /// Deprecated: position_dwords().
  [[deprecated("use position_dwords()")]] constexpr std::size_t position() const noexcept { return at_; }

  /// The next packet. Requires that a dword is left: the Reader converts to true.
  constexpr PacketView next() noexcept {
    const auto rest = in_.subspan(at_);
    PacketView v{packets_ ? packets_->identify(rest) : identify(rest), rest.first(1)};
    v.certain = certain_;
    if (v.info) {
      std::size_t n = v.info->head;
      if (v.info->doubt) [[unlikely]]
        n = settle(*v.info, rest);
      else if (v.info->head <= rest.size()) n = v.info->length(rest.data());
      v.cut_off = n > rest.size();
      v.dwords = rest.first(v.cut_off ? rest.size() : n);
    }
    at_ += v.dwords.size();
    return v;
  }

 private:
  /// The length of a packet to which sources give several; more than there is if none is followed by a packet.
  constexpr std::size_t settle(const PacketInfo& info, std::span<const std::uint32_t> rest) noexcept {
    certain_ = false;
    std::size_t found = rest.size() + 1;
    if (info.head <= rest.size())
      info.each_length(rest.data(), [&](std::size_t n) {
        if (n > rest.size()) return false;
        const auto* next = n == rest.size() ? &info : packets_->identify(rest.subspan(n));
        if (next && !next->foreign) found = n;
        return found == n;
      });
    return found;
  }

  std::span<const std::uint32_t> in_;
  std::size_t at_ = 0;
  bool certain_ = true;                 // no packet of a length in doubt came before
  const Catalogue* packets_ = nullptr;  // null: those of 4.4.2
};

}}  // namespace sdma::v0_3
