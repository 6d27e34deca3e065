// SPDX-License-Identifier: MIT
#pragma once
// The width of --help: that of the terminal, and otherwise 80 columns.
//
//   write_text("-", fitted(app.help(), help_columns()));
//
// A line that is too long is broken at blanks, and continues below its text, as the description of an option. Examples
// stay whole, because people copy them: they have to fit, and tests/tools/help_width.py checks that they do.
//
// COLUMNS, if the environment has it, is the width: programs that read --help set it to a large number. No errors.
#include <cstddef>
#include <string>
#include <string_view>

namespace sdma::tool {

/// The column in which descriptions of options begin.
inline constexpr std::size_t kHelpColumn = 34;
inline constexpr std::size_t kHelpColumns = 80;    ///< where there is no terminal
inline constexpr std::size_t kWidestHelp = 100;    ///< on a wide terminal: longer lines are hard to read
inline constexpr std::size_t kNarrowestHelp = 60;  ///< narrower, nothing fits beside the options

std::size_t help_columns();
/// The text with no line longer than that, except examples and words that are longer themselves.
std::string fitted(std::string_view help, std::size_t columns);

}  // namespace sdma::tool
