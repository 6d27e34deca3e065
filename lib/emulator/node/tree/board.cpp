// SPDX-License-Identifier: MIT
// What a GPU says about itself: product, firmware, partitions, errors. The serial number is the node's made-up id, and
// the version of the VBIOS names the node. Errors of memory and of links are counted, and there are none.
//
// The blocks of a GPU with their versions and register bases, as the driver shows the product's discovery table:
//
//   ip_discovery/die/0/42/3/{hw_id,num_instance,major,minor,revision,harvest,num_base_addresses,base_addr}
//   ip_discovery/die/0/SDMA0                  a link to 42
//
// Only MI250X and MI300X have it here, and only blocks whose versions are public. Register bases are those of an MI250X
// die for both: those of an MI300X are only in its own table. The node has no registers at them.
#include "parts.hpp"

#include <fmt/format.h>

#include <vector>

namespace sdma::emulator {

namespace {

/// The driver has a file for every kind of firmware; a version is 0 where the GPU has none or the node knows none.
void add_firmware(const TreeGpu& g) {
  for (const auto* kind : {"asd",      "ce",       "dmcu",  "imu", "mc",  "me",     "mec2",    "pfp", "rlc", "rlc_srlc",
                           "rlc_srlg", "rlc_srls", "sdma2", "smc", "sos", "ta_ras", "ta_xgmi", "uvd", "vce", "vcn"})
    g.file(fmt::format("fw_version/{}_fw_version", kind), "0x00000000\n");
  g.file("fw_version/mec_fw_version", fmt::format("0x{:08x}\n", g.gpu.firmware));
  g.file("fw_version/sdma_fw_version", fmt::format("0x{:08x}\n", g.gpu.sdma_firmware));
}

/// A part of the GPU that reports errors: its bit in the mask of features, and its counters.
struct Block {
  unsigned bit;
  const char* name;
};
constexpr Block kBlocks[] = {{0, "umc"}, {1, "sdma"}, {2, "gfx"}, {3, "mmhub"}, {5, "pcie_bif"}, {7, "xgmi_wafl"}};

void add_errors(const TreeGpu& g) {
  unsigned mask = 0;
  for (const auto& b : kBlocks) {
    mask |= 1u << b.bit;
    // Newer drivers add a third line for deferred errors; version 5.2.3 of rocm-smi aborts if it finds one.
    g.file(fmt::format("ras/{}_err_count", b.name), "ue: 0\nce: 0\n");
  }
  g.file("ras/features", fmt::format("feature mask: 0x{:x}\n", mask));
  g.file("ras/gpu_vram_bad_pages", "");
}

}  // namespace

void add_board(const TreeGpu& g) {
  const auto id = fmt::format("{:016x}\n", g.gpu.unique_id);
  g.file("unique_id", id);
  g.file("serial_number", id);
  g.file("product_name", fmt::format("AMD {} {}\n", g.product.kind == ProductKind::graphics ? "Radeon" : "Instinct",
                                     g.properties.name));
  g.file("manufacturer", "AMD\n");
  g.file("board_info", g.is_accelerator() || g.product.gfx == 90010 ? "type : oam\n" : "type : cem\n");
  g.file("vbios_version", "sdma-emulator\n");
  g.file("pcie_replay_count", "0\n");
  g.file("pcie_bw", "0 0 256\n");  // packets received and sent, and the bytes of the largest
  add_firmware(g);
  add_errors(g);
  if (g.is_accelerator()) {
    g.file("current_compute_partition", "SPX\n");
    g.file("available_compute_partition", "SPX\n");
    g.file("current_memory_partition", "NPS1\n");
  }
}

namespace {

struct IpBlock {
  std::uint32_t hw_id;
  const char* name;
  std::uint32_t major, minor, revision, instances;
  std::vector<std::uint32_t> bases;
};

const std::vector<std::uint32_t> kAthub{0xc20, 0x2408c00}, kGc{0x2000, 0xa000, 0x2402c00}, kHdp{0xf20, 0x240a400},
    kMmhub{0x1a000, 0x2408800}, kMp{0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00},
    kNbif{0, 0x14, 0xd20, 0x10400, 0x241b000, 0x4040000}, kOsssys{0x10a0, 0x240a000}, kSdma{0x1260, 0x12540, 0x40a800},
    kUmc{0x14000, 0x54000, 0x2425800}, kVcn{0x7800, 0x7e00, 0x2403000};

std::vector<IpBlock> blocks(const TreeGpu& g) {
  const auto engines = g.properties.engines();
  if (g.product.gfx == 90010)
    return {{1, "MP1", 13, 0, 2, 1, kMp},      {11, "GC", 9, 4, 2, 1, kGc},
            {12, "UVD", 2, 6, 0, 2, kVcn},     {34, "MMHUB", 9, 4, 2, 1, kMmhub},
            {35, "ATHUB", 9, 4, 2, 1, kAthub}, {40, "OSSSYS", 4, 4, 0, 1, kOsssys},
            {41, "HDP", 4, 4, 0, 1, kHdp},     {42, "SDMA0", 4, 4, 0, engines, kSdma},
            {108, "NBIF", 7, 4, 4, 1, kNbif},  {150, "UMC", 6, 7, 0, 4, kUmc},
            {255, "MP0", 13, 0, 2, 1, kMp}};
  return {
      {1, "MP1", 13, 0, 6, 1, kMp},      {11, "GC", 9, 4, 3, g.gpu.xcc, kGc},    {12, "UVD", 4, 0, 3, 4, kVcn},
      {34, "MMHUB", 1, 8, 0, 4, kMmhub}, {35, "ATHUB", 1, 8, 0, 1, kAthub},      {40, "OSSSYS", 4, 4, 2, 1, kOsssys},
      {41, "HDP", 4, 4, 2, 1, kHdp},     {42, "SDMA0", 4, 4, 2, engines, kSdma}, {108, "NBIF", 7, 9, 0, 1, kNbif},
      {150, "UMC", 12, 0, 0, 1, kUmc},   {255, "MP0", 13, 0, 6, 1, kMp}};
}

}  // namespace

void add_ip_discovery(const TreeGpu& g) {
  if (g.product.gfx != 90010 && g.product.gfx != 90402) return;
  const std::string die = "ip_discovery/die/0/";
  std::uint32_t all = 0;
  for (const auto& b : blocks(g)) {
    const auto block = fmt::format("{}{}", die, b.hw_id);
    std::string bases;
    for (const auto base : b.bases) bases += fmt::format("0x{:08X}\n", base);
    for (std::uint32_t i = 0; i < b.instances; ++i, ++all) {
      const auto file = [&](const char* name, std::string text) {
        g.file(fmt::format("{}/{}/{}", block, i, name), std::move(text));
      };
      file("hw_id", fmt::format("{}\n", b.hw_id));
      file("num_instance", fmt::format("{}\n", i));
      file("major", fmt::format("{}\n", b.major));
      file("minor", fmt::format("{}\n", b.minor));
      file("revision", fmt::format("{}\n", b.revision));
      file("harvest", "0x0\n");
      file("num_base_addresses", fmt::format("{}\n", b.bases.size()));
      file("base_addr", bases);
    }
    g.tree.add_link(fmt::format("{}/{}{}", g.device, die, b.name), fmt::format("{}/{}", g.device, block));
  }
  g.file(die + "num_ips", fmt::format("{}\n", all));
}

}  // namespace sdma::emulator
