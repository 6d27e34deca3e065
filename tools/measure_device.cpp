// SPDX-License-Identifier: MIT
#include "measure_device.hpp"

#include "core/median.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

namespace sdma::tool {
namespace {

/// Half of the mechanisms vary by more than this between passes: the machine has other work.
constexpr double kBusy = 0.1;

/// The median of the relative spreads.
double noise(const Measurements& m) {
  std::vector<double> all;
  for (const auto& o : m.observations) all.push_back(o.spread / o.value);
  return detail::median(std::move(all));
}

/// The table, each schedule that it names, and the machine, in a folder.
int save(const std::string& folder, const Measured& m, const std::vector<Mechanism>& all) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return complain(shown(folder) + ": cannot be created: " + error.message(), "--save another folder"), kInput;
  const auto path = [&](const std::string& name) { return (std::filesystem::path(folder) / name).string(); };
  std::set<std::string> written;
  for (const auto& each : all)
    if (written.insert(each.file).second)
      if (const auto code = write_text(path(each.file), each.text); code != kOk) return code;
  if (const auto code = write_text(path("start.json"), to_json(m.start)); code != kOk) return code;
  return write_text(
      path("mechanisms.csv"),
      to_csv(m.table, "Times of single mechanisms: sdma calibrate --from mechanisms.csv --start start.json"));
}

}  // namespace

Measured measure_device(DeviceKind kind, const DeviceMeasurement& o) {
  Measured out;
  const auto fail = [&](int code) {
    out.code = code;
    return std::move(out);
  };
  auto device = open_device(kind);
  if (!device) return report(device.error()), fail(kInput);
  if (const auto note = caveat(**device); !note.empty())
    report({.severity = Severity::note, .where = std::string(name(kind)), .message = note});
  const auto& node = (*device)->topology();
  auto all = mechanisms(node, {.most_bytes = o.most_bytes});
  if (all.empty())
    return complain("the node has no GPU with an engine", "sdma topology shows the nodes of a device"), fail(kInput);
  for (const auto& path : o.also) {
    const auto text = read_text(path);
    if (!text) return report(text.error()), fail(kInput);
    auto m = mechanism(std::filesystem::path(path).filename().string(), *text);
    if (!m) {
      for (auto d : m.error()) {
        d.where = "--also " + d.where;
        report(d);
      }
      return fail(kInput);
    }
    all.push_back(*std::move(m));
  }
  std::size_t measured = 0;
  keep_what_is_known();
  auto table = [&] {
    Doing measuring("measuring");
    MeasureOptions options{.source = fmt::format("measured on {}", node.name),
                           .judged = o.also.size(),
                           .passes = static_cast<std::uint32_t>(o.passes)};
    options.progress = [&](const Mechanism& m, std::size_t done, std::size_t of) {
      measuring.show([&] {
        return fmt::format("pass {} of {}, {} %: {}", done / all.size() + 1, o.passes, 100 * done / of, m.id());
      });
      measured = done;
      return interrupted == 0;
    };
    return measure(**device, all, options);
  }();
  if (!table && interrupted != 0) {
    const auto of = all.size() * o.passes;
    return fail(stopped(fmt::format("{} of {} measurements were made, and no machine was written", measured, of)));
  }
  if (!table) return report(table.error()), fail(kInput);
  out.table = std::move(*table);
  out.start = unfitted(node, out.table);
  if (const auto n = noise(out.table); n > kBusy && !o.busy) {
    complain(fmt::format("the machine is busy: half of the times vary by more than {:.0f} % between passes", 100 * n),
             "stop other programs and measure again, or accept these times with --busy");
    return fail(kUndecided);
  }
  if (!o.save.empty()) out.code = save(o.save, out, all);
  return out;
}

}  // namespace sdma::tool
