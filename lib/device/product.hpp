// SPDX-License-Identifier: MIT
#pragma once
// The GPUs that a software node can present: one product for each generation of engines.
//
//   const Product* p = product_of(110000);           // gfx1100: an RX 7900 XTX; null for a target without a product
//   Topology node = *node_of(*p, 2);                 // two of them, and the host
//   product_of("gfx1100") == p                       // the names that `sdma emulate --gpu` takes
//
// A row has what the kernel's driver says about the product and a runtime asks for. The rows of MI250X and MI300X were
// compared with listings of real nodes. The others state the products' public data sheets and the driver's constants
// from memory: their targets, engines and doorbells decide what a runtime sends to the engines; a wrong clock or cache
// size only shows in a listing. 6.1 has no product: its GPUs are in processors and share the host's memory.
//
// Constants and pure functions: any thread may call them. Errors: node_of refuses a number of GPUs from 9 on, and 0.
#include "sdma/device/topology.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace sdma { inline namespace v0_3 {

/// The class of its PCI function: `graphics`, a VGA controller; `display_without_output`, another display controller;
/// `accelerator`, a processing accelerator.
enum class ProductKind : std::uint8_t { graphics, display_without_output, accelerator };

struct Product {
  std::uint32_t gfx{};                     ///< as Gpu::gfx
  std::uint32_t device_id{};               ///< of its PCI function
  std::string_view name{}, kernel_name{};  ///< the maker's name, and the kernel's
  std::uint32_t memory_gib{};              ///< its VRAM in GiB
  /// How many engines face the host, how many face other GPUs, and how many queues each engine serves.
  std::uint32_t host_engines{}, xgmi_engines{}, queues_per_engine{};
  /// How many there are in the GPU; of shader arrays, how many in each shader engine.
  std::uint32_t compute_units{}, dies{}, shader_engines{},
      arrays_each{};                           ///< compute units and shader engines of all dies
  std::uint32_t lanes{}, waves_per_simd{};     ///< lanes: of a wave
  std::uint32_t l1_kib{}, l2_kib{}, l3_kib{};  ///< of a compute unit, a die, the GPU
  /// The clocks of the compute units and of the memory, in MHz; the width of the memory's bus, in bits.
  std::uint32_t engine_mhz{}, memory_mhz{}, memory_bits{};
  std::uint32_t firmware{}, sdma_firmware{};  ///< recent versions
  std::uint32_t family{}, revision{};         ///< as libdrm_amdgpu knows them
  std::uint32_t pcie{}, watts{};              ///< pcie: its generation
  ProductKind kind{};                         ///< the class of its PCI function

  /// Its memory in bytes.
  constexpr std::uint64_t memory_bytes() const noexcept { return memory_gib * std::uint64_t{1024 * 1024 * 1024}; }
  /// Is its memory HBM? In this table, only HBM has a bus of 1024 bits or more.
  constexpr bool has_hbm() const noexcept { return memory_bits >= 1024; }
  /// How many SIMDs a compute unit has.
  constexpr std::uint32_t simds_per_unit() const noexcept { return lanes == 64 ? 4 : 2; }
  /// How many compute units a shader array has, rounded up.
  constexpr std::uint32_t units_per_array() const noexcept {
    const auto arrays = shader_engines * arrays_each;
    return (compute_units + arrays - 1) / arrays;
  }
};

