// SPDX-License-Identifier: MIT
#include "compare_recording.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace sdma::tool {
namespace {

constexpr std::size_t kShown = 8;  ///< copies that the table lists

std::string place(Place p) { return to_string(p); }

/// The time of the data packets of one copy on the idle machine.
Result<double, Diagnostic> alone(RecordedCopy c, std::size_t gpus, const MachineDescription& m) {
  c.after.clear();
  c.source = c.destination = std::nullopt;
  const auto text =
      schedule_text({.file = "one copy", .copies = {std::move(c)}, .gpus = std::vector<std::string>(gpus)});
  const auto s = parse_schedule(text, "one copy");
  if (!s) return s.error().front();
  trace::Recorder recorder(trace::Recorder::kGrows, "virtual");
  const auto r = simulate(*s, m, {.recorder = &recorder});
  if (!r) return r.error().front();
  // The last packet of the queue, an atomic, is none of the copy.
  const auto t = recorder.snapshot();
  std::uint64_t last = 0, begin = 0, end = 0;
  for (const auto& e : t.events)
    if (e.kind == trace::Kind::packet_begin && t.lanes[e.lane.value].group != "host") last = std::max(last, e.position);
  bool begun = false;
  for (const auto& e : t.events) {
    if (t.lanes[e.lane.value].group == "host" || e.position == last) continue;
    if (e.kind == trace::Kind::packet_begin && !std::exchange(begun, true)) begin = e.ns;
    if (e.kind == trace::Kind::packet_end) end = std::max(end, e.ns);
  }
  return static_cast<double>(end - std::min(begin, end));
}

}  // namespace

std::size_t BesideMachine::slower() const noexcept {
  std::size_t n = 0;
  for (const auto& r : rows) n += r.slower;
  return n;
}

Result<BesideMachine, Diagnostic> beside_machine(const RecordedCopies& r, const MachineDescription& m, double percent) {
  BesideMachine out{.slower_percent = percent};
  std::vector<std::uint64_t> begins, ends;
  for (const auto& c : r.copies)
    if (c.begin_ns && c.end_ns) begins.push_back(*c.begin_ns), ends.push_back(*c.end_ns);
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::map<std::tuple<std::string, std::string, std::string>, double> times;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> rows;
  for (std::size_t i = 0; i < r.copies.size(); ++i) {
    const auto& c = r.copies[i];
    const auto from = place(c.from), to = place(c.to);
    const auto kind = std::tuple(from, to, std::to_string(c.bytes));
    auto time = times.find(kind);
    if (!c.begin_ns || !c.end_ns || c.bytes == 0 || (time == times.end() && times.size() == kMostKinds)) {
      ++out.not_compared;
      continue;
    }
    if (time == times.end()) {
      const auto ns = alone(c, r.gpus.size(), m);
      if (!ns) {
        auto error = ns.error();
        error.where = fmt::format("{}: {}", r.file, c.where);
        return error;
      }
      time = times.emplace(kind, *ns).first;
    }
    BesideMachine::Copy one{
        .index = i, .measured_ns = static_cast<double>(*c.end_ns - *c.begin_ns), .alone_ns = time->second};
    const auto begun = std::lower_bound(begins.begin(), begins.end(), *c.end_ns) - begins.begin();
    const auto ended = std::upper_bound(ends.begin(), ends.end(), *c.begin_ns) - ends.begin();
    one.others = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, begun - ended - 1));
    const auto [row, added] = rows.try_emplace({c.process, c.stream, from, to}, out.rows.size());
    if (added) out.rows.push_back({.process = c.process, .stream = c.stream, .from = from, .to = to});
    auto& to_row = out.rows[row->second];
    ++to_row.copies;
    to_row.bytes += c.bytes;
    to_row.slower += one.excess() > percent;
    to_row.beside += one.others > 0;
    to_row.measured_ns += one.measured_ns;
    to_row.alone_ns += one.alone_ns;
    out.copies.push_back(one);
  }
  if (out.copies.empty())
    return Diagnostic{.where = r.file,
                      .message = "no copy of this recording has both a size and the times at which it began and ended",
                      .hint =
                          "the CSV of rocprofv3 has no sizes and a log of the HIP runtime no times: record JSON or a "
                          "database with rocprofv3"};
  return out;
}

