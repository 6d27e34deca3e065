// SPDX-License-Identifier: MIT
// Readers of files that people write or edit: any text is refused with an error that says where, or becomes a value
// that survives its own text. The first character chooses the reader:
//
//   t  a topology     m  a machine     l  a trace     j  packets as JSON     s  a schedule, which is also simulated
//   n  names of addresses   c  copies that other tools recorded
#include "sdma/core/names.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/schedule/copies.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/stream/json.hpp"
#include "sdma/trace/write.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}
void require(const sdma::Diagnostic& e) { require(!e.message.empty() && e.where.starts_with("fuzz")); }

void topology(std::string_view text) {
  const auto t = sdma::topology_from_json(text, "fuzz");
  if (!t) return require(t.error());
  const auto again = sdma::topology_from_json(sdma::to_json(*t), "again");
  require(again && *again == *t);
}

void machine(std::string_view text) {
  const auto m = sdma::machine_from_json(text, "fuzz");
  if (!m) return require(m.error());
  const auto again = sdma::machine_from_json(sdma::to_json(*m), "again");
  require(again && *again == *m);
  static_cast<void>(sdma::to_table(*m));
}

void trace(std::string_view text) {
  const auto t = sdma::trace::from_json_lines(text, "fuzz");
  if (!t) return require(t.error());
  const auto again = sdma::trace::from_json_lines(sdma::trace::to_json_lines(*t), "again");
  require(again && *again == *t);
  static_cast<void>(sdma::trace::to_text(*t));
  static_cast<void>(sdma::trace::to_perfetto(*t));
  static_cast<void>(sdma::trace::timeline_svg(*t));
}

void names(std::string_view text) {
  const auto t = sdma::parse_names(text, "fuzz");
  if (!t) return require(t.error());
  const auto again = sdma::parse_names(sdma::print_names(*t), "again");
  require(again && *again == *t);
  for (const auto& r : t->ranges()) require(t->text(r.va) == r.name && t->find(r.va + (r.bytes - 1)) == t->find(r.va));
}

void packets(std::string_view text) {
  const auto dwords = sdma::from_json_lines(text, "fuzz");
  if (!dwords) {
    require(!dwords.error().empty());
    for (const auto& e : dwords.error()) require(e);
    return;
  }
  const auto again = sdma::from_json_lines(sdma::to_json_lines(*dwords), "again");
  require(again && *again == *dwords);
}

void simulation(std::string_view text) {
  constexpr std::uint64_t kSteps = 3000, kMostBytes = 1 << 20;
  sdma::SourceMap map;
  const auto s = sdma::parse_schedule(
      text, "fuzz", {.max_rounds = 64, .max_text = 4096, .max_dwords = 1024, .max_items = 128, .map = &map});
  if (!s) return;
  std::uint64_t bytes = 0;
  for (const auto& b : s->buffers) bytes += b.bytes <= kMostBytes ? b.bytes : kMostBytes;
  static const auto machine = *sdma::mi300x_machine();
  const auto run = [&](bool contents) {
    auto t = sdma::simulate(*s, machine, {.contents = contents, .max_steps = kSteps, .map = &map});
    if (!t) {
      require(!t.error().empty());
      for (const auto& e : t.error()) require(!e.message.empty());
    } else {
      require(t->steps <= kSteps && t->ns >= 0 && t->ns <= t->total_ns);
      double phases = 0;
      for (const auto p : t->phase_ns) phases += p;
      require(phases >= t->ns * (1 - 1e-6) - 1 && phases <= t->ns * (1 + 1e-6) + 1);
      static_cast<void>(sdma::to_json(*t));
    }
    return t;
  };
  const auto t = run(false);
  // The bytes of large buffers would take long to fill.
  if (bytes > kMostBytes) return;
  const auto u = run(true);
  require(t.has_value() == u.has_value());
  if (t) require(t->total_ns == u->total_ns && t->bytes == u->bytes);
}

/// A recording is refused, or becomes a schedule that can be read, and that its times do not contradict. After an empty
/// line, a CSV is followed by a table of its calls.
void copies(std::string_view text) {
  sdma::CopiesOptions options{.generation = sdma::Generation::v4_4_2};
  const auto end = text.find("\n\n");
  if (end != text.npos && text.substr(0, text.find('\n')).find("Direction") != text.npos) {
    options.calls.push_back({.file = "fuzz", .text = std::string(text.substr(end + 2))});
    text = text.substr(0, end);
  }
  const auto r = sdma::read_copies(text, "fuzz", options);
  if (!r) return require(r.error());
  require(!r->copies.empty() && sdma::contradictions(*r).empty());
  for (std::size_t i = 0; i < r->copies.size(); ++i)
    for (const auto before : r->copies[i].after) require(before < i);
  if (const auto s = sdma::parse_schedule(sdma::schedule_text(*r), "fuzz"); !s)
    for (const auto& e : s.error()) require(e);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't': topology(text); break;
    case 'm': machine(text); break;
    case 'l': trace(text); break;
    case 'j': packets(text); break;
    case 's': simulation(text); break;
    case 'n': names(text); break;
    case 'c': copies(text); break;
    default: break;
  }
  return 0;
}
