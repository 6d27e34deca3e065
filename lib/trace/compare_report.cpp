// SPDX-License-Identifier: MIT
// The comparison of a run with its simulation as a table, and as JSON.
#include "../core/json.hpp"
#include "sdma/trace/compare.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

using Json = sdma::detail::Json;

constexpr std::string_view kFrom[] = {"the trigger", "the first doorbell", "the first packet"};

std::string micros(double ns) { return fmt::format("{:.3f} us", ns / 1e3); }

void row(std::string& out, std::string_view what, std::string_view measured, std::string_view other,
         std::string_view error) {
  out += fmt::format("  {:<10} {:>14} {:>14} {:>10}\n", what, measured, other, error);
}
void row(std::string& out, std::string_view what, const TimePair& t) {
  const auto error = t.error();
  row(out, what, micros(t.measured), micros(t.other), error ? fmt::format("{:+.1f} %", *error) : "-");
}

Json pair(const TimePair& t, std::string_view other) {
  Json j{{"measured_ns", t.measured}};
  j[std::string(other) + "_ns"] = t.other;
  const auto error = t.error();
  j["error_percent"] = error ? Json(*error) : Json();
  return j;
}

}  // namespace

std::string to_table(const Comparison& c, std::string_view other) {
  auto out = fmt::format("the run, from {}\n", kFrom[static_cast<std::size_t>(c.origin)]);
  row(out, "", "measured", other, "error");
  row(out, "time", c.run);
  for (const auto& q : c.queues) {
    out += fmt::format("\n{} {}{}, packets: {}\n", q.measured.group, q.measured.name,
                       q.other == q.measured ? "" : fmt::format(" ({})", q.other.name), q.packets);
    row(out, "begin", q.begin);
    row(out, "end", q.end);
    for (std::size_t i = 0; i < kQueuePhases; ++i)
      if (q.phases[i] != TimePair{}) row(out, name(static_cast<QueuePhase>(i)), q.phases[i]);
  }
  return out;
}

std::string to_json(const Comparison& c, std::string_view other) {
  Json j{{"origin", name(c.origin)}, {"run", pair(c.run, other)}};
  j["queues"] = Json::array();
  for (const auto& q : c.queues) {
    Json row{{"group", q.measured.group}, {"measured", q.measured.name}};
    row[std::string(other)] = q.other.name;
    row["packets"] = q.packets;
    row["begin"] = pair(q.begin, other);
    row["end"] = pair(q.end, other);
    for (std::size_t i = 0; i < kQueuePhases; ++i)
      row["phases"][std::string(name(static_cast<QueuePhase>(i)))] = pair(q.phases[i], other);
    j["queues"].push_back(std::move(row));
  }
  j["differences"] = Json::array();
  for (const auto& d : c.differences) j["differences"].push_back({{"trace", d.where}, {"message", d.message}});
  return sdma::detail::json_text(j, 2) + "\n";
}

}}}  // namespace sdma::v0_3::trace
