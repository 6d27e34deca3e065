// SPDX-License-Identifier: MIT
#pragma once
// Which generation of engines a dump is of, if its text says so. Internal to dumps.
//
//   HWIP: SDMA0[3][0]: v6.0.0.0.0          the kernel's devcoredump: 6.0
//   gfx942.sdma0.rptr == 21                umr: the GPU, by its target or its chip
//   vbios name : AMD MI300X_HW_SRIOV       a product's name, or a target, anywhere else
//
// The version of the engines goes before all names. Names that contradict each other say nothing. Pure functions; any
// thread may call them. No errors; linear in the text.
#include "sdma/packets/generation.hpp"

#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The generation of a target, a chip or a product: "gfx1100", "navi31", "MI300X"; nothing for other words.
std::optional<Generation> generation_of_name(std::string_view word) noexcept;
/// What the whole text says.
std::optional<Generation> generation_in(std::string_view text);

}}}  // namespace sdma::v0_3::detail
