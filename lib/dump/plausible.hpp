#pragma once
// How well dwords read as packets: to choose between two ways to read a dump, never to accept one.
#include "sdma/packets/catalogue.hpp"

#include <cstdint>
#include <span>

namespace sdma::inline v0::detail {

/// The dwords in packets that someone may have written, less those that begin no such packet. A packet counts if its reserved bits are
/// 0, its fields are aligned and within their limits, its rules hold and its addresses are in user space. Zeros count as nothing: they
/// are NOPs, and memory that was never written.
std::int64_t plausibility(std::span<const std::uint32_t>, const Catalogue&) noexcept;

}  // namespace sdma::inline v0::detail
