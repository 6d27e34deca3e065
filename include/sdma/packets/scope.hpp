// SPDX-License-Identifier: MIT
#pragma once
// How far an access of an engine is visible: engines of SDMA 7.1, and those of 6.1 for what a runtime sends there.
//
//   Fence{.addr = done, .value = 1, .mtype = 3, .sys = true, .scope = Scope::sys}     as a runtime writes it for 7.1
//
// A temporal hint (`_hint`) lies beside each scope: 3 bits, which runtimes leave 0. In 7.1, the kernel's header still
// has cache policies in these bits, and the kernel leaves them 0; docs/packets.md names both readings.
//
// Constants; any thread may read them. No errors.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {

/// Who sees an access in order.
/// `cu`: a compute unit; `se`: a shader engine; `dev`: the GPU; `sys`: the system, with hosts and other GPUs.
enum class Scope : std::uint8_t { cu, se, dev, sys };
template <>
inline constexpr auto grammar::names<Scope> = std::to_array<Name>({{0, "cu"}, {1, "se"}, {2, "dev"}, {3, "sys"}});

}}  // namespace sdma::v0_3
