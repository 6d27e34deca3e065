// SPDX-License-Identifier: MIT
#pragma once
// Submissions of any length: waits for room, with a deadline, and divides a submission that is longer than a slot.
//
//   auto slot = reserve(ring, 64, Deadline::in(1s));            // as ring.reserve(64), but waits for room
//
//   const Writer::Copy copy{.src = a, .dst = b, .bytes = 80ull << 30, .chunk = kChunk22};
//   Submission s{ring, dwords_of(copy) + 20, Deadline::in(1s)};                // 20: the other packets, at most
//   s.with([&](auto& w) { return acquire(w, go, epoch); });                    // a recipe; or s.put(...)
//   s.copy(copy);                                                              // 20,481 packets: over half of 1 MiB
//   s.put(Atomic{.addr = left, .value = ~0ull});
//   if (auto e = s.publish(); e != Errc::ok) return e;                         // one test for all calls
//   Submission other{ring, n, deadline, AnyGeneration{g}};                     // packets of generation g
//
//   dwords <= ring.max_slot_anywhere()    one slot and one doorbell: all of it or nothing
//   more                                  parts of a quarter of the ring, so that the engine executes one while the
//                                         next is written. A part is published when the next packet does not fit
//
// A queue executes parts in their order, so a division between two packets changes nothing for most packets. It does
// for a packet that says how many dwords after it depend on it (COND_EXEC, PRE_EXEC): call `together` first. An
// INDIRECT must end on a multiple of 8 dwords, so submit it through a slot of its own. Among many producers, packets of
// other threads may come between two parts.
//
// Errors. The first one is kept: later calls return it and write nothing, and `publish` returns it. Errc::bad_packet;
// Errc::timed_out: the deadline passed while the ring had no room; Errc::too_large: a packet, or a `together`, of
// more than half the ring; Errc::wrong_generation: the ring has another one than the packets; Errc::bad_ring. The part
// that was open then is abandoned. Earlier parts have been published, and the engine executes them: if parts() is not
// 0, the queue holds the beginning of the submission, without its completion.
//
// The deadline covers all waits of one submission. A Submission holds an open slot between its first packet and
// `publish` (the destructor abandons it), so with a single producer use one at a time. It belongs to one
// thread. No allocation.
#include "sdma/queue/ring.hpp"
#include "sdma/stream/writer.hpp"
#include "sdma/sync/wait.hpp"

namespace sdma { inline namespace v0_3 {

/// Reserves a slot, and waits for room until the deadline: Errc::timed_out. Other errors as Ring::reserve, at once.
template <Producers K, class Order>
Result<Slot> reserve(Ring<K, Order>& ring, std::size_t dwords, Deadline d) noexcept {
  for (Backoff backoff;;) {
    const auto slot = ring.reserve(dwords);
    if (slot || slot.error() != Errc::no_space) return slot;
    if (!backoff.step(d)) return Errc::timed_out;
  }
}

template <Producers K = Producers::one, class Order = order::Native, class Target = FixedGeneration<kDefaultGeneration>>
class Submission {
  using Out = BasicWriter<Target>;

