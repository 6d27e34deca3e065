// SPDX-License-Identifier: MIT
// What a GPU says about itself: product, firmware, partitions, errors. The serial number is the node's made-up id, and
// the version of the VBIOS names the node. Errors of memory and of links are counted, and there are none.
#include "parts.hpp"

#include <fmt/format.h>

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

}  // namespace sdma::emulator
