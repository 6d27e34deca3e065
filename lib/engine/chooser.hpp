// SPDX-License-Identifier: MIT
#pragma once
// Makes the decisions that the ordering model leaves open: from a seed, or in a search through all of them (tests).
//
// A Pipeline calls `choose(what, n)` wherever it may do one of n things, and does what the answer says. The same
// answers always give the same run. A Chooser is not shared between threads. No errors.
#include "sdma/core/standard.hpp"

#include <cstdint>

namespace sdma { inline namespace v0_3 {

/// What a choice is about, so that a chooser can prefer, count or fix some of them.
enum class Choice : std::uint8_t {
  front,         ///< 1: start the next packet, 0: land an effect in flight
  action,        ///< which of the effects in flight lands next
  prefetch,      ///< 1: fetch the published packets now
  write_rptr,    ///< 1: publish to the host how far the engine has read
  rptr_at_poll,  ///< 1: rptr is after the waiting poll, 0: before it
  poll_holds,    ///< 1: this waiting poll keeps its engine from serving other queues
  full_ring,     ///< 1: a ring that is full to the last byte is mistaken for an empty one
  at_fault,      ///< 1: one more effect lands before the fault stops the queue
  poll_expired,  ///< 1: the queue continues after an expired poll
  sleep,         ///< 1: the queue may fall asleep here (when several answers in a row are 1, it does)
  schedule,      ///< which queue or host thread makes the next step; a scheduler asks this, a Pipeline never does
};

class Chooser {
 public:
  virtual ~Chooser();
  /// A number in [0, n). Requires n > 0.
  virtual std::uint32_t choose(Choice what, std::uint32_t n) noexcept = 0;
};

/// Pseudo-random and repeatable: the same seed gives the same answers everywhere.
class Seeded final : public Chooser {
 public:
  explicit Seeded(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  /// One of many sequences for this seed. Neither neighbouring seeds nor neighbouring streams have similar sequences.
  Seeded(std::uint64_t seed, std::uint64_t stream) noexcept : state_(mixed(mixed(seed) + stream)) {}
  ~Seeded() override;
  std::uint32_t choose(Choice, std::uint32_t n) noexcept override {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator: the high bits are good
    return static_cast<std::uint32_t>((state_ >> 33) % n);
  }

 private:
  /// The finaliser of MurmurHash3: every bit of the result depends on every bit of `x`.
  static constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
  }
  std::uint64_t state_;
};

}}  // namespace sdma::v0_3