 public:
  /// `dwords`: the length of the whole submission, at most. If it turns out longer, it is divided all the same.
  Submission(Ring<K, Order>& ring, std::size_t dwords, Deadline d, Target target = {}) noexcept
      : ring_(ring), left_(dwords), deadline_(d), target_(target) {
    if (ring.generation() != target.value()) error_ = Errc::wrong_generation;
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;
  ~Submission() { abandon(); }

  /// Adds a packet. If the open slot has no room for it, publishes that slot and reserves another, until the deadline.
  template <Packet P> Errc put(const P& p) noexcept {
    if (error_ == Errc::ok && !target_.fits(p)) error_ = Errc::bad_packet;
    if (together(target_.length(p)) != Errc::ok) return error_;
    return wrote(writer_.put(p));
  }
  /// Adds a copy, in as many packets and slots as it needs.
  Errc copy(const Writer::Copy& c) noexcept { return divide<CopyLinear>(c, &Out::copy); }
  /// Adds a broadcast, in as many packets and slots as it needs.
  Errc broadcast(const Writer::Broadcast& c) noexcept { return divide<CopyBroadcast>(c, &Out::broadcast); }
  /// Adds an exchange, in as many packets and slots as it needs.
  Errc swap(const Writer::Swap& c) noexcept { return divide<CopySwap>(c, &Out::swap); }
  /// Adds a fill, in as many packets and slots as it needs.
  Errc fill(const Writer::Fill& c) noexcept { return divide<Fill>(c, &Out::fill); }

  /// The next `dwords` dwords are in one part.
  Errc together(std::size_t dwords) noexcept {
    if (error_ != Errc::ok || dwords <= writer_.room()) return error_;
    if (ring_.max_slot() != 0 && dwords > ring_.max_slot_anywhere()) return error_ = Errc::too_large;
    publish_part();
    const auto half = ring_.max_slot_anywhere(), wanted = left_ > dwords ? left_ : dwords;
    const auto part = dwords > half / 2 ? dwords : half / 2;
    const auto slot = reserve(ring_, wanted <= half ? wanted : part, deadline_);
    if (!slot) return error_ = slot.error();
    slot_ = *slot;
    writer_ = Out{slot_.dwords, target_};
    return Errc::ok;
  }
  /// What `write(writer)` writes is in one part: for recipes and functions of hsa.hpp. Called twice: the first time
  /// with a writer that counts, so it takes writers of any type.
  template <class Write> Errc with(Write&& write) noexcept { return with(dwords_of(target_.value(), write), write); }
  /// The same for up to `dwords` dwords: calls it once.
  template <class Write> Errc with(std::size_t dwords, Write&& write) noexcept {
    if (together(dwords) != Errc::ok) return error_;
    return wrote(write(writer_));
  }

  /// Publishes what is not published yet. Returns the first error of all calls; then it publishes nothing more.
  [[nodiscard]] Errc publish() noexcept {
    if (error_ == Errc::ok) publish_part();
    abandon();
    return error_;
  }
  /// The first error; ok if there is none.
  [[nodiscard]] Errc error() const noexcept { return error_; }
  /// How many slots have been published.
  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }

 private:
  static constexpr Writer::Copy piece(const Writer::Copy& c, std::uint64_t at, std::uint64_t n) noexcept {
    return {c.src + at, c.dst + at, n, c.chunk};
  }
  static constexpr Writer::Broadcast piece(const Writer::Broadcast& c, std::uint64_t at, std::uint64_t n) noexcept {
    return {c.src + at, c.dst1 + at, c.dst2 + at, n, c.chunk};
  }
  static constexpr Writer::Swap piece(const Writer::Swap& c, std::uint64_t at, std::uint64_t n) noexcept {
    return {c.a + at, c.b + at, n, c.chunk};
  }
  static constexpr Writer::Fill piece(const Writer::Fill& c, std::uint64_t at, std::uint64_t n) noexcept {
    return {c.dst + at, c.data, n, c.unit, c.chunk, c.count};
  }

  /// Writes as many packets of a request as fit in each part.
  template <Packet P, class Request> Errc divide(const Request& c, Errc (Out::*write)(const Request&)) noexcept {
    constexpr std::size_t kLength = encode(P{}).size();
    // Without room, the Writer checks the whole request and writes nothing.
    Out none{{}, target_};
    if (error_ == Errc::ok && (none.*write)(c) == Errc::bad_packet) error_ = Errc::bad_packet;
    const auto chunk = none.template chunk_for<P>(c.chunk);
    for (std::uint64_t at = 0; at < c.bytes && together(kLength) == Errc::ok;) {
      const std::uint64_t room = writer_.room() / kLength * chunk, n = c.bytes - at < room ? c.bytes - at : room;
      if (wrote((writer_.*write)(piece(c, at, n))) != Errc::ok) break;
      at += n;
    }
    return error_;
  }
  Errc wrote(Errc e) noexcept {
    if (error_ == Errc::ok) error_ = e;
    return error_;
  }
  void publish_part() noexcept {
    if (writer_.position_dwords() == 0) return abandon();
    const auto n = writer_.position_dwords();
    left_ = left_ > n ? left_ - n : 0;
    ring_.publish(slot_, n);
    ++parts_;
    close();
  }
  void abandon() noexcept {
    if (!slot_.dwords.empty()) ring_.publish(slot_, 0);
    close();
  }
  void close() noexcept {
    slot_ = {};
    writer_ = Out{{}, target_};
  }

  Ring<K, Order>& ring_;
  std::size_t left_;
  Deadline deadline_;
  SDMA_NO_UNIQUE_ADDRESS Target target_;
  Slot slot_{};
  Out writer_{{}, target_};
  std::size_t parts_ = 0;
  Errc error_ = Errc::ok;
};

}}  // namespace sdma::v0_3
