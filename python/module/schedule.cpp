// SPDX-License-Identifier: MIT
// Schedules: read from text, built, and printed.
#include "schedule.hpp"
#include "answer.hpp"
#include "bytes.hpp"
#include "described.hpp"
#include "module.hpp"

#include "core/nearest.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>

namespace sdma::python {
namespace {

using BoxPtr = std::shared_ptr<Box>;

/// A number of a GPU, or "host".
Place place_of(const py::object& o) {
  if (py::isinstance<py::str>(o)) {
    if (o.cast<std::string>() == "host") return Place::host();
  } else if (PyIndex_Check(o.ptr())) {
    const auto n = py::reinterpret_steal<py::object>(PyNumber_Index(o.ptr()));
    const auto v = n ? PyLong_AsLong(n.ptr()) : -1;
    if (!PyErr_Occurred() && v >= 0 && v < Schedule::kMostGpus) return Place::gpu(static_cast<std::uint32_t>(v));
    PyErr_Clear();
  }
  throw py::value_error(fmt::format("{} is not a place: pass the number of a GPU, 0 to {}, or \"host\"",
                                    std::string(py::repr(o)), Schedule::kMostGpus - 1));
}

Init init_of(const std::string& word) {
  return one_of<Init>(word, "an init", {{"poison", Init::poison}, {"random", Init::random}, {"zero", Init::zero}});
}

Compare compare_of(const std::string& word) {
  std::string known;
  for (const auto& n : grammar::names<Compare>) {
    if (n.text == word) return static_cast<Compare>(n.value);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", n.text);
  }
  throw py::value_error(fmt::format("'{}' is not a comparison: pass one of {}", word, known));
}

/// Ranges of `bytes` bytes that begin at these addresses.
Schedule::Sum sum_of(const py::args& parts, std::uint64_t bytes, const std::string& type, bool any_order) {
  using Type = Schedule::Sum::Type;
  Schedule::Sum sum{
      .type = one_of<Type>(type, "a type of a sum", {{"f32", Type::f32}, {"bf16", Type::bf16}, {"i32", Type::i32}}),
      .any_order = any_order};
  for (const auto& p : parts) sum.parts.push_back({GpuVa{p.cast<std::uint64_t>()}, bytes});
  if (sum.parts.empty()) throw py::value_error("a sum needs at least one part");
  return sum;
}

/// A number of up to 64 bits, negative or not, or (factor, constant) of an Epoch.
EpochValue value_of(const py::object& o) {
  const auto number = [](const py::handle& h) {
    const auto n = py::reinterpret_steal<py::object>(PyNumber_Index(h.ptr()));
    if (!n) throw py::error_already_set();
    int overflow = 0;
    const auto v = PyLong_AsLongLongAndOverflow(n.ptr(), &overflow);
    if (overflow == 0) return static_cast<std::int64_t>(v);
    const auto u = overflow > 0 ? PyLong_AsUnsignedLongLong(n.ptr()) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      throw py::value_error("a value has at most 64 bits");
    }
    return static_cast<std::int64_t>(u);
  };
  if (py::hasattr(o, "factor") && py::hasattr(o, "constant"))
    return EpochValue(number(o.attr("factor")), number(o.attr("constant")));
  return EpochValue(number(o));
}

/// The same, or the value of a sample.
ActionValue action_value_of(const py::object& o) {
  ActionValue v = value_of(o);
  if (py::hasattr(o, "sample")) v.sample = o.attr("sample").cast<std::string>();
  return v;
}

class QueueRef {
 public:
  QueueRef(BoxPtr box, std::size_t index) : box_(std::move(box)), index_(index) {}
  std::size_t index() const noexcept { return index_; }
  const BoxPtr& box() const noexcept { return box_; }
  std::string name() const {
    const auto& q = now();
    return to_string(q.place) + "." + q.name;
  }
  std::vector<std::uint32_t> dwords() const { return now().dwords; }

