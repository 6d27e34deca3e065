// SPDX-License-Identifier: MIT
// The docstrings of the extension: rows that manual.py makes from the manual of its classes.
#include "described.hpp"
#include "manual_rows.hpp"

#include <algorithm>
#include <iterator>

namespace sdma::python {

const char* manual(std::string_view name) {
  const auto at = std::lower_bound(std::begin(kManual), std::end(kManual), name,
                                   [](const ManualRow& row, std::string_view n) { return row.name < n; });
  return at != std::end(kManual) && at->name == name ? at->text : "";
}

}  // namespace sdma::python
