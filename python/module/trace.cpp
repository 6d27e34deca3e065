// SPDX-License-Identifier: MIT
// Recordings: read, drawn, converted and compared.
#include "answer.hpp"
#include "described.hpp"
#include "json/json.hpp"
#include "module.hpp"
#include "picture.hpp"
#include "sdma/trace/compare.hpp"
#include "sdma/trace/write.hpp"

#include <pybind11/stl.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace sdma::python {
namespace {

Recording parse_trace(const std::string& text, const std::string& file) {
  auto t = value_or_fail(long_call([=](const Stop&) { return trace::from_json_lines(text, file); }));
  return {file, std::make_shared<const trace::Trace>(std::move(t))};
}

trace::Form form_of(const std::string& word) {
  using trace::Form;
  return one_of<Form>(
      word, "a form of a trace",
      {{"perfetto", Form::perfetto}, {"html", Form::html}, {"jsonl", Form::jsonl}, {"text", Form::text}});
}

std::string text_of(const Recording& r, const std::string& form) {
  return long_call([r, f = form_of(form)](const Stop&) { return trace::to_string(*r.trace, f, r.name); });
}

/// `beside`: others in the same picture. `size`: width and height in pixels.
std::string svg(const Recording& r, const std::string& title, const std::optional<std::pair<double, double>>& size,
                const std::vector<Recording>& beside) {
  return long_call([=](const Stop&) {
    std::vector<trace::Titled> all{{beside.empty() ? "" : r.name, r.trace.get()}};
    for (const auto& other : beside) all.push_back({other.name, other.trace.get()});
    trace::TimelineOptions o{.title = title};
    if (size) std::tie(o.width, o.height) = pixels(*size);
    return trace::timelines_svg(all, o);
  });
}

py::object lines(const Recording& r) {
  py::list out;
  for (const auto& line : long_call([=](const Stop&) { return json::lines_of(*r.trace); })) out.append(to_python(line));
  return out;
}

/// `simulated`: the second is a simulation.
py::object compare(const Recording& measured, const Recording& other, bool simulated) {
  const auto found = value_or_fail(long_call([=](const Stop&) -> Result<json::Json, Diagnostic> {
    const auto c =
        trace::compare({measured.name, *measured.trace}, {simulated ? "the simulation" : other.name, *other.trace});
    if (!c) return c.error();
    auto j = json::of(*c, simulated ? "simulated" : "other");
    j["differences"] = json::of(std::span(c->differences));
    return j;
  }));
  return to_python(found);
}

}  // namespace

void add_trace(py::module_& m) {
  Described<Recording>(m, "Trace")
      .def_static("parse", parse_trace, py::arg("text"), py::arg("file") = "trace.jsonl")
      .def("to_string", text_of, py::arg("form") = "jsonl")
      .def("to_svg", svg, py::arg("title") = "", py::kw_only(), py::arg("size") = py::none(),
           py::arg("beside") = std::vector<Recording>{})
      .def_property_readonly("lines", lines)
      .def_property_readonly("name", [](const Recording& r) { return r.name; })
      .def_property_readonly("lost", [](const Recording& r) { return r.trace->lost; })
      .def("__len__", [](const Recording& r) { return r.trace->events.size(); });
  m.def("compare", compare);
}

}  // namespace sdma::python