  /// The packet's dwords as they are, with its values that depend on the epoch.
  /// `epochs`: the fields whose value depends on the epoch.
  void append(const py::object& data, const py::dict& epochs) {
    std::vector<std::pair<std::string, EpochValue>> fields;
    for (const auto& [name, value] : epochs)
      fields.emplace_back(name.cast<std::string>(), value_of(py::reinterpret_borrow<py::object>(value)));
    const auto added = dwords_of(data);
    const auto* info = identify(added);
    auto& q = box_->edit().queues[index_];
    const auto begin = q.dwords.size();
    q.dwords.insert(q.dwords.end(), added.begin(), added.end());
    for (const auto& [name, value] : fields)
      for (const auto& f : info->fields)
        if (f.name == name) q.epochs.push_back({begin, f.name, value});
  }
  QueueRef& copy(std::uint64_t src, std::uint64_t dst, std::uint64_t bytes) {
    auto& q = box_->edit().queues[index_];
    q.copy({.src = GpuVa{src}, .dst = GpuVa{dst}, .bytes = bytes});
    if (q.refused.empty()) return *this;
    const auto refused = std::exchange(q.refused, "");
    fail(fmt::format("queue {}: {}", name(), refused), "a copy has at least one byte");
  }

 private:
  const Schedule::Queue& now() const { return box_->now().schedule.queues[index_]; }
  BoxPtr box_;
  std::size_t index_;
};

/// The actions of a host thread or a kernel, or those of a repeat among them.
class ScriptRef {
 public:
  ScriptRef(BoxPtr box, bool kernel, std::size_t index, std::vector<std::size_t> path = {})
      : box_(std::move(box)), kernel_(kernel), index_(index), path_(std::move(path)) {}

  // Each appends an action, and returns the script: pybind11 finds the object of Python that has it.
  ScriptRef& submit(const py::args& all) {
    const auto queues = all.cast<std::vector<QueueRef>>();
    for (const auto& q : queues) own(q);
    return append([&](Schedule& s, Script& script) {
      if (queues.empty()) script.submit_all();
      for (const auto& q : queues) script.submit(s.queues[q.index()]);
    });
  }
  ScriptRef& set(std::uint64_t signal, const py::object& value) {
    return append([v = action_value_of(value), signal](auto&, Script& s) { s.set(GpuVa{signal}, v); });
  }
  ScriptRef& add(std::uint64_t signal, const py::object& value) {
    return append([v = action_value_of(value), signal](auto&, Script& s) { s.add(GpuVa{signal}, v); });
  }
  ScriptRef& wait(std::uint64_t signal, const std::string& func, const py::object& value) {
    return append(
        [f = compare_of(func), v = action_value_of(value), signal](auto&, Script& s) { s.wait(GpuVa{signal}, f, v); });
  }
  ScriptRef& wait_rptr(const QueueRef& q) {
    own(q);
    return append([&](Schedule& s, Script& script) { script.wait_rptr(s.queues[q.index()]); });
  }
  ScriptRef& sample(std::string name, std::uint64_t signal) {
    return append([&](auto&, Script& s) { s.sample(std::move(name), GpuVa{signal}); });
  }
  ScriptRef& compute(std::uint64_t ns, std::uint64_t hbm) {
    return append([=](auto&, Script& s) { s.compute(ns, hbm); });
  }
  ScriptRef& load(std::uint64_t at, std::uint64_t bytes) {
    return append([=](auto&, Script& s) { s.load(Range{GpuVa{at}, bytes}); });
  }
  ScriptRef& store(std::uint64_t at, std::uint64_t bytes, std::optional<std::uint8_t> byte) {
    return append([=](auto&, Script& s) { s.store(Range{GpuVa{at}, bytes}, byte); });
  }
  ScriptRef& store_sum(std::uint64_t at, std::uint64_t bytes, const py::args& parts, const std::string& type,
                       bool any_order) {
    return append([&, sum = sum_of(parts, bytes, type, any_order)](auto&, Script& s) {
      s.store(Range{GpuVa{at}, bytes}, sum);
    });
  }
  using Life = Schedule::Script& (Schedule::Script::*)(GpuVa);
  template <Life life> ScriptRef& buffer(std::uint64_t address) {
    return append([=](auto&, Script& s) { (s.*life)(GpuVa{address}); });
  }
  using Access = Schedule::Script& (Schedule::Script::*)(GpuVa, Place);
  template <Access access> ScriptRef& mapping(std::uint64_t address, std::uint32_t gpu) {
    return append([=](auto&, Script& s) { (s.*access)(GpuVa{address}, Place::gpu(gpu)); });
  }
  ScriptRef repeat(std::uint64_t rounds) {
    std::size_t at = 0;
    append([&](Schedule& s, Script& script) {
      at = actions(s).size();
      script.repeat(rounds, [](auto&) {});
    });
    auto path = path_;
    path.push_back(at);
    return {box_, kernel_, index_, std::move(path)};
  }

