// SPDX-License-Identifier: MIT
#include "names_file.hpp"

#include "input.hpp"

namespace sdma::tool {

Result<NameTable, Diagnostic> load_names(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return text.error();
  return parse_names(*text, shown(path));
}

}  // namespace sdma::tool
