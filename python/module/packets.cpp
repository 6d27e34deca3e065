// SPDX-License-Identifier: MIT
// Packets: what the registry says about them, and dwords to values and back.
#include "answer.hpp"
#include "bytes.hpp"
#include "module.hpp"
#include "sdma/core/number.hpp"
#include "sdma/packets/catalogue.hpp"
#include "sdma/stream/text.hpp"

#include <fmt/format.h>

namespace sdma::python {
namespace {

Generation generation(const std::string& name) {
  const auto g = generation_of(name);
  if (g) return *g;
  std::string known;
  for (const auto& r : kGenerations)
    if (known.find(fmt::format(" {},", r.name)) == known.npos) known += fmt::format(" {},", r.name);
  known.pop_back();
  fail(fmt::format("'{}' is not a generation of sDMA engines", name),
       fmt::format("a version, which is one of{}; or a target such as gfx942", known));
}

std::string_view name(Kind k) {
  switch (k) {
    case Kind::address: return "address";
    case Kind::value: return "value";
    case Kind::hex: return "hex";
    case Kind::flag: return "flag";
    case Kind::payload: return "payload";
    case Kind::bytes: return "bytes";
    case Kind::count: break;
  }
  return "count";
}

/// Each packet of a generation once: (name, doc, fields), or None in place of fields that are not described.
py::list registry(const std::string& of) {
  py::list out;
  for (const auto& p : catalogue(generation(of)).packets()) {
    if (p.foreign) continue;
    py::list fields;
    for (const auto& f : p.fields) {
      py::dict names;
      for (const auto& e : f.enumerants) names[py::str(std::string(e.text))] = e.value;
      fields.append(py::make_tuple(f.name, f.doc, name(f.kind), f.optional, f.default_value, names));
    }
    out.append(py::make_tuple(p.name, p.doc, p.fields_unknown ? py::object(py::none()) : py::object(fields)));
  }
  return out;
}

py::bytes bytes_of(std::span<const std::uint32_t> d) {
  return {reinterpret_cast<const char*>(d.data()), d.size_bytes()};
}

/// (name, bytes) for each packet. The name is None for what is not a whole packet of this generation.
py::list split(const py::object& data, const std::string& of) {
  const auto dwords = dwords_of(data);
  py::list out;
  for (Reader r{dwords, catalogue(generation(of))}; r;) {
    const auto v = r.next();
    const bool known = v.whole() && !v.info->foreign;
    out.append(py::make_tuple(known ? py::object(py::str(std::string(v.info->name))) : py::object(py::none()),
                              bytes_of(v.dwords)));
  }
  return out;
}

py::object value_of_field(const FieldInfo& f, const Unfolded& whole) {
  if (f.kind == Kind::payload) {
    py::list out;
    for (const auto d : whole.payload()) out.append(d);
    return out;
  }
  const auto value = value_of(f, whole.data());
  for (const auto& e : f.enumerants)
    if (e.value == value) return py::str(std::string(e.text));
  if (f.kind == Kind::flag) return py::bool_(value != 0);
  return py::int_(value);
}

/// The fields of one packet.
py::dict fields(const py::object& data, const std::string& of) {
  const auto dwords = dwords_of(data);
  py::dict out;
  if (dwords.empty()) return out;
  const auto v = Reader{dwords, catalogue(generation(of))}.next();
  if (!v.whole() || v.info->foreign) return out;
  const Unfolded whole{*v.info, v.dwords};
  for (const auto& f : v.info->fields)
    if (whole.has(f)) out[py::str(std::string(f.name))] = value_of_field(f, whole);
  return out;
}

py::bytes assembled(const std::string& text, const std::string& file, const std::string& of) {
  const AssembleOptions options{.generation = generation(of)};
  return bytes_of(value_or_fail(long_call([=](const Stop&) { return assemble(text, file, options); })));
}

std::string text(const py::object& data, const std::string& of) {
  return disassemble(dwords_of(data), {.generation = generation(of)});
}

}  // namespace

void add_packets(py::module_& m) {
  m.attr("default_generation") = name_of(kDefaultGeneration);
  py::list all;
  for (const auto& r : kGenerations) all.append(r.name);
  m.attr("generations") = all;
  m.def("registry", registry);
  m.def("split", split);
  m.def("fields", fields);
  m.def("assemble", assembled);
  m.def("packets_text", text);
}

}  // namespace sdma::python
