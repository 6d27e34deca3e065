// SPDX-License-Identifier: MIT
// Reads the CSV of rocprofv3 --memory-copy-trace, by the names of its columns: ROCm 7.0 moved them. The tables of calls
// and of ranges of roctx lie in files of their own, with the same columns: the domain of a row says what it is.
#include "copies_forms.hpp"
#include "roctx_ranges.hpp"

#include "../core/csv.hpp"
#include "../core/words.hpp"
#include "sdma/core/number.hpp"

#include <map>
#include <set>

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

/// The columns of a CSV by their names, and its rows.
class RocprofCsv {
 public:
  using Fields = std::vector<std::string>;
  explicit RocprofCsv(std::string_view file) : file_(file) {}

  Diagnostic wrong(std::string message, std::string hint = {}) const {
    return {.where = file_, .message = std::move(message), .hint = std::move(hint)};
  }
  std::optional<Diagnostic> head(std::string_view& text, std::initializer_list<const char*> needed, const char* hint) {
    const auto header = csv_fields(take_line(text));
    if (!header) return wrong("line 1 is not a line of a CSV file", kCopyForms);
    fields_ = header->size();
    for (std::size_t i = 0; i < header->size(); ++i) columns_.emplace((*header)[i], i);
    for (const auto* name : needed)
      if (!has(name)) return wrong(fmt::format("the CSV has no column {}", name), hint);
    return {};
  }
  bool has(const char* name) const { return columns_.count(name) != 0; }
  /// Calls f(row, number of its line) for each row, until it returns what is wrong.
  template <class F> std::optional<Diagnostic> each(std::string_view text, F f) const {
    for (std::size_t number = 2; !text.empty(); ++number) {
      auto row = csv_fields(take_line(text));
      if (row && row->size() == 1 && row->front().empty()) continue;
      if (!row || row->size() != fields_)
        return wrong(fmt::format("line {} does not have the {} fields of the first line", number, fields_));
      if (auto error = f(*row, number)) return error;
    }
    return {};
  }
  std::string& field(Fields& row, const char* name) const { return row[columns_.find(name)->second]; }

 private:
  std::string file_;
  std::size_t fields_ = 0;
  std::map<std::string, std::size_t, std::less<>> columns_;
};

/// Reads a table of calls or of ranges. `processes`: to which its rows belong.
std::optional<Diagnostic> read_calls(const CallsTable& table, RoctxRanges& ranges, std::set<std::string>& processes) {
  RocprofCsv csv(table.file);
  std::string_view text = table.text;
  if (auto error = csv.head(
          text, {"Domain", "Function", "Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp"},
          "give NAME_marker_api_trace.csv, NAME_hip_api_trace.csv or NAME_hsa_api_trace.csv"))
    return error;
  return csv.each(text, [&](RocprofCsv::Fields& row, std::size_t number) -> std::optional<Diagnostic> {
    const auto count = [&](const char* name) { return parse_count(csv.field(row, name)); };
    const auto thread = count("Thread_Id"), correlation = count("Correlation_Id"), begin = count("Start_Timestamp"),
               end = count("End_Timestamp");
    if (!thread || !correlation || !begin || !end || *end < *begin)
      return csv.wrong(fmt::format("line {} is not a call with a thread, a correlation and two times", number),
                       "times are nanoseconds, and it does not end before it begins");
    processes.insert(csv.field(row, "Process_Id"));
    const auto& domain = csv.field(row, "Domain");
    if (RoctxRanges::is_range(domain))
      ranges.range({.thread = *thread, .begin = *begin, .end = *end, .name = std::move(csv.field(row, "Function"))});
    else if (!domain.starts_with("MARKER_")) ranges.call(*correlation, *thread, *begin);
    return {};
  });
}

/// The phases of copies, of which `ranges` knows the correlations. What is wrong with a table is a note.
void find_phases(const std::vector<CallsTable>& tables, RoctxRanges& ranges, CopyTable& t) {
  std::set<std::string> processes;
  std::string names;
  for (const auto& table : tables) {
    if (const auto error = read_calls(table, ranges, processes))
      return t.unknown.push_back(
          fmt::format("phases: {}: {}, so ranges of roctx are not read", error->where, error->message));
    names += (names.empty() ? "" : ", ") + table.file;
  }
  if (processes.size() > 1)
    return t.unknown.push_back(
        fmt::format("phases: {} {} of {} processes, and the copies do not say theirs, so ranges of roctx are not read",
                    names, tables.size() == 1 ? "is" : "are", processes.size()));
  t.form += " with " + names;
  const auto without =
      ranges.resolve([&](std::size_t copy, std::string phase) { return t.rows[copy].phase = std::move(phase), true; });
  RoctxRanges::say(without, ranges.without_thread(), t.unknown);
}

}  // namespace

