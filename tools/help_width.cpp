// SPDX-License-Identifier: MIT
#include "help_width.hpp"

#include "sdma/core/number.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace sdma::tool {
namespace {

constexpr std::string_view kExamples = "Examples:";

/// "Usage: ..", "Options:": such a line does not continue the paragraph before it.
bool begins_a_part(std::string_view line) {
  return line.starts_with("Usage: ") || line.starts_with("Manual: ") || line.ends_with(':');
}

/// Where a line continues: below the text of "  NAME   text", and otherwise below its first letter.
std::size_t continued(std::string_view line) {
  constexpr std::size_t kDeepest = 4;  // blanks before a name; more precede a text that continues
  const auto first = std::min(line.find_first_not_of(' '), line.size());
  if (first == 0 || first > kDeepest) return first;
  const auto gap = line.find("  ", first);
  // A name may leave one blank before the column of descriptions.
  if (gap > kHelpColumn && line.size() > kHelpColumn && line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ')
    return kHelpColumn;
  if (gap == line.npos) return line[first] == '-' ? first + kDeepest : first;  // the words of an option, deeper
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

/// Where to break, in front of a blank; npos: this line has no blank that helps.
std::size_t place_to_break(std::string_view line, std::size_t begin, std::size_t columns) {
  const auto at = line.rfind(' ', columns);
  if (at != line.npos && at > begin) return at;
  return line.find(' ', std::max(begin, columns));
}

}  // namespace

std::size_t help_columns() {
  if (const char* set = std::getenv("COLUMNS"))
    if (const auto n = parse_count(set); n && *n >= kNarrowestHelp) return static_cast<std::size_t>(*n);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kHelpColumns;
  return std::clamp<std::size_t>(size.ws_col, kNarrowestHelp, kWidestHelp);
}

std::string fitted(std::string_view help, std::size_t columns) {
  const auto next_line = [&help] {
    const auto end = std::min(help.find('\n'), help.size());
    std::string line(help.substr(0, end));
    help.remove_prefix(std::min(end + 1, help.size()));
    return line;
  };
  std::string out;
  bool examples = false;
  while (!help.empty()) {
    auto line = next_line();
    if (line.empty() && out.ends_with("\n\n")) continue;  // a group of hidden options leaves a blank line
    examples = examples || line == kExamples;
    const auto indent = continued(line);
    while (!examples && line.size() > columns) {
      const auto at = place_to_break(line, indent, columns);
      if (at == line.npos) break;
      out += line.substr(0, at) + "\n";
      line = std::string(indent, ' ') + line.substr(at + 1);
      // The rest of a paragraph fills the line.
      const auto following = help.substr(0, help.find('\n'));
      if (line.size() <= columns && following.find_first_not_of(' ') == indent && !begins_a_part(following))
        line += " " + next_line().substr(indent);
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace sdma::tool
