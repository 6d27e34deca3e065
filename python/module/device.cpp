// SPDX-License-Identifier: MIT
// Devices, their memory, and runs.
//
// A device as Python holds it, and memory of it. Python decides when
// objects die, in any order and perhaps in a child after a fork:
//
//   Opened        the device; memory and runs keep it open. In a child,
//                 its threads do not exist, so it is left as it is
//   Block         memory that NumPy arrays are views of; it stays while an array is
//   Stoppable     the device during one run, which Ctrl-C ends: its next wait_fault reports a fault
//
// One thread at a time uses an Opened: `Use` raises an error for the second, for another process, and after `close`.
// The lock of the interpreter is held, except by Stoppable.
#include "answer.hpp"
#include "bytes.hpp"
#include "core/nearest.hpp"
#include "json/json.hpp"
#include "json/run.hpp"
#include "long_call.hpp"
#include "module.hpp"
#include "schedule.hpp"
#include "sdma/device/open.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <unistd.h>
#include <algorithm>
#include <memory>
#include <vector>

namespace sdma::python {

struct Block;

struct Opened {
  Opened(DeviceKind k, std::unique_ptr<Device> d) : kind(k), device(std::move(d)) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (::getpid() != owner) static_cast<void>(device.release());
  }

  const DeviceKind kind;
  const pid_t owner = ::getpid();
  bool closed = false, used = false;
  std::vector<std::weak_ptr<Block>> blocks{};
  std::unique_ptr<Device> device;
};

struct Block {
  Block(std::shared_ptr<Opened> o, std::optional<GpuId> w, Memory m)
      : opened(std::move(o)), where(w), memory(std::move(m)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    // In a child after a fork, the memory belongs to the parent.
    if (::getpid() != opened->owner) static_cast<void>(new Memory(std::move(memory)));
  }
  std::shared_ptr<Opened> opened;
  std::optional<GpuId> where;  ///< nothing: the host
  Memory memory;
};

/// The right of this thread to use a device.
class Use {
 public:
  explicit Use(const std::shared_ptr<Opened>&);
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { opened_->used = false; }

 private:
  std::shared_ptr<Opened> opened_;
};

class Stoppable final : public ForwardingDevice {
 public:
  Stoppable(Device& d, const Stop& stop) noexcept : ForwardingDevice(d), stop_(stop) {}

  Result<Fault> wait_fault(Deadline d) noexcept override {
    // One fault for each call that asks: each host thread of a run has to see one, and stops asking at the next.
    thread_local bool given = false;
    given = stop_ && !given;
    return given ? Fault{} : ForwardingDevice::wait_fault(d);
  }

 private:
  const Stop& stop_;
};

namespace {

using Arrays = std::vector<std::pair<std::string, py::object>>;
using json::Json;

DeviceKind kind_of(const std::string& word) {
  if (const auto k = device_kind(word)) return *k;
  throw py::value_error(fmt::format("'{}' is not a device: pass {}", word, kDeviceNames));
}
Ordering order_of(const std::string& word) {
  return one_of<Ordering>(
      word, "an order",
      {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}});
}

std::shared_ptr<Opened> open(const std::string& device, std::uint32_t gpus, const std::string& order,
                             std::uint64_t seed, trace::Recorder* recorder = nullptr) {
  const auto kind = kind_of(device);
  OpenOptions o{.gpus = gpus, .soft = {.ordering = order_of(order), .seed = seed, .trace = recorder}};
  auto opened = value_or_fail(open_device(kind, o));
  return std::make_shared<Opened>(kind, std::move(opened));
}

/// What a run takes from Python and gives back to it.
struct Request {
  Schedule schedule;
  std::string file;
  std::optional<SourceMap> map;
  BindOptions bind{};
  RunOptions run{};
  std::vector<std::pair<Schedule::Range, Held>> outputs{};
};

struct Answer {
  Json report{}, diagnosis{};
};

/// The buffer of a schedule with this name. `what`: how the caller has named it, in errors.
std::size_t buffer_named(const Schedule& s, const std::string& what, const std::string& wanted) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    names.push_back(name_of(s, SymbolOffset{false, i, 0}));
    if (names.back() == wanted) return i;
  }
  fail(fmt::format("{}: the schedule has no buffer '{}'{}", what, wanted,
                   did_you_mean(wanted, {names.begin(), names.end()})),
       "schedule.buffers lists them");
}

