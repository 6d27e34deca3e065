// SPDX-License-Identifier: MIT
#pragma once
// The parts of the tree: one function for each group of files, and the GPU that a group describes.
//
//   const TreeGpu gpu{tree, 0};
//   gpu.file("vendor", "0x1002\n");          // /sys/devices/pci0000:10/0000:10:00.0/vendor
//
// A value is the one that the kernel's driver shows on the product, if it is public. A sensor or a counter of hardware
// that does not exist here is absent, or has a value that cannot be mistaken for a measurement: 0, the same temperature
// everywhere, or the driver's "not available".
// docs/emulator.md lists them.
//
// Called while the tree is built, by one thread.
#include "../../../device/product.hpp"
#include "../tree.hpp"

#include <string>
#include <string_view>

namespace sdma::emulator {

/// What every sensor of a temperature shows, in degrees Celsius.
inline constexpr unsigned kTemperature = 25;

/// One GPU, as a PCI device with a driver.
struct TreeGpu {
  TreeGpu(Tree&, std::size_t index);

  Tree& tree;
  std::size_t index{};
  const SysfsGpu& gpu;
  const Gpu& properties;  ///< of the topology
  const Product& product;
  std::string slot;    ///< "0000:10:00.0"
  std::string bus;     ///< "0000:10"
  std::string device;  ///< "/sys/devices/pci0000:10/0000:10:00.0"

  /// Adds a file below `device`.
  void file(std::string_view name, std::string text) const;
  void live(std::string_view name, std::string (*contents)(std::uint64_t gpu)) const;
  /// Does its driver have what it has for gfx94x and later: partitions, and metrics without averages?
  bool is_accelerator() const noexcept { return product.kind == ProductKind::accelerator; }
};

void add_kfd(Tree&);
void add_processes(Tree&);
void add_debugfs(Tree&);
void add_maps(Tree&);
void add_caches(Tree&);
void add_gpu(const TreeGpu&);
void add_pci(const TreeGpu&);
void add_metrics(const TreeGpu&);

/// What [gpu] of tree.txt needs to know about its PCI device.
FileValues pci_values(const TreeGpu&);

/// An entry of the directory of a process that uses a node now, or of a descriptor in /proc; null for any other path.
/// It remains valid. Any thread.
const Entry* find_process_entry(std::string_view path);

/// Contents of a file of the machine; "" if it cannot be read.
std::string machine_file(const std::string& path);
/// Processors first .. first + count - 1 as the kernel shows a mask: words of 32 bits, the highest first; a newline.
std::string processor_mask(std::uint32_t first, std::uint32_t count);

}  // namespace sdma::emulator
