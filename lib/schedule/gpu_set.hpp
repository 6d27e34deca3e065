// SPDX-License-Identifier: MIT
#pragma once
// A set of a schedule's GPUs. Internal.
//
//   GpuSet all = GpuSet{}.set();
//   all.reset(3);                                       // all but gpu3
//
// A set of a node's GPUs is a word of 64 bits, because no device has more.
#include "sdma/schedule/schedule.hpp"

#include <bitset>

namespace sdma { inline namespace v0_3 { namespace detail {

using GpuSet = std::bitset<Schedule::kMostGpus>;

}}}  // namespace sdma::v0_3::detail