 private:
  using Range = Schedule::Range;
  using Script = Schedule::Script;

  template <class Fn> ScriptRef& append(Fn fn) {
    auto& s = box_->edit();
    Script script{s, actions(s)};
    fn(s, script);
    return *this;
  }
  void own(const QueueRef& q) const {
    if (q.box() != box_)
      fail(fmt::format("queue {} belongs to another schedule", q.name()), "give a queue of this one");
  }
  std::vector<Schedule::Action>& actions(Schedule& s) const {
    auto* all = kernel_ ? &s.kernels[index_].actions : &s.hosts[index_].actions;
    for (const auto i : path_) all = &(*all)[i].body;
    return *all;
  }
  BoxPtr box_;
  bool kernel_;
  std::size_t index_;
  std::vector<std::size_t> path_;
};

BoxPtr parse(const std::string& text, const std::string& file, const Words& params) {
  const auto options = parse_options(params, file);
  auto content = value_or_fail(long_call([=](const Stop&) -> Result<Content, std::vector<Diagnostic>> {
    Content c{.file = file, .source = text, .parse = options};
    auto given = options;
    given.map = &c.map;
    auto made = text;
    msccl::Made with;
    if (auto wrong = msccl::make_schedule(made, file, given.set, with)) return std::move(wrong->all);
    auto s = parse_schedule(made, file, given);
    if (!s) {
      with.move_lines(s.error());
      return s.error();
    }
    with.move_lines(c.map);
    if (with) c.made = msccl::Text{std::move(made), std::move(with)};
    c.schedule = *std::move(s);
    return c;
  }));
  return std::make_shared<Box>(std::move(content));
}

std::uint64_t add_buffer(Box& b, std::string name, std::uint64_t bytes, const py::object& place,
                         const std::string& init, std::uint64_t alignment, const std::vector<py::object>& map) {
  Schedule::Buffer buffer{
      .place = place_of(place), .name = std::move(name), .bytes = bytes, .alignment = alignment, .init = init_of(init)};
  for (const auto& p : map) buffer.map.push_back(place_of(p));
  return b.edit().add_buffer(std::move(buffer)).value;
}
std::uint64_t add_signal(Box& b, std::string name, const py::object& place, std::uint64_t value, std::uint32_t bits) {
  return b.edit().add_signal({.place = place_of(place), .name = std::move(name), .value = value, .bits = bits}).value;
}
QueueRef add_queue(const BoxPtr& b, std::string name, const py::object& place, const py::object& peer,
                   std::uint32_t engine, std::uint64_t ring_bytes, bool from_host, bool doorbell_each, bool network) {
  Schedule::Queue q{.place = place_of(place), .name = std::move(name)};
  if (!peer.is_none()) q.peer = place_of(peer);
  q.engine = engine;
  q.ring_bytes = ring_bytes;
  q.from_host = from_host;
  q.doorbell_each = doorbell_each;
  q.network = network;
  auto& s = b->edit();
  s.add_queue(std::move(q));
  return {b, s.queues.size() - 1};
}

/// Calls fn(symbol, name) for each buffer and signal.
template <class Fn> void each_symbol(const Schedule& s, Fn fn) {
  for (const bool signal : {false, true})
    for (std::size_t i = 0; i < (signal ? s.signals.size() : s.buffers.size()); ++i) {
      const SymbolOffset at{signal, i, 0};
      fn(at, name_of(s, at));
    }
}
std::uint64_t address(const SymbolOffset& at) {
  return (at.signal ? link_signal(at.index) : link_buffer(at.index)).value;
}
std::uint64_t address_named(const Box& b, const std::string& wanted) {
  std::vector<std::string> names;
  std::optional<std::uint64_t> found;
  each_symbol(b.now().schedule, [&](const SymbolOffset& at, const std::string& name) {
    if (name == wanted) found = address(at);
    names.push_back(name);
  });
  if (found) return *found;
  throw py::key_error(fmt::format("{} has no buffer and no signal '{}'{}", b.now().file, wanted,
                                  did_you_mean(wanted, {names.begin(), names.end()})));
}
py::list symbols(const Box& b, bool signals) {
  py::list out;
  const auto& s = b.now().schedule;
  each_symbol(s, [&](const SymbolOffset& at, const std::string& name) {
    if (at.signal != signals) return;
    const auto place = signals ? s.signals[at.index].place : s.buffers[at.index].place;
    py::dict one;
    one["name"] = name;
    one["place"] = place.is_host() ? py::object(py::str("host")) : py::object(py::int_(place.index));
    one["bytes"] = bytes_of(s, at);
    one["address"] = address(at);
    if (signals) one["value"] = s.signals[at.index].value;
    out.append(one);
  });
  return out;
}
std::vector<QueueRef> queues(const BoxPtr& b) {
  std::vector<QueueRef> out;
  for (std::size_t i = 0; i < b->now().schedule.queues.size(); ++i) out.emplace_back(b, i);
  return out;
}

std::string flat(Box& b) {
  return long_call([s = b.snapshot()](const Stop&) { return to_text(s->schedule); });
}
std::string formatted(Box& b, bool as_flat) {
  const auto& c = b.now();
  return c.source && !as_flat ? format_source(c.made ? c.made->text : *c.source) : flat(b);
}

void add_script(py::module_& m) {
  using py::arg;
  Described<ScriptRef>(m, "Script")
      .def("submit", &ScriptRef::submit)
      .def("set", &ScriptRef::set, arg("signal"), arg("value"))
      .def("add", &ScriptRef::add, arg("signal"), arg("value"))
      .def("wait", &ScriptRef::wait, arg("signal"), arg("func"), arg("value"))
      .def("wait_rptr", &ScriptRef::wait_rptr, arg("queue"))
      .def("sample", &ScriptRef::sample, arg("name"), arg("signal"))
      .def("compute", &ScriptRef::compute, arg("ns"), arg("hbm") = 0)
      .def("load", &ScriptRef::load, arg("address"), arg("bytes"))
      .def("store", &ScriptRef::store, arg("address"), arg("bytes"), arg("byte") = py::none())
      .def("store_sum", &ScriptRef::store_sum, arg("address"), arg("bytes"), arg("type") = "f32",
           arg("any_order") = false)
      .def("alloc", &ScriptRef::buffer<&Schedule::Script::alloc>, arg("buffer"))
      .def("free", &ScriptRef::buffer<&Schedule::Script::free>, arg("buffer"))
      .def("map", &ScriptRef::mapping<&Schedule::Script::map>, arg("buffer"), arg("gpu"))
      .def("unmap", &ScriptRef::mapping<&Schedule::Script::unmap>, arg("buffer"), arg("gpu"))
      .def("export_handle", &ScriptRef::buffer<&Schedule::Script::export_handle>, arg("buffer"))
      .def("close_handle", &ScriptRef::buffer<&Schedule::Script::close_handle>, arg("buffer"))
      .def("repeat", &ScriptRef::repeat, arg("rounds"))
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](const ScriptRef&, const py::args&) {});
}

