#pragma once
// How well dwords read as packets: to choose between two ways to read a dump, never to accept one.
#include <cstdint>
#include <span>

namespace sdma::inline v0::detail {

/// How many of these dwords belong to whole packets whose reserved bits are 0.
std::size_t plausible_dwords(std::span<const std::uint32_t>) noexcept;

}  // namespace sdma::inline v0::detail
