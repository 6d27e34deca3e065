// SPDX-License-Identifier: MIT
#include "sdma/queue/ring.hpp"

std::uint64_t rptr[2], wptr;
std::uint64_t doorbell;

sdma::RingMemory memory{.rptr = rptr, .wptr = &wptr, .doorbell = &doorbell};
