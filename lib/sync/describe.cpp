// SPDX-License-Identifier: MIT
#include "sdma/sync/describe.hpp"

#include "phrases.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/text.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace sdma { inline namespace v0_3 {

std::string detail::number_text(std::uint64_t v) { return v < 4096 ? fmt::format("{}", v) : fmt::format("{:#x}", v); }

std::string detail::compare_text(Compare f) {
  for (const auto& n : grammar::names<Compare>)
    if (n.value == static_cast<std::uint32_t>(f)) return std::string(n.text);
  return fmt::format("func {}", static_cast<unsigned>(f));
}

namespace {

using detail::number_text;

constexpr std::size_t kPollDwords = grammar::layout<PollMem>.length.fixed;
constexpr std::string_view kNoPacketHint =
    "an engine stops at such a dword and does not report it; a packet may have been written past its slot, or data may "
    "have been submitted as packets";
constexpr std::string_view kPrivilegedHint = "an engine refuses it in a user queue and does not report it";
constexpr std::size_t kIndirectSearched = 1024;  // how many dwords of an indirect buffer are searched for polls

/// One line, even for a packet that the report cuts off.
std::string line(const PacketView& v) {
  if (!v.info || v.whole()) return to_text(v);
  if (v.dwords.size() < v.info->head)
    return fmt::format("{} of at least {} dwords, {} available", v.info->name, v.info->head, v.dwords.size());
  return fmt::format("{} of {} dwords, {} available", v.info->name, v.info->length(v.dwords.data()), v.dwords.size());
}

/// What a packet does to a queue that has reached it.
enum class AtPacket {
  passes,   ///< it does not wait
  holds,    ///< it waits for a condition that is true now
  waits,    ///< it waits for a condition that is false now
  unknown,  ///< it may wait: memory was not read, or cannot tell
};

struct Reached {
  PacketView packet{};
  std::uint64_t position{};
  AtPacket verdict = AtPacket::passes;
  std::string value_text{};  ///< printed in parentheses after the packet
};

class Explainer {
 public:
  Explainer(const StallReport& r, const Peek& peek, const NameOf& name)
      : r_(r), peek_(peek), name_(name), packets_(catalogue(r.generation)) {}

  std::string text() {
    if (r_.signals == 0) return "waited for any of zero signals: such a wait cannot end";
    conclude();
    // A report that comes from `inspect` describes a ring only: it has no signal that was waited for.
    if (r_.signal.value != 0) add("waited for", fmt::format("{}{}", signal_index_text(), signal_text()));
    if (before_) add("before", at(*before_));
    if (head_) add("at", at(*head_));
    if (!hint_.empty()) add("hint", hint_);
    return out_;
  }

 private:
  void add(std::string_view key, std::string_view what) {
    out_ += fmt::format("\n  {:<11} {}", fmt::format("{}:", key), what);
  }

  std::string named(GpuVa va) const {
    auto name = name_ ? name_(va) : std::string();
    return name.empty() ? name : name + ", ";
  }
  std::string signal_index_text() const {
    return r_.signals > 1 ? fmt::format("{} of {} signals: ", r_.index + 1, r_.signals) : std::string();
  }
  std::string signal_text() const {
    auto s = fmt::format("signal {:#x} {} {} ({}value: {}", r_.signal.value, detail::compare_text(r_.func),
                         number_text(r_.reference), named(r_.signal), number_text(r_.seen));
    std::uint64_t now = 0;
    if (peek_ && peek_(r_.signal, std::as_writable_bytes(std::span(&now, 1))) == Errc::ok && now != r_.seen)
      s += fmt::format("; now {}{}", number_text(now),
                       holds(now, r_.func, r_.reference) ? ", so it arrived after the deadline" : "");
    return s + ")";
  }
  static std::string at(const Reached& c) {
    return fmt::format("{:#x} {}{}", c.position, line(c.packet), c.value_text);
  }

  std::string position_text() const {
    return fmt::format("queue is at position {:#x} of {:#x}", r_.read, r_.committed);
  }

