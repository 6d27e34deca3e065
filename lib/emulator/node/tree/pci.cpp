// SPDX-License-Identifier: MIT
// A GPU as a PCI device on a bus of its own, next to the machine's devices: what lspci, hwloc and libdrm read.
//
// Addresses of BARs are invented; their sizes are those of the product.
#include "parts.hpp"

#include <fmt/format.h>

#include <linux/pci_regs.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sdma::emulator {
namespace {

constexpr std::uint16_t kAmd = 0x1002;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Bar {
  std::uint64_t base{}, bytes{};
  std::uint32_t kind{};  ///< the low bits of the register
};
constexpr std::size_t kBars = 6, kResources = 13;  // with the ROM and those of a bridge

/// 0: the memory, which the host can access whole; 2: doorbells; 5: registers.
std::vector<Bar> bars(const TreeGpu& g) {
  constexpr std::uint32_t kWide = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
  constexpr std::uint64_t kApart = std::uint64_t{1} << 41;
  std::uint64_t aperture = 256 * kMiB;
  while (aperture < g.properties.memory_bytes) aperture *= 2;
  const auto base = kApart * (g.index + 1);
  std::vector<Bar> b(kBars);
  b[0] = {base, aperture, kWide};
  b[2] = {base + kApart / 2, 2 * kMiB, kWide};
  b[5] = {0xa000'0000 + g.index * kMiB, kMiB / 2, 0};
  return b;
}

/// The configuration space: a header, and one capability that describes the link.
class Config {
 public:
  Config() : bytes_(kBytes, '\0') {}
  template <class T> Config& put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  static constexpr std::size_t kBytes = 4096;
  std::string bytes_;
};

struct PciLink {
  const char* text;
  std::uint16_t speed;
};
constexpr std::uint16_t kLanes = 16;
PciLink link(const TreeGpu& g) {
  switch (g.product.pcie) {
    case 3: return {"8.0 GT/s PCIe\n", PCI_EXP_LNKSTA_CLS_8_0GB};
    case 4: return {"16.0 GT/s PCIe\n", PCI_EXP_LNKSTA_CLS_16_0GB};
    default: return {"32.0 GT/s PCIe\n", PCI_EXP_LNKSTA_CLS_32_0GB};
  }
}

std::string config(const TreeGpu& g, std::uint16_t device_class) {
  constexpr std::uint8_t kCapability = 0x64;
  const auto lanes = static_cast<std::uint16_t>(kLanes * (PCI_EXP_LNKSTA_NLW_X1));
  Config c;
  c.put(PCI_VENDOR_ID, kAmd)
      .put(PCI_DEVICE_ID, static_cast<std::uint16_t>(g.gpu.device_id))
      .put(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE})
      .put(PCI_STATUS, std::uint16_t{PCI_STATUS_CAP_LIST})
      .put(PCI_CLASS_DEVICE, device_class)
      .put(PCI_SUBSYSTEM_VENDOR_ID, kAmd)
      .put(PCI_SUBSYSTEM_ID, static_cast<std::uint16_t>(g.gpu.device_id))
      .put(PCI_CAPABILITY_LIST, kCapability)
      .put(kCapability, std::uint8_t{PCI_CAP_ID_EXP})
      .put(kCapability + PCI_EXP_FLAGS, std::uint16_t{2})  // version 2, an endpoint
      .put(kCapability + PCI_EXP_LNKCAP, static_cast<std::uint32_t>(link(g).speed | lanes))
      .put(kCapability + PCI_EXP_LNKSTA, static_cast<std::uint16_t>(link(g).speed | lanes))
      .put(kCapability + PCI_EXP_LNKCTL2, link(g).speed);
  const auto all = bars(g);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = PCI_BASE_ADDRESS_0 + 4 * i;
    if (all[i].bytes == 0) continue;
    c.put(at, static_cast<std::uint32_t>(all[i].base) | all[i].kind);
    if ((all[i].kind & PCI_BASE_ADDRESS_MEM_TYPE_64) != 0) c.put(at + 4, static_cast<std::uint32_t>(all[i].base >> 32));
  }
  return c.take();
}

std::string resources(const TreeGpu& g) {
  constexpr std::uint64_t kMemory = 0x40200, kPrefetch = 0x2000, kWide = 0x10'0000;  // the kernel's flags of a resource
  auto all = bars(g);
  all.resize(kResources);
  std::string out;
  for (const auto& b : all) {
    const auto wide = (b.kind & PCI_BASE_ADDRESS_MEM_TYPE_64) != 0;
    const auto flags = b.bytes == 0 ? 0 : kMemory | b.kind | (wide ? kPrefetch | kWide : 0);
    out += fmt::format("0x{:016x} 0x{:016x} 0x{:016x}\n", b.base, b.bytes == 0 ? 0 : b.base + b.bytes - 1, flags);
  }
  return out;
}

