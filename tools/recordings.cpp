// SPDX-License-Identifier: MIT
#include "recordings.hpp"
#include "../lib/core/page.hpp"
#include "input.hpp"
#include "output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sdma::tool {
namespace {

bool is_database(const std::string& path) {
  std::string head(kDatabaseMark.size(), 0);
  return path != "-" &&
         std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size())) &&
         head == kDatabaseMark;
}

/// The tables of calls that rocprofv3 has written beside the CSV of its copies, if there are ranges of roctx.
Result<std::vector<CallsTable>, Diagnostic> calls_beside(const std::string& path) {
  constexpr std::string_view kCopies = "memory_copy_trace.csv";
  std::vector<CallsTable> tables;
  if (!path.ends_with(kCopies)) return tables;
  const auto begin = path.substr(0, path.size() - kCopies.size());
  for (const auto* name : {"marker_api_trace.csv", "hip_api_trace.csv", "hsa_api_trace.csv"}) {
    if (std::error_code none; !std::filesystem::is_regular_file(begin + name, none)) {
      if (tables.empty()) return tables;
      continue;
    }
    auto text = read_text(begin + name);
    if (!text) return text.error();
    tables.push_back({.file = shown(begin + name), .text = *std::move(text)});
  }
  return tables;
}

bool touches(std::uint64_t page, std::optional<std::uint64_t> begin, std::uint64_t bytes) {
  return begin && page + detail::kPage > *begin && (page <= *begin || page - *begin < bytes);
}
std::string offset_in(std::uint64_t page, std::uint64_t begin, std::uint64_t bytes) {
  const auto mb = [](std::uint64_t n) { return static_cast<double>(n) / 1e6; };
  return fmt::format("{:.1f} MB into {:.1f} MB", mb(page > begin ? page - begin : 0), mb(bytes));
}

}  // namespace

#if !SDMA_WITH_SQLITE
Result<RecordedCopies, Diagnostic> read_rocpd(std::string_view, const std::string& name, const CopiesOptions&) {
  return Diagnostic{.where = name,
                    .message = "this is a database, and this program was built without SQLite3",
                    .hint = "build it with libsqlite3-dev, or record with rocprofv3 --output-format json"};
}
Result<RecordedCopies, Diagnostic> read_rocpd(const std::string& path, const CopiesOptions& o) {
  return read_rocpd({}, shown(path), o);
}
#endif

bool begins_recording(std::string_view begin) noexcept {
  constexpr std::string_view kWords[] = {"rocprofiler-sdk-tool", "traceEvents",     "schemaVersion",
                                         "deviceProperties",     "displayTimeUnit", "\"ph\":"};
  if (begin.starts_with(kDatabaseMark)) return true;
  const auto at = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == begin.npos) return false;
  begin.remove_prefix(at);
  if (begin.starts_with("[]")) return true;  // a Chrome trace without an event
  if (begin[0] != '{' && begin[0] != '[') {
    const auto line = begin.substr(0, begin.find('\n'));
    return line.find("Direction") != line.npos || line.find("Allocation_Size") != line.npos;
  }
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view w) { return begin.find(w) != begin.npos; });
}

Result<RecordedCopies, Diagnostic> load_copies(const std::string& path, const CopiesOptions& o) {
  const Doing reading("reading " + shown(path));
  if (is_database(path) && !o.calls.empty())
    return Diagnostic{.where = o.calls.front().file,
                      .message = shown(path) + " is a database, which has its calls itself",
                      .hint = "give the database alone"};
  if (is_database(path)) return read_rocpd(path, o);
  const auto text = read_text(path);
  if (!text) return text.error();
  if (text->starts_with(kDatabaseMark)) return read_rocpd(*text, shown(path), o);
  if (!o.calls.empty()) return read_copies(*text, shown(path), o);
  auto calls = calls_beside(path);
  if (!calls) return calls.error();
  auto with = o;
  with.calls = *std::move(calls);
  return read_copies(*text, shown(path), with);
}

/// When the memory was freed, as seen from the fault. The runtime reports a fault some time after it.
static std::string end_of(const RecordedAllocation& a) {
  const auto by = a.aligned.empty() ? std::string{} : fmt::format(" (by {})", a.aligned);
  if (a.gone) return fmt::format(" and freed in {}, so it was gone when {} reported the fault{}", a.freed, a.fault, by);
  if (!a.fault.empty())
    return a.freed.empty() ? fmt::format(" and not freed in it when {} reported the fault{}", a.fault, by)
                           : fmt::format(" and freed in {}, after {} had reported the fault{}", a.freed, a.fault, by);
  if (a.freed.empty()) return {};
  if (!a.aligned.empty())
    return fmt::format(
        " and freed in {}, whether before or after the fault is not known: it was at about the same time{}", a.freed,
        by);
  return fmt::format(
      " and freed in {}, whether before or after the fault is not known: the two files have no event in common that "
      "aligns their times",
      a.freed);
}

std::string place_in(const RecordedCopies& r, std::uint64_t page, std::uint32_t process) {
  const auto other = [&](const std::string& of) {
    return process != 0 && !of.empty() && of != std::to_string(process);
  };
  std::string out;
  for (const auto& c : r.copies)
    for (const auto& [side, at] : {std::pair("source", c.source), std::pair("destination", c.destination),
                                   std::pair("second destination", c.second)})
      if (out.empty() && !other(c.process) && touches(page, at, c.bytes))
        out = fmt::format("the {} of the copy of {} of {}, {}", side, c.where, r.file, offset_in(page, *at, c.bytes));
  // The allocation that a report of the fault is about counts, or else the last one.
  const RecordedAllocation* in = nullptr;
  for (const auto& a : r.allocations) {
    if (other(a.process) || !touches(page, a.address, a.bytes)) continue;
    const bool known = !a.fault.empty() || !a.aligned.empty();
    if (!in || known || (in->fault.empty() && in->aligned.empty())) in = &a;
  }
  if (in)
    out += fmt::format("{}{}, {}, allocated in {} of {}{}", out.empty() ? "" : "; in ", in->memory,
                       offset_in(page, in->address, in->bytes), in->where, r.file, end_of(*in));
  return out;
}

void tell_assumed(const RecordedCopies& r) {
  constexpr std::size_t kMost = 8;
  std::size_t told = 0;
  const auto note = [&](const std::string& text) {
    report({.severity = Severity::note, .where = r.file, .message = text});
  };
  const auto one = [&](const std::string& text) {
    if (++told <= kMost) note(text);
  };
  for (const auto& u : r.unknown) note(u);
  for (const auto& l : r.left_out) one("left out: " + l);
  for (const auto& c : r.copies)
    for (const auto& n : c.notes) one(fmt::format("{}: {}", c.where, n));
  if (told > kMost) note(fmt::format("{} more notes are comments of the schedule", told - kMost));
}

}  // namespace sdma::tool