  /// Writes the first line and the hint.
  void conclude() {
    if (r_.ring_bytes == 0) {
      out_ = "nothing is known about the queue: no ring was given, or its memory cannot be a ring";
      return;
    }
    if (const auto what = contradiction(); !what.empty()) {
      out_ = "positions of the queue contradict each other: " + what;
      hint_ =
          "a ring has one owner: look for a second producer, an engine that still serves a destroyed queue, or freed "
          "memory";
      return;
    }
    find();
    if (waiting_) {
      out_ = fmt::format("{}; {} waiting in {}{}", position_text(),
                         waiting_->verdict == AtPacket::waits ? "probably" : "perhaps", line(waiting_->packet),
                         waiting_->value_text);
      if (waiting_->position > r_.read)
        hint_ = fmt::format("that packet is at {:#x}: rptr lags the engine", waiting_->position);
      return;
    }
    if (r_.committed == 0) {
      out_ = "nothing was published to the queue";
      hint_ = r_.reserved != 0
                  ? fmt::format("{} bytes are reserved: publish the slot, or give it back with publish(slot, 0)",
                                r_.reserved)
                  : "check that this is the right ring";
    } else if (r_.read == r_.committed) {
      out_ =
          fmt::format("queue is empty: everything up to position {:#x} was consumed, but the completion did not arrive",
                      r_.committed);
      hint_ =
          r_.reserved != r_.committed
              ? fmt::format("{} bytes are reserved and not published: an unpublished slot holds back all later ones",
                            r_.reserved - r_.committed)
              : "check that the completion is in this queue and posts this signal, that the link completes atomics, "
                "and that no fault occurred; a long copy may still be in flight";
    } else if (r_.read == 0) {
      out_ = fmt::format("queue was never read: it is at position 0 of {:#x}", r_.committed);
      if (head_ && !head_->packet.info) hint_ = kNoPacketHint;
      else if (head_ && head_->packet.info->privilege == Privilege::kernel) hint_ = kPrivilegedHint;
      else if (r_.has_doorbell)
        hint_ =
            "check that the doorbell was rung and belongs to this queue, that the queue is mapped, and that its engine "
            "is free";
      else hint_ = "the engine watches wptr: check that it runs and serves this queue";
    } else if (r_.moved || r_.read != r_.read_first) {
      out_ = fmt::format("queue is slow, not stuck: it moved from position {:#x} to {:#x} of {:#x} during the wait",
                         r_.read_first, r_.read, r_.committed);
      hint_ = "give the wait more time";
    } else if (head_ && !head_->packet.info) {
      out_ = position_text() + ", before a dword that does not begin a known packet";
      hint_ = kNoPacketHint;
    } else if (head_ && head_->packet.info->privilege == Privilege::kernel) {
      out_ = position_text() + ", before a packet that needs kernel privileges";
      hint_ = kPrivilegedHint;
    } else {
      out_ = position_text() + " and has not moved; no poll near it waits";
      hint_ = "possible causes: a long copy, a fault (ask the device), or another queue that occupies the engine";
    }
  }

  /// Says which position is impossible; empty if all are possible.
  std::string contradiction() const {
    if (r_.read % 4 != 0) return fmt::format("rptr {:#x} is not a multiple of 4", r_.read);
    if (r_.read > r_.reserved)
      return fmt::format("rptr {:#x} is ahead of the reserved position {:#x}", r_.read, r_.reserved);
    if (r_.read > r_.wptr) return fmt::format("rptr {:#x} is ahead of wptr in memory, {:#x}", r_.read, r_.wptr);
    if (r_.reserved - r_.read >= r_.ring_bytes)
      return fmt::format("rptr {:#x} lags by {:#x} bytes, but the ring has {:#x}", r_.read, r_.reserved - r_.read,
                         r_.ring_bytes);
    if (r_.wptr != r_.committed && !r_.moved && !(r_.wptr > r_.committed && r_.wptr <= r_.reserved))
      return fmt::format("wptr in memory is {:#x}, but {:#x} was published", r_.wptr, r_.committed);
    return {};
  }

