#pragma once
// Fills buffers with their initial contents, and describes how bytes differ from what is expected. Internal.
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sdma::inline v0::detail {

/// Gives each buffer its initial contents. `bytes_of(k)`: the bytes of buffer k.
void fill(const Schedule&, std::uint64_t seed, const std::function<std::span<std::byte>(std::size_t)>& bytes_of);

/// "" if they are equal. Otherwise how many bytes of `left` differ, where they are, and the first of them:
/// "12 of 4K bytes differ: gpu1.out[16..+8], gpu1.out[64..+4]; gpu1.out[16] is 0xdb, not 0x07".
std::string difference(const Schedule&, const Schedule::Range& left, std::span<const std::byte> is,
                       std::span<const std::byte> should);

}  // namespace sdma::inline v0::detail