// clang-format off
/// The products whose figures are known: one for each target. `node_of` makes nodes of them.
inline constexpr std::array kProducts{
    // target, device, name, kernel's name | GiB | engines for the host, for GPUs; queues | CUs, dies, SEs, arrays |
    // lanes, waves | L1, L2, L3 | MHz of engine and memory, bits | firmware, sDMA's | family, revision | PCIe, W | kind
    Product{ 90000, 0x6860, "MI25",           "vega10",          16,  2,  0, 2,        64, 1,  4, 1,        64, 10,      16, 4096, 0,      1500,  945, 2048,          468, 430,  141, 0x01,  3, 300,  ProductKind::display_without_output},
    Product{ 90006, 0x66a1, "MI50",           "vega20",          32,  2,  0, 8,        60, 1,  4, 1,        64, 10,      16, 4096, 0,      1725, 1000, 4096,          479, 145,  141, 0x28,  4, 300,  ProductKind::display_without_output},
    Product{ 90008, 0x738c, "MI100",          "arcturus",        32,  2,  6, 8,       120, 1,  8, 1,        64, 10,      16, 8192, 0,      1502, 1200, 4096,           67,  18,  141, 0x32,  4, 290,  ProductKind::display_without_output},
    Product{ 90010, 0x7408, "MI250X",         "aldebaran",       64,  2,  3, 8,       104, 1,  8, 1,        64,  8,      16, 8192, 0,      1700, 1600, 4096,           78,   8,  141, 0x3c,  4, 560,  ProductKind::display_without_output},
    Product{ 90402, 0x74a1, "MI300X",         "ip discovery",   192,  2, 14, 8,       304, 8, 32, 1,        64,  8,      32, 4096, 262144, 2100, 1300, 8192,          192,  25,  141, 0x46,  5, 750,  ProductKind::accelerator},
    Product{ 90500, 0x75a3, "MI355X",         "ip discovery",   288,  2, 14, 8,       256, 8, 32, 1,        64,  8,      32, 4096, 262144, 2400, 2000, 8192,           32,  10,  141, 0x50,  5, 1400, ProductKind::accelerator},
    Product{100100, 0x731f, "RX 5700 XT",     "navi10",           8,  2,  0, 8,        40, 1,  2, 2,        32, 20,      16, 4096, 0,      2100,  875,  256,          151,  35,  143, 0x01,  4, 225,  ProductKind::graphics},
    Product{100300, 0x73bf, "RX 6900 XT",     "sienna_cichlid",  16,  4,  0, 8,        80, 1,  4, 2,        32, 16,      16, 4096, 131072, 2660, 1000,  256,          114,  76,  143, 0x28,  4, 300,  ProductKind::graphics},
    Product{110000, 0x744c, "RX 7900 XTX",    "ip discovery",    24,  2,  0, 8,        96, 1,  6, 2,        32, 16,      32, 6144, 98304,  2526, 1249,  384,          550,  20,  145, 0x01,  4, 355,  ProductKind::graphics},
    Product{120001, 0x7550, "RX 9070 XT",     "ip discovery",    16,  2,  0, 8,        64, 1,  4, 2,        32, 16,      32, 8192, 65536,  2970, 1258,  256,           94,   8,  152, 0x50,  5, 304,  ProductKind::graphics},
};
// clang-format on

/// The product with that target, or with the target of that name; null if there is none.
constexpr const Product* product_of(std::uint32_t gfx) noexcept {
  for (const auto& p : kProducts)
    if (p.gfx == gfx) return &p;
  return nullptr;
}
constexpr const Product* product_of(std::string_view name) noexcept {
  const auto gfx = target_version(name);
  return gfx ? product_of(*gfx) : nullptr;
}

/// The product whose numbers describe a GPU of that target: MI300X for a target without a product.
constexpr const Product& product_like(std::uint32_t gfx) noexcept {
  const auto* p = product_of(gfx);
  return p ? *p : *product_of(90402u);
}

/// What the kernel calls a product, and what its maker calls it. Several products have one target.
struct ProductName {
  std::uint32_t device_id{};           ///< of its PCI function
  std::string_view kernel_name, name;  ///< the kernel's name, and the maker's
};
/// Further PCI device ids, of which this table has only the names.
inline constexpr std::array kOtherProducts{
    ProductName{0x74a0, "ip discovery", "MI300A"}, ProductName{0x74a2, "ip discovery", "MI308X"},
    ProductName{0x74a5, "ip discovery", "MI325X"}, ProductName{0x740c, "aldebaran", "MI250X"},
    ProductName{0x740f, "aldebaran", "MI210"}};

/// The maker's name of a GPU: "MI300X". Empty if it is not known.
constexpr std::string_view product_name(std::uint32_t device_id, std::string_view kernel_name) noexcept {
  for (const auto& p : kProducts)
    if (p.device_id == device_id && (kernel_name == p.kernel_name || kernel_name.empty())) return p.name;
  for (const auto& p : kOtherProducts)
    if (p.device_id == device_id && (kernel_name == p.kernel_name || kernel_name.empty())) return p.name;
  return {};
}
/// The kernel's name of a product: "ip discovery". `name` itself if the product is not known.
constexpr std::string_view kernel_name(std::uint32_t device_id, std::string_view name) noexcept {
  for (const auto& p : kProducts)
    if (p.device_id == device_id && name == p.name) return p.kernel_name;
  for (const auto& p : kOtherProducts)
    if (p.device_id == device_id && name == p.name) return p.kernel_name;
  return name;
}

/// A node with 1 to 8 of these GPUs. If they have engines for xGMI, links of
/// xGMI connect them, as in `mi300x`; otherwise each reaches the host only.
Result<Topology, Diagnostic> node_of(const Product&, std::uint32_t gpus);

}}  // namespace sdma::v0_3
