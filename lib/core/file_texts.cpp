// SPDX-License-Identifier: MIT
#include "file_texts.hpp"

#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// What a line says that is not indented.
FileText begun(std::string_view line) {
  using Kind = FileText::Kind;
  constexpr std::string_view kHas = " = ", kLeads = " -> ";
  const auto has = line.find(kHas), leads = line.find(kLeads);
  if (has != line.npos)
    return {Kind::file, std::string(line.substr(0, has)), std::string(line.substr(has + kHas.size())) + "\n"};
  if (leads != line.npos)
    return {Kind::link, std::string(line.substr(0, leads)), std::string(line.substr(leads + kLeads.size()))};
  if (line.ends_with('/')) return {Kind::directory, std::string(line.substr(0, line.size() - 1))};
  return {Kind::file, std::string(line)};
}

}  // namespace

void FileTexts::fill(std::string_view section, const FileValues& values,
                     const std::function<void(FileText)>& take) const {
  constexpr std::string_view kIndent = "  ";
  auto rest = text_.substr(std::min(text_.find(fmt::format("\n[{}]\n", section)), text_.size()));
  if (rest.empty()) throw std::invalid_argument(fmt::format("no section [{}] in a text of files", section));
  rest.remove_prefix(1);
  take_line(rest);
  while (!rest.empty() && !rest.starts_with('[')) {
    const auto line = take_line(rest);
    if (line.empty() || line.starts_with('#')) continue;
    auto file = begun(line);
    while (rest.starts_with(kIndent)) file.text.append(take_line(rest).substr(kIndent.size())).append("\n");
    take({file.kind, values.filled(file.path), values.filled(file.text)});
  }
}

}}}  // namespace sdma::v0_3::detail
