// SPDX-License-Identifier: MIT
#pragma once
// The report of sdma calibrate --held-out: errors of a fit at what it has not seen, as Markdown tables.
//
//   const auto text = held_out_report(table, *held_out(table, start, options));
//
// Pure function.
#include "sdma/simulate/held_out.hpp"

#include <span>
#include <string>

namespace sdma::tool {

std::string held_out_report(const Measurements&, std::span<const HeldOut>);

}  // namespace sdma::tool
