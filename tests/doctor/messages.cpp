// SPDX-License-Identifier: MIT
// What is generated from the table of messages: the end of docs/messages.md.
//
//   messages FILE            exit code 1 and a message if the part of FILE after its marker line is out of date
//   messages --write FILE    replaces that part; the text before the marker is written by hand and kept
#include "../../lib/dump/messages.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

using namespace sdma;

constexpr std::string_view kMarker = "Generated from lib/dump/message_table.cpp from here on: ninja -C build bless";

/// Numbers are N, and other places are their names in capitals.
std::string words(std::string_view phrase) {
  std::string out;
  while (!phrase.empty()) {
    const auto open = phrase.find('{');
    out += phrase.substr(0, open);
    if (open == phrase.npos) break;
    const auto close = phrase.find('}', open);
    const auto place = phrase.substr(open + 1, close - open - 1);
    if (place.front() == '#') out += "N";
    else if (place.front() == '$') out += "0xN";
    else if (place.front() == '*') out += "...";
    else
      for (const char c : place) out += static_cast<char>(c - 'a' + 'A');
    phrase.remove_prefix(close + 1);
  }
  return out;
}

std::string page() {
  std::string out = "\n| line | printed by Linux | meaning for copies | what to do |\n|---|---|---|---|\n";
  for (const auto& m : detail::messages()) {
    if (m.what != detail::LogWord::event && m.what != detail::LogWord::timeout) continue;
    out.append("| `")
        .append(words(m.phrase))
        .append("` | ")
        .append(m.versions)
        .append(" | ")
        .append(m.means)
        .append(" | ");
    out.append(m.to_do).append(" |\n");
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const bool write = argc == 3 && std::string_view(argv[1]) == "--write";
  if (argc != 2 && !write) {
    std::cerr << "usage: messages [--write] FILE\n";
    return 2;
  }
  const std::string path = argv[argc - 1];
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto marker = text.find(kMarker);
  const auto end = text.find('\n', marker);
  if (marker == text.npos || end == text.npos) {
    std::cerr << path << ": no such file, or no line that says\n" << kMarker << '\n';
    return 1;
  }
  const auto wanted = text.substr(0, end + 1) + page();
  if (write) return std::ofstream(path) << wanted, 0;
  if (text == wanted) return 0;
  std::cerr << path << ": not what lib/dump/message_table.cpp says; run: ninja -C build bless\n";
  return 1;
}
