// SPDX-License-Identifier: MIT
#pragma once
// How a host thread waits for a word that hardware stores: it spins, and naps only if that takes long.
//
//   Signal{.word = ..., .va = ..., .sleep = busy_wait}
//
// An engine answers within some microseconds to some milliseconds, and even the shortest nap takes 60 us with the
// usual timer slack. So this polls the word for kSpin in one wait, and then naps for an eighth of the time that the
// wait has lasted. On a machine with few cores it polls only for as long as a short copy may take, because another
// thread may need the core.
//
// Each thread remembers its current wait; a call that comes a moment after
// the last one belongs to the same wait. Any thread; internal; no errors.
#include "sdma/core/deadline.hpp"

#include <chrono>
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::chrono::microseconds kSpin{2000}, kSpinWithFewCores{50};

/// A Signal::Sleep hook. Returns when the word may differ from `seen`, or earlier.
void busy_wait(void* context, std::uint64_t* word, std::uint64_t seen, Deadline) noexcept;

}}}  // namespace sdma::v0_3::detail