CopiesResult read_rocprof_csv(std::string_view text, std::string_view file, const CopiesOptions& o) {
  RocprofCsv csv(file);
  const auto wrong = [&](std::string message, std::string hint = {}) {
    return std::optional(csv.wrong(std::move(message), std::move(hint)));
  };
  if (auto error =
          csv.head(text, {"Direction", "Source_Agent_Id", "Destination_Agent_Id", "Start_Timestamp", "End_Timestamp"},
                   "give the file NAME_memory_copy_trace.csv"))
    return *std::move(error);
  const bool streams = csv.has("Stream_Id"), correlations = csv.has("Correlation_Id");
  RoctxRanges ranges;
  CopyTable t{.form = "the CSV of rocprofv3", .file = std::string(file)};
  auto error = csv.each(text, [&](RocprofCsv::Fields& row, std::size_t number) -> std::optional<Diagnostic> {
    const auto field = [&](const char* name) -> std::string& { return csv.field(row, name); };
    const auto begin = parse_count(field("Start_Timestamp")), end = parse_count(field("End_Timestamp"));
    if (!begin || !end || *end < *begin)
      return wrong(fmt::format("line {} does not end after it begins", number), "times are nanoseconds");
    const auto d = direction_of(field("Direction"));
    if (d == Direction::unknown)
      return wrong(fmt::format("line {}: '{}' is not a known direction", number, field("Direction")));
    CopyRow r{.from = agent_name(std::move(field("Source_Agent_Id"))),
              .to = agent_name(std::move(field("Destination_Agent_Id"))),
              .stream = streams ? field("Stream_Id") : "",
              .begin_ns = *begin,
              .end_ns = *end,
              .where = fmt::format("line {}", number)};
    r.from_is = said_by(r.from, source_of(d));
    r.to_is = said_by(r.to, destination_of(d));
    if (r.from_is != source_of(d) || r.to_is != destination_of(d))
      return wrong(fmt::format("line {}: {} is not what {} and {} are", number, field("Direction"), r.from, r.to));
    if (const auto call = correlations ? parse_count(field("Correlation_Id")) : std::nullopt)
      ranges.copy(*call, t.rows.size());
    else ranges.copy_without_call();
    t.rows.push_back(std::move(r));
    return {};
  });
  if (error) return *std::move(error);
  if (!o.calls.empty()) find_phases(o.calls, ranges, t);
  return copies_of(std::move(t));
}

CopiesResult read_rocprof_memory(std::string_view text, std::string_view file) {
  RocprofCsv csv(file);
  if (auto error =
          csv.head(text, {"Operation", "Agent_Id", "Allocation_Size", "Address", "Start_Timestamp", "End_Timestamp"},
                   "give the file NAME_memory_allocation_trace.csv"))
    return *std::move(error);
  CopyTable t{.memory_alone = true, .form = "the CSV of rocprofv3's allocations", .file = std::string(file)};
  std::map<std::uint64_t, std::size_t> live;
  auto error = csv.each(text, [&](RocprofCsv::Fields& row, std::size_t number) -> std::optional<Diagnostic> {
    const auto where = fmt::format("line {}", number);
    const auto address = parse_count(csv.field(row, "Address"));
    const auto begin = parse_count(csv.field(row, "Start_Timestamp")),
               end = parse_count(csv.field(row, "End_Timestamp"));
    if (!address || !begin || !end || *end < *begin)
      return csv.wrong(where + " is not an allocation with an address and two times",
                       "times are nanoseconds, and it does not end before it begins");
    // A free has neither agent nor size: it is paired by its address.
    const auto& operation = csv.field(row, "Operation");
    const auto known = live.find(*address);
    if (operation.find("FREE") != operation.npos) {
      if (known == live.end()) return {};
      t.allocations[known->second].freed = where;
      t.allocations[known->second].to_ns = begin;
      live.erase(known);
      return {};
    }
    if (operation.find("ALLOCATE") == operation.npos)
      return csv.wrong(fmt::format("{}: '{}' is not a known operation", where, operation), "it allocates, or it frees");
    const auto size = parse_count(csv.field(row, "Allocation_Size"));
    if (!size)
      return csv.wrong(fmt::format("{}: '{}' is not a number of bytes", where, csv.field(row, "Allocation_Size")));
    if (*address == 0) return {};  // it failed
    const auto agent = agent_name(std::move(csv.field(row, "Agent_Id")));
    live[*address] = t.allocations.size();
    t.allocations.push_back({.address = *address,
                             .bytes = *size,
                             .memory = agent.empty() ? "memory" : "memory of " + agent,
                             .where = where,
                             .from_ns = end});
    return {};
  });
  if (error) return *std::move(error);
  return copies_of(std::move(t));
}

}}}  // namespace sdma::v0_3::detail
