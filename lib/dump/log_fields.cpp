// SPDX-License-Identifier: MIT
// The members of a record, such as one of JSON or of journald, that say its time, its priority and its text.
#include "log_forms.hpp"

#include "../core/words.hpp"
#include "log_times.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

struct LogFieldRow {
  std::string_view key;
  LogField what;
};
constexpr LogFieldRow kLogFields[] = {
    {"MESSAGE", LogField::text},
    {"message", LogField::text},
    {"msg", LogField::text},
    {"log", LogField::text},
    {"_raw", LogField::text},
    {"line", LogField::text},
    {"body", LogField::text},
    {"Body", LogField::text},
    {"textPayload", LogField::text},
    {"event.original", LogField::text},
    {"stdout", LogField::text},
    {"stderr", LogField::text},
    {"short_message", LogField::text},
    {"full_message", LogField::text},
    {"stringValue", LogField::text},
    {"content", LogField::text},
    {"text", LogField::text},
    {"_SOURCE_MONOTONIC_TIMESTAMP", LogField::boot_us},
    {"_SOURCE_BOOTTIME_TIMESTAMP", LogField::boot_us},
    {"__MONOTONIC_TIMESTAMP", LogField::boot_us},
    {"__REALTIME_TIMESTAMP", LogField::date_us},
    {"@timestamp", LogField::date},
    {"timestamp", LogField::date},
    {"time", LogField::boot_s},
    {"ts", LogField::date},
    {"timeUnixNano", LogField::date},
    {"date", LogField::date},
    {"PRIORITY", LogField::priority},
    {"priority", LogField::priority},
    {"pri", LogField::priority},
    {"_KERNEL_DEVICE", LogField::device},
    {"DEVICE", LogField::device},
    {"_HOSTNAME", LogField::host},
    {"hostname", LogField::host},
    {"host", LogField::host},
    {"host.name", LogField::host},
    {"node_name", LogField::host},
    {"nodename", LogField::host},
    {"node", LogField::host},
    {"instance", LogField::host},
    {"instance_id", LogField::host},
    {"logStreamName", LogField::host},
    {"pod_name", LogField::host},
    {"pod", LogField::host},
    {"_MACHINE_ID", LogField::host},
    {"_BOOT_ID", LogField::boot},
};

}  // namespace

LogFieldUse use_of_field(std::string_view key) noexcept {
  for (std::size_t i = 0; i < std::size(kLogFields); ++i)
    if (kLogFields[i].key == key) return {kLogFields[i].what, i};
  return {};
}

void take_field(LogFieldUse use, std::string_view value, LogRecord& r) noexcept {
  const auto n = whole_number<std::uint64_t>(value);
  const auto stands = [&] {
    if (r.when.empty()) r.when = value;
  };
  switch (use.what) {
    case LogField::boot_us:
      if (n && !r.seconds) r.seconds = static_cast<double>(*n) / 1e6, stands();
      break;
    case LogField::date_us:
      if (n && !r.date) r.date = static_cast<double>(*n) / 1e6;
      break;
    case LogField::boot_s:
      if (const auto s = seconds_in(value)) {
        if (*s < 1e9) r.seconds = s;
        else r.date = s;
        stands();
        break;
      }
      [[fallthrough]];
    case LogField::date: {
      LogCursor c{value};
      if (n) {  // s, ms, us or ns
        auto s = static_cast<double>(*n);
        while (s > 1e11) s /= 1000;
        r.date = s;
        stands();
      } else if (iso_date(c, r) || syslog_date(c, r)) {
        stands();
      } else if (const auto s = seconds_in(value)) {
        r.date = s;
        stands();
      }
      break;
    }
    case LogField::priority:
      if (n) r.priority = static_cast<unsigned>(*n % 8);
      break;
    case LogField::device:
      if (constexpr std::string_view kPci = "+pci:"; value.starts_with(kPci)) r.device = value.substr(kPci.size());
      break;
    case LogField::host:
      if (use.rank < r.host_rank) r.host = value, r.host_rank = use.rank;
      break;
    case LogField::boot: r.boot = value; break;
    case LogField::text:
    case LogField::none: break;
  }
}

std::size_t journal_key(std::string_view line) noexcept {
  std::size_t n = 0;
  while (n < line.size() && ((line[n] >= 'A' && line[n] <= 'Z') || is_decimal(line[n]) || line[n] == '_')) ++n;
  return n > 1 && n < line.size() && line[n] == '=' ? n : 0;
}

bool begins_export(std::string_view line) noexcept {
  if (journal_key(line) == 0) return false;
  for (const std::string_view key : {"__CURSOR=", "__REALTIME_TIMESTAMP=", "__MONOTONIC_TIMESTAMP=", "_BOOT_ID=",
                                     "_TRANSPORT=", "SYSLOG_IDENTIFIER=", "_SOURCE_MONOTONIC_TIMESTAMP=", "MESSAGE="})
    if (line.starts_with(key)) return true;
  return false;
}

bool begins_verbose(std::string_view line) noexcept {
  LogCursor c{line};
  LogRecord r;
  return iso_date(c, r) && c.blanks() && c.rest().starts_with("[s=");
}

}}}  // namespace sdma::v0_3::detail