std::string to_table(const BesideMachine& b, const RecordedCopies& r, const MachineDescription& m) {
  std::string out = fmt::format(
      "{} of {}, each beside the time that it takes alone on {}\nslower: by more than {} %; beside others: while other "
      "copies ran; engines: not recorded\n\n{:<24}{:<16}{:>7}{:>10}{:>14}{:>14}{:>9}{:>8}{:>8}\n",
      b.copies.size() == 1 ? "1 copy" : fmt::format("{} copies", b.copies.size()), r.file, m.name, b.slower_percent,
      "stream", "from, to", "copies", "bytes", "measured us", "alone us", "error", "slower", "beside");
  for (const auto& row : b.rows)
    out += fmt::format(
        "{:<24}{:<16}{:>7}{:>10}{:>14.3f}{:>14.3f}{:>+7.1f} %{:>8}{:>8}\n",
        (row.stream.empty() ? "not recorded" : row.stream) + (row.process.empty() ? "" : ", process " + row.process),
        row.from + " " + row.to, row.copies, size_text(row.bytes), row.measured_ns / 1e3, row.alone_ns / 1e3,
        row.alone_ns > 0 ? 100 * (row.measured_ns / row.alone_ns - 1) : 0.0, row.slower, row.beside);
  auto worst = b.copies;
  std::stable_sort(worst.begin(), worst.end(), [](const auto& x, const auto& y) {
    return x.measured_ns - x.alone_ns > y.measured_ns - y.alone_ns;
  });
  worst.erase(std::remove_if(worst.begin(), worst.end(), [&](const auto& c) { return c.excess() <= b.slower_percent; }),
              worst.end());
  if (!worst.empty()) out += "\nslower than the machine allows, the longest loss first\n";
  for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i) {
    const auto& c = r.copies[worst[i].index];
    out += fmt::format(
        "  {}: {} {} to {}: {:.3f} us, alone {:.3f} us ({:+.1f} %){}\n", c.where, size_text(c.bytes), place(c.from),
        place(c.to), worst[i].measured_ns / 1e3, worst[i].alone_ns / 1e3, worst[i].excess(),
        worst[i].others == 0 ? std::string(", no other copy ran") : fmt::format(", beside {} others", worst[i].others));
  }
  if (worst.size() > kShown) out += fmt::format("  and {} more: --json lists all\n", worst.size() - kShown);
  return out;
}

json::Json to_json(const BesideMachine& b, const RecordedCopies& r, const MachineDescription& m) {
  json::Json j{{"recording", r.file},
               {"form", r.form},
               {"machine", m.name},
               {"defaults", defaults_of(m)},
               {"engines", "not recorded"},
               {"slower_percent", b.slower_percent},
               {"not_compared", b.not_compared},
               {"unknown", r.unknown},
               {"rows", json::Json::array()},
               {"copies", json::Json::array()}};
  for (const auto& row : b.rows)
    j["rows"].push_back({{"process", row.process},
                         {"stream", row.stream},
                         {"from", row.from},
                         {"to", row.to},
                         {"copies", row.copies},
                         {"bytes", row.bytes},
                         {"measured_ns", row.measured_ns},
                         {"alone_ns", row.alone_ns},
                         {"slower", row.slower},
                         {"beside", row.beside}});
  for (const auto& one : b.copies) {
    const auto& c = r.copies[one.index];
    j["copies"].push_back({{"where", c.where},
                           {"stream", c.stream},
                           {"from", place(c.from)},
                           {"to", place(c.to)},
                           {"bytes", c.bytes},
                           {"begin_ns", *c.begin_ns},
                           {"measured_ns", one.measured_ns},
                           {"alone_ns", one.alone_ns},
                           {"others", one.others}});
  }
  return j;
}

std::vector<trace::PageTrace> pictures(const BesideMachine& b, const RecordedCopies& r) {
  std::vector<trace::PageTrace> both;
  for (const bool measured : {true, false}) {
    trace::Recorder recorder(2 * b.copies.size() + 1, "the recording's");
    // Copies of a lane that overlap have further lanes.
    std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::uint64_t, trace::LaneId>>> lanes;
    for (const auto& one : b.copies) {
      const auto& c = r.copies[one.index];
      const auto group = c.process.empty() ? std::string("copies") : "process " + c.process;
      const auto name = fmt::format("{}, {} to {}", c.stream.empty() ? "no stream recorded" : "stream " + c.stream,
                                    place(c.from), place(c.to));
      const auto end = *c.begin_ns + static_cast<std::uint64_t>(measured ? one.measured_ns : one.alone_ns);
      auto& rows = lanes[{group, name}];
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& l) { return l.first <= *c.begin_ns; });
      if (row == rows.end()) {
        const auto n = rows.size() + 1;
        row = rows.insert(rows.end(), {0, recorder.lane(group, n == 1 ? name : fmt::format("{} ({})", name, n))});
      }
      row->first = end;
      const auto what = recorder.text(fmt::format("{}: copies {}", c.where, size_text(c.bytes)));
      recorder.action_begin(row->second, *c.begin_ns, what);
      recorder.action_end(row->second, end);
    }
    both.push_back({measured ? r.file : "alone on the machine", recorder.snapshot()});
  }
  return both;
}

}  // namespace sdma::tool
