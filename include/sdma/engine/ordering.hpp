// SPDX-License-Identifier: MIT
#pragma once
// How weakly a software engine orders the effects of packets: SoftOptions::ordering (device/soft.hpp).
//
//                       strict      rocr                       adversarial: as weak as hardware may be
//   copy, fill, write   at once     late, whole, any order     late, in pieces, any order; loads before stores
//   fence, atomic       at once     after all earlier ones     late, after all earlier ones; in order among themselves
//     in VRAM           the same    the same                   may land before earlier data that goes to host memory
//     later packets     wait        wait                       do not wait: may start and land before the fence
//   poll                holds back all later packets; does not wait for earlier ones (in strict, none are in flight)
//   timestamp           at once     after all earlier ones     late, after all earlier ones
//   trap                at once     after earlier fences       late, after earlier fences
//   cond_exec           its word is read when the front end reaches it; effects in flight may land later
//   published packets   read when executed                     may be fetched at the doorbell, indirect buffers too: a
//                                                              later change to them may or may not be seen
//   rptr                per step, and before the interrupt     late, at the latest when idle; before or after a poll;
//                       of a trap                              before or after an interrupt
//   a waiting poll      yields      yields                     may keep the engine from its other queues
//   a full ring         is full     is full                    may be mistaken for empty
//   a queue             is prompt   is prompt                  may sleep at a doorbell or between two packets
//
// Everything lands in finite time. docs/engine.md has the reasons. No state, no errors.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// When the effects of packets may land. `strict`: before the next packet starts; `rocr`: what runtimes rely on, and no
/// more; `adversarial`: as weak as hardware may be.
enum class Ordering : std::uint8_t { strict, rocr, adversarial };
std::string_view name(Ordering) noexcept;

}}  // namespace sdma::v0_3
