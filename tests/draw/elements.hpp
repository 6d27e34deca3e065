// SPDX-License-Identifier: MIT
#pragma once
// Finds the elements of a picture, their attributes and texts.
#include <string>
#include <vector>

namespace test {

inline std::size_t count(const std::string& in, const std::string& what) {
  std::size_t n = 0;
  for (auto at = in.find(what); at != in.npos; at = in.find(what, at + 1)) ++n;
  return n;
}

/// Each "<NAME ..." to the end of its line.
inline std::vector<std::string> elements(const std::string& svg, const std::string& name) {
  std::vector<std::string> all;
  for (auto at = svg.find("<" + name + " "); at != svg.npos; at = svg.find("<" + name + " ", at + 1))
    all.push_back(svg.substr(at, svg.find('\n', at) - at));
  return all;
}

/// The first attribute of that name.
inline double number(const std::string& element, const std::string& attribute) {
  return std::stod(element.substr(element.find(" " + attribute + "=\"") + attribute.size() + 3));
}

/// The text of an element without children.
inline std::string content(const std::string& element) {
  const auto from = element.find('>') + 1;
  return element.substr(from, element.rfind("</") - from);
}

}  // namespace test