/// The NUMA node that the GPU's link leads to.
std::uint32_t numa_node(const TreeGpu& g) {
  for (const auto& l : g.tree.node().topology.links)
    if (l.from == LinkEnd::gpu(static_cast<std::uint32_t>(g.index)) && l.to.kind == LinkEnd::Kind::cpu)
      return l.to.index;
  return 0;
}

/// What the machine says about the processors of that node; without NUMA, all of them.
std::string processor_list(std::uint32_t node) {
  auto text = machine_file(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
  return text.empty() ? machine_file("/sys/devices/system/cpu/online") : text;
}
std::string processor_map(std::uint32_t node) {
  auto text = machine_file(fmt::format("/sys/devices/system/node/node{}/cpumap", node));
  return text.empty() ? processor_mask(0, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF))) : text;
}

}  // namespace

std::string processor_mask(std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t kWord = 32;
  std::string text;
  for (auto word = (first + count - 1) / kWord + 1; word-- > 0;) {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < kWord; ++i)
      if (word * kWord + i >= first && word * kWord + i < first + count) bits |= std::uint32_t{1} << i;
    text += text.empty() ? fmt::format("{:x}", bits) : fmt::format(",{:08x}", bits);
  }
  return text + "\n";
}

TreeGpu::TreeGpu(Tree& t, std::size_t i)
    : tree(t),
      index(i),
      gpu(t.node().gpus[i]),
      properties(t.node().topology.gpus[i]),
      product(product_like(properties.gfx)),
      slot(pci_address(gpu)),
      bus(slot.substr(0, 7)),
      device(fmt::format("/sys/devices/pci{}/{}", bus, slot)) {}

void TreeGpu::file(std::string_view name, std::string text) const {
  tree.add_text(fmt::format("{}/{}", device, name), std::move(text));
}
void TreeGpu::live(std::string_view name, std::string (*contents)(std::uint64_t)) const {
  tree.add_live(fmt::format("{}/{}", device, name), contents, index);
}

void add_pci(const TreeGpu& g) {
  // A processing accelerator, a VGA controller, or another display controller: an MI250X has no display.
  const auto kind = g.product.kind;
  const std::uint16_t device_class = kind == ProductKind::accelerator ? 0x1200
                                     : kind == ProductKind::graphics  ? 0x0300
                                                                      : 0x0380;
  const auto id = g.gpu.device_id;
  const auto node = numa_node(g);
  const auto map = processor_map(node), list = processor_list(node);
  g.file("vendor", "0x1002\n");
  g.file("device", fmt::format("0x{:04x}\n", id));
  g.file("subsystem_vendor", "0x1002\n");
  g.file("subsystem_device", fmt::format("0x{:04x}\n", id));
  g.file("revision", "0x00\n");
  g.file("class", fmt::format("0x{:04x}00\n", device_class));
  g.file("config", config(g, device_class));
  g.file("resource", resources(g));
  g.file("numa_node", fmt::format("{}\n", node));
  g.file("local_cpus", map);
  g.file("local_cpulist", list);
  g.file("irq", "0\n");
  g.file("enable", "1\n");
  g.file("power_state", "D0\n");
  for (const auto* which : {"current", "max"}) {
    g.file(fmt::format("{}_link_speed", which), link(g).text);
    g.file(fmt::format("{}_link_width", which), fmt::format("{}\n", kLanes));
  }
  const auto alias = fmt::format("pci:v00001002d{:08X}sv00001002sd{:08X}bc{:02X}sc{:02X}i00", id, id,
                                 device_class / 256, device_class % 256);
  g.file("modalias", alias + "\n");
  g.file("uevent", fmt::format("DRIVER=amdgpu\nPCI_CLASS={:X}00\nPCI_ID=1002:{:04X}\nPCI_SUBSYS_ID=1002:{:04X}\n"
                               "PCI_SLOT_NAME={}\nMODALIAS={}\n",
                               device_class, id, id, g.slot, alias));
  g.tree.add_link(g.device + "/subsystem", "/sys/bus/pci");
  g.tree.add_link(g.device + "/driver", "/sys/bus/pci/drivers/amdgpu");
  g.tree.add_link("/sys/bus/pci/drivers/amdgpu/" + g.slot, g.device);
  g.tree.add_link("/sys/bus/pci/devices/" + g.slot, g.device);
  const auto bus = fmt::format("/sys/devices/pci{0}/pci_bus/{0}", g.bus);
  g.tree.add_text(bus + "/cpuaffinity", map);
  g.tree.add_text(bus + "/cpulistaffinity", list);
  g.tree.add_link("/sys/class/pci_bus/" + g.bus, bus);
}

}  // namespace sdma::emulator
