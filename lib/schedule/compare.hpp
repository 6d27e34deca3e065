// SPDX-License-Identifier: MIT
#pragma once
// Describes how bytes differ from what is expected. Internal.
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sdma::inline v0::detail {

/// "" if they are equal. Otherwise how many bytes of `left` differ, where they are, and the first of them:
/// "12 of 4K bytes differ: gpu1.out[16..+8], gpu1.out[64..+4]; gpu1.out[16] is 0xdb, not 0x07". `wrong`, if not null,
/// receives how many bytes differ.
std::string difference(const Schedule&, const Schedule::Range& left, std::span<const std::byte> is,
                       std::span<const std::byte> should, std::uint64_t* wrong = nullptr);

}  // namespace sdma::inline v0::detail