void add_queue_class(py::module_& m) {
  Described<QueueRef>(m, "Queue")
      .def_property_readonly("name", &QueueRef::name)
      .def_property_readonly("dwords", &QueueRef::dwords)
      .def("_append", &QueueRef::append)
      .def("copy", &QueueRef::copy, py::kw_only(), py::arg("src"), py::arg("dst"), py::arg("bytes"));
}

}  // namespace

Snapshot Box::snapshot() {
  if (!valid_ && !content_->source)
    if (const auto all = problems(content_->schedule); !all.empty()) fail(all);
  valid_ = taken_ = true;
  return content_;
}
Schedule& Box::edit() {
  if (std::exchange(taken_, false)) content_ = std::make_shared<Content>(*content_);
  content_->source.reset();
  content_->made.reset();
  valid_ = false;
  return content_->schedule;
}

void add_schedule(py::module_& m) {
  using py::arg;
  add_queue_class(m);
  add_script(m);
  Described<Box, BoxPtr>(m, "Schedule")
      .def(py::init([](std::uint32_t gpus) {
             if (gpus > Schedule::kMostGpus)
               throw py::value_error("a schedule has at most " + std::to_string(Schedule::kMostGpus) + " GPUs");
             return Box{{.schedule = {.gpus = gpus}}};
           }),
           arg("gpus") = 1)
      .def("copy", &Box::copy)
      .def("add_buffer", add_buffer, arg("name"), arg("bytes"), py::kw_only(), arg("place") = "host",
           arg("init") = "poison", arg("alignment") = 1, arg("map") = std::vector<py::object>{})
      .def("add_signal", add_signal, arg("name"), py::kw_only(), arg("place") = "host", arg("value") = 0,
           arg("bits") = 64)
      .def("add_queue", add_queue, arg("name"), py::kw_only(), arg("place"), arg("peer") = py::none(),
           arg("engine") = 0, arg("ring_bytes") = 0, arg("from_host") = false, arg("doorbell_each") = false,
           arg("network") = false)
      .def(
          "add_host",
          [](const BoxPtr& b, std::string name) {
            auto& s = b->edit();
            s.add_host(std::move(name));
            return ScriptRef{b, false, s.hosts.size() - 1};
          },
          arg("name") = "main")
      .def(
          "add_kernel",
          [](const BoxPtr& b, std::string name, const py::object& place, std::uint32_t share, std::uint32_t workgroups,
             const std::string& protocol) {
            const auto at = place_of(place);
            auto& s = b->edit();
            s.add_kernel(at, std::move(name));
            auto& k = s.kernels.back();
            k.share = share;
            k.workgroups = workgroups;
            k.protocol = one_of<Schedule::Protocol>(protocol, "a protocol",
                                                    {{"plain", Schedule::Protocol::plain},
                                                     {"simple", Schedule::Protocol::simple},
                                                     {"ll", Schedule::Protocol::ll},
                                                     {"tracked", Schedule::Protocol::tracked}});
            return ScriptRef{b, true, s.kernels.size() - 1};
          },
          arg("name"), py::kw_only(), arg("place"), arg("share") = 100, arg("workgroups") = 0,
          arg("protocol") = "plain")
      .def(
          "expect_equal",
          [](Box& b, std::uint64_t left, std::uint64_t right, std::uint64_t bytes, bool old) {
            b.edit().expectations.push_back({.left = {GpuVa{left}, bytes}, .right = {GpuVa{right}, bytes}, .old = old});
          },
          arg("left"), arg("right"), arg("bytes"), py::kw_only(), arg("old") = false)
      .def(
          "expect_sum",
          [](Box& b, std::uint64_t left, std::uint64_t bytes, const py::args& parts, const std::string& type,
             bool any_order) {
            b.edit().expect_sum({GpuVa{left}, bytes}, sum_of(parts, bytes, type, any_order));
          },
          arg("left"), arg("bytes"), arg("type") = "f32", arg("any_order") = false)
      .def(
          "expect_value",
          [](Box& b, std::uint64_t signal, std::uint64_t value) { b.edit().expect_value(GpuVa{signal}, value); },
          arg("signal"), arg("value"))
      .def("__getitem__", address_named)
      .def_property_readonly("gpus", [](const Box& b) { return b.now().schedule.gpus; })
      .def_property_readonly("file", [](const Box& b) { return b.now().file; })
      .def_property_readonly("source", [](const Box& b) { return b.now().source; })
      .def_property_readonly("given",
                             [](const Box& b) {
                               py::dict out;
                               for (const auto& each : b.now().parse.set) out[py::str(each.name)] = each.value;
                               return out;
                             })
      .def_property_readonly("params", [](const Box& b) { return b.now().map.params; })
      .def_property_readonly("buffers", [](const Box& b) { return symbols(b, false); })
      .def_property_readonly("signals", [](const Box& b) { return symbols(b, true); })
      .def_property_readonly("queues", queues)
      .def("problems",
           [](const Box& b) { return to_python(json::of(std::span<const Diagnostic>(problems(b.now().schedule)))); })
      .def("fmt", formatted, py::kw_only(), arg("flat") = false)
      .def("__str__", flat)
      .def("__eq__", [](const Box& a, const py::object& b) {
        return py::isinstance<Box>(b) && a.now().schedule == b.cast<const Box&>().now().schedule;
      });
  m.def("parse", parse);
  m.def(
      "fmt", [](const std::string& text) { return format_source(text); }, arg("text"), manual("fmt"));
}

}  // namespace sdma::python
