// SPDX-License-Identifier: MIT
// sdma topology: a node's GPUs, engines and links, and the engine that serves each pair.
#include "sdma/device/topology.hpp"
#include "sdma/device/cuda.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/device/rocr.hpp"
#include "sdma/device/soft.hpp"

#include "input.hpp"
#include "output.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

namespace sdma::tool {
namespace {

struct TopologyArguments {
  std::string file;
  bool json = false;
  std::optional<DeviceKind> device;
  std::uint32_t gpus = 8;
};

/// Appends what only an open device knows. If it cannot be opened, reports why.
void identify(std::string& out) {
  const auto d = KfdDevice::open();
  if (!d) return report(KfdDevice::missing());
  out += "\nKFD " + (*d)->version() + "\n";
  for (std::size_t i = 0; i < (*d)->gpus().size(); ++i) {
    const auto& g = (*d)->gpus()[i];
    out += "gpu" + std::to_string(i) + ": " + g.driver + ", sDMA firmware " + std::to_string(g.sdma_firmware) +
           ", compute firmware " + std::to_string(g.compute_firmware) + ", renderD" +
           std::to_string(g.kernel.render_minor) + ", clock " +
           (g.clock_hz == 0 ? "?" : std::to_string(g.clock_hz / 1'000'000)) + " MHz\n";
  }
}

/// What only the driver's device knows. `d`: open.
void identify(const CudaDevice& d, std::string& out) {
  out += "\n" + d.version() + "\n";
  for (std::size_t i = 0; i < d.gpus().size(); ++i) {
    const auto& g = d.gpus()[i];
    out += "gpu" + std::to_string(i) + ": " + g.name + ", " + g.pci + ", compute capability " +
           std::to_string(g.capability / 10) + "." + std::to_string(g.capability % 10) +
           (g.host_atomics ? ", atomics to the host\n" : ", no atomics to the host\n");
  }
}

/// What only a ROCr that has been initialised knows. `d`: open.
void identify(const RocrDevice& d, std::string& out) {
  constexpr std::string_view kQueues[] = {"hsa_amd_queue_create", "hsa_amd_sdma_queue_create", "libhsakmt"};
  out += "\nROCr, interface " + d.version() + ", queues by " +
         std::string(kQueues[static_cast<std::size_t>(d.queues())]) + "\n";
}

/// Of a software device there is nothing more to know.
void identify(const SoftDevice&, std::string&) {}

template <class D> int show(const TopologyArguments& o) {
  const auto d = D::open();
  if (!d) return report(d.error()), kInput;
  auto text = o.json ? to_json((*d)->topology()) : to_table((*d)->topology());
  if (!o.json) identify(**d, text);
  return write_text("-", std::move(text));
}

Result<Topology, Diagnostic> load(const TopologyArguments& o) {
  if (names_layout(o.file)) return layout(o.file);
  if (!o.file.empty()) {
    const auto text = read_node(o.file, "sdma topology --json");
    if (!text) return text.error();
    return topology_from_json(*text, shown(o.file));
  }
  if (!o.device) return mi300x(o.gpus);
  return kfd_topology();
}

int topology_verb(const TopologyArguments& o) {
  if (o.device == DeviceKind::cuda) return show<CudaDevice>(o);
  if (o.device == DeviceKind::rocr) return show<RocrDevice>(o);
  if (o.device == DeviceKind::soft) return show<SoftDevice>(o);
  const auto node = load(o);
  if (!node) return report(node.error()), o.file.empty() && !o.device ? kUsage : kInput;
  auto text = o.json ? to_json(*node) : to_table(*node);
  if (o.device == DeviceKind::kfd && !o.json) identify(text);
  return write_text("-", std::move(text));
}

}  // namespace

void add_topology(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<TopologyArguments>();
  const auto file = verb.value(
      "FILE", o->file,
      "a node that --json has printed, - for standard input; or a layout, such as mi308x:8, mi250x:2, mesh:16, ring:8, "
      "switch:8x400G or nodes:2x8");
  verb.flag("--json", o->json, "print JSON, to use as FILE or with sdma check --topology");
  auto device =
      add_device(verb, o->device, "device whose node to show", "the node that sdma simulate takes", "simulate");
  auto gpus = add_count(verb, "--gpus", o->gpus, 1, 8, "show the first N GPUs of a node of eight MI300X");
  device.excludes(file);
  gpus.excludes(file).excludes(device);
  verb.exits({{kInput, "no device, or an error of the input or output"}});
  verb.manual("docs/device.md#topology");
  verb.footer(
      "To mark engines that the driver counts but that do not work, add \"dead_engines\": [3, 5] to a GPU of FILE.\n"
      "Examples:\n"
      "  sdma topology\n"
      "  sdma topology --gpus 4 --json > node.json; sdma topology node.json\n"
      "  sdma topology switch:8x400G\n"
      "  sdma topology --device=kfd\n"
      "  sdma topology --device=cuda\n"
      "  sdma emulate --gpus=8 -- sdma topology --device=kfd");
  action = [o] { return topology_verb(*o); };
}

}  // namespace sdma::tool
