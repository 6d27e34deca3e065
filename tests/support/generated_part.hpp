// SPDX-License-Identifier: MIT
#pragma once
// A file of which the part after a marker line is generated: checks it, or replaces it. What is before is kept.
//
//   return generated_part("docs/messages.md", kMarker, page(), {.write = true, .source = "the table"});
//
// Returns an exit code: 1, with a message, if the part is out of date or there is no marker line.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

struct GeneratedPart {
  bool write = false;         ///< replace it
  std::string_view source{};  ///< of what it is made
};

inline int generated_part(const std::string& path, std::string_view marker_line, const std::string& part,
                          const GeneratedPart& o) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto marker = text.find(marker_line);
  const auto end = text.find('\n', marker);
  if (marker == text.npos || end == text.npos) {
    std::cerr << path << ": no such file, or no line that says\n" << marker_line << '\n';
    return 1;
  }
  const auto wanted = text.substr(0, end + 1) + part;
  if (o.write) return std::ofstream(path) << wanted ? 0 : 1;
  if (text == wanted) return 0;
  std::cerr << path << ": not what " << o.source << " says; run: ninja -C build bless\n";
  return 1;
}