/// An array for the first bytes of a buffer, or of them. `list`: the argument that has it, in errors.
std::pair<std::size_t, Held> part_of(const Schedule& s, const char* list, const std::string& name,
                                     const py::object& array, Access access) {
  const auto what = fmt::format("{}['{}']", list, name);
  const auto i = buffer_named(s, what, name);
  auto h = held(array, what, access);
  if (h.bytes().size() > s.buffers[i].bytes)
    fail(fmt::format("{} has {} bytes, but the buffer has {}", what, h.bytes().size(), s.buffers[i].bytes),
         "pass a slice of it, or make the buffer larger");
  return {i, std::move(h)};
}
void set_inputs(Request& r, const Arrays& inputs) {
  for (const auto& [name, array] : inputs) {
    const auto in = part_of(r.schedule, "inputs", name, array, Access::read).second;
    r.run.inputs.push_back({name, {in.bytes().begin(), in.bytes().end()}});
  }
}
void set_outputs(Request& r, const Arrays& outputs) {
  for (const auto& [name, array] : outputs) {
    auto [i, out] = part_of(r.schedule, "outputs", name, array, Access::write);
    r.outputs.emplace_back(Schedule::Range{link_buffer(i), out.bytes().size()}, std::move(out));
  }
}
/// Arrays in the device's memory become the buffers themselves.
std::vector<std::shared_ptr<Block>> set_buffers(Request& r, Opened& device, const Arrays& buffers) {
  std::vector<std::shared_ptr<Block>> kept;
  for (const auto& [name, array] : buffers) {
    const auto what = fmt::format("buffers['{}']", name);
    auto& b = r.schedule.buffers[buffer_named(r.schedule, what, name)];
    const auto view = held(array, what, Access::write);
    const auto bytes = view.bytes();
    const auto lies_in = [&](const std::shared_ptr<Block>& block) {
      const auto all = block ? block->memory.host() : std::span<std::byte>();
      return !all.empty() && bytes.data() >= all.data() && bytes.data() + bytes.size() <= all.data() + all.size();
    };
    std::shared_ptr<Block> block;
    for (const auto& each : device.blocks)
      if (auto held_block = each.lock(); lies_in(held_block)) block = std::move(held_block);
    if (!block)
      fail(fmt::format("{} is not in the memory of this device", what),
           "make it with device.array(), or pass it in inputs or outputs, which copies");
    if (bytes.size() != b.bytes)
      fail(fmt::format("{} has {} bytes, but the buffer has {}", what, bytes.size(), b.bytes), "they must be equal");
    const auto gpu = b.place.is_host() || r.bind.gpus.empty() ? b.place.index : r.bind.gpus.at(b.place.index).value;
    if (block->where ? b.place.is_host() || block->where->value != gpu : !b.place.is_host())
      fail(fmt::format("{} is memory of {}", what,
                       block->where ? to_string(Place::gpu(block->where->value)) : "the host"),
           "make it with device.array(..., place=...) where the buffer is");
    const auto all = block->memory.host();
    b.at = block->memory.va() + static_cast<std::uint64_t>(bytes.data() - all.data());
    b.init = Init::poison;  // of a buffer at a fixed address: nothing fills it
    r.bind.external.push_back({block->memory.va(), all});
    kept.push_back(std::move(block));
  }
  return kept;
}

Result<Answer, std::vector<Diagnostic>> perform(Request& r, Device& device, const Stop& stop) {
  Stoppable stoppable{device, stop};
  r.run.map = r.map ? &*r.map : nullptr;
  const auto bound = bind(r.schedule, stoppable, r.bind);
  if (!bound) return of_file(r.file, bound.error());
  auto report = sdma::run(*bound, r.run);
  Answer a{.report = json::of(report, *bound)};
  if (!report && !stop) a.diagnosis = json::of(doctor::diagnose(doctor::snapshot_of(*bound)));
  for (const auto& [range, array] : r.outputs) {
    const auto from = bound->bytes(range);
    std::copy(from.begin(), from.end(), array.bytes().begin());
  }
  return a;
}
/// Without the lock of the interpreter.
Answer performed(Request& r, Opened& device) {
  return value_or_fail(long_call([&](const Stop& stop) { return perform(r, *device.device, stop); }, Ends::first));
}

Request request_of(Box& box, const std::vector<std::uint32_t>& gpus, std::uint64_t seed, double timeout,
                   const Arrays& inputs, const Arrays& outputs) {
  if (!(timeout > 0 && timeout < 1e9)) throw py::value_error("timeout is a number of seconds above 0");
  const auto s = box.snapshot();
  Request r{.schedule = s->schedule, .file = s->file, .map = {}};
  if (s->lines()) r.map = s->map;
  for (const auto g : gpus) r.bind.gpus.push_back(GpuId{g});
  r.run.time_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(timeout * 1e9));
  r.run.seed = seed;
  set_inputs(r, inputs);
  set_outputs(r, outputs);
  return r;
}

