// SPDX-License-Identifier: MIT
#pragma once
// Up to which position an engine in software may read a ring: the doorbell's value, or wptr's after a new mapping.
//
//   Published p{ring};
//   p.map();                     // at creation, and when a queue of the same GPU comes or goes
//   p.position()                 // the doorbell, unless it has not changed since `map`
//
// As on hardware: a doorbell that rings while the queue is unmapped is lost, and the engine takes its position
// from wptr. A queue without a doorbell is read up to wptr. One thread at a time; producers store at any time.
// Internal; no errors.
#include "sdma/queue/ring.hpp"

#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail {

class Published {
 public:
  explicit Published(const RingMemory& m) noexcept : doorbell_(m.doorbell), wptr_(m.wptr) {}

  std::uint64_t position() const noexcept {
    if (!doorbell_) return load(wptr_);
    const auto bell = load(doorbell_);
    return bell == stale_ ? mapped_at_ : bell;
  }
  /// Loads the doorbell first: if a producer stores both words between the two loads, the doorbell's value is new.
  void map() noexcept {
    if (doorbell_) stale_ = load(doorbell_);
    mapped_at_ = load(wptr_);
  }

 private:
  static std::uint64_t load(const std::uint64_t* w) noexcept {
    return order::Native::load(w, std::memory_order_acquire);
  }
  const std::uint64_t *doorbell_, *wptr_;
  std::uint64_t stale_{}, mapped_at_{};
};

}}}  // namespace sdma::v0_3::detail
