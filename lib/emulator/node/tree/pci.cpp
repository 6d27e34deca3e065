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

namespace sdma::emulator {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Bar {
  std::uint64_t begin{}, bytes{};
  std::uint64_t end() const noexcept { return begin + bytes - 1; }
};
struct Bars {
  Bar memory, doorbells, registers;
};
Bars bars(const TreeGpu& g) {
  constexpr std::uint64_t kApart = std::uint64_t{1} << 41;
  std::uint64_t aperture = 256 * kMiB;
  while (aperture < g.properties.memory_bytes) aperture *= 2;
  const auto base = kApart * (g.index + 1);
  return {{base, aperture}, {base + kApart / 2, 2 * kMiB}, {0xa000'0000 + g.index * kMiB, kMiB / 2}};
}

/// A processing accelerator, a VGA controller, or another display controller: an MI250X has no display.
std::uint16_t device_class(const TreeGpu& g) {
  const auto kind = g.product.kind;
  return kind == ProductKind::accelerator ? 0x1200 : kind == ProductKind::graphics ? 0x0300 : 0x0380;
}

/// The configuration space: a header, and one capability that describes the link.
std::string config(const TreeGpu& g) {
  constexpr std::size_t kBytes = 4096;
  constexpr std::uint16_t kAmd = 0x1002, kLanes = 16;
  constexpr std::uint8_t kCapability = 0x64;
  constexpr std::uint32_t kWide = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
  std::string bytes(kBytes, '\0');
  const auto put = [&](std::size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  const auto id = static_cast<std::uint16_t>(g.gpu.device_id);
  const auto speed = static_cast<std::uint16_t>(g.product.pcie);  // its number in a register is the generation
  const auto link = static_cast<std::uint16_t>(speed | kLanes * PCI_EXP_LNKSTA_NLW_X1);
  put(PCI_VENDOR_ID, kAmd);
  put(PCI_DEVICE_ID, id);
  put(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE});
  put(PCI_STATUS, std::uint16_t{PCI_STATUS_CAP_LIST});
  put(PCI_CLASS_DEVICE, device_class(g));
  put(PCI_SUBSYSTEM_VENDOR_ID, kAmd);
  put(PCI_SUBSYSTEM_ID, id);
  put(PCI_CAPABILITY_LIST, kCapability);
  put(kCapability, std::uint8_t{PCI_CAP_ID_EXP});
  put(kCapability + PCI_EXP_FLAGS, std::uint16_t{2});  // version 2, an endpoint
  put(kCapability + PCI_EXP_LNKCAP, std::uint32_t{link});
  put(kCapability + PCI_EXP_LNKSTA, link);
  put(kCapability + PCI_EXP_LNKCTL2, speed);
  const auto b = bars(g);
  put(PCI_BASE_ADDRESS_0, b.memory.begin | kWide);  // two registers each
  put(PCI_BASE_ADDRESS_2, b.doorbells.begin | kWide);
  put(PCI_BASE_ADDRESS_5, static_cast<std::uint32_t>(b.registers.begin));
  return bytes;
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

FileValues pci_values(const TreeGpu& g) {
  const auto b = bars(g);
  const auto kind = device_class(g);
  FileValues values;
  values("at", g.device)("slot", g.slot)("bus", g.bus)("device_id", g.gpu.device_id);
  values("base_class", kind / 256)("sub_class", kind % 256)("numa_node", numa_node(g));
  values("memory", b.memory.begin)("memory_end", b.memory.end());
  values("doorbells", b.doorbells.begin)("doorbells_end", b.doorbells.end());
  values("registers", b.registers.begin)("registers_end", b.registers.end());
  values("gt_per_s", 1u << g.product.pcie);
  return values;
}

void add_pci(const TreeGpu& g) {
  const auto node = numa_node(g);
  const auto map = processor_map(node), list = processor_list(node);
  const auto bus = fmt::format("/sys/devices/pci{0}/pci_bus/{0}", g.bus);
  g.file("config", config(g));
  g.file("local_cpus", map);
  g.file("local_cpulist", list);
  g.tree.add_text(bus + "/cpuaffinity", map);
  g.tree.add_text(bus + "/cpulistaffinity", list);
}

}  // namespace sdma::emulator