py::tuple on_device(const std::shared_ptr<Opened>& device, Box& box, const std::vector<std::uint32_t>& gpus,
                    std::uint64_t seed, double timeout, const Arrays& inputs, const Arrays& outputs,
                    const Arrays& buffers) {
  const Use use{device};
  auto r = request_of(box, gpus, seed, timeout, inputs, outputs);
  const auto kept = set_buffers(r, *device, buffers);
  const auto a = performed(r, *device);
  return py::make_tuple(to_python(a.report), to_python(a.diagnosis));
}

/// On a device of its own. With `events`, also returns the recording, which has room for as many; 0: the usual number.
py::tuple once(Box& box, const std::string& kind, const std::string& order, const std::vector<std::uint32_t>& gpus,
               std::uint64_t seed, double timeout, const Arrays& inputs, const Arrays& outputs,
               std::optional<std::uint64_t> events) {
  auto r = request_of(box, gpus, seed, timeout, inputs, outputs);
  std::optional<trace::Recorder> recorder;
  if (events && kind_of(kind) != DeviceKind::soft)
    fail("only a software device records the times of its packets", "run with device='soft', or use sdma run --trace");
  if (events) recorder.emplace(*events == 0 ? trace::Recorder::kDefaultEvents : std::size_t{*events});
  if (recorder && recorder->capacity() == 0)
    fail("there is no memory for a recording of " + std::to_string(*events) + " events", "give trace a smaller number");
  r.run.recorder = recorder ? &*recorder : nullptr;
  auto needed = r.schedule.gpus;
  for (const auto g : gpus) needed = std::max(needed, g + 1);
  const auto device = open(kind, needed, order, seed, r.run.recorder);
  const auto a = performed(r, *device);
  py::object recording = py::none();
  if (recorder) recording = py::cast(Recording{r.file, std::make_shared<const trace::Trace>(recorder->snapshot())});
  return py::make_tuple(to_python(a.report), to_python(a.diagnosis), recording);
}

std::shared_ptr<Block> allocate(const std::shared_ptr<Opened>& device, std::uint64_t bytes,
                                std::optional<std::uint32_t> gpu) {
  const Use use{device};
  std::optional<GpuId> where;
  if (gpu) where = GpuId{*gpu};
  auto m = value_or_fail(device->device->allocate({.where = where, .bytes = bytes}));
  if (m.host().empty()) fail("the host cannot access this memory", "use memory of the host");
  std::erase_if(device->blocks, [](const auto& b) { return b.expired(); });
  auto block = std::make_shared<Block>(device, where, std::move(m));
  device->blocks.push_back(block);
  return block;
}

}  // namespace

Use::Use(const std::shared_ptr<Opened>& o) : opened_(o) {
  if (::getpid() != o->owner)
    fail(fmt::format("process {} has opened this device, and this is process {}", o->owner, ::getpid()),
         "open a device in this process; multiprocessing does not share one");
  if (o->closed) fail("the device is closed", "open another: sdma.Device(...)");
  if (o->used) fail("another thread is using this device", "wait for its call to return, or open a device per thread");
  o->used = true;
}

void add_device(py::module_& m) {
  using py::arg;
  py::class_<Block, std::shared_ptr<Block>>(m, "Block", py::buffer_protocol()).def_buffer([](Block& b) {
    const auto all = b.memory.host();
    return py::buffer_info(reinterpret_cast<std::uint8_t*>(all.data()), static_cast<py::ssize_t>(all.size()));
  });
  py::class_<Opened, std::shared_ptr<Opened>>(m, "Opened")
      .def(py::init([](const std::string& kind, std::uint32_t gpus, const std::string& order, std::uint64_t seed) {
        return open(kind, gpus, order, seed);
      }))
      .def("run", on_device)
      .def("allocate", allocate)
      .def("close", [](Opened& o) { o.closed = true; })
      .def_property_readonly("closed", [](const Opened& o) { return o.closed; })
      .def_property_readonly("kind", [](const Opened& o) { return name(o.kind); })
      .def_property_readonly("topology", [](const Opened& o) { return to_python(json::of(o.device->topology())); });
  m.def("run", once);
}

}  // namespace sdma::python
