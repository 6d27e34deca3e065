// SPDX-License-Identifier: MIT
// What is generated from the table of messages: the end of docs/messages.md.
//
//   messages FILE            exit code 1 and a message if the part of FILE after its marker line is out of date
//   messages --write FILE    replaces that part; the text before the marker is written by hand and kept
//   messages --lines         prints a line with each message, and what it means, for log_tools.py
#include "../../lib/dump/messages.hpp"
#include "../support/generated_part.hpp"
#include "example.hpp"

#include <iostream>
#include <string>
#include <string_view>

namespace {

using namespace sdma;

constexpr std::string_view kMarker = "Generated from lib/dump/message_table.cpp from here on: ninja -C build bless";

/// Numbers are N, and other places are their names in capitals.
std::string words(std::string_view phrase) {
  std::string out;
  detail::each_place(
      phrase, [&](std::string_view text) { out += text; },
      [&](char kind, std::string_view name) {
        if (kind == 0)
          for (const char c : name) out += static_cast<char>(c - 'a' + 'A');
        else out += kind == '#' ? "N" : kind == '$' ? "0xN" : "...";
      });
  return out;
}

/// The doctor says what it means, line by line; the lines of a page fault become one fact.
bool is_event(const detail::Message& m) {
  return m.what == detail::LogWord::event || m.what == detail::LogWord::timeout;
}

std::string page() {
  std::string out = "\n| line | printed by Linux | meaning for copies | what to do |\n|---|---|---|---|\n";
  for (const auto& m : detail::messages()) {
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
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (argc == 2 && option == "--lines") {
    for (const auto& m : detail::messages())
      if (is_event(m)) std::cout << example(m.phrase) << '\t' << m.means << '\n';
    return 0;
  }
  const bool write = argc == 3 && option == "--write";
  if (argc != 2 && !write) {
    std::cerr << "usage: messages --lines | [--write] FILE\n";
    return 2;
  }
  return generated_part(argv[argc - 1], kMarker, page(), {.write = write, .source = "lib/dump/message_table.cpp"});
}
