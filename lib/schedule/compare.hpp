#pragma once
// First contents of buffers, and what differs between what is there and what should be. Internal to run.cpp.
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sdma {
inline namespace v0 {
namespace detail {

/// `number`: of the buffer, so that no two hold the same.
void fill(std::span<std::byte>, Init, std::uint64_t seed, std::uint64_t number) noexcept;

/// "" if they are equal. Else how many bytes of `left` differ, which, and the first: of gpu1.out, at an offset,
/// "12 of 4K bytes differ: gpu1.out[16..+8], gpu1.out[64..+4]; gpu1.out[16] is 0xdb, not 0x07".
std::string difference(const Schedule&, const Schedule::Range& left, std::span<const std::byte> is,
                       std::span<const std::byte> should);

}  // namespace detail
}  // namespace v0
}  // namespace sdma
