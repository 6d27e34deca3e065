// SPDX-License-Identifier: MIT
#pragma once
// How long the threads that act as the hardware spin before they sleep, and how long they sleep if nothing wakes them.
//
//   Worker worker{*this, kNodePace};
//
// A constant.
#include "../engine/worker.hpp"

namespace sdma::emulator {

inline constexpr sdma::detail::Worker::Pace kNodePace{
    .spin = std::chrono::microseconds(50), .first_nap = std::chrono::microseconds(20), .pauses = 16};

}  // namespace sdma::emulator
