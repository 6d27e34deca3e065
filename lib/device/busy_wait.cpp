// SPDX-License-Identifier: MIT
#include "busy_wait.hpp"

#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/compiler.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kFewCores = 4;
constexpr int kLooks = 64;  // before the clock is read again
constexpr std::chrono::nanoseconds kSameWait =
    2us;  // between two calls of one wait; a new wait spins by itself for longer
constexpr Deadline::Clock::duration kShortest = 5us, kLongest = 1ms;  // naps

struct Waiting {
  const std::uint64_t* word{};
  std::uint64_t seen{};
  Deadline::Clock::time_point since{}, left{};  ///< `left`: when the last call returned
};

}  // namespace

void busy_wait(void*, std::uint64_t* word, std::uint64_t seen, Deadline d) noexcept {
  static const auto spin = std::thread::hardware_concurrency() < kFewCores ? kSpinWithFewCores : kSpin;
  thread_local Waiting w;
  const atomic_ref value(*word);
  const auto now = Deadline::Clock::now();
  if (w.word != word || w.seen != seen || now - w.left > kSameWait)
    w = {.word = word, .seen = seen, .since = now, .left = {}};
  const auto waited = now - w.since;
  if (waited < spin) {
    for (int i = 0; i < kLooks && value.load(std::memory_order_acquire) == seen; ++i) SDMA_PAUSE();
  } else {
    std::this_thread::sleep_for(
        std::min(std::clamp(waited / 8, kShortest, kLongest), std::max(d.at - now, Deadline::Clock::duration{})));
  }
  w.left = Deadline::Clock::now();
}

}}}  // namespace sdma::v0_3::detail
