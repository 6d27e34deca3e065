// SPDX-License-Identifier: MIT
#pragma once
// Decides when a queue, or a host thread, of an adversarial device falls asleep.
//
//   Sleepiness s{seed, stream};                       // or s{seed, stream, &chooser}: an explorer decides
//   if (s.falls_asleep()) ...                         // call it at each place where it could
//
// It has random numbers of its own, which no other choice shifts. So the places where a queue sleeps depend on its seed
// and on its packets alone, not on the timing of threads. Sleep grows rarer: 100'000 places give about 30 naps, so a
// long run is not much slower than it was. One thread; no errors.
#include "chooser.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

class Sleepiness {
 public:
  /// `coins`: one place in 2^coins for the first two naps.
  Sleepiness(std::uint64_t seed, std::uint64_t stream, Chooser* other = nullptr, std::uint32_t coins = 2) noexcept
      : own_(seed, stream), other_(other), coins_(coins) {}

  bool falls_asleep() noexcept {
    Chooser& c = other_ ? *other_ : own_;
    // One place in 4 for the first two naps, one in 8 for the next two, and so on.
    for (std::uint32_t coin = 0; coin < coins_ + naps_ / 2; ++coin)
      if (c.choose(Choice::sleep, 2) == 0) return false;
    if (naps_ < kMost) ++naps_;
    return true;
  }

 private:
  static constexpr std::uint32_t kMost = 60;
  Seeded own_;
  Chooser* other_;
  std::uint32_t coins_, naps_ = 0;
};

}}}  // namespace sdma::v0_3::detail
