// SPDX-License-Identifier: MIT
// must not compile: uint64_t
#include "sdma/queue/ring.hpp"

std::uint64_t rptr[2], wptr;
std::uint32_t doorbell;  // wrong from 4 GiB of packets on

sdma::RingMemory memory{.rptr = rptr, .wptr = &wptr, .doorbell = &doorbell};  // refused
