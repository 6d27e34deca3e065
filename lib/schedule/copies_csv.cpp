// SPDX-License-Identifier: MIT
// Reads the CSV of rocprofv3 --memory-copy-trace, by the names of its columns: ROCm 7.0 moved them.
#include "copies_forms.hpp"

#include "../core/csv.hpp"
#include "../core/words.hpp"
#include "sdma/core/number.hpp"

#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// "4", "Agent 4" or, with --agent-index type-relative, "GPU 0" and "CPU 0": these say what they are.
CopyRow::Side said_by(std::string_view agent, CopyRow::Side direction) {
  if (agent.starts_with("GPU ")) return CopyRow::Side::gpu;
  if (agent.starts_with("CPU ")) return CopyRow::Side::host;
  return direction;
}
std::string agent_name(std::string&& field) {
  return field.empty() || field.find_first_not_of("0123456789") != field.npos ? std::move(field) : "Agent " + field;
}

}  // namespace

CopiesResult read_rocprof_csv(std::string_view text, std::string_view file) {
  const auto wrong = [&](std::string message, std::string hint = {}) {
    return Diagnostic{.where = std::string(file), .message = std::move(message), .hint = std::move(hint)};
  };
  const auto header = csv_fields(take_line(text));
  if (!header) return wrong("line 1 is not a line of a CSV file", kCopyForms);
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < header->size(); ++i) columns.emplace((*header)[i], i);
  for (const auto* name : {"Direction", "Source_Agent_Id", "Destination_Agent_Id", "Start_Timestamp", "End_Timestamp"})
    if (columns.count(name) == 0)
      return wrong(fmt::format("the CSV has no column {}", name), "give the file NAME_memory_copy_trace.csv");
  const bool streams = columns.count("Stream_Id") != 0;
  CopyTable t{.form = "the CSV of rocprofv3", .file = std::string(file)};
  for (std::size_t number = 2; !text.empty(); ++number) {
    const auto row = csv_fields(take_line(text));
    if (row && row->size() == 1 && row->front().empty()) continue;
    if (!row || row->size() != header->size())
      return wrong(fmt::format("line {} does not have the {} fields of the first line", number, header->size()));
    const auto field = [&](const char* name) { return (*row)[columns.at(name)]; };
    const auto begin = parse_count(field("Start_Timestamp")), end = parse_count(field("End_Timestamp"));
    if (!begin || !end || *end < *begin)
      return wrong(fmt::format("line {} does not end after it begins", number), "times are nanoseconds");
    const auto d = direction_of(field("Direction"));
    if (d == Direction::unknown)
      return wrong(fmt::format("line {}: '{}' is not a known direction", number, field("Direction")));
    CopyRow r{.from = agent_name(field("Source_Agent_Id")),
              .to = agent_name(field("Destination_Agent_Id")),
              .stream = streams ? field("Stream_Id") : "",
              .begin_ns = *begin,
              .end_ns = *end,
              .where = fmt::format("line {}", number)};
    r.from_is = said_by(r.from, source_of(d));
    r.to_is = said_by(r.to, destination_of(d));
    if (r.from_is != source_of(d) || r.to_is != destination_of(d))
      return wrong(fmt::format("line {}: {} is not what {} and {} are", number, field("Direction"), r.from, r.to));
    t.rows.push_back(std::move(r));
  }
  return copies_of(std::move(t));
}

}}}  // namespace sdma::v0_3::detail
