// What a GPU says about itself: product, firmware, partitions, errors. The serial number is the node's made-up id, and the
// version of the VBIOS names the node.
#include "parts.hpp"

#include <fmt/format.h>

namespace sdma::emulator {

void add_board(const TreeGpu& g) {
  const auto id = fmt::format("{:016x}\n", g.gpu.unique_id);
  g.file("unique_id", id);
  g.file("serial_number", id);
  g.file("product_name", fmt::format("AMD Instinct {}\n", g.properties.name));
  g.file("manufacturer", "AMD\n");
  g.file("board_info", "type : oam\n");
  g.file("vbios_version", "sdma-emulator\n");
  g.file("pcie_replay_count", "0\n");
  g.file("fw_version/mec_fw_version", fmt::format("0x{:08x}\n", g.gpu.firmware));
  g.file("fw_version/sdma_fw_version", fmt::format("0x{:08x}\n", g.gpu.sdma_firmware));
  g.file("ras/features", "feature mask: 0x0\n");
  g.file("ras/gpu_vram_bad_pages", "");
  if (g.mi200) {
    g.file("pcie_bw", "0 0 256\n");  // packets received and sent, and the bytes of the largest
  } else {
    g.file("current_compute_partition", "SPX\n");
    g.file("available_compute_partition", "SPX\n");
    g.file("current_memory_partition", "NPS1\n");
  }
}

}  // namespace sdma::emulator
