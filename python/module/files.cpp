// SPDX-License-Identifier: MIT
// What answers from files: doctor and calibrate; and the plans of collectives.
#include "answer.hpp"
#include "bytes.hpp"
#include "collectives/plan.hpp"
#include "json/calibrate.hpp"
#include "json/json.hpp"
#include "module.hpp"
#include "schedule.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/simulate/measurements.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

namespace sdma::python {
namespace {

using Diagnostics = std::vector<Diagnostic>;
using json::Json;

/// The bytes of a `.ring` file, or the text of a dump.
void add_dump(doctor::Snapshot& s, const std::string& bytes, const std::string& file) {
  if (const auto all = std::as_bytes(std::span(bytes)); is_dump(all))
    return doctor::add(s, value_or_fail(from_bytes(all, file)), file);
  auto dumps = value_or_fail(read_text_dump(bytes, file));
  for (const auto& d : dumps.dumps) {
    if (d.dwords.empty()) fail(fmt::format("{}: there is no dump in this text", file), "pass a .ring file, or dwords");
    doctor::add(s, d, file);
  }
  for (const auto& n : dumps.notes) s.notes.push_back(n.message);
}

/// `dumps`: (name, bytes) of each.
py::object diagnose(const std::vector<Recording>& traces, const std::vector<std::pair<std::string, py::bytes>>& dumps) {
  doctor::Snapshot s;
  for (const auto& t : traces) doctor::add(s, *t.trace, t.name), s.from = t.name;
  for (const auto& [name, bytes] : dumps) add_dump(s, bytes, name), s.from = name;
  if (s.queues.empty()) fail("there is no queue in these sources", "pass recordings, or dumps of rings");
  const auto found = long_call([=](const Stop&) {
    const auto d = doctor::diagnose(s);
    return std::pair{json::of(d), to_text(d)};
  });
  return py::make_tuple(to_python(found.first), found.second);
}

/// What a machine predicts for each line of a table.
py::object predicted(const std::string& path, const MachineDescription& machine) {
  const auto found = value_or_fail(long_call([=](const Stop&) -> Result<Json, Diagnostics> {
    const auto table = read_measurements(path);
    if (!table) return table.error();
    const auto p = predict(table->observations, machine);
    if (!p) return p.error();
    return json::predicted(*table, *p, machine);
  }));
  return to_python(found);
}

/// The answer, and the fitted machine. `limit`: seconds.
py::object fitted(const std::string& path, const MachineDescription& start, double limit) {
  if (!(limit > 0 && limit < 1e9)) throw py::value_error("limit is a number of seconds above 0");
  using Found = Result<std::pair<Json, MachineDescription>, Diagnostics>;
  const auto found = value_or_fail(long_call([=](const Stop& stop) -> Found {
    const auto table = read_measurements(path);
    if (!table) return table.error();
    auto options = table->options;
    if (options.free.empty())
      return Diagnostics{{.where = path,
                          .message = "the table has no free parameter",
                          .hint = "add a line '#: free NAME START' (sdma/simulate/measurements.hpp)"}};
    options.deadline = Deadline::in(std::chrono::nanoseconds(static_cast<std::int64_t>(limit * 1e9)));
    options.progress = [&](const FitProgress&) { return !stop; };
    const auto f = fit(table->observations, table->from(start), options);
    if (!f) return f.error();
    const auto machine = rounded(*f, options);
    const auto p = predict(table->observations, machine);
    if (!p) return p.error();
    return std::pair{json::of(*f, options, machine, *table, *p), machine};
  }));
  return py::make_tuple(to_python(found.first), found.second);
}

/// The plan of a collective: its schedule, the variant that was chosen, and notes about fallbacks.
py::object plan(const Words& settings) {
  collectives::Options o;
  for (const auto& [name, value] : settings) {
    const bool matrix = name == "matrix";
    const auto wrong = matrix ? collectives::set_matrix(o, value) : collectives::set(o, name, value);
    if (!wrong.empty())
      fail(wrong, matrix ? std::string(collectives::kMatrixForm) : "docs/collectives.md lists the options");
  }
  auto p = value_or_fail(collectives::plan(o));
  const auto variant = collectives::name(p.options.variant);
  Content c{.schedule = std::move(p.schedule), .file = fmt::format("{}_{}", collectives::name(o.collective), variant)};
  return py::make_tuple(std::make_shared<Box>(std::move(c)), variant, p.notes);
}

}  // namespace

void add_files(py::module_& m) {
  m.def("diagnose", diagnose);
  m.def("predicted", predicted);
  m.def("fitted", fitted);
  m.def("plan", plan);
}

}  // namespace sdma::python
