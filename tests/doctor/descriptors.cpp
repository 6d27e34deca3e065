#include "../../lib/doctor/descriptors.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

using namespace sdma;
using namespace sdma::doctor;

namespace {

/// A descriptor as the driver prints it: eight dwords a line, without marks.
std::string printed(const std::vector<std::uint32_t>& dwords) {
  std::string text;
  for (std::size_t i = 0; i < dwords.size(); ++i)
    text += i % 8 == 0 ? fmt::format("{}    {:08x}: {:08x}", i == 0 ? "" : "\n", i * 4, dwords[i])
                       : fmt::format(" {:08x}", dwords[i]);
  return text + "\n";
}

std::vector<std::uint32_t> descriptor(std::uint32_t engine, std::uint32_t slot) {
  std::vector<std::uint32_t> d(128);
  d[0] = 10 << 1 | 1;  // 1024 dwords
  d[1] = 0x7fb1'0000 >> 8 | 0x12 << 24;
  d[2] = 0x7f;
  d[8] = 0x7f12;
  d[9] = 0x2000'0040;
  d[126] = engine;
  d[127] = slot;
  return d;
}

}  // namespace

TEST_CASE("the descriptors of one process, among those of others and of compute queues") {
  const auto text = "Process 47 PASID 0x8001:\n  SDMA queue on device 3a26\n" + printed(descriptor(1, 1)) +
                    "Process 4711 PASID 0x8002:\n  Compute queue on device 3a26\n" + printed(descriptor(9, 9)) +
                    "  SDMA queue on device 3a26\n" + printed(descriptor(5, 2)) + "  SDMA queue on device 4b\n" +
                    printed(descriptor(15, 7)) + "Process 4712 PASID 0x8003:\n  SDMA queue on device 3a26\n" +
                    printed(descriptor(2, 2));
  const auto all = sdma_descriptors(text, 4711);
  REQUIRE(all.size() == 2);
  CHECK(all[0].gpu_id == 0x3a26);
  CHECK(all[0].engine == EngineId{5});
  CHECK(all[0].slot == 2);
  CHECK(all[0].ring == GpuVa{(std::uint64_t{0x7f} << 32 | (0x7fb1'0000u >> 8 | 0x12u << 24)) * 256});
  CHECK(all[0].rptr == GpuVa{0x7f12'2000'0040});
  CHECK(all[0].ring_bytes == 4096);
  CHECK(all[1].gpu_id == 0x4b);
  CHECK(all[1].engine == EngineId{15});
}

TEST_CASE("a descriptor that is cut short is left out, and the next one is not") {
  const auto whole = printed(descriptor(5, 2));
  const auto text = "Process 7 PASID 0x1:\n  SDMA queue on device 1\n" + whole.substr(0, whole.size() - 60) +
                    "\n  SDMA queue on device 2\n" + whole;
  const auto all = sdma_descriptors(text, 7);
  REQUIRE(all.size() == 1);
  CHECK(all[0].gpu_id == 2);
  CHECK(sdma_descriptors("", 7).empty());
  CHECK(sdma_descriptors("Process 7", 7).empty());
  CHECK(sdma_descriptors("  SDMA queue on device 1\n" + whole, 7).empty());
}
