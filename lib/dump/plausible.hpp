// SPDX-License-Identifier: MIT
#pragma once
// How well dwords read as packets: to choose between two ways to read a dump, never to accept one.
#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <span>

namespace sdma::inline v0::detail {

/// Might someone have written this packet? Its reserved bits are 0, its fields are aligned and within their
/// limits, its rules hold and its addresses are in user space. Of a packet that is cut off, only the dwords that
/// are there are judged.
bool is_plausible(const PacketView&) noexcept;

/// The packet's dwords if it is plausible; a negative number if it is not.
/// Zeros count as nothing: they are NOPs, and memory that was never written.
std::int64_t plausibility(const PacketView&) noexcept;

/// The sum for all packets of these dwords.
std::int64_t plausibility(std::span<const std::uint32_t>, const Catalogue&) noexcept;

/// With how many zeros these begin. Each is a NOP of one dword in every generation; a ring may be full of them.
std::size_t leading_zeros(std::span<const std::uint32_t>) noexcept;

}  // namespace sdma::inline v0::detail
