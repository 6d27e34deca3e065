// SPDX-License-Identifier: MIT
#pragma once
// MI300X that are divided into partitions: DPX, QPX and CPX. Internal.
#include "sdma/device/topology.hpp"

#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Into how many partitions a GPU is divided in this mode: "dpx" 2, "qpx" 4, "cpx" 8; nothing for any other word.
std::optional<std::uint32_t> partitions_of(std::string_view mode) noexcept;
/// Why there is no layout of this name, if partitions or a memory mode are asked for whose facts are not public.
std::optional<std::string_view> not_public(std::string_view name) noexcept;
/// A node of 1 to 8 MI300X, each divided into `each` partitions; partition p of GPU g is number g * each + p.
Topology partitioned(std::string_view name, std::uint32_t gpus, std::uint32_t each);

}}}  // namespace sdma::v0_3::detail