  /// Finds the packets around rptr, and the one that probably waits.
  void find() {
    if (r_.before_dwords != 0) examine_before();
    std::optional<Reached> further;
    for (Reader reader{r_.head_span(), packets_}; reader;) {
      const auto position = r_.read + reader.position_dwords() * 4;
      auto c = test(reader.next(), position);
      const bool waits = c.verdict == AtPacket::waits;
      if (!head_) head_ = std::move(c);
      else if (waits && !further) further = std::move(c);
      if (waits) break;
    }
    // In the order in which the engine reaches them; certain ones first.
    if (before_ && before_->verdict == AtPacket::waits) waiting_ = before_;
    else if (head_ && head_->verdict == AtPacket::waits) waiting_ = head_;
    else if (further) waiting_ = further;
    else if (head_ && head_->verdict == AtPacket::unknown) waiting_ = head_;
    else if (before_ && before_->verdict == AtPacket::unknown) waiting_ = before_;
  }

  void examine_before() {
    const auto before = r_.before_span();
    if (r_.before_known) {
      before_ = test(Reader{before, packets_}.next(), r_.read - last_length(before) * 4);
    } else if (before.size() >= kPollDwords) {  // start unknown: accept only a poll that ends here and waits
      auto c = test(Reader{before.last(kPollDwords), packets_}.next(), r_.read - kPollDwords * 4);
      if (c.packet.is<PollMem>() && c.verdict == AtPacket::waits) before_ = std::move(c);
    }
  }
  std::size_t last_length(std::span<const std::uint32_t> kept) const {
    const auto v = Reader{kept, packets_}.next();
    return v.info && v.info->head <= kept.size() ? v.info->length(kept.data()) : kept.size();
  }

  Reached test(const PacketView& v, std::uint64_t position) const {
    Reached c{v, position};
    if (v.is<PollMem>()) {
      test_poll(decode<PollMem>(v.dwords, *v.info), c);
    } else if (v.whole() && role(*v.info, v.dwords) == Role::acquire) {
      c.verdict = AtPacket::unknown;
      c.value_text = " (what it polls cannot be read from here)";
    } else if (v.is<Indirect>()) {
      test_indirect(decode<Indirect>(v.dwords, *v.info), c);
    }
    return c;
  }

  void test_poll(const PollMem& p, Reached& c) const {
    std::uint32_t value = 0;
    const auto e = peek_ ? peek_(p.addr, std::as_writable_bytes(std::span(&value, 1))) : Errc::ok;
    const auto name = named(p.addr);
    if (!peek_) {
      c.verdict = AtPacket::unknown;
      c.value_text = fmt::format(" ({}memory was not read)", name);
    } else if (e != Errc::ok) {
      c.verdict = AtPacket::waits;
      c.value_text = fmt::format(" ({}value: {})", name, message(e));
    } else {
      c.verdict = holds(value & p.mask, p.func, p.reference) ? AtPacket::holds : AtPacket::waits;
      c.value_text = fmt::format(" ({}value: {})", name, number_text(value));
    }
  }

  /// The engine may be waiting at a poll inside the buffer while rptr is at the INDIRECT packet.
  void test_indirect(const Indirect& i, Reached& c) const {
    std::array<std::uint32_t, kIndirectSearched> buffer;
    const auto all = std::span(buffer).first(i.dwords < buffer.size() ? i.dwords : buffer.size());
    if (!peek_ || peek_(i.base, std::as_writable_bytes(all)) != Errc::ok) {
      c.verdict = AtPacket::unknown;
      c.value_text = " (its buffer was not read)";
      return;
    }
    for (Reader reader{all, packets_}; reader;) {
      const auto offset = reader.position_dwords() * 4;
      const auto v = reader.next();
      if (!v.is<PollMem>()) continue;
      Reached inner{v, offset};
      test_poll(decode<PollMem>(v.dwords, *v.info), inner);
      if (inner.verdict != AtPacket::waits) continue;
      c.verdict = AtPacket::waits;
      c.value_text = fmt::format(", at {:#x} in its buffer: {}{}", offset, line(v), inner.value_text);
      return;
    }
  }

  const StallReport& r_;
  const Peek& peek_;
  const NameOf& name_;
  const Catalogue& packets_;
  std::string out_, hint_;
  std::optional<Reached> before_, head_, waiting_;
};

}  // namespace

std::string describe(const StallReport& r, const Peek& peek, const NameOf& name) {
  return Explainer(r, peek, name).text();
}

}}  // namespace sdma::v0_3
