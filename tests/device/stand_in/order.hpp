// SPDX-License-Identifier: MIT
#pragma once
// What a stream is free to decide: when it goes on, and in which order it does what has no order.
//
// Without a seed, a stream is prompt and takes everything in the order given. With one, it pauses between commands (up
// to 2 ms, rarely 10) and within copies, and its copies are done in pieces in any order. The same seed gives each
// stream the same decisions. For the one thread that executes the stream.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>

namespace stand_in {

class Order {
 public:
  Order(std::optional<std::uint64_t> seed, int device, unsigned stream) {
    if (!seed) return;
    std::seed_seq mixed{*seed, std::uint64_t(device), std::uint64_t(stream)};
    random_.emplace(mixed);
  }

  bool adversarial() const noexcept { return random_.has_value(); }

  void pause_before_command() {
    if (!random_) return;
    if (up_to(200) == 0) nap(10'000);
    else if (up_to(8) == 0) nap(2'000);
  }
  void pause_within_command() {
    if (random_ && up_to(8) == 0) nap(300);
  }

  /// A number below `end`, which is not 0.
  std::uint64_t up_to(std::uint64_t end) { return random_ ? (*random_)() % end : 0; }

  template <class Items> void shuffle(Items& items) {
    if (random_) std::shuffle(items.begin(), items.end(), *random_);
  }

 private:
  void nap(std::uint64_t longest_us) { std::this_thread::sleep_for(std::chrono::microseconds(up_to(longest_us) + 1)); }

  std::optional<std::mt19937_64> random_;
};

}  // namespace stand_in
